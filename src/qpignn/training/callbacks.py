"""Callbacks: code that runs at the start, after every epoch and at the end of a training.

A fit may train several nets, one after another, with the same callbacks:
:meth:`Callback.on_train_begin` is called once for each. The order of calls is early stopping, the
user's callbacks in their order, checkpoints.

Example:
    >>> from qpignn import QpiGNN, load_dataset
    >>> class StopBelow(Callback):
    ...     def on_epoch_end(self, state: TrainingState) -> None:
    ...         if state.history.loss[-1] < 0.5:
    ...             state.stop("low loss")
    >>> data = load_dataset("basic", nodes=60)
    >>> model = QpiGNN(epochs=20, members=5).fit(data, callbacks=[StopBelow()])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from qpignn.errors import SettingError, TrainingError, brief
from qpignn.io.tensors import check_tensors
from qpignn.runtime import distributed
from qpignn.training.state import StateDict, TrainingSettings, TrainingState


class Callback:
    """Base class of callbacks: every hook does nothing unless it is overridden.

    Where several ranks fit one model, hooks run on every rank and must decide alike on all.
    """

    def on_train_begin(self, state: TrainingState) -> None:
        """Prepare for a training, before its first epoch and before a checkpoint is restored.

        Args:
            state: the training with its initial weights.
        """

    def on_epoch_end(self, state: TrainingState) -> None:
        """Run after an epoch; may change the weights or call ``state.stop``.

        Args:
            state: the training, with ``state.epoch`` as the epoch's number.
        """

    def on_interrupt(self, state: TrainingState) -> None:
        """Run when Ctrl-C ends the training, possibly in the middle of a step.

        Args:
            state: the training.
        """

    def on_train_end(self, state: TrainingState) -> None:
        """Run after the last epoch; may replace the final weights: ``state.weights.restore``.

        It is not called for a training that is restored from a checkpoint of its end.

        Args:
            state: the training.
        """

    def state_dict(self) -> StateDict:
        """Return everything that a resumed training needs: tensors and JSON values, by name."""
        return {}

    def load_state_dict(self, values: StateDict) -> None:
        """Restore what :meth:`state_dict` returned; called after :meth:`on_train_begin`.

        Args:
            values: the returned values.
        """


class EarlyStopping(Callback):
    """Keep the weights with the best held-out score; stop when it no longer improves.

    The epochs that are evaluated and the patience are those of :class:`TrainingSettings`.

    Args:
        score: returns the score of the net on the held-out nodes; lower is better. The net is in
            evaluation mode.
    """

    def __init__(self, score: Callable[[], float]) -> None:
        self.score = score

    def on_train_begin(self, state: TrainingState) -> None:
        """Forget the scores of earlier trainings."""
        self.best_score, self.best_weights = math.inf, state.weights.copy()

    def on_epoch_end(self, state: TrainingState) -> None:
        """Evaluate the net if the epoch is one of those that are evaluated."""
        epoch, settings, history = state.epoch, state.settings, state.history
        if not settings.evaluates_after(epoch):
            return
        state.net.eval()
        with torch.no_grad():
            score = distributed.from_first_rank(self.score())
        check_finite("held-out score", score, epoch, settings)
        history.held_out[epoch] = score
        if score < self.best_score:
            self.best_score, self.best_weights = score, state.weights.copy()
            history.best_epoch = epoch
        elif settings.patience and epoch - history.best_epoch >= settings.patience:
            state.stop("patience")

    def on_train_end(self, state: TrainingState) -> None:
        """Restore the weights with the best score."""
        if math.isfinite(self.best_score):
            state.weights.restore(self.best_weights)

    def state_dict(self) -> StateDict:
        """Return the best score and its weights."""
        return {"best_score": self.best_score, "best_weights": self.best_weights}

    def load_state_dict(self, values: StateDict) -> None:
        """Restore the best score and its weights."""
        weights = values["best_weights"]
        check_tensors({"best_weights": weights}, {"best_weights": self.best_weights})
        self.best_score, self.best_weights = float(values["best_score"]), weights


def check_finite(quantity: str, value: float, epoch: int, settings: TrainingSettings) -> None:
    """Raise if a loss or score is not a finite number.

    Args:
        quantity: its name.
        value: the number.
        epoch: in which it was computed.
        settings: of the training.

    Raises:
        TrainingError: if the number is infinite or NaN.
    """
    if not math.isfinite(value):
        raise TrainingError(
            f"the {quantity} became {value} at epoch {epoch}. Try a lower learning rate "
            f"(lr is {settings.lr:g}), and look for extreme values in features and targets."
        )


_active: ContextVar[tuple[Callback, ...]] = ContextVar("callbacks", default=())


def active_callbacks() -> tuple[Callback, ...]:
    """Return the callbacks of the enclosing :func:`use_callbacks` blocks."""
    return _active.get()


@contextmanager
def use_callbacks(callbacks: Iterable[Callback]) -> Iterator[None]:
    """Call callbacks in every training within the block, besides those of enclosing blocks.

    Args:
        callbacks: instances of :class:`Callback`.

    Yields:
        Nothing.

    Raises:
        SettingError: if something else is given.
    """
    given = tuple(callbacks) if isinstance(callbacks, Iterable) else None
    if given is None or not all(isinstance(callback, Callback) for callback in given):
        raise SettingError(
            f"callbacks: expected a list of instances of qpignn.training.callbacks.Callback, got "
            f"{brief(callbacks)}; derive a class from it"
        )
    token = _active.set((*_active.get(), *given))
    try:
        yield
    finally:
        _active.reset(token)
