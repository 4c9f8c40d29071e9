"""The settings of a training, and its state: everything that decides how it continues."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from qpignn.errors import check_integer, check_non_negative, check_positive
from qpignn.training.history import History
from qpignn.training.weights import FlatWeights

if TYPE_CHECKING:
    from qpignn.training.callbacks import Callback

RandomGenerator = torch.Generator | np.random.Generator
StateDict = dict[str, Any]
"""Values by name: tensors, and values that JSON can represent."""


@dataclass(frozen=True)
class TrainingSettings:
    """Length and step size of a training.

    Attributes:
        epochs: largest number of passes over the training nodes.
        lr: learning rate of Adam.
        weight_decay: L2 penalty of Adam.
        patience: stop after this many epochs without a better held-out score; None: never.
        evaluate_every: epochs between two evaluations on the held-out nodes.
        verbose: show a progress bar on stderr.
    """

    epochs: int
    lr: float
    weight_decay: float = 0.0
    patience: int | None = None
    evaluate_every: int = 1
    verbose: bool = False

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs)
        check_positive("lr", self.lr)
        check_non_negative("weight_decay", self.weight_decay)
        if self.patience is not None:
            check_integer("patience", self.patience)
        check_integer("evaluate_every", self.evaluate_every)

    def evaluates_after(self, epoch: int) -> bool:
        """Return whether an epoch is followed by an evaluation on the held-out nodes.

        Args:
            epoch: counted from 0. The last epoch is always followed by an evaluation.
        """
        return (epoch + 1) % self.evaluate_every == 0 or epoch + 1 == self.epochs


@dataclass
class TrainingState:
    """The state of a training, as callbacks receive it.

    Attributes:
        net: the module being trained.
        weights: its weights as one vector, with the state of Adam. ``weights.copy()`` returns the
            vector, ``weights.restore(vector)`` replaces it.
        settings: see :class:`TrainingSettings`.
        generators: random generators that steps use, besides those that modules of the net hold
            as ``generator``.
        callbacks: callbacks whose state belongs to the training.
        history: one entry per epoch.
        finished: whether the training was restored from a checkpoint of a finished one.
    """

    net: nn.Module
    weights: FlatWeights
    settings: TrainingSettings
    generators: Sequence[RandomGenerator] = ()
    callbacks: Sequence[Callback] = ()
    history: History = field(default_factory=History)
    finished: bool = False

    @property
    def epoch(self) -> int:
        """The last completed epoch, counted from 0; −1 before the first."""
        return len(self.history) - 1

    @property
    def stopping(self) -> bool:
        """Whether a callback has asked for the end of the training."""
        return self.history.stopped != "epochs"

    def stop(self, reason: str) -> None:
        """End the training after this epoch.

        Args:
            reason: one word for ``history.stopped``.
        """
        self.history.stopped = reason

    def state_dict(self, *, finished: bool) -> StateDict:
        """Return everything needed to continue the training; tensors are not copied.

        Args:
            finished: whether the training has ended, which makes the state of Adam superfluous.
        """
        tensors = self.weights.state()
        values: StateDict = {"vector": tensors["vector"]} if finished else {**tensors}
        values |= {"finished": finished, "history": asdict(self.history)}
        for i, generator in enumerate(self._all_generators()):
            values[f"generators.{i}"] = (
                generator.get_state()
                if isinstance(generator, torch.Generator)
                else generator.bit_generator.state
            )
        values["callbacks"] = self.callback_names()
        for i, callback in enumerate(self.callbacks):
            for name, value in callback.state_dict().items():
                values[f"callbacks.{i}.{name}"] = _own_copy(value)
        return values

    def load_state_dict(self, values: StateDict) -> None:
        """Restore what :meth:`state_dict` returned.

        Args:
            values: the returned values, of a training of the same net.

        Raises:
            KeyError, TypeError, ValueError, RuntimeError: if they belong to another training.
        """
        self.history = History.from_dict(values["history"])
        self.finished = values["finished"]
        if self.finished:
            self.weights.restore(values["vector"])
        else:
            self.weights.restore_state(values)
        for i, generator in enumerate(self._all_generators()):
            if isinstance(generator, torch.Generator):
                generator.set_state(values[f"generators.{i}"])
            else:
                generator.bit_generator.state = values[f"generators.{i}"]
        for i, callback in enumerate(self.callbacks):
            start = f"callbacks.{i}."
            own = {k.removeprefix(start): v for k, v in values.items() if k.startswith(start)}
            callback.load_state_dict(own)

    def callback_names(self) -> list[str]:
        """Return the class names of the callbacks, in their order."""
        return [type(callback).__name__ for callback in self.callbacks]

    def _all_generators(self) -> list[RandomGenerator]:
        """Return every generator once, always in the same order; methods may replace some."""
        held = [getattr(module, "generator", None) for module in self.net.modules()]
        present = [one for one in (*held, *self.generators) if one is not None]
        return list({id(one): one for one in present}.values())


def _own_copy(value: Any) -> Any:
    """Return a value that later changes of the callback's own do not reach."""
    if isinstance(value, Tensor):
        return value.detach().clone(memory_format=torch.contiguous_format)
    return copy.deepcopy(value)
