"""Checkpoints: a fit that was killed goes on where it was, and ends with the same bits.

A fit trains one net or several, one after the other. Each of these trainings has one file: how far
it has come or, once it is finished, what it left. A fit that is begun again takes back what is
finished, goes on in the middle of what is not, and computes anew all that lies between trainings,
which the seed decides. No pickle: a file is safetensors with some JSON inside, whole or not there.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import save as save_tensors
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from qpignn import __version__
from qpignn.errors import ModelFileError, QpignnWarning, SettingError
from qpignn.io.files import write_atomically, write_errors
from qpignn.io.tensors import (
    bytes_to_tensor,
    check_tensors,
    pack_json,
    read_tensors,
    tensor_to_bytes,
    unpack_json,
)
from qpignn.training.history import History
from qpignn.training.weights import FlatWeights

if TYPE_CHECKING:
    from torch_geometric.data import Data

FORMAT = 1
NAME = "training-{}.safetensors"
EVERY = 10.0  # seconds: what a kill may cost
SNAPSHOT_EVERY = 0.25  # seconds: what Ctrl-C may cost
ANEW = "start anew: without --resume, or with another folder"
Draws = torch.Generator | np.random.Generator
State = tuple[dict[str, Any], dict[str, Tensor]]
"""A training as words and tensors."""


@dataclass
class Course:
    """How far a training has come: all that decides how it goes on.

    Attributes:
        net, weights: what is trained, and its optimiser.
        draws: generators that steps draw from, beside those the net's modules hold.
        history: one entry an epoch.
        best_score, best_weights: of the best look at held-out nodes; none before the first.
    """

    net: nn.Module
    weights: FlatWeights
    draws: Sequence[Draws] = ()
    history: History = field(default_factory=History)
    best_score: float = math.inf
    best_weights: Tensor | None = None

    def state(self, *, finished: bool) -> State:
        """Return words and tensors for a file; of a finished training only what it left."""
        words = {"finished": finished, "history": asdict(self.history), "best": self.best_score}
        tensors = self.weights.state()
        if finished:
            tensors = {"vector": tensors["vector"]}
        elif self.best_weights is not None:
            tensors["best"] = self.best_weights
        draws: dict[str, Any] = {}
        for i, draw in enumerate(self._draws()):
            if isinstance(draw, torch.Generator):
                tensors[f"draws.{i}"] = draw.get_state()
            else:
                draws[f"draws.{i}"] = draw.bit_generator.state
        return {**words, "draws": draws}, tensors

    def take_back(self, words: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Become what :meth:`state` was taken from.

        Raises:
            KeyError, TypeError, ValueError, RuntimeError: where it was taken from something else.
        """
        self.history = History.from_dict(words["history"])
        self.best_score, self.best_weights = float(words["best"]), tensors.get("best")
        if self.best_weights is not None:
            check_tensors({"best": self.best_weights}, {"best": self.weights.vector})
        if words["finished"]:
            self.weights.restore(tensors["vector"])
        else:
            self.weights.restore_state(tensors)
        for i, draw in enumerate(self._draws()):
            if isinstance(draw, torch.Generator):
                draw.set_state(tensors[f"draws.{i}"])
            else:
                draw.bit_generator.state = words["draws"][f"draws.{i}"]

    def _draws(self) -> list[Draws]:
        """Every generator once, always in the same order; a method may have exchanged some."""
        held = [getattr(module, "generator", None) for module in self.net.modules()]
        every = [draw for draw in (*held, *self.draws) if draw is not None]
        return list({id(draw): draw for draw in every}.values())


class Keeper:
    """Keeps the trainings of one fit in a folder; made by :func:`checkpoints`."""

    def __init__(
        self, folder: Path, key: str, every: float, writes: bool, tell: Callable[[str], None]
    ) -> None:
        self.folder, self.key, self.every = folder, key, every
        self.writes, self.tell = writes, tell
        self.untold = False  # whether it is still to be said where a fit goes on
        self._agreed: dict[str, Any] = {}
        for path in _files(folder):  # what cannot be used is refused before any work is done
            words, _ = _read(path, key)
            self._agreed |= words["agreed"]
            self.untold = True
        self._number, self._start = 0, ""
        self._kept_at = self._snapshot_at = time.monotonic()
        self._snapshot: State | None = None  # newer than the file; None where the file is as new

    def agree(self, name: str, value: Any) -> Any:
        """Return what a choice was when the fit began; it may depend on the machine."""
        return self._agreed.setdefault(name, value)

    def take_up(self, course: Course) -> bool:
        """Begin the next training, where it was left; return whether it was finished."""
        self._number += 1
        self._start = _digest({"vector": course.weights.vector}).hex()
        path = self._path()
        if path.is_file():
            words, tensors = _read(path, self.key)
            if words["start"] != self._start:
                raise ModelFileError(
                    f"{path}: expected a training that began with these weights, got one that "
                    f"began with others: the fit or the code has changed since; {ANEW}"
                )
            try:
                course.take_back(words, tensors)
            except (KeyError, TypeError, ValueError, RuntimeError) as error:
                raise _damaged(path) from error
            if words["finished"]:
                return True
            self._snapshot = None
        else:
            self._take_snapshot(course)
        if self.untold:
            self.tell(f"going on at epoch {len(course.history)} of training {self._number}")
            self.untold = False
        return False

    def keep(self, course: Course) -> None:
        """Keep a training between two epochs, if the last time is long enough ago."""
        now = time.monotonic()
        if now - self._kept_at >= self.every:
            self._write(course.state(finished=False))
            self._snapshot = None
        elif now - self._snapshot_at >= SNAPSHOT_EVERY:
            self._take_snapshot(course)

    def finish(self, course: Course) -> None:
        """Keep what a training left; an interrupted one stays as :meth:`interrupt` wrote it."""
        self._write(course.state(finished=True))

    def interrupt(self) -> None:
        """Write an interrupted training as it was between two epochs, and nothing from then on.

        Ctrl-C can come in the middle of a step, so the training itself may be inconsistent.
        """
        if self._snapshot is not None:
            self._write(self._snapshot)
        self.writes = False

    def _take_snapshot(self, course: Course) -> None:
        if self.writes:
            words, tensors = course.state(finished=False)
            self._snapshot = words, {name: tensor.clone() for name, tensor in tensors.items()}
            self._snapshot_at = time.monotonic()

    def _write(self, state: State) -> None:
        if not self.writes:
            return
        words, tensors = dict(state[0]), dict(state[1])
        words |= {"format": FORMAT, "key": self.key, "start": self._start, "agreed": self._agreed}
        tensors["words"] = pack_json(words)
        content = save_tensors({**tensors, "sha256": bytes_to_tensor(_digest(tensors))})
        try:
            write_atomically(self._path(), content)
        except OSError as error:  # a full disk is no reason to lose the training as well
            warnings.warn(
                f"{self._path()}: the checkpoint could not be written ({error}); training goes on",
                QpignnWarning,
                stacklevel=4,
            )
        self._kept_at = time.monotonic()

    def _path(self) -> Path:
        return self.folder / NAME.format(self._number)


_active: ContextVar[Keeper | None] = ContextVar("checkpoints", default=None)


def active_keeper() -> Keeper | None:
    """Return the keeper of the :func:`checkpoints` block we are in, if we are in one."""
    return _active.get()


def agreed(name: str, value: Any) -> Any:
    """Return a choice that a fit which goes on elsewhere must make as it did when it began."""
    keeper = active_keeper()
    return value if keeper is None else keeper.agree(name, value)


@contextmanager
def checkpoints(
    folder: Path,
    key: str,
    every: float = EVERY,
    *,
    writes: bool = True,
    tell: Callable[[str], None] = lambda message: None,
) -> Iterator[Keeper]:
    """Keep every training within the block in a folder, and go on with what it holds already.

    Args:
        folder: for the files; made when the first is written. They stay: see
            :func:`clear_checkpoints`.
        key: stands for all that decides the fit, see :func:`fit_key`; it does not say how many
            processes take part.
        every: seconds between two times a training is kept; 0 for every epoch.
        writes: whether this process writes, or only takes back, as all but the first of several do.
        tell: is told where a fit goes on.

    Raises:
        ModelFileError: the folder holds another fit, or a damaged file.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from qpignn import QpiGNN, load_dataset
        >>> data, model = load_dataset("basic", nodes=60), QpiGNN(epochs=5)
        >>> with TemporaryDirectory() as folder, checkpoints(Path(folder), fit_key(model, data)):
        ...     model = model.fit(data)
    """
    keeper = Keeper(folder, key, every, writes, tell)
    before = _active.set(keeper)
    try:
        yield keeper
    finally:
        _active.reset(before)
    if keeper.untold:
        tell("all training was done already")


def clear_checkpoints(folder: Path) -> bool:
    """Remove a fit's checkpoints, and nothing else; return whether there were any.

    Raises:
        WriteError: where they cannot be removed.
    """
    found = _files(folder)
    half_written = folder.glob(f".{NAME.format('*')}.*")  # what a kill may leave
    with write_errors(folder):
        for path in (*found, *half_written):
            path.unlink(missing_ok=True)  # another fit in the same folder may remove them too
        with suppress(FileNotFoundError):
            if not any(folder.iterdir()):
                folder.rmdir()
    return bool(found)


def has_checkpoints(folder: Path) -> bool:
    """Whether there is something to go on with."""
    return bool(_files(folder))


def fit_key(method: BaseEstimator, data: Data, train_mask: Any = None) -> str:
    """Return a digest of all that decides a fit: method, settings, graph, given nodes, versions.

    Two fits with the same key go the same way, but for weights given to ``start_from``, which are
    compared when a training begins.
    """
    settings = {
        name: value
        for name, value in method.get_params().items()  # those of a method inside among them
        if name.rpartition("__")[2] != "verbose"
    }
    words: dict[str, Any] = {
        "versions": [__version__, torch.__version__],
        "method": type(method).__name__,
        "settings": settings,
    }
    tensors = {name: value for name, value in data.to_dict().items() if isinstance(value, Tensor)}
    for name in [name for name, tensor in tensors.items() if tensor.layout != torch.strided]:
        sparse = tensors.pop(name).to_sparse_csr()
        parts = (sparse.crow_indices(), sparse.col_indices(), sparse.values())
        tensors |= {f"{name}.{i}": part for i, part in enumerate(parts)}
        words[f"{name}.shape"] = list(sparse.shape)
    if train_mask is not None:
        tensors["given to fit"] = torch.as_tensor(np.asarray(train_mask))
    text = json.dumps(words, sort_keys=True, default=_plain)
    return _digest({**tensors, "words": bytes_to_tensor(text.encode())}).hex()


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers into Python's; of an object, such as a method inside, tell the kind."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else type(value).__name__


def _files(folder: Path) -> list[Path]:
    if folder.is_symlink():  # files would be written and deleted elsewhere
        raise SettingError(f"{folder}: expected a folder, got a link to one; delete it")
    return sorted(folder.glob(NAME.format("*")))


def _read(path: Path, key: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return words and tensors of a training, or raise if it is damaged or of another fit."""
    try:
        tensors = read_tensors(path)
        written = tensor_to_bytes(tensors.pop("sha256"))
        whole = written == _digest(tensors)
        words = unpack_json(tensors.pop("words"))
        made_by = (words["format"], words["key"])
        whole = whole and all(_sensible(choice) for choice in words["agreed"].values())
        whole = whole and isinstance(words["start"], str) and isinstance(words["finished"], bool)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise _damaged(path)
    if made_by != (FORMAT, key):
        raise ModelFileError(
            f"{path}: expected a checkpoint of this very fit, got one made with other data, other "
            f"settings or another version; repeat the command that was stopped, or {ANEW}"
        )
    return words, tensors


def _sensible(choice: Any) -> bool:
    """Whether a choice that a file tells of can have been made: how many, or none."""
    return choice is None or (type(choice) is int and choice > 0)


def _damaged(path: Path) -> ModelFileError:
    return ModelFileError(
        f"{path}: expected a whole checkpoint, got a damaged one ({path.stat().st_size:,} bytes); "
        f"{ANEW}"
    )


def _digest(tensors: Mapping[str, Tensor]) -> bytes:
    """Return a digest of names, types, shapes and bytes."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        found.update(tensor.flatten().view(torch.uint8).numpy().data)
    return found.digest()
