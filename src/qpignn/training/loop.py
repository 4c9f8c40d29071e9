"""The only training loop: Adam, progress, early stopping, and a clean end whatever happens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from qpignn.errors import (
    TrainingError,
    check_choice,
    check_integer,
    check_non_negative,
    check_positive,
)
from qpignn.runtime import distributed
from qpignn.runtime.interrupts import forget_interrupt, raise_pending_interrupt, recorded_interrupts
from qpignn.runtime.memory import retain_freed_memory
from qpignn.runtime.progress import progress_bar
from qpignn.training.checkpoint import Course, Draws, active_keeper
from qpignn.training.history import History
from qpignn.training.weights import FlatWeights


@dataclass(frozen=True)
class Measured:
    """One forward pass: the loss, and what the history shows beside it.

    Attributes:
        loss: to be minimised.
        shown: returns the share of training nodes covered and their mean width; called before
            the weights move, outside the gradient, when somebody looks.
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
        check_integer("epochs", self.epochs)
        check_positive("lr", self.lr)
        check_non_negative("weight_decay", self.weight_decay)
        if self.patience is not None:
            check_integer("patience", self.patience)
        check_integer("look_every", self.look_every)

    def looks_after(self, epoch: int) -> bool:
        """Whether the held-out nodes are looked at after an epoch (counted from 0)."""
        return (epoch + 1) % self.look_every == 0 or epoch + 1 == self.epochs


ON_INTERRUPT = ("keep", "raise")
_on_interrupt: ContextVar[str] = ContextVar("on_interrupt", default="keep")


@contextmanager
def interrupts(action: str) -> Iterator[None]:
    """Decide what Ctrl-C does to the trainings within the block.

    Args:
        action: ``keep`` ends a training early and keeps its weights; ``raise`` lets the
            KeyboardInterrupt through.
    """
    token = _on_interrupt.set(check_choice("on_interrupt", action, ON_INTERRUPT))
    try:
        yield
    finally:
        _on_interrupt.reset(token)


def keeps_interrupted() -> bool:
    """Whether Ctrl-C keeps a partly trained net; several ranks cannot stop at the same step."""
    return _on_interrupt.get() == "keep" and distributed.world_size() == 1


Steps = Callable[[int], Iterable[Measured]]
"""The steps of an epoch, each made when its turn has come."""


def once(measure: Callable[[], Measured]) -> Steps:
    """One step an epoch, on all nodes at once."""
    return lambda epoch: (measure(),)


def train(
    net: nn.Module,
    steps: Steps,
    settings: TrainingSettings,
    held_out_score: Callable[[], float] | None = None,
    draws: Sequence[Draws] = (),
) -> History:
    """Train ``net`` in place and return what happened.

    Args:
        net: its weights are moved; its train/eval mode is set here.
        steps: for each step of an epoch, runs the net on training nodes and says the loss. Where
            several ranks fit one model, each has steps of its own, and moves by their average.
        settings: see :class:`TrainingSettings`.
        held_out_score: lower is better; called after every ``look_every``-th epoch and the last,
            with the net in eval mode. If given, the weights of the best look are kept.
        draws: generators that ``steps`` draws from, beside those the net's modules hold as
            ``generator``; a training that goes on from a checkpoint needs to know them all.

    Ctrl-C ends training early and keeps the net as it is, unless :func:`interrupts` says
    otherwise, or nothing was learnt yet, or several ranks train; then the KeyboardInterrupt goes
    through. Within :func:`qpignn.training.checkpoint.checkpoints` a training that was killed or
    interrupted can be continued.

    Raises:
        TrainingError: the loss is no longer a finite number.
    """
    weights = FlatWeights(net.parameters(), settings.lr, settings.weight_decay)
    course, keeper = Course(net, weights, draws), active_keeper()
    if keeper is not None and keeper.take_up(course):
        net.eval()
        return course.history
    history = course.history
    retain_freed_memory()
    shown = progress_bar("training", settings.epochs, shown=settings.verbose)
    with recorded_interrupts(), shown as show:
        try:
            for epoch in range(len(history), settings.epochs):
                if not net.training:  # asked, because setting it goes through all modules
                    net.train()
                looks = settings.looks_after(epoch)
                shows = looks or epoch == 0
                moves = [_move(weights, s, epoch, settings, shows=shows) for s in steps(epoch)]
                _record(history, moves)
                history.best_epoch = epoch if held_out_score is None else history.best_epoch
                if settings.verbose:
                    show(epoch + 1, _words(history))
                if held_out_score is not None and looks:
                    _look(course, held_out_score, epoch, settings)
                raise_pending_interrupt()
                if history.stopped == "patience":
                    break
                if keeper is not None:
                    keeper.keep(course)
        except KeyboardInterrupt:
            forget_interrupt()
            if keeper is not None:
                keeper.interrupt()
            history.drop_unfinished_epoch()
            if not history.loss or not keeps_interrupted():
                raise
            history.interrupt(len(history), settings.epochs)
    if course.best_weights is not None:
        weights.restore(course.best_weights)
    net.eval()
    if keeper is not None:
        keeper.finish(course)
    return history


def _look(
    course: Course, held_out_score: Callable[[], float], epoch: int, settings: TrainingSettings
) -> None:
    """Score the net on the held-out nodes; keep the best weights, or run out of patience."""
    course.net.eval()
    with torch.no_grad():
        score = distributed.from_first_rank(held_out_score())
    _check_finite("held-out score", score, epoch, settings)
    history = course.history
    history.held_out[epoch] = score
    if score < course.best_score:
        course.best_score, course.best_weights = score, course.weights.copy()
        history.best_epoch = epoch
    elif settings.patience and epoch - history.best_epoch >= settings.patience:
        history.stopped = "patience"


def _move(
    weights: FlatWeights, measured: Measured, epoch: int, settings: TrainingSettings, *, shows: bool
) -> tuple[float, ...]:
    """Move the weights; return the loss before that and, if wanted, coverage and width there."""
    loss = measured.loss.item()
    _check_finite("loss", loss, epoch, settings)
    measured.backward()
    with torch.no_grad():
        shown = measured.shown() if shows else ()
    distributed.average_over_ranks(weights.gradient)
    weights.step()
    weights.clear_gradient()  # now, because some steps fill it in before they are asked for
    return loss, *shown


def _record(history: History, seen: list[tuple[float, ...]]) -> None:
    """Add an epoch: the averages of its steps; what was not looked at stays as it was."""
    loss, *shown = [sum(values) / len(values) for values in zip(*seen, strict=True)]
    coverage, width = shown or (history.coverage[-1], history.width[-1])
    history.loss.append(loss)
    history.coverage.append(coverage)
    history.width.append(width)


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
