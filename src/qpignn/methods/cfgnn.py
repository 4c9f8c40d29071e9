"""The core of CF-GNN: a second GNN that moves a first one's bounds to make conformal sets small.

Huang et al. 2023 (https://arxiv.org/abs/2305.14535): the first net is trained as usual; the second
sees its bounds as node features and is trained, on nodes the first did not see, by a conformal
step made differentiable: half of those nodes give the widening, the other half the size.
"""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from qpignn.calibration.conformal import conformal_rank
from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sage import SageEncoder
from qpignn.errors import (
    SettingError,
    check_integer,
    check_non_negative,
    check_number,
    check_positive,
)
from qpignn.methods.base import Bounds
from qpignn.methods.fitted import Fitted
from qpignn.methods.net_training import (
    encoder_inputs,
    part_of,
    restored_net,
    threads_and_precision,
)
from qpignn.methods.quantile import QuantileGNN
from qpignn.methods.scaled_data import DTYPES
from qpignn.nn.heads import LinearHead
from qpignn.nn.interval_net import IntervalNet
from qpignn.runtime.randomness import numpy_rng, torch_rng
from qpignn.tasks.base import FitInputs
from qpignn.training.fused_steps import step_of, with_gradient
from qpignn.training.history import History
from qpignn.training.loop import StepResult, once, train
from qpignn.training.search import minimise
from qpignn.training.state import TrainingSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data

ENOUGH = 6  # nodes for a correction: two halves, or three parts in a search
SEARCHED = {"correction_lr": (1e-4, 3e-2), "consistency": (1e-3, 1.0)}


@dataclass(kw_only=True, eq=False, repr=False)
class CorrectedGNN(QuantileGNN):
    """A quantile GNN whose bounds a second GNN corrects; wrapped in a conformal step: CF-GNN.

    Its intervals are not meant to be used without that step. The setting ``encoder`` decides the
    encoder of the first net; the second net is always a GraphSAGE with two layers.

    Args:
        correction: share of the given units the second net is trained on.
        correction_epochs: of the second net.
        correction_lr: learning rate of the second net.
        consistency: price of moving bounds, in squared units of the target's deviation.
        trials: search ``correction_lr`` and ``consistency`` by Bayesian optimisation, so many
            evaluations; 0 takes them as given.

    Attributes:
        second_: the second net.
        second_history_: of its training.
        chosen_: the settings it was trained with.
    """

    cross_fits: ClassVar[bool] = False

    correction: float = 0.25
    correction_epochs: int = 200
    correction_lr: float = 1e-3
    consistency: float = 0.1
    trials: int = 0

    second_: IntervalNet = field(init=False)
    second_history_: History = field(init=False)
    chosen_: dict[str, float] = field(init=False)

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        super().check_settings()
        check_non_negative("consistency", self.consistency)
        check_integer("trials", self.trials, 0)
        check_integer("correction_epochs", self.correction_epochs)
        check_positive("correction_lr", self.correction_lr)
        if not 0 < check_number("correction", self.correction) < 1:
            raise SettingError(
                f"correction: expected a share strictly between 0 and 1, got {self.correction!r}"
            )

    def _fit(self, inputs: FitInputs) -> int | None:
        positions = inputs.given.nonzero().flatten().numpy()
        count = round(self.correction * len(positions))
        order = torch.from_numpy(numpy_rng(self.seed, "correction").permutation(positions))
        kept = inputs.given.clone()
        if count >= ENOUGH:  # else too few to learn a correction from: there is none
            kept[order[:count]] = False
        calibrated_on = super()._fit(replace(inputs, given=kept))
        self.second_ = self._new_second().eval()  # corrects nothing
        if count >= ENOUGH:
            trained, interrupted = len(self.history_), self.history_.interrupted
            if not interrupted:
                self._correct(inputs, order[:count])
                trained += len(self.second_history_)
                interrupted = self.second_history_.interrupted
            if interrupted:
                self.history_.interrupt(trained, self.epochs + self.correction_epochs)
        return calibrated_on

    def _correct(self, inputs: FitInputs, units: Tensor) -> None:
        """Train the second net on units the first was not trained on."""
        data = inputs.data
        y = self.y_scaler_.transform(inputs.task.targets(data)[units], DTYPES[self.dtype])
        with torch.no_grad():
            outputs = self.net_(encoder_inputs(self, data))
            bounds = torch.stack(self.compute_bounds(outputs)).mean(dim=2)[..., units]
        graph = self._second_graph(data, outputs, units)
        correction = _Correction(graph, bounds, y, self.trained_levels())
        self.chosen_ = {name: getattr(self, name) for name in SEARCHED}
        if self.trials:
            third = len(units) // 3
            scored, trained = torch.arange(third), torch.arange(third, len(units))

            def score(tried: dict[str, float]) -> float:
                net, history = self._train_second(correction, third, **tried)
                if history.interrupted:  # nothing was chosen yet
                    raise KeyboardInterrupt
                with torch.no_grad():
                    size, _ = correction.size(net(graph), trained, scored)
                return float(size)

            self.chosen_ = minimise(score, SEARCHED, trials=self.trials, seed=self.seed)
        self.second_, self.second_history_ = self._train_second(correction, 0, **self.chosen_)

    def _train_second(
        self, correction: "_Correction", first: int, *, correction_lr: float, consistency: float
    ) -> tuple[IntervalNet, History]:
        """Train a second net on the correction's units, from some position on."""
        count = len(correction.y) - first
        net = self._new_second()
        rng = numpy_rng(self.seed, "halves")

        def measure(moves: Tensor) -> StepResult:
            order = torch.from_numpy(rng.permutation(count)).add_(first)
            with torch.no_grad():
                size, gradient = correction.size(moves, *order.tensor_split(2))
                kept = moves[..., first:]
                loss = size + consistency * kept.square().mean()
                gradient[..., first:].add_(kept, alpha=2 * consistency / kept.numel())
            return StepResult(with_gradient(moves, loss, gradient), lambda: (math.nan, size.item()))

        step = step_of(net, correction.graph, measure)
        settings = TrainingSettings(self.correction_epochs, correction_lr)
        with threads_and_precision(self, correction.graph.nodes):
            return net, train(net, once(step), settings, generators=[rng])

    def _new_second(self) -> IntervalNet:
        generator = torch_rng(self.seed, "second net")
        inputs = 1 + 2 * len(self.trained_levels())
        encoder = SageEncoder(inputs, self.hidden, 2, generator=generator)
        head = LinearHead(self.hidden, inputs - 1, generator=generator)
        torch.nn.init.zeros_(head.weight)  # at first it corrects nothing
        torch.nn.init.zeros_(head.bias)
        return IntervalNet(encoder, head).to(DTYPES[self.dtype])

    def _second_graph(self, data: "Data", outputs: Any, first: Tensor | None = None) -> GraphInputs:
        """Return the graph with the first net's values and bounds as its features."""
        lower, upper = (bound.mean(dim=1) for bound in self.compute_bounds(outputs))
        value = self.compute_value(outputs).mean(dim=0, keepdim=True)
        features = torch.cat([value, lower, upper]).t().contiguous()
        return SageEncoder.prepare(features, data.edge_index, data.get("edge_weight"), first=first)

    def _predict(self, data: "Data", level: float) -> Bounds:
        with torch.no_grad():
            outputs = self._run(self.net_, encoder_inputs(self, data))
            moves = self.second_(self._second_graph(data, outputs))[:, 0].chunk(2)
            inner = [wanted for wanted in self.trained_levels() if wanted <= level]
            low, high = (
                (bound.mean(dim=1) + move)[: len(inner)]
                for bound, move in zip(self.compute_bounds(outputs), moves, strict=True)
            )
            # the outermost end of all levels up to this one: nested, and never crossed
            lower, upper = low.minimum(high).amin(dim=0), low.maximum(high).amax(dim=0)
            value = self.compute_value(outputs).mean(dim=0)
        return self.scalers_.to_user(Bounds(value.clamp(lower, upper), lower, upper))

    def _state(self) -> dict[str, Tensor]:
        second = {f"second.{name}": w for name, w in self.second_.state_dict().items()}
        return {**super()._state(), **second}

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        super()._restore(state, fitted)
        self.second_ = restored_net(self._new_second, part_of(state, "second"))


@dataclass(frozen=True)
class _Correction:
    """What the second net is trained on.

    Attributes:
        graph: with the first net's values and bounds as features.
        bounds: (2, levels, units), the first net's.
        y: (units,), targets in the nets' units.
        levels: of the bounds.
    """

    graph: GraphInputs
    bounds: Tensor
    y: Tensor
    levels: list[float]

    def size(self, moves: Tensor, widening: Tensor, scored: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean width of units after a conformal step on others, and its gradient."""
        lower, upper = self.bounds + moves.reshape(self.bounds.shape)
        below, above = lower - self.y, self.y - upper
        scores = torch.maximum(below, above)[:, widening]
        widths = (upper - lower)[:, scored]
        gradient = torch.zeros_like(self.bounds)
        to_lower, to_upper = gradient
        total = moves.new_zeros(())
        for i, level in enumerate(self.levels):
            rank = min(conformal_rank(len(widening), level), len(widening))
            score, place = scores[i].kthvalue(rank)
            widened = widths[i] + 2 * score
            total += widened.relu().mean()
            share = (widened > 0).to(moves.dtype) / len(scored)
            to_lower[i, scored], to_upper[i, scored] = -share, share
            unit, pull = widening[place], 2 * share.sum()  # the unit whose score widens all
            if below[i, unit] > above[i, unit]:
                to_lower[i, unit] += pull
            else:
                to_upper[i, unit] -= pull
        return total, gradient.view_as(moves)
