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
import numpy.typing as npt
import torch
from torch import Tensor

from qpignn.calibration.conformal import enough_for
from qpignn.calibration.cross_fit import CrossFit, first_of, further
from qpignn.calibration.neighbours import (
    CLIP,
    KnownErrors,
    interval_scores,
    is_better,
    neighbour_columns,
    neighbour_sums,
    with_known_neighbours,
)
from qpignn.calibration.width_scaling import (
    Floats,
    Masks,
    MemberOutputs,
    WidthScaling,
    nested_bounds,
)
from qpignn.data.adjacency import symmetric_adjacency
from qpignn.data.matrix import is_sparse, to_csr
from qpignn.data.scaling import Scaler
from qpignn.encoders.inputs import GraphInputs
from qpignn.intervals import check_levels
from qpignn.io.tensors import check_tensors
from qpignn.methods.known_nodes import KnownNodes
from qpignn.methods.net_training import given_units, member_count, part_of, restored_net, train_nets
from qpignn.methods.scaled_data import DTYPES
from qpignn.methods.training_set import TrainingSet
from qpignn.nn.interval_net import IntervalNet, each
from qpignn.runtime.memory import row_chunks
from qpignn.runtime.randomness import numpy_rng
from qpignn.tasks.base import FitInputs

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.base import Bounds
    from qpignn.methods.net import NetMethod
    from qpignn.methods.net_training import FittedNets
    from qpignn.methods.qpignn import QpiGNN
    from qpignn.training.history import History

WIDE = 64  # feature columns above which the second stage does not see them
MOST = 20_000  # given units that it is trained on
FEW = 100  # given units with known neighbours below which there is no second stage
NARROWEST = 0.01  # half-width w, over its mean, below which it is raised: t = (z − v) / w
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
        nodes: the given units, to be found in other graphs.
        errors: what is known of them.
        narrowest: smallest half-width w, in the nets' units.
    """

    stage: QpiGNN
    net: IntervalNet
    scaler: Scaler
    scalings: Mapping[float, WidthScaling]
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
        sample = _Sample.of(method, inputs, fitted, levels[-1])
        if sample is None or sample.rows.sum() < max(FEW, *map(enough_for, levels)):
            return None, None
        stage, scaler = second_stage_of(method), sample.scaler()
        held_out = sample.held_out[:, sample.rows]
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
        made = cls(stage, net, scaler, {}, sample.nodes, sample.errors, sample.narrowest)
        several = made._outputs(sample.columns)
        # the same, with the first net that held a unit out in place of the average of several
        alone = made._outputs(sample.with_first_stage(*sample.alone))
        calibrator = stage.calibrator()
        assert isinstance(calibrator, CrossFit)
        scalings, scores, plain = {}, [], []
        for level in levels:
            outputs = made._members(several, level, value, half_width)
            one = made._members(alone, level, *sample.alone)
            scalings[level], _ = calibrator.fit(
                *(outputs, held_out, z, level),
                unit=sample.unit,
                heavy_tailed=fitted.heavy_tailed,
                single=one,
            )
            scores.append(sample.scores(outputs, one, scalings[level], level))
            plain.append(sample.plain_scores(level))
        means = (np.mean(part, axis=0) for part in (scores, plain))
        if not is_better(*means, heavy_tailed=fitted.heavy_tailed):
            return None, history
        return replace(made, scalings=scalings), history

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
        near = _Neighbours.of(data, self.errors.select(places[there]), there, method.scalers_.x)
        known = near.sums[:, 0]
        rows = np.flatnonzero(with_known_neighbours(near.sums))
        ends = [part.clone() for part in (bounds.prediction, bounds.lower, bounds.upper)]
        epistemic = None if bounds.epistemic is None else bounds.epistemic.clone()
        for chunk in row_chunks(len(rows)):
            some = torch.from_numpy(rows[chunk])
            first = method.member_outputs(_of_units(outputs, some), [*self.scalings][-1])
            half_width = _half_width(first.mean(), self.narrowest)
            columns = near.columns(rows[chunk], first.mean().value, half_width)
            second = self._outputs(columns)
            members = {
                inner: self._members(second, inner, first.value, half_width)
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
            known_neighbours=known,
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
        shapes = {"columns": (2, count), "scalings": (len(levels), 4), "narrowest": ()}
        shapes |= {"errors": (4, len(nodes.hashes))}
        check_tensors(
            {name: state[name] for name in shapes},
            {name: torch.empty(shape, dtype=torch.float64) for name, shape in shapes.items()},
        )
        scalings = {level: WidthScaling(*rest) for level, *rest in state["scalings"].tolist()}
        narrowest, errors = float(state["narrowest"]), state["errors"]
        right = [*scalings] == levels and not bool(state["scalings"].isnan().any())
        if not (right and 0 < narrowest < np.inf and bool(errors.isfinite().all())):
            raise ValueError("second stage: expected the numbers of a fit, got others")
        net = restored_net(lambda: stage._new_net(count), part_of(state, "net"))
        scaler = Scaler.from_state(
            dict(zip(("shift", "scale"), state["columns"], strict=True)), count
        )
        return cls(
            *(stage, net, scaler, scalings, nodes),
            *(KnownErrors(*errors.numpy()), narrowest),
        )

    def _outputs(self, columns: Floats) -> Any:
        """Return what the nets say about rows of columns: value and half-widths, in units of w."""
        with torch.no_grad():
            return self.stage._run(self.net.eval(), _graph(self.stage, self.scaler, columns))

    def _members(
        self, outputs: Any, level: float, value: Floats, half_width: Floats
    ) -> MemberOutputs:
        """Return values and half-widths at a level in the unit of the first stage."""
        own = self.stage.member_outputs(outputs, level)
        below, above = half_width * own.below, half_width * own.above
        return MemberOutputs(value + half_width * own.value, below, above)


@dataclass(frozen=True)
class _Neighbours:
    """What the neighbours in a graph know.

    Attributes:
        adjacency: see :func:`qpignn.data.adjacency.symmetric_adjacency`.
        sums: (nodes, 7), see :func:`qpignn.calibration.neighbours.neighbour_sums`.
        x: (nodes, features), scaled; None where there are too many.
    """

    adjacency: Any
    sums: Floats
    x: npt.NDArray[np.float32] | None

    @classmethod
    def of(
        cls, data: Data, errors: KnownErrors, places: npt.NDArray[np.int64], scaler: Scaler
    ) -> Self:
        """Return the sums over the neighbours of every node.

        Args:
            data: a checked graph.
            errors: what is known of some nodes.
            places: their positions.
            scaler: of the features.
        """
        nodes, features = data.x.shape
        adjacency = symmetric_adjacency(data.edge_index, data.get("edge_weight"), nodes)
        x = None
        if features <= WIDE:  # whether stored dense or as CSR
            dense = to_csr(data.x).to_dense() if is_sparse(data.x) else data.x
            x = scaler.transform(dense).numpy()
        return cls(adjacency, neighbour_sums(adjacency, errors.spread(nodes, places)), x)

    def columns(self, rows: npt.NDArray[np.int64], value: Floats, half_width: Floats) -> Floats:
        """Return the columns of the second stage, (rows, columns).

        Args:
            rows: positions of the wanted nodes.
            value: (rows,), their first predictions.
            half_width: (rows,), their first half-widths.
        """
        columns = neighbour_columns(value, half_width, self.sums[rows])
        if self.x is None:
            return columns
        links = self.adjacency[rows]
        degree = np.asarray(links.sum(axis=1)).reshape(-1, 1)
        around = links @ self.x / np.maximum(degree, np.finfo(np.float64).tiny)
        return np.hstack([columns, self.x[rows], around])


@dataclass(frozen=True)
class _Sample:
    """Given units that some net held out, in the order of their positions.

    Attributes:
        method: whose nets were fitted.
        fitted: what the fit has learnt.
        order: where these units are among those that the nets were trained on.
        rows: (units,), which of them have known neighbours; at most :data:`MOST`.
        held_out: (members, units)
        columns: (rows, columns) of the second stage.
        first_stage: (rows,) each: v, w and z.
        alone: (rows,) each: v and w of the first net that held the unit out.
        weight: (rows,), of the units in training.
        nodes: all units, to be found in other graphs.
        errors: what is known of all units.
        narrowest: smallest w.
    """

    method: NetMethod
    fitted: FittedNets
    order: npt.NDArray[np.int64]
    rows: Masks
    held_out: Masks
    columns: Floats
    first_stage: tuple[Floats, Floats, Floats]
    alone: tuple[Floats, Floats]
    weight: Floats
    nodes: KnownNodes
    errors: KnownErrors
    narrowest: float

    @classmethod
    def of(
        cls, method: NetMethod, inputs: FitInputs, fitted: FittedNets, level: float
    ) -> Self | None:
        """Return the units of a fit, or None if no net held any out.

        Args:
            method: whose nets were fitted.
            inputs: of the fit.
            fitted: what the fit has learnt.
            level: the highest level.
        """
        units, held = (part.numpy() for part in given_units(method, inputs))
        order = np.flatnonzero(held.any(axis=0))
        if fitted.outputs is None or not len(order):
            return None
        order = order[np.argsort(units[order])]
        places, held = units[order], held[:, order]
        z = fitted.training_set.y.double().numpy()[order]
        outputs = _select(method.member_outputs(fitted.outputs, level), order)
        several, one = outputs.mean(held), outputs.mean(first_of(held))
        narrowest = NARROWEST * float((several.below + several.above).mean() / 2)
        half_width = _half_width(several, narrowest)
        errors = KnownErrors.of(z, several.value, half_width)
        near = _Neighbours.of(inputs.data, errors, places, fitted.scalers.x)
        rows = with_known_neighbours(near.sums[places])
        chosen = numpy_rng(method.seed, "second stage").permutation(np.flatnonzero(rows))[:MOST]
        rows = np.isin(np.arange(len(rows)), chosen)
        first = (several.value[rows], half_width[rows], z[rows])
        given = torch.zeros(inputs.data.x.shape[0], dtype=torch.bool)
        given[torch.from_numpy(places)] = True
        return cls(
            *(method, fitted, order, rows, held),
            near.columns(places[rows], *first[:2]),
            first,
            (one.value[rows], _half_width(one, narrowest)[rows]),
            fitted.training_set.weight.double().numpy()[order][rows],
            KnownNodes.of(inputs.data, given),
            errors,
            narrowest,
        )

    def scaler(self) -> Scaler:
        """Return the scaler of the columns."""
        spread = torch.from_numpy(self.columns.std(axis=0))
        flat = spread <= 1e-12
        return Scaler(
            torch.from_numpy(self.columns.mean(axis=0)), spread.masked_fill(flat, torch.inf)
        )

    def with_first_stage(self, value: Floats, half_width: Floats) -> Floats:
        """Return the columns with another first prediction.

        Args:
            value: (rows,), v.
            half_width: (rows,), w.
        """
        columns = self.columns.copy()
        columns[:, :2] = np.stack([value, np.log(half_width)], axis=1)
        return columns

    def unit(self, z: Floats) -> Any:
        """Return numbers in the unit in which widths are compared.

        Args:
            z: in the nets' units.
        """
        return self.fitted.scalers.in_target_unit(torch.from_numpy(z)).numpy()

    def plain_scores(self, level: float) -> Floats:
        """Return the scores of held-out intervals of the first stage, (rows,).

        Args:
            level: of the intervals.
        """
        rows = self.order[self.rows]
        outputs = _select(self.method.member_outputs(self.fitted.outputs, level), rows)
        return self.scores(outputs, outputs, self.fitted.scalings[level], level)

    def scores(
        self,
        outputs: MemberOutputs,
        alone: MemberOutputs,
        scaling: WidthScaling,
        level: float,
    ) -> Floats:
        """Return the score of each interval; logarithms of it where targets have a heavy tail.

        They are those to be expected of the average of all members, of which only some held a unit
        out: to first order, scores are linear in one over the number of averaged members.

        Args:
            outputs: (members, rows)
            alone: the same where the first net that held a unit out stands alone.
            scaling: of widths.
            level: of the intervals.
        """
        held_out, heavy = self.held_out[:, self.rows], self.fitted.heavy_tailed
        calibrator, y = self.method.calibrator(), self.unit(self.first_stage[2])
        side = "both" if calibrator is None else calibrator.side
        averages = (outputs.mean(held_out), alone.mean(first_of(held_out)))
        several, one = (
            interval_scores(
                *(y, *map(self.unit, scaling.bounds(part)), level, side), heavy_tailed=heavy
            )
            for part in averages
        )
        repeats = int(held_out.sum(axis=0).min())
        return several - further(repeats, len(held_out)) * (one - several)


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


def _half_width(outputs: MemberOutputs, narrowest: float) -> Floats:
    half: Floats = np.maximum((outputs.below + outputs.above) / 2, narrowest)
    return half


def _select(outputs: MemberOutputs, rows: npt.NDArray[np.int64]) -> MemberOutputs:
    parts = (outputs.value, outputs.below, outputs.above)
    return MemberOutputs(*(part[:, rows] for part in parts))
