"""The second stage of a fit: intervals from the nets' own and from neighbours' known targets.

Nets see features only. Where some targets are known, the errors of a unit's neighbours tell more.
Small nets without a graph are trained on top of the cross-fitted ones, on columns of
:mod:`qpignn.calibration.neighbours`; they learn by how many half-widths w the target differs from
the first prediction v, t = (z − v) / w, with half-widths of its own. The joint loss is positively
homogeneous, so that of t with the weight w is that of z.

What prediction needs of the given units is stored with the model: ``data.y`` is never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from qpignn.calibration.conformal import enough_for
from qpignn.calibration.cross_fit import CrossFit
from qpignn.calibration.neighbours import (
    CLIP,
    KnownErrors,
    certain_gain,
    with_known_neighbours,
)
from qpignn.calibration.width_scaling import (
    Floats,
    MemberOutputs,
    WidthScaling,
    nested_bounds,
)
from qpignn.data.scaling import Scaler
from qpignn.encoders.inputs import GraphInputs
from qpignn.intervals import check_levels
from qpignn.io.tensors import check_tensors
from qpignn.methods.known_nodes import KnownNodes
from qpignn.methods.neighbour_sample import Neighbours, Sample, half_width_of
from qpignn.methods.net_training import member_count, part_of, restored_net, train_nets
from qpignn.methods.scaled_data import DTYPES
from qpignn.methods.training_set import TrainingSet
from qpignn.nn.interval_net import IntervalNet, each
from qpignn.runtime.memory import row_chunks
from qpignn.tasks.base import FitInputs

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.base import Bounds
    from qpignn.methods.net import NetMethod
    from qpignn.methods.net_training import FittedNets
    from qpignn.methods.qpignn import QpiGNN
    from qpignn.training.history import History

FEW = 100  # given units with known neighbours that each member is trained on, at least
SHARES = (0.5, 0.75, 1.0)  # of the second stage in the average with the first
START = 0.1  # factor of the head's random initial weights: it starts near the first stage
SETTINGS: dict[str, Any] = {
    "encoder": "mlp",
    "layers": 1,
    "hidden": 32,
    "dropout": 0.1,
    "lr": 1e-2,
    "weight_decay": 1e-2,
    "neighbours": "off",
    "novelty": "off",
}


@dataclass(frozen=True)
class KnownNeighbours:
    """A fitted second stage.

    Attributes:
        stage: the settings of its nets.
        net: its members.
        scaler: of their columns.
        scalings: of widths, by level.
        share: of the second stage in the average with the first, above 0.
        nodes: the given units, to be found in other graphs.
        errors: what is known of them.
        narrowest: smallest half-width w, in the nets' units.
    """

    stage: QpiGNN
    net: IntervalNet
    scaler: Scaler
    scalings: Mapping[float, WidthScaling]
    share: float
    nodes: KnownNodes
    errors: KnownErrors
    narrowest: float

    @classmethod
    def fit(
        cls, method: NetMethod, inputs: FitInputs, fitted: FittedNets
    ) -> tuple[Self | None, History | None]:
        """Train a second stage on top of cross-fitted nets.

        Args:
            method: whose nets were fitted.
            inputs: of the fit.
            fitted: what the fit has learnt.

        Returns:
            The second stage, None where it would not make intervals better; and the history of its
            training, None if there was none.
        """
        levels = check_levels(method.confidence_level)
        sample = Sample.of(method, inputs, fitted, levels[-1])
        if sample is None or sample.rows.sum() < max(FEW, *map(enough_for, levels)):
            return None, None
        held_out = sample.held_out[:, sample.rows]
        if (~held_out).sum(axis=1).min() < FEW:  # of one member, all are held out
            return None, None
        stage, scaler = second_stage_of(method), sample.scaler()
        value, half_width, z = sample.first_stage
        graph, y, weight = (
            _graph(stage, scaler, sample.columns),
            torch.from_numpy((z - value) / half_width).to(DTYPES[stage.dtype]),
            torch.from_numpy(sample.weight * half_width / half_width.mean()),
        )
        training_set = TrainingSet(graph, y, weight.to(y.dtype), torch.from_numpy(held_out))
        net, history = train_nets(stage, training_set, _start(stage, graph.columns))
        if history.interrupted:
            return None, history
        made = cls(stage, net, scaler, {}, 1.0, sample.nodes, sample.errors, sample.narrowest)
        # of every unit by several nets, and by the first that held it out alone
        outputs = (
            made._outputs(sample.columns),
            made._outputs(sample.with_first_stage(*sample.alone)),
        )
        plain = np.mean([sample.plain_scores(level) for level in levels], axis=0)
        gains = {}
        for share in SHARES:
            candidate, scores = replace(made, share=share)._calibrated(sample, outputs, levels)
            gains[certain_gain(scores, plain)] = candidate
        largest = max(gains)
        return (gains[largest] if largest > 0 else None), history

    def _calibrated(
        self, sample: Sample, outputs: tuple[Any, Any], levels: list[float]
    ) -> tuple[Self, Floats]:
        """Return this second stage with scaled widths, and its scores on held-out units.

        Args:
            sample: the units that it was trained on.
            outputs: of its nets for these, by several nets and by one.
            levels: wanted coverages.

        Returns:
            The second stage; and the scores, (kinds, rows), means over levels.
        """
        calibrator, (value, half_width, z) = self.stage.calibrator(), sample.first_stage
        assert isinstance(calibrator, CrossFit)
        scalings, scores = {}, []
        for level in levels:
            first = sample.outputs(level)
            several = self._members(outputs[0], first, level, value, half_width)
            one = self._members(outputs[1], first, level, *sample.alone)
            scalings[level], _ = calibrator.fit(
                *(several, sample.held_out[:, sample.rows], z, level),
                unit=sample.unit,
                heavy_tailed=sample.fitted.heavy_tailed,
                single=one,
            )
            scores.append(sample.scores(several, one, scalings[level], level))
        return replace(self, scalings=scalings), np.mean(scores, axis=0)

    def apply(
        self, method: NetMethod, data: Data, outputs: Any, bounds: Bounds, level: float
    ) -> Bounds:
        """Return bounds that use the known targets of neighbours, where there are any.

        Args:
            method: whose nets were fitted.
            data: a checked graph.
            outputs: of the nets for the graph's units.
            bounds: of these units without neighbours, in the nets' units.
            level: of the bounds.
        """
        places = self.nodes.places_in(data)
        there = np.flatnonzero(places >= 0)
        if not len(there):
            return replace(bounds, known_neighbours=np.zeros(len(places)))
        near = Neighbours.of(data, self.errors.select(places[there]), there, method.scalers_.x)
        counts = near.sums[:, 0]
        rows = np.flatnonzero(with_known_neighbours(near.sums))
        ends = [part.clone() for part in (bounds.prediction, bounds.lower, bounds.upper)]
        epistemic = None if bounds.epistemic is None else bounds.epistemic.clone()
        for chunk in row_chunks(len(rows)):
            some = torch.from_numpy(rows[chunk])
            part = _of_units(outputs, some)
            first = method.member_outputs(part, [*self.scalings][-1])
            half_width = half_width_of(first.mean(), self.narrowest)
            columns = near.columns(rows[chunk], first.mean().value, half_width)
            second = self._outputs(columns)
            members = {
                inner: self._members(
                    second, method.member_outputs(part, inner), inner, first.value, half_width
                )
                for inner in self.scalings
                if inner <= level
            }
            value, lower, upper, share = nested_bounds(
                members, self.scalings, side=bounds.side or "both"
            )
            for end, part in zip(ends, (value, lower, upper), strict=True):
                end[some] = torch.from_numpy(part)
            if epistemic is not None and share is not None:
                epistemic[some] = torch.from_numpy(share)
        prediction, low, high = ends
        return replace(
            bounds,
            prediction=prediction,
            lower=low,
            upper=high,
            epistemic=epistemic,
            known_neighbours=counts,
        )

    def state(self) -> dict[str, Tensor]:
        """Return everything as tensors, to be saved beside a model."""
        rows = [[level, *astuple(scaling)] for level, scaling in self.scalings.items()]
        tensors = {f"net.{name}": tensor for name, tensor in self.net.state_dict().items()}
        return tensors | {
            "columns": torch.stack([self.scaler.shift, self.scaler.scale]),
            "scalings": torch.tensor(rows, dtype=torch.float64),
            "nodes": self.nodes.state(),
            "errors": torch.from_numpy(np.stack(astuple(self.errors))),
            "narrowest": torch.tensor(self.narrowest, dtype=torch.float64),
            "share": torch.tensor(self.share, dtype=torch.float64),
        }

    @classmethod
    def from_state(cls, method: NetMethod, state: dict[str, Tensor], levels: list[float]) -> Self:
        """Return what :meth:`state` described.

        Args:
            method: the method that is being loaded.
            state: as read from a file; unchecked.
            levels: the fitted levels, rising.

        Raises:
            ValueError: if the tensors are not those of a second stage.
        """
        stage, nodes = second_stage_of(method), KnownNodes.from_state(state["nodes"])
        count = state["columns"].shape[-1]
        shapes = {"columns": (2, count), "scalings": (len(levels), 4), "narrowest": (), "share": ()}
        shapes |= {"errors": (4, len(nodes.hashes))}
        check_tensors(
            {name: state[name] for name in shapes},
            {name: torch.empty(shape, dtype=torch.float64) for name, shape in shapes.items()},
        )
        scalings = {level: WidthScaling(*rest) for level, *rest in state["scalings"].tolist()}
        narrowest, share = float(state["narrowest"]), float(state["share"])
        errors = state["errors"]
        right = [*scalings] == levels and not bool(state["scalings"].isnan().any())
        right = right and 0 < narrowest < np.inf and 0 < share <= 1
        if not (right and bool(errors.isfinite().all())):
            raise ValueError("second stage: expected the numbers of a fit, got others")
        net = restored_net(lambda: stage._new_net(count), part_of(state, "net"))
        scaler = Scaler.from_state(
            dict(zip(("shift", "scale"), state["columns"], strict=True)), count
        )
        return cls(
            *(stage, net, scaler, scalings, share, nodes),
            *(KnownErrors(*errors.numpy()), narrowest),
        )

    def _outputs(self, columns: Floats) -> Any:
        """Return the nets' outputs for rows of columns: value and half-widths, in units of w."""
        with torch.no_grad():
            return self.stage._run(self.net.eval(), _graph(self.stage, self.scaler, columns))

    def _members(
        self,
        outputs: Any,
        first: MemberOutputs,
        level: float,
        value: Floats,
        half_width: Floats,
    ) -> MemberOutputs:
        """Return values and half-widths of both stages, averaged, in the unit of the first.

        Args:
            outputs: of the second stage.
            first: of the first stage at the level.
            level: wanted coverage.
            value: v
            half_width: w
        """
        own = self.stage.member_outputs(outputs, level)
        second = (value + half_width * own.value, half_width * own.below, half_width * own.above)
        both = zip(second, (first.value, first.below, first.above), strict=True)
        return MemberOutputs(*(self.share * a + (1 - self.share) * b for a, b in both))


def second_stage_of(method: NetMethod) -> QpiGNN:
    """Return the settings of a method's second stage.

    Args:
        method: whose members, levels, epochs, seed and device it takes over.
    """
    from qpignn.methods.qpignn import QpiGNN

    calibrator = method.calibrator()
    tails = calibrator.tails if isinstance(calibrator, CrossFit) else "free"
    shared = {name: getattr(method, name) for name in ("epochs", "seed", "dtype", "device")}
    return QpiGNN(
        method.confidence_level,
        members=member_count(method),
        side="both" if calibrator is None else calibrator.side,
        tails=tails,
        patience=50 if method.patience is None else method.patience,
        verbose=method.verbose,
        **shared,
        **SETTINGS,
    )


def _graph(stage: QpiGNN, scaler: Scaler, columns: Floats) -> GraphInputs:
    """Return columns as an encoder's inputs, scaled and cut."""
    x = scaler.transform(torch.from_numpy(columns), DTYPES[stage.dtype]).clamp_(-CLIP, CLIP)
    return GraphInputs(x, x.shape[1], (), len(x))


def _start(stage: QpiGNN, columns: int) -> dict[str, Tensor]:
    """Return initial weights with which the second stage changes little."""
    weights = stage._new_net(columns).state_dict()
    head = {name: START * part for name, part in weights.items() if name.startswith("head.")}
    return {**weights, **head}


def _of_units(outputs: Any, units: Tensor) -> Any:
    """Return the outputs of nets for some units."""
    return each(outputs, lambda part: part[..., units])
