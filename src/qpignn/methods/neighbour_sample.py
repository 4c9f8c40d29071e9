"""Rows that the second stage of a fit is trained on: what neighbours of given units know.

See :mod:`qpignn.methods.known_neighbours`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch

from qpignn.calibration.cross_fit import first_of, further
from qpignn.calibration.neighbours import (
    KnownErrors,
    interval_scores,
    least_score,
    neighbour_columns,
    neighbour_sums,
    with_known_neighbours,
)
from qpignn.calibration.width_scaling import Floats, Masks, MemberOutputs, WidthScaling
from qpignn.data.adjacency import symmetric_adjacency
from qpignn.data.matrix import is_sparse, to_csr
from qpignn.data.scaling import Scaler
from qpignn.methods.known_nodes import KnownNodes
from qpignn.methods.net_training import FittedNets, given_units
from qpignn.runtime.randomness import numpy_rng
from qpignn.tasks.base import FitInputs

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.net import NetMethod

WIDE = 64  # feature columns above which the second stage does not see them
MOST = 20_000  # given units that it is trained on
NARROWEST = 0.01  # half-width w, over its mean, below which it is raised: t = (z − v) / w


@dataclass(frozen=True)
class Neighbours:
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
        given = np.isin(np.arange(nodes), places)
        adjacency = symmetric_adjacency(data.edge_index, data.get("edge_weight"), nodes, given)
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
class Sample:
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
        outputs = method.member_outputs(fitted.outputs, level).select(order)
        several, one = outputs.mean(held), outputs.mean(first_of(held))
        narrowest = NARROWEST * float((several.below + several.above).mean() / 2)
        half_width = half_width_of(several, narrowest)
        errors = KnownErrors.of(z, several.value, half_width)
        near = Neighbours.of(inputs.data, errors, places, fitted.scalers.x)
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
            (one.value[rows], half_width_of(one, narrowest)[rows]),
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

    def outputs(self, level: float) -> MemberOutputs:
        """Return the outputs of the first stage, (members, rows).

        Args:
            level: wanted coverage.
        """
        rows = self.order[self.rows]
        return self.method.member_outputs(self.fitted.outputs, level).select(rows)

    def plain_scores(self, level: float) -> Floats:
        """Return the scores of held-out intervals of the first stage, (kinds, rows).

        Args:
            level: of the intervals.
        """
        outputs = self.outputs(level)
        return self.scores(outputs, outputs, self.fitted.scalings[level], level)

    def _least(self, level: float) -> float | None:
        """Return the smallest score whose logarithm counts; None where no logarithms do."""
        if not self.fitted.heavy_tailed:
            return None
        outputs = self.outputs(level).mean(self.held_out[:, self.rows])
        lower, upper = map(self.unit, self.fitted.scalings[level].bounds(outputs))
        y = self.unit(self.first_stage[2])
        return least_score(interval_scores(y, lower, upper, level, self._side)[0])

    @property
    def _side(self) -> str:
        calibrator = self.method.calibrator()
        return "both" if calibrator is None else calibrator.side

    def scores(
        self,
        outputs: MemberOutputs,
        alone: MemberOutputs,
        scaling: WidthScaling,
        level: float,
    ) -> Floats:
        """Return the scores of each interval, (kinds, rows).

        They are those to be expected of the average of all members, of which only some held a unit
        out: to first order, scores are linear in one over the number of averaged members.

        Args:
            outputs: (members, rows)
            alone: the same where the first net that held a unit out stands alone.
            scaling: of widths.
            level: of the intervals.
        """
        held_out, least = self.held_out[:, self.rows], self._least(level)
        y = self.unit(self.first_stage[2])
        averages = (outputs.mean(held_out), alone.mean(first_of(held_out)))
        several, one = (
            interval_scores(
                *(y, *map(self.unit, scaling.bounds(part)), level, self._side), least=least
            )
            for part in averages
        )
        repeats = int(held_out.sum(axis=0).min())
        return several - further(repeats, len(held_out)) * (one - several)


def half_width_of(outputs: MemberOutputs, narrowest: float) -> Floats:
    """Return the half-widths w of units, (units,).

    Args:
        outputs: averaged over members, (units,).
        narrowest: the smallest w.
    """
    half: Floats = np.maximum((outputs.below + outputs.above) / 2, narrowest)
    return half
