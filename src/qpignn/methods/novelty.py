"""Novelty: how far the units of a graph are from those that a method was fitted on.

This is the graph's side of :mod:`qpignn.calibration.widening`: features, edges and given units are
turned into distances, and the bounds of any method into wider ones beyond the given units. In
range nothing changes, bit for bit.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.stats import norm
from torch import Tensor

from qpignn.calibration.widening import (
    SHARE,
    UNREACHABLE,
    Distances,
    Growth,
    Limits,
    Ridge,
    fit_growth,
    fit_slopes,
    widened,
)
from qpignn.calibration.width_scaling import Floats, Masks
from qpignn.data.feature_range import FeatureRange
from qpignn.data.matrix import is_sparse, to_scipy
from qpignn.data.scaling import Scaler, TargetScaler, fit_feature_scaler
from qpignn.encoders.inputs import aggregation_matrix
from qpignn.io.tensors import check_tensors
from qpignn.methods.known_nodes import KnownNodes
from qpignn.runtime.memory import row_chunks
from qpignn.runtime.randomness import numpy_rng

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.base import Bounds

FOLDS = 5
COMBINED = 16  # feature columns above which as many random combinations of them are compared
WIDE = 64  # feature columns above which they share one slope
RANDOM_FEATURES = 128  # of the small regression
MOST = 20_000  # given units that limits and growth are learnt from
FEW = 100  # given units below which growth is not learnt
INNER = 0.1  # share of the given units beyond the inner range of a column, on each side
EXTREME = 0.2  # share of the given units that are held out as the most unusual ones
LONGEST = 50  # edges of a path that are counted
REASONS = ("", "distance to labelled nodes", "combination of features")


class Surroundings:
    """The edges of a graph, as novelty needs them.

    Args:
        data: a checked graph.
    """

    def __init__(self, data: Data) -> None:
        nodes = data.x.shape[0]
        self.mean = aggregation_matrix(data.edge_index, None, nodes)
        self.degree = self.mean.starts.diff().float()

    def positions(self, combined: Tensor, rows: Tensor) -> Floats:
        """Return what positions of some nodes are: own, mean of the neighbours, their number.

        Args:
            combined: (nodes, terms), features or combinations of them.
            rows: positions of the wanted nodes, rising.

        Returns:
            (wanted, 2 · terms + 1)
        """
        wanted = torch.zeros(len(combined), dtype=torch.bool)
        wanted[rows] = True
        return np.concatenate([part[wanted[chunk]] for chunk, part in self._positions(combined)])

    def unusual(self, combined: Tensor, metric: Metric) -> Floats:
        """Return the distance of each node's position in a metric, (nodes,).

        Args:
            combined: (nodes, terms), features or combinations of them.
            metric: of the given units.
        """
        return np.concatenate([metric(part) for _, part in self._positions(combined)])

    def _positions(self, combined: Tensor) -> Iterator[tuple[slice, Floats]]:
        for chunk in row_chunks(len(combined)):
            around = self.mean.some(chunk.start, chunk.stop).multiply(combined)
            degree = self.degree[chunk].log1p().unsqueeze(1)
            yield chunk, torch.cat([combined[chunk], around, degree], dim=1).numpy()

    def distances(
        self, own: Any, start: Tensor, unusual: Floats, rows: Tensor | None = None
    ) -> Distances:
        """Return the distances of all nodes, or of some.

        Args:
            own: (nodes, columns), SciPy CSR, features beyond the range.
            start: boolean, (nodes,), the given units.
            unusual: (wanted,), as :meth:`unusual` returns them.
            rows: positions of the wanted nodes; default all.
        """
        around, hops = own, self.hops_to(start)
        if own.nnz:
            columns = np.unique(own.indices)  # few: those with values beyond the range
            beyond = torch.from_numpy(own[:, columns].toarray()).float()
            mean = sp.coo_matrix(self.average(beyond).double().numpy())
            around = sp.csr_matrix((mean.data, (mean.row, columns[mean.col])), own.shape)
        chosen = slice(None) if rows is None else rows.numpy()
        return Distances(own[chosen], around[chosen], hops[chosen], unusual)

    def average(self, numbers: Tensor) -> Tensor:
        """Return the mean over each node's neighbours, (nodes, columns).

        Args:
            numbers: (nodes, columns).
        """
        return self.mean.multiply(numbers)

    def hops_to(self, start: Tensor) -> Floats:
        """Return the number of edges from the nearest start to each node, (nodes,).

        Args:
            start: boolean, (nodes,).
        """
        hops = torch.full((len(start),), UNREACHABLE, dtype=torch.float64)
        front, steps = start, 0
        while steps <= LONGEST and bool(front.any()):
            hops[front] = steps
            reached = self.average(front.float().unsqueeze(1)).squeeze(1) > 0
            front, steps = reached & (hops == UNREACHABLE), steps + 1
        return hops.numpy()

    def regions(self, start: Tensor, draw: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return the number of the nearest of a few distant nodes, (nodes,); −1 without a path.

        Args:
            start: boolean, (nodes,), nodes to choose from.
            draw: chooses among equally distant ones.
        """
        nearest = np.full(len(start), UNREACHABLE)
        region = np.full(len(start), -1)
        candidates = start.numpy()
        for number in range(FOLDS):
            reach = np.where(candidates & (nearest < UNREACHABLE), nearest, -1.0)
            if number == 0:
                reach = candidates * self.degree.numpy()
            seed = draw.choice(np.flatnonzero(reach == reach.max()))
            own = self.hops_to(torch.arange(len(start)) == int(seed))
            closer = own < nearest
            region[closer], nearest[closer] = number, own[closer]
        return region


@dataclass(frozen=True)
class Metric:
    """The distance of positions from their mean, in the metric of their covariance.

    Attributes:
        mean: (terms,)
        root: (terms, terms), whose product with its transpose is the inverse of the covariance.
    """

    mean: Floats
    root: Floats

    @classmethod
    def of(cls, positions: Floats) -> Self:
        """Return the metric of some units.

        Args:
            positions: (units, terms).
        """
        positions = positions.astype(np.float64)
        centred = positions - positions.mean(axis=0)
        covariance = centred.T @ centred / len(positions)
        spread = np.maximum(covariance.diagonal(), 1e-12)
        inverse = np.linalg.inv(covariance + np.diag(1e-3 * spread))
        root = np.linalg.cholesky((inverse + inverse.T) / 2)
        return cls(positions.mean(axis=0), np.asarray(root, dtype=np.float64))

    def __call__(self, positions: Floats) -> Floats:
        """Return the distance of each unit, (units,); about 1 for the units of the metric.

        Args:
            positions: (units, terms).
        """
        mean, root = self.mean.astype(np.float32), self.root.astype(np.float32)
        moved = (positions - mean) @ root
        return np.asarray(np.sqrt(np.square(moved).mean(axis=1, dtype=np.float64)))


@dataclass(frozen=True)
class UnitNovelty:
    """The novelty of a graph's units.

    Attributes:
        score: (units,), the largest distance divided by its limit: above 1 a unit lies beyond what
            was learnt.
        reason: (units,), in words what puts a unit beyond what was learnt; empty for the others.
        factor: (units,), g of :mod:`qpignn.calibration.widening`.
        left_out: (units,), s, in the unit of the nets' targets.
    """

    score: Floats
    reason: npt.NDArray[Any]
    factor: Floats
    left_out: Floats


@dataclass(frozen=True)
class Novelty:
    """What is known of the given units of a fit, and how intervals grow beyond it.

    Attributes:
        scaler: of the features.
        range: of the features.
        metric: of the given units' positions.
        limits: of what is usual.
        growth: of errors beyond the limits.
        normal: mean half-widths of the given units by level: below and above the prediction, in
            the unit of ``target``.
        target: transform and scale in which half-widths are compared.
        given: the given units, to be found in other graphs.
    """

    scaler: Scaler
    range: FeatureRange
    metric: Metric
    limits: Limits
    growth: Growth
    normal: Mapping[float, tuple[float, float]]
    target: TargetScaler
    given: KnownNodes

    @classmethod
    def fit(
        cls,
        data: Data,
        targets: Tensor,
        target: TargetScaler,
        predict: Callable[[Data, float], Bounds],
        levels: list[float],
    ) -> Self:
        """Learn from the given units of a fit.

        Args:
            data: the graph of the fit.
            targets: (nodes,), NaN for nodes that are not given.
            target: transform and scale of the target.
            predict: the fitted method, without novelty.
            levels: the fitted levels, rising.
        """
        draw, x, near, given = numpy_rng(0, "novelty"), data.x, Surroundings(data), ~targets.isnan()
        scaler, rows = fit_feature_scaler(x, given), given.nonzero().flatten()
        feature_range = FeatureRange.of(x, rows, scaler.scale)
        sample = rows[torch.from_numpy(np.sort(draw.permutation(len(rows))[:MOST]))]
        combined = _combinations(x, scaler)
        positions = near.positions(combined, sample)
        fold = draw.permutation(len(sample)) % FOLDS

        def held_out(number: int) -> Distances:
            """Return the distances of a fold from the other given units."""
            out = torch.from_numpy(fold == number)
            rest = given.clone()
            rest[sample[out]] = False
            others = FeatureRange.of(x, rest.nonzero().flatten(), scaler.scale)
            unusual = Metric.of(positions[~out.numpy()])(positions[out.numpy()])
            return near.distances(others.cut(x)[1], rest, unusual, sample[out])

        limits = Limits.fit(map(held_out, range(FOLDS if len(rows) <= MOST else 1)))
        halves = {level: _halves(predict(data, level), target) for level in levels}
        normal = {
            level: (float(below[rows].mean()), float(above[rows].mean()))
            for level, (_, below, above) in halves.items()
        }
        slopes = np.zeros((2, x.shape[1]))
        within, own = FeatureRange.of(x, rows, scaler.scale, INNER).cut(x)
        if own.nnz and not is_sparse(x):
            moved, *_ = _halves(predict(_with_features(data, within), levels[-1]), target)
            far = near.distances(own, given, np.zeros(len(sample)), sample)
            shared = x.shape[1] > WIDE or len(sample) < 20 * x.shape[1]
            slopes = fit_slopes(far, (moved - halves[levels[-1]][0])[sample], shared=shared)
        growth = Growth(slopes, 0.0, 0.0, 0.0)
        if len(rows) >= FEW:
            y = target.transform(targets[sample], torch.float64).numpy()
            design = _design(near.average(near.average(combined))[sample], positions)
            regression = Ridge.best(design, y - y.mean(), fold)
            regions = near.regions(given, draw)[sample.numpy()]
            growth = _Sample(near, given, sample, positions).growth(
                slopes, regression, regions, limits
            )
        metric, known = Metric.of(positions), KnownNodes.of(data, given)
        return cls(scaler, feature_range, metric, limits, growth, normal, target, known)

    def of(self, data: Data) -> tuple[Data, UnitNovelty]:
        """Return a graph with features cut at the range, and the novelty of its units.

        Args:
            data: a checked graph with the columns of the fit.
        """
        near = Surroundings(data)
        features, own = self.range.cut(data.x)
        combined = _combinations(features, self.scaler)
        unusual = near.unusual(combined, self.metric)
        known = self.given.found_in(data)
        far = near.distances(own, known, unusual)
        if not bool(known.any()):
            farthest = np.full(len(known), self.limits.hops + self.growth.farthest)
            far = replace(far, hops=farthest)
        ratios = self.limits.ratios(far)
        score, part = ratios.max(axis=0), ratios.argmax(axis=0)
        beyond = np.flatnonzero(score > 1)
        reason = np.full(len(score), "", dtype=object)
        reason[beyond] = _reasons(part[beyond], far.select(beyond), data.get("feature_names"))
        factor, left_out = self.growth.factor(far, self.limits), self.growth.left_out(far)
        novelty = UnitNovelty(score, reason, factor, left_out)
        return (data if features is data.x else _with_features(data, features)), novelty

    def widen(self, bounds: Bounds, novelty: UnitNovelty, level: float) -> Bounds:
        """Return bounds that are wider for units beyond what was learnt.

        Args:
            bounds: of a graph's units, in the target's unit.
            novelty: of these units.
            level: of the bounds.
        """
        beyond: Masks = novelty.score > 1
        moved = beyond | (novelty.factor > 1) | (novelty.left_out > 0)
        bounds = replace(bounds, novelty=novelty.score, novelty_reason=novelty.reason)
        if not moved.any():
            return bounds
        value, below, above = _halves(bounds, self.target)
        ends = []
        for half, normal in zip((below, above), self._normal(level), strict=True):
            least = np.where(beyond, np.maximum(half, normal), half)
            ends.append(widened(least, novelty.factor, novelty.left_out, level))
        scaled = (torch.from_numpy(end) for end in (value - ends[0], value + ends[1]))
        lower, upper = (self.target.inverse(end) for end in scaled)
        there = torch.from_numpy(moved)
        lower = torch.where(there, lower.minimum(bounds.lower), bounds.lower)
        upper = torch.where(there, upper.maximum(bounds.upper), bounds.upper)
        if bounds.side == "lower":
            upper = bounds.upper
        if bounds.side == "upper":
            lower = bounds.lower
        more = upper - lower - (bounds.upper - bounds.lower)  # due to the model, not to noise
        part = bounds.epistemic
        epistemic = None if part is None else torch.where(there, part + more, part)
        return replace(bounds, lower=lower, upper=upper, epistemic=epistemic)

    def state(self) -> dict[str, Tensor]:
        """Return everything as tensors, to be saved beside a model."""
        limits, growth = self.limits, self.growth
        numbers = [*astuple(limits), growth.hops, growth.unusual, growth.farthest]
        normal = [[level, *halves] for level, halves in self.normal.items()]
        tensors = {
            "columns": torch.stack([self.scaler.shift, *vars(self.range).values()]),
            "mean": torch.from_numpy(self.metric.mean),
            "root": torch.from_numpy(self.metric.root),
            "numbers": torch.tensor(numbers, dtype=torch.float64),
            "slopes": torch.from_numpy(growth.slopes),
            "normal": torch.tensor(normal, dtype=torch.float64),
            "given": self.given.state(),
        }
        # copies: a file of tensors must not hold one twice
        return tensors | {
            f"target.{name}": one.clone() for name, one in self.target.state().items()
        }

    @classmethod
    def from_state(cls, state: dict[str, Tensor], columns: int) -> Self:
        """Return what :meth:`state` described.

        Args:
            state: as read from a file; unchecked.
            columns: number of feature columns of the fit.

        Raises:
            ValueError: if the tensors are not those of a novelty.
        """
        terms = len(state["mean"])
        shapes = {"columns": (4, columns), "mean": (terms,), "root": (terms, terms)}
        shapes |= {"numbers": (7,), "slopes": (2, columns), "normal": (len(state["normal"]), 3)}
        check_tensors(
            {name: state[name] for name in shapes},
            {name: torch.empty(shape, dtype=torch.float64) for name, shape in shapes.items()},
        )
        widths = {2 * min(columns, COMBINED) + 1, 2 * COMBINED + 1}
        finite = all(bool(state[name].isfinite().all()) for name in shapes if name != "columns")
        shift, low, high, scale = state["columns"]
        right = bool((low <= high).all() and (scale > 0).all() and shift.isfinite().all())
        if terms not in widths or not finite or not right or not len(state["normal"]):
            raise ValueError("novelty: expected the numbers of a fit, got others")
        beyond, hops, unusual, without_path, *growth = state["numbers"].tolist()
        target = {n.removeprefix("target."): one for n, one in state.items() if "target." in n}
        return cls(
            Scaler(shift, scale),
            FeatureRange(low, high, scale),
            Metric(state["mean"].numpy(), state["root"].numpy()),
            Limits(beyond, hops, unusual, bool(without_path)),
            Growth(state["slopes"].numpy(), *growth),
            {level: (below, above) for level, below, above in state["normal"].tolist()},
            TargetScaler.from_state(target),
            KnownNodes.from_state(state["given"]),
        )

    def _normal(self, level: float) -> tuple[float, float]:
        """Return mean half-widths at a level; between fitted ones those of a normal law."""
        if level in self.normal:
            return self.normal[level]
        fitted = max(self.normal)
        below, above = self.normal[fitted]
        factor = float(norm.ppf((1 + level) / 2) / norm.ppf((1 + fitted) / 2))
        return factor * below, factor * above


def _with_features(data: Data, x: Tensor) -> Data:
    """Return a shallow copy of a graph with other features."""
    changed = copy.copy(data)
    changed.x = x
    return changed


def _combinations(x: Tensor, scaler: Scaler) -> Tensor:
    """Return scaled columns, or if there are many of them random combinations, (nodes, terms)."""
    if not is_sparse(x) and x.shape[1] <= COMBINED:
        return scaler.transform(x)
    weights = numpy_rng(0, "novelty combinations").normal(size=(x.shape[1], COMBINED))
    if is_sparse(x):
        scaled, offset = scaler.transform_sparse(x, torch.float64)
        shift = 0 if offset is None else offset.numpy() @ weights
        return torch.from_numpy(to_scipy(scaled) @ weights + shift).float()
    mixed = torch.from_numpy(weights).float()
    parts = [scaler.transform(x[chunk]) @ mixed for chunk in row_chunks(len(x))]
    return torch.cat(parts)


def _halves(bounds: Bounds, target: TargetScaler) -> tuple[Floats, Floats, Floats]:
    """Return prediction and half-widths below and above in the unit of the scaled target."""
    numbers = (bounds.prediction, bounds.lower, bounds.upper)
    value, lower, upper = (target.transform(one, torch.float64).numpy() for one in numbers)
    return value, value - lower, upper - value


def _reasons(part: Any, far: Distances, names: Sequence[str] | None) -> list[str]:
    """Return in words which distance is beyond its limit, and for features which column.

    Args:
        part: (units,), position of the distance in :class:`Limits`.
        far: distances of these units.
        names: of the feature columns.
    """
    own, around = (one.max(axis=1).toarray().ravel() for one in (far.own, far.around))
    places = (np.asarray(one.argmax(axis=1)).ravel() for one in (far.own, far.around))
    columns = np.where(own >= around, *places)
    named = [f"column {column if names is None else names[column]!r}" for column in columns]
    return [REASONS[one] or name for one, name in zip(part, named, strict=True)]


def _design(two_hops: Tensor, positions: Floats) -> Floats:
    """Return the terms of the small regression: a constant, numbers and functions of them.

    Args:
        two_hops: (units, terms), mean over the neighbours of the neighbours.
        positions: (units, 2 · terms + 1).
    """
    linear = np.column_stack([positions, two_hops.double().numpy()])
    linear = (linear - linear.mean(axis=0)) / np.maximum(linear.std(axis=0), 1e-12)
    draw = numpy_rng(0, "novelty features")
    weights = draw.normal(size=(linear.shape[1], RANDOM_FEATURES)) / math.sqrt(linear.shape[1])
    hidden = np.maximum(linear @ weights + draw.normal(size=RANDOM_FEATURES), 0)
    return np.column_stack([np.ones(len(linear)), linear, hidden])


@dataclass(frozen=True)
class _Sample:
    """Given units that growth is learnt from.

    Attributes:
        near: of the graph.
        given: boolean, (nodes,), all given units.
        rows: positions of these units, rising.
        positions: (units, terms)
    """

    near: Surroundings
    given: Tensor
    rows: Tensor
    positions: Floats

    def growth(
        self,
        slopes: Floats,
        regression: tuple[Ridge, Floats],
        regions: npt.NDArray[np.int64],
        limits: Limits,
    ) -> Growth:
        """Return how errors grow on regions, and on the most unusual units, when held out.

        Args:
            slopes: (2, columns)
            regression: on these units, with its errors on random folds.
            regions: (units,), the number of each unit's region.
            limits: of the usual.
        """
        ridge, usual = regression
        unusual = Metric.of(self.positions)(self.positions)
        extreme = unusual > np.quantile(unusual, 1 - EXTREME)
        groups: list[Masks] = [*(regions == number for number in range(FOLDS)), extreme]
        parts, farthest = [], 0.0
        for out in groups:
            if 0 < out.sum() < len(out) / 2:
                far, seen = self._held_out(out, limits)
                reached = far.hops[far.hops < UNREACHABLE]
                farthest = max(farthest, float(reached.max(initial=0.0)) - limits.hops)
                parts.append((ridge.errors_without(out), far, seen))
        if not parts:
            return Growth(slopes, 0.0, 0.0, 0.0)
        errors = np.concatenate([part for part, *_ in parts])
        excess = np.hstack([seen.excess(far, farthest) for _, far, seen in parts])
        return Growth(slopes, *fit_growth(usual, errors, excess), farthest)

    def _held_out(self, out: Masks, limits: Limits) -> tuple[Distances, Limits]:
        """Return the distances of some units from the others, and the limits of the others."""
        rest = self.given.clone()
        rest[self.rows[torch.from_numpy(out)]] = False
        metric = Metric.of(self.positions[~out])
        usual = float(np.quantile(metric(self.positions[~out]), SHARE))
        own = sp.csr_matrix((len(self.given), 1))
        far = self.near.distances(own, rest, metric(self.positions), self.rows)
        return far.select(out), replace(limits, unusual=usual)
