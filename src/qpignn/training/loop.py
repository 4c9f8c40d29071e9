"""The training loop: Adam, a progress bar, callbacks, and a defined end after Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from qpignn.errors import check_choice
from qpignn.runtime import distributed
from qpignn.runtime.interrupts import forget_interrupt, raise_pending_interrupt, recorded_interrupts
from qpignn.runtime.memory import retain_freed_memory
from qpignn.runtime.progress import progress_bar
from qpignn.training.callbacks import Callback, EarlyStopping, active_callbacks, check_finite
from qpignn.training.checkpoint import active_checkpointer
from qpignn.training.history import History
from qpignn.training.state import RandomGenerator, TrainingSettings, TrainingState
from qpignn.training.weights import FlatWeights


@dataclass(frozen=True)
class StepResult:
    """The forward pass of one training step.

    Attributes:
        loss: scalar to minimise.
        metrics: returns the share of training nodes covered and their mean width; called before
            the weights change, without gradient, in epochs whose metrics are recorded.
        gradient: computes the gradients of the weights, where autograd does not.
    """

    loss: Tensor
    metrics: Callable[[], tuple[float, float]]
    gradient: Callable[[], None] | None = None

    def backward(self) -> None:
        """Compute the gradients of the weights."""
        if self.gradient is None:
            self.loss.backward()  # type: ignore[no-untyped-call]
        else:
            self.gradient()


ON_INTERRUPT = ("keep", "raise")
_on_interrupt: ContextVar[str] = ContextVar("on_interrupt", default="keep")


@contextmanager
def interrupts(action: str) -> Iterator[None]:
    """Set what Ctrl-C does to trainings within the block.

    Args:
        action: ``keep`` ends a training early and keeps its weights; ``raise`` propagates the
            KeyboardInterrupt.

    Yields:
        Nothing.
    """
    token = _on_interrupt.set(check_choice("on_interrupt", action, ON_INTERRUPT))
    try:
        yield
    finally:
        _on_interrupt.reset(token)


def keeps_interrupted() -> bool:
    """Return whether Ctrl-C keeps a partly trained net; several ranks cannot stop in one step."""
    return _on_interrupt.get() == "keep" and distributed.world_size() == 1


Steps = Callable[[int], Iterable[StepResult]]
"""The steps of an epoch; each is computed when the loop asks for it."""


def once(step: Callable[[], StepResult]) -> Steps:
    """Return the steps of epochs that have a single step, on all nodes at once.

    Args:
        step: runs the net on all training nodes.
    """
    return lambda epoch: (step(),)


def train(
    net: nn.Module,
    steps: Steps,
    settings: TrainingSettings,
    held_out_score: Callable[[], float] | None = None,
    *,
    generators: Sequence[RandomGenerator] = (),
    callbacks: Iterable[Callback] = (),
) -> History:
    """Train a net in place.

    Ctrl-C ends training early and keeps the net as it is, unless :func:`interrupts` says
    otherwise, or no epoch is complete, or several ranks train; then the KeyboardInterrupt
    propagates. Within :func:`qpignn.training.checkpoint.checkpoints` a training that was killed or
    interrupted can be continued.

    Args:
        net: its weights are changed, and its train/eval mode is set.
        steps: runs the net on training nodes, for each step of an epoch. Where several ranks fit
            one model, each has steps of its own, and gradients are averaged.
        settings: see :class:`TrainingSettings`.
        held_out_score: lower is better; called with the net in eval mode after every
            ``evaluate_every``-th epoch and the last. If given, the best weights are kept.
        generators: random generators that ``steps`` uses, besides those that modules of the net
            hold as ``generator``; checkpoints save their state.
        callbacks: called besides those of :func:`qpignn.training.callbacks.use_callbacks`.

    Returns:
        Loss, coverage and width of every epoch, and how training ended.

    Raises:
        TrainingError: the loss is no longer a finite number.
    """
    weights = FlatWeights(net.parameters(), settings.lr, settings.weight_decay)
    early_stopping = () if held_out_score is None else (EarlyStopping(held_out_score),)
    stateful = (*early_stopping, *active_callbacks(), *callbacks)
    state = TrainingState(net, weights, settings, generators, stateful)
    checkpointer = active_checkpointer()
    called = stateful if checkpointer is None else (*stateful, checkpointer)
    for callback in called:
        callback.on_train_begin(state)
    if not state.finished:
        _run_epochs(state, steps, called)
        if held_out_score is None:
            state.history.best_epoch = state.epoch
        for callback in called:
            callback.on_train_end(state)
    net.eval()
    return state.history


def _run_epochs(state: TrainingState, steps: Steps, callbacks: Sequence[Callback]) -> None:
    """Train until the last epoch, until a callback stops, or until Ctrl-C."""
    net, settings, history = state.net, state.settings, state.history
    retain_freed_memory()
    bar = progress_bar("training", settings.epochs, shown=settings.verbose)
    with recorded_interrupts(), bar as show:
        try:
            for epoch in range(len(history), settings.epochs):
                if not net.training:  # checked first, because setting it visits all modules
                    net.train()
                measures = epoch == 0 or settings.evaluates_after(epoch)
                results = [_step(state, result, measures=measures) for result in steps(epoch)]
                _record(history, results)
                if settings.verbose:
                    show(epoch + 1, _progress_message(history))
                for callback in callbacks:
                    callback.on_epoch_end(state)
                raise_pending_interrupt()
                if state.stopping:
                    break
        except KeyboardInterrupt:
            forget_interrupt()
            for callback in callbacks:
                callback.on_interrupt(state)
            history.drop_unfinished_epoch()
            if not history.loss or not keeps_interrupted():
                raise
            history.interrupt(len(history), settings.epochs)


def _step(state: TrainingState, result: StepResult, *, measures: bool) -> tuple[float, ...]:
    """Change the weights; return the loss before that and, if wanted, coverage and width."""
    loss, weights = result.loss.item(), state.weights
    metrics: tuple[float, ...] = ()
    check_finite("loss", loss, len(state.history), state.settings)
    result.backward()
    if measures:
        with torch.no_grad():
            metrics = result.metrics()
    distributed.average_over_ranks(weights.gradient)
    weights.step()
    weights.clear_gradient()  # now, because some steps compute it before the loop asks for it
    return loss, *metrics


def _record(history: History, results: list[tuple[float, ...]]) -> None:
    """Append an epoch: averages over its steps; metrics that were not computed stay the same."""
    loss, *metrics = [sum(values) / len(values) for values in zip(*results, strict=True)]
    coverage, width = metrics or (history.coverage[-1], history.width[-1])
    history.loss.append(loss)
    history.coverage.append(coverage)
    history.width.append(width)


def _progress_message(history: History) -> str:
    return (
        f"loss {history.loss[-1]:.4f}  coverage {history.coverage[-1]:.3f}  "
        f"width {history.width[-1]:.3f}"
    )
