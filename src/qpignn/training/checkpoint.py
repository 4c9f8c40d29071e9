"""Checkpoints: a fit that was killed continues where it stopped, and ends with the same bits.

A fit trains one net or several, one after another. Each of these trainings has one file, which
holds its state or, once it is finished, its result. A fit that is started again restores finished
trainings, continues the unfinished one, and recomputes everything between trainings, which the
seed determines. No pickle: a file is safetensors with JSON inside, and is written atomically.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import save as save_tensors
from sklearn.base import BaseEstimator
from torch import Tensor

from qpignn import __version__
from qpignn.errors import ModelFileError, QpignnWarning, SettingError
from qpignn.io.files import write_atomically, write_errors
from qpignn.io.tensors import (
    bytes_to_tensor,
    pack_json,
    read_tensors,
    tensor_to_bytes,
    unpack_json,
)
from qpignn.training.callbacks import Callback
from qpignn.training.state import StateDict, TrainingState

if TYPE_CHECKING:
    from torch_geometric.data import Data

FORMAT = 2
NAME = "training-{}.safetensors"
EVERY = 10.0  # seconds between two files: the most that a kill loses
SNAPSHOT_EVERY = 0.25  # seconds between two copies in memory: the most that Ctrl-C loses
START_ANEW = "start anew: without --resume, or with another folder"


class Checkpointer(Callback):
    """Saves and restores the trainings of one fit; created by :func:`checkpoints`.

    Args:
        folder: for the files.
        key: digest of everything that decides the fit.
        every: seconds between two files.
        writes: whether this process writes files, or only reads them.
        notify: called with a message that says where a fit continues.
    """

    def __init__(
        self, folder: Path, key: str, every: float, writes: bool, notify: Callable[[str], None]
    ) -> None:
        self.folder, self.key, self.every = folder, key, every
        self.writes, self.notify = writes, notify
        self.resumes = False  # whether it has still to be reported where the fit continues
        self.choices: dict[str, Any] = {}  # made when the fit began; may depend on the machine
        for path in _files(folder):  # unusable files are refused before any work is done
            self.choices |= _read(path, key)["choices"]
            self.resumes = True
        self._number, self._start = 0, ""
        self._written_at = self._snapshot_at = time.monotonic()
        self._snapshot: StateDict | None = None  # None while the file is as recent

    def on_train_begin(self, state: TrainingState) -> None:
        """Start the next training of the fit, and restore it from its file if there is one.

        Args:
            state: the training with its initial weights.

        Raises:
            ModelFileError: if the file belongs to another training or is damaged.
        """
        self._number += 1
        self._start = _digest({"vector": state.weights.vector}).hex()
        path = self._path()
        if path.is_file():
            self._restore(path, state)
            if state.finished:
                return
            self._snapshot = None
        else:
            self._take_snapshot(state)
        if self.resumes:
            self.notify(f"resuming at epoch {len(state.history)} of training {self._number}")
            self.resumes = False

    def _restore(self, path: Path, state: TrainingState) -> None:
        values = _read(path, self.key)
        if values["start"] != self._start:
            raise ModelFileError(
                f"{path}: expected a training that began with these weights, got one that "
                f"began with others: the fit or the code has changed since; {START_ANEW}"
            )
        if values["callbacks"] != state.callback_names():
            raise ModelFileError(
                f"{path}: expected a training with the callbacks {state.callback_names()}, got "
                f"one with {values['callbacks']}; pass the callbacks of the stopped fit, or "
                f"{START_ANEW}"
            )
        try:
            state.load_state_dict(values)
        except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise _damaged(path) from error

    def on_epoch_end(self, state: TrainingState) -> None:
        """Write the state to the file, or copy it in memory, if the last time is long ago.

        Args:
            state: the training, between two epochs.
        """
        if state.stopping:
            return
        now = time.monotonic()
        if now - self._written_at >= self.every:
            self._write(state.state_dict(finished=False))
            self._snapshot = None
        elif now - self._snapshot_at >= SNAPSHOT_EVERY:
            self._take_snapshot(state)

    def on_interrupt(self, state: TrainingState) -> None:
        """Write the last copy of an interrupted training; nothing is written afterwards.

        Args:
            state: not used: Ctrl-C may have come in the middle of a step.
        """
        if self._snapshot is not None:
            self._write(self._snapshot)
        self.writes = False

    def on_train_end(self, state: TrainingState) -> None:
        """Write the result of a training that was not interrupted.

        Args:
            state: the training with its final weights.
        """
        self._write(state.state_dict(finished=True))

    def _take_snapshot(self, state: TrainingState) -> None:
        if self.writes:
            self._snapshot = {
                name: value.clone() if isinstance(value, Tensor) else value
                for name, value in state.state_dict(finished=False).items()
            }
            self._snapshot_at = time.monotonic()

    def _write(self, values: StateDict) -> None:
        if not self.writes:
            return
        tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
        description = {name: value for name, value in values.items() if name not in tensors}
        description |= {"format": FORMAT, "key": self.key, "start": self._start}
        try:
            tensors["words"] = pack_json({**description, "choices": self.choices})
        except TypeError as error:
            raise SettingError(
                f"callbacks: expected tensors and JSON values in state_dict, got {error}; convert "
                f"the other values there"
            ) from error
        content = save_tensors({**tensors, "sha256": bytes_to_tensor(_digest(tensors))})
        try:
            write_atomically(self._path(), content)
        except OSError as error:  # a full disk is no reason to lose the training as well
            warnings.warn(
                f"{self._path()}: the checkpoint could not be written ({error}); training "
                f"continues",
                QpignnWarning,
                stacklevel=4,
            )
        self._written_at = time.monotonic()

    def _path(self) -> Path:
        return self.folder / NAME.format(self._number)


_active: ContextVar[Checkpointer | None] = ContextVar("checkpoints", default=None)


def active_checkpointer() -> Checkpointer | None:
    """Return the checkpointer of the enclosing :func:`checkpoints` block; None outside of one."""
    return _active.get()


def recorded_choice(name: str, value: Any) -> Any:
    """Return a choice that a resumed fit must make as it did when it began.

    Args:
        name: of the choice.
        value: what would be chosen now; returned where nothing is resumed.
    """
    checkpointer = active_checkpointer()
    return value if checkpointer is None else checkpointer.choices.setdefault(name, value)


@contextmanager
def checkpoints(
    folder: Path,
    key: str,
    every: float = EVERY,
    *,
    writes: bool = True,
    notify: Callable[[str], None] = lambda message: None,
) -> Iterator[Checkpointer]:
    """Save every training within the block to a folder, and continue those that it holds.

    Args:
        folder: for the files; created with the first one. The files remain: see
            :func:`clear_checkpoints`.
        key: digest of everything that decides the fit, see :func:`fit_key`; the number of
            processes is no part of it.
        every: seconds between two files of a training; 0 for one after every epoch.
        writes: whether this process writes files; of several ranks only the first does.
        notify: called with a message that says where a fit continues.

    Yields:
        The checkpointer.

    Raises:
        ModelFileError: the folder holds another fit, or a damaged file.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from qpignn import QpiGNN, load_dataset
        >>> data, model = load_dataset("basic", nodes=60), QpiGNN(epochs=5)
        >>> with TemporaryDirectory() as folder, checkpoints(Path(folder), fit_key(model, data)):
        ...     model = model.fit(data)
    """
    checkpointer = Checkpointer(folder, key, every, writes, notify)
    token = _active.set(checkpointer)
    try:
        yield checkpointer
    finally:
        _active.reset(token)
    if checkpointer.resumes:
        notify("all training was done already")


def clear_checkpoints(folder: Path) -> bool:
    """Remove the checkpoints of a fit, and nothing else.

    Args:
        folder: where they are.

    Returns:
        Whether there were any.

    Raises:
        WriteError: if they cannot be removed.
    """
    files = _files(folder)
    half_written = folder.glob(f".{NAME.format('*')}.*")  # left by a kill
    with write_errors(folder):
        for path in (*files, *half_written):
            path.unlink(missing_ok=True)  # another fit in the same folder may remove them too
        with suppress(FileNotFoundError):
            if not any(folder.iterdir()):
                folder.rmdir()
    return bool(files)


def has_checkpoints(folder: Path) -> bool:
    """Return whether a folder holds checkpoints.

    Args:
        folder: where they would be.
    """
    return bool(_files(folder))


def fit_key(method: BaseEstimator, data: Data, train_mask: Any = None) -> str:
    """Return a digest of all that decides a fit: method, settings, graph, given nodes, versions.

    ``initial_weights`` are no part of it; they are compared when a training begins.

    Args:
        method: with its settings.
        data: the graph.
        train_mask: as given to ``fit``.
    """
    settings = {
        name: value
        for name, value in method.get_params().items()  # including those of a nested method
        if name.rpartition("__")[2] != "verbose"
    }
    description: dict[str, Any] = {
        "versions": [__version__, torch.__version__],
        "method": type(method).__name__,
        "settings": settings,
    }
    tensors = {name: value for name, value in data.to_dict().items() if isinstance(value, Tensor)}
    for name in [name for name, tensor in tensors.items() if tensor.layout != torch.strided]:
        sparse = tensors.pop(name).to_sparse_csr()
        parts = (sparse.crow_indices(), sparse.col_indices(), sparse.values())
        tensors |= {f"{name}.{i}": part for i, part in enumerate(parts)}
        description[f"{name}.shape"] = list(sparse.shape)
    if train_mask is not None:
        tensors["given to fit"] = torch.as_tensor(np.asarray(train_mask))
    text = json.dumps(description, sort_keys=True, default=_plain)
    return _digest({**tensors, "words": bytes_to_tensor(text.encode())}).hex()


def _plain(value: Any) -> Any:
    """Convert NumPy's numbers to Python's; an object, such as a nested method, to its class."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else type(value).__name__


def _files(folder: Path) -> list[Path]:
    if folder.is_symlink():  # files would be written and deleted elsewhere
        raise SettingError(f"{folder}: expected a folder, got a link to one; delete it")
    return sorted(folder.glob(NAME.format("*")))


def _read(path: Path, key: str) -> StateDict:
    """Return the values of a training's file, or raise if it is damaged or of another fit."""
    try:
        tensors = read_tensors(path)
        written = tensor_to_bytes(tensors.pop("sha256"))
        intact = written == _digest(tensors)
        values = {**unpack_json(tensors.pop("words")), **tensors}
        made_by = (values["format"], values["key"])
    except (OSError, ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise _damaged(path)
    if made_by != (FORMAT, key):
        raise ModelFileError(
            f"{path}: expected a checkpoint of this very fit, got one made with other data, other "
            f"settings or another version; repeat the command that was stopped, or {START_ANEW}"
        )
    if not _valid_types(values):
        raise _damaged(path)
    return values


def _valid_types(values: StateDict) -> bool:
    """Return whether the entries that this module reads itself have the types it writes."""
    types = {"choices": dict, "start": str, "finished": bool, "callbacks": list}
    return all(isinstance(values.get(name), kind) for name, kind in types.items()) and all(
        one is None or (type(one) is int and one > 0) for one in values["choices"].values()
    )


def _damaged(path: Path) -> ModelFileError:
    return ModelFileError(
        f"{path}: expected a whole checkpoint, got a damaged one ({path.stat().st_size:,} bytes); "
        f"{START_ANEW}"
    )


def _digest(tensors: Mapping[str, Tensor]) -> bytes:
    """Return a digest of names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.digest()
