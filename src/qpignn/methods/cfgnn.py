"""The heart of CF-GNN: a second GNN that moves a first one's bounds to make conformal sets small.

Huang et al. 2023 (https://arxiv.org/abs/2305.14535): the first net is trained as usual; the second
sees its bounds as node features and is trained, on nodes the first did not see, by a conformal
step made differentiable: half of those nodes give the widening, the other half the size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from qpignn.calibration.cross_fit import conformal_rank
from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.sparse import Operands, prepare
from qpignn.errors import (
    SettingError,
    check_integer,
    check_non_negative,
    check_number,
    check_positive,
)
from qpignn.methods.base import Bounds, Fitted
from qpignn.methods.net import DTYPES, part_of, restored
from qpignn.methods.quantile import QuantileGNN
from qpignn.nn.heads import LinearHead
from qpignn.nn.interval_net import IntervalNet
from qpignn.runtime.randomness import numpy_rng, torch_rng
from qpignn.training.byhand import step_of, with_gradient
from qpignn.training.loop import StepResult, once, train
from qpignn.training.search import minimise
from qpignn.training.state import TrainingSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data

ENOUGH = 6  # nodes for a correction: two halves, or three parts in a search
SEARCHED = {"correction_lr": (1e-4, 3e-2), "consistency": (1e-3, 1.0)}


class CorrectedGNN(QuantileGNN):
    """A quantile GNN whose bounds a second GNN corrects; wrapped in a conformal step: CF-GNN.

    Its intervals by themselves promise nothing, and are not meant to be used without that step.

    Args:
        correction: share of the given nodes the second net is trained on.
        correction_epochs, correction_lr: of the second net.
        consistency: price of moving bounds, in squared units of the target's deviation.
        trials: search ``correction_lr`` and ``consistency`` by Bayesian optimisation, so many
            evaluations; 0 takes them as given.
        net: settings of every net method, see :class:`qpignn.methods.net.NetMethod`.
    """

    def __init__(
        self,
        confidence_level: float | list[float] = 0.9,
        *,
        correction: float = 0.25,
        correction_epochs: int = 200,
        correction_lr: float = 1e-3,
        consistency: float = 0.1,
        trials: int = 0,
        **net: Any,
    ) -> None:
        super().__init__(confidence_level, **net)
        self.correction = correction
        self.correction_epochs = correction_epochs
        self.correction_lr = correction_lr
        self.consistency = consistency
        self.trials = trials

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        super().check_settings()
        check_non_negative("consistency", self.consistency)
        check_integer("trials", self.trials, 0)
        check_integer("correction_epochs", self.correction_epochs)
        check_positive("correction_lr", self.correction_lr)
        if not 0 < check_number("correction", self.correction) < 1:
            raise SettingError(
                f"correction: expected a share strictly between 0 and 1, got {self.correction!r}"
            )

    def _correction_training(self) -> TrainingSettings:
        return TrainingSettings(self.correction_epochs, self.correction_lr)

    def _fit(self, data: Data, given: Tensor) -> None:
        positions = given.nonzero().flatten().numpy()
        count = round(self.correction * len(positions))
        order = torch.from_numpy(numpy_rng(self.seed, "correction").permutation(positions))
        kept = given.clone()
        if count < ENOUGH:  # too few to learn a correction from: there is none
            super()._fit(data, kept)
            self.second_ = self._new_second().eval()
            return
        kept[order[:count]] = False
        super()._fit(data, kept)
        planned = self.epochs + self.correction_epochs
        if self.history_.interrupted:
            self.history_.interrupt(len(self.history_), planned)
            self.second_ = self._new_second().eval()  # corrects nothing
            return
        self._correct(data, order[:count])
        if self.second_history_.interrupted:
            self.history_.interrupt(len(self.history_) + len(self.second_history_), planned)

    def _correct(self, data: Data, nodes: Tensor) -> None:
        """Train the second net on nodes the first did not see."""
        y = self.y_scaler_.transform(data.y[nodes], DTYPES[self.dtype])
        with torch.no_grad():
            outputs = self.net_(self._operands(data))
            bounds = torch.stack(self._bounds(outputs)).mean(dim=2)[..., nodes]
        task = _Task(self._second_graph(data, outputs, nodes), bounds, y, self._trained_levels())
        chosen = {"correction_lr": self.correction_lr, "consistency": self.consistency}
        if self.trials:
            third = len(nodes) // 3
            judges, taught = torch.arange(third), torch.arange(third, len(nodes))

            def score(tried: dict[str, float]) -> float:
                self._train_second(task, third, **tried)
                if self.second_history_.interrupted:  # nothing was chosen yet
                    raise KeyboardInterrupt
                with torch.no_grad():
                    size, _ = task.size(self.second_(task.graph), taught, judges)
                return float(size)

            chosen = minimise(score, SEARCHED, trials=self.trials, seed=self.seed)
        self.chosen_ = chosen
        self._train_second(task, 0, **chosen)

    def _train_second(
        self, task: _Task, first: int, *, correction_lr: float, consistency: float
    ) -> None:
        """Train on a task's nodes, from some position on."""
        count = len(task.y) - first
        self.second_ = self._new_second()
        draw = numpy_rng(self.seed, "halves")

        def measure(moves: Tensor) -> StepResult:
            order = torch.from_numpy(draw.permutation(count)).add_(first)
            with torch.no_grad():
                size, gradient = task.size(moves, *order.tensor_split(2))
                kept = moves[..., first:]
                loss = size + consistency * kept.square().mean()
                gradient[..., first:].add_(kept, alpha=2 * consistency / kept.numel())
            told = with_gradient(moves, loss, gradient)
            return StepResult(told, lambda: (math.nan, size.item()))

        step = step_of(self.second_, task.graph, measure)
        settings = replace(self._correction_training(), lr=correction_lr)
        with self._pace(task.graph.nodes):
            self.second_history_ = train(self.second_, once(step), settings, generators=[draw])

    def _new_second(self) -> IntervalNet:
        generator = torch_rng(self.seed, "second net")
        inputs = 1 + 2 * len(self._trained_levels())
        encoder = SageEncoder(inputs, self.hidden, 2, generator=generator)
        head = LinearHead(self.hidden, inputs - 1, generator=generator)
        torch.nn.init.zeros_(head.weight)  # begins by correcting nothing
        torch.nn.init.zeros_(head.bias)
        return IntervalNet(encoder, head).to(DTYPES[self.dtype])

    def _second_graph(self, data: Data, outputs: Any, first: Tensor | None = None) -> Operands:
        """The graph with what the first net says as its features."""
        lower, upper = (bound.mean(dim=1) for bound in self._bounds(outputs))
        value = self._value(outputs).mean(dim=0, keepdim=True)
        said = torch.cat([value, lower, upper]).t().contiguous()
        return prepare(said, data.edge_index, data.get("edge_weight"), first=first)

    def _predict(self, data: Data, level: float) -> Bounds:
        self._data = data
        return super()._predict(data, level)

    def _interval(self, outputs: Any, level: float) -> Bounds:
        moves = self.second_(self._second_graph(self._data, outputs))[:, 0].chunk(2)
        inner = [wanted for wanted in self._trained_levels() if wanted <= level]
        low, high = (
            (bound.mean(dim=1) + move)[: len(inner)]
            for bound, move in zip(self._bounds(outputs), moves, strict=True)
        )
        # the outermost end of all levels up to this one: nested, and never crossed
        lower, upper = low.minimum(high).amin(dim=0), low.maximum(high).amax(dim=0)
        value = self._value(outputs).mean(dim=0)
        return Bounds(value.clamp(lower, upper), lower, upper)

    def _state(self) -> dict[str, Tensor]:
        second = {f"second.{name}": w for name, w in self.second_.state_dict().items()}
        return {**super()._state(), **second}

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        super()._restore(state, fitted)
        self.second_ = restored(self._new_second, part_of(state, "second"))


@dataclass(frozen=True)
class _Task:
    """What the second net is to do.

    Shapes:
        bounds: (2, levels, nodes), the first net's; y: (nodes,)
    """

    graph: Operands
    bounds: Tensor
    y: Tensor
    levels: list[float]

    def size(self, moves: Tensor, widening: Tensor, judged: Tensor) -> tuple[Tensor, Tensor]:
        """Mean width on some nodes, after a conformal step on others; and its gradient."""
        lower, upper = self.bounds + moves.reshape(self.bounds.shape)
        below, above = lower - self.y, self.y - upper
        scores = torch.maximum(below, above)[:, widening]
        wide = (upper - lower)[:, judged]
        gradient = torch.zeros_like(self.bounds)
        to_lower, to_upper = gradient
        total = moves.new_zeros(())
        for i, level in enumerate(self.levels):
            rank = min(conformal_rank(len(widening), level), len(widening))
            score, place = scores[i].kthvalue(rank)
            widened = wide[i] + 2 * score
            total += widened.relu().mean()
            share = (widened > 0).to(moves.dtype) / len(judged)
            to_lower[i, judged], to_upper[i, judged] = -share, share
            node, pull = widening[place], 2 * share.sum()  # the node whose score widens all
            if below[i, node] > above[i, node]:
                to_lower[i, node] += pull
            else:
                to_upper[i, node] -= pull
        return total, gradient.view_as(moves)
