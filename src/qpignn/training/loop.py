"""The only training loop: Adam, progress, early stopping, and a clean end whatever happens."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from qpignn.errors import SettingError, TrainingError, not_negative, whole_number
from qpignn.progress import progress
from qpignn.training.history import History
from qpignn.training.weights import FlatWeights


@dataclass(frozen=True)
class Measured:
    """One forward pass: the loss, and what the history shows beside it.

    Attributes:
        loss: to be minimised.
        shown: returns the share of training nodes covered and their mean width; called after the
            step, outside the gradient.
        gradient: fills in the weights' gradients, where autograd is not to do it.
    """

    loss: Tensor
    shown: Callable[[], tuple[float, float]]
    gradient: Callable[[], None] | None = None

    def backward(self) -> None:
        """Fill in the gradients of the weights."""
        if self.gradient is None:
            self.loss.backward()  # type: ignore[no-untyped-call]
        else:
            self.gradient()


@dataclass(frozen=True)
class TrainingSettings:
    """How long and how fast.

    Attributes:
        epochs: full passes, at most.
        lr, weight_decay: Adam's.
        patience: stop after so many epochs without a better held-out score; None: never.
        look_every: epochs between looks at the held-out nodes.
        verbose: show a progress bar on stderr.
    """

    epochs: int
    lr: float
    weight_decay: float = 0.0
    patience: int | None = None
    look_every: int = 1
    verbose: bool = False

    def __post_init__(self) -> None:
        whole_number("epochs", self.epochs)
        if not_negative("lr", self.lr) == 0:
            raise SettingError(f"lr: expected a number above 0, got {self.lr!r}")
        not_negative("weight_decay", self.weight_decay)
        if self.patience is not None:
            whole_number("patience", self.patience)
        whole_number("look_every", self.look_every)


def train(
    net: nn.Module,
    measure: Callable[[], Measured],
    settings: TrainingSettings,
    held_out_score: Callable[[], float] | None = None,
) -> History:
    """Train ``net`` in place and return what happened.

    Args:
        net: its weights are moved; its train/eval mode is set here.
        measure: runs the net on the training nodes and returns the loss.
        settings: see :class:`TrainingSettings`.
        held_out_score: lower is better; called after every ``look_every``-th epoch and the last,
            with the net in eval mode. If given, the weights of the best look are kept.

    Ctrl-C ends training early and keeps what was learnt; a second one goes through.

    Raises:
        TrainingError: the loss is no longer a finite number.
    """
    weights = FlatWeights(net.parameters(), settings.lr, settings.weight_decay)
    history = History()
    best_score, best_weights = math.inf, None
    with progress("training", settings.epochs, shown=settings.verbose) as show:
        try:
            for epoch in range(settings.epochs):
                net.train()
                weights.clear_gradient()
                measured = measure()
                _check_finite("loss", measured.loss.item(), epoch, settings)
                measured.backward()
                weights.step()
                _record(history, measured)
                history.best_epoch = epoch if held_out_score is None else history.best_epoch
                if settings.verbose:
                    show(epoch + 1, _words(history))
                looks = (epoch + 1) % settings.look_every == 0 or epoch + 1 == settings.epochs
                if held_out_score is None or not looks:
                    continue
                net.eval()
                with torch.no_grad():
                    score = held_out_score()
                _check_finite("held-out score", score, epoch, settings)
                history.held_out[epoch] = score
                if score < best_score:
                    best_score, best_weights, history.best_epoch = score, weights.copy(), epoch
                elif settings.patience and epoch - history.best_epoch >= settings.patience:
                    history.stopped = "patience"
                    break
        except KeyboardInterrupt:
            if not history.loss:
                raise
            history.stopped = "interrupted"
    if best_weights is not None:
        weights.restore(best_weights)
    net.eval()
    return history


def _record(history: History, measured: Measured) -> None:
    with torch.no_grad():
        coverage, width = measured.shown()
    history.coverage.append(coverage)
    history.width.append(width)
    history.loss.append(measured.loss.item())


def _check_finite(what: str, value: float, epoch: int, settings: TrainingSettings) -> None:
    if not math.isfinite(value):
        raise TrainingError(
            f"the {what} became {value} at epoch {epoch}. Try a lower learning rate "
            f"(lr is {settings.lr:g}), and look for extreme values in features and targets."
        )


def _words(history: History) -> str:
    return (
        f"loss {history.loss[-1]:.4f}  coverage {history.coverage[-1]:.3f}  "
        f"width {history.width[-1]:.3f}"
    )
