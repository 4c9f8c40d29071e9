"""Novelty: how far the units of a graph are from those that a method was fitted on.

This is the graph's side of :mod:`qpignn.calibration.widening`: features, edges and given units are
turned into distances, and the bounds of any method into wider ones beyond the given units. In
range nothing changes, bit for bit.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from scipy.stats import norm
from threadpoolctl import threadpool_limits
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
from qpignn.data.matrix import best_layout, is_sparse
from qpignn.data.scaling import Scaler, TargetScaler, fit_feature_scaler, fit_target_scaler
from qpignn.encoders.inputs import shared_matrices
from qpignn.errors import QpignnWarning
from qpignn.intervals import check_levels
from qpignn.io.tensors import check_tensors
from qpignn.methods.known_nodes import KnownNodes
from qpignn.methods.limits import Limits as TargetLimits
from qpignn.methods.surroundings import (
    COMBINED,
    REGIONS,
    Metric,
    Surroundings,
    combinations,
    regression_terms,
)
from qpignn.runtime.randomness import numpy_rng
from qpignn.tasks.base import FitInputs

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.base import Bounds, IntervalMethod

FOLDS = 5
WIDE = 64  # feature columns above which they share one slope
MOST = 20_000  # given units that limits and growth are learnt from
FEW = 100  # given units below which growth is not learnt
INNER = 0.1  # share of the given units beyond the inner range of a column, on each side
EXTREME = 0.2  # share of the given units that are held out as the most unusual ones
REASONS = ("", "distance to labelled nodes", "combination of features")


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

        Returns:
            What was learnt.
        """
        data = _with_features(data, best_layout(data.x))
        x, given, levels = data.x, ~targets.isnan(), sorted(levels)
        scaler, rows = fit_feature_scaler(x, given), given.nonzero().flatten()
        sample = _Sample.of(data, given, scaler)
        limits = sample.limits(x, scaler)
        halves = {level: _halves(predict(data, level), target) for level in levels}
        normal = {
            level: (float(below[rows].mean()), float(above[rows].mean()))
            for level, (_, below, above) in halves.items()
        }
        slopes = np.zeros((2, x.shape[1]))
        within, own = FeatureRange.of(x, rows, scaler.scale, INNER).cut(x)
        if own.nnz and not is_sparse(x):
            moved, *_ = _halves(predict(_with_features(data, within), levels[-1]), target)
            moves = (moved - halves[levels[-1]][0])[sample.rows]
            slopes = sample.slopes(own, moves)
        growth = Growth(slopes, 0.0, 0.0, (0.0, 0.0))
        if len(rows) >= FEW:
            y = target.transform(targets[sample.rows], torch.float64).numpy()
            growth = sample.growth(slopes, y - y.mean(), limits)
        return cls(
            scaler,
            FeatureRange.of(x, rows, scaler.scale),
            Metric.of(sample.positions),
            *(limits, growth, normal, target, KnownNodes.of(data, given)),
        )

    def of(self, data: Data) -> tuple[Data, UnitNovelty]:
        """Return a graph with features cut at the range, and the novelty of its units.

        Args:
            data: a checked graph with the columns of the fit.
        """
        near, x = Surroundings(data), best_layout(data.x)
        features, own = self.range.cut(x)
        with _one_thread():
            unusual = near.unusual(combinations(features, self.scaler), self.metric)
        given = self.given.found_in(data)
        far = near.distances(own, given, unusual)
        if not bool(given.any()):
            farthest = np.full(len(given), self.limits.hops + self.growth.farthest[0])
            far = replace(far, hops=farthest)
        ratios = self.limits.ratios(far)
        score, part = ratios.max(axis=0), ratios.argmax(axis=0)
        beyond = np.flatnonzero(score > 1)
        reason = np.full(len(score), "", dtype=object)
        reason[beyond] = _reasons(part[beyond], far.select(beyond), data.get("feature_names"))
        factor, left_out = self.growth.factor(far, self.limits), self.growth.left_out(far)
        novelty = UnitNovelty(score, reason, factor, left_out)
        return (data if features is x else _with_features(data, features)), novelty

    def widen(
        self, bounds: Bounds, novelty: UnitNovelty, level: float, limits: TargetLimits
    ) -> Bounds:
        """Return bounds that are wider for units beyond what was learnt.

        Args:
            bounds: of a graph's units, in the target's unit.
            novelty: of these units.
            level: of the bounds.
            limits: of the target.
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
        lower, upper = (limits.cut(self.target.inverse(end)) for end in scaled)
        there = torch.from_numpy(moved)
        lower = torch.where(there, lower.minimum(bounds.lower), bounds.lower)
        upper = torch.where(there, upper.maximum(bounds.upper), bounds.upper)
        if bounds.side == "lower":
            upper = bounds.upper
        if bounds.side == "upper":
            lower = bounds.lower
        more = _apart(bounds.lower, lower) + _apart(upper, bounds.upper)
        part = bounds.epistemic  # what is added is due to the model, not to noise
        epistemic = None if part is None else torch.where(there, part + more, part)
        without = bounds.width_without
        if without is not None:
            without = np.where(moved, without + more.numpy(), without)
        return replace(bounds, lower=lower, upper=upper, epistemic=epistemic, width_without=without)

    def state(self) -> dict[str, Tensor]:
        """Return everything as tensors, to be saved beside a model."""
        limits, growth = self.limits, self.growth
        numbers = [*astuple(limits), growth.hops, growth.unusual, *growth.farthest]
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
        shapes |= {"numbers": (8,), "slopes": (2, columns), "normal": (len(state["normal"]), 3)}
        check_tensors(
            {name: state[name] for name in shapes},
            {name: torch.empty(shape, dtype=torch.float64) for name, shape in shapes.items()},
        )
        widths = {2 * min(columns, COMBINED) + 1, 2 * COMBINED + 1}
        numbers = ("mean", "root", "numbers", "slopes")
        finite = all(bool(state[name].isfinite().all()) for name in numbers)
        finite = finite and all(bool((state[name] >= 0).all()) for name in ("numbers", "slopes"))
        shift, low, high, scale = state["columns"]
        right = bool((low <= high).all() and (scale > 0).all() and shift.isfinite().all())
        right = right and not bool(state["normal"].isnan().any()) and len(state["normal"]) > 0
        if terms not in widths or not (finite and right):
            raise ValueError("novelty: expected the numbers of a fit, got others")
        *limits, without_path, a, b, hops, unusual = state["numbers"].tolist()
        target = {n.removeprefix("target."): one for n, one in state.items() if "target." in n}
        return cls(
            Scaler(shift, scale),
            FeatureRange(low, high, scale),
            Metric(state["mean"].numpy(), state["root"].numpy()),
            Limits(limits[0], limits[1], limits[2], bool(without_path)),
            Growth(state["slopes"].numpy(), a, b, (hops, unusual)),
            {level: (below, above) for level, below, above in state["normal"].tolist()},
            TargetScaler.from_state(target),
            KnownNodes.from_state(state["given"]),
        )

    def _normal(self, level: float) -> tuple[float, float]:
        """Return mean half-widths at a level, rising with it.

        Between fitted levels they are interpolated linearly in the quantile of a normal law, beyond
        them in proportion to it.
        """
        if level in self.normal:
            return self.normal[level]
        fitted = sorted(self.normal)
        wanted, *quantiles = (float(norm.ppf((1 + one) / 2)) for one in (level, *fitted))
        factor = wanted / min(max(wanted, quantiles[0]), quantiles[-1])  # 1 between fitted ones
        sides = zip(*(self.normal[one] for one in fitted), strict=True)
        below, above = (factor * float(np.interp(wanted, quantiles, side)) for side in sides)
        return below, above


def fit_novelty(method: IntervalMethod, inputs: FitInputs) -> Novelty:
    """Learn how far units are from the given ones, and how intervals of a method grow with it.

    Args:
        method: as fitted, without novelty. A second stage on known targets of neighbours is left
            out: beyond what was learnt there are few.
        inputs: of its fit.

    Returns:
        What was learnt.
    """
    plain, levels = copy.copy(method), check_levels(method.confidence_level)
    plain.known_neighbours_ = None
    with warnings.catch_warnings(), shared_matrices(), _one_thread():
        warnings.simplefilter("ignore", QpignnWarning)  # predictions for the own graph
        targets = inputs.task.targets(inputs.data)
        scaler = method.y_scaler_
        if scaler is None:
            scaler = fit_target_scaler(targets, inputs.given)
        targets = targets.where(inputs.given, torch.nan)
        return Novelty.fit(inputs.data, targets, scaler, plain._predict, levels)


def _one_thread() -> threadpool_limits:
    """Use one thread for linear algebra, whose last bits depend on the number of threads."""
    return threadpool_limits(limits=1, user_api="blas")


def _with_features(data: Data, x: Tensor) -> Data:
    """Return a shallow copy of a graph with other features."""
    changed = copy.copy(data)
    changed.x, changed.x_as_given = x, data.get("x_as_given", data.x)
    return changed


def _halves(bounds: Bounds, target: TargetScaler) -> tuple[Floats, Floats, Floats]:
    """Return prediction and half-widths below and above in the unit of the scaled target."""
    numbers = (bounds.prediction, bounds.lower, bounds.upper)
    value, lower, upper = (target.transform(one, torch.float64).numpy() for one in numbers)
    return value, value - lower, upper - value


def _apart(high: Tensor, low: Tensor) -> Tensor:
    """Return the difference of bounds, 0 where both are infinite."""
    return torch.where(high == low, 0.0, high - low)


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
    named = [f"column {column if names is None else repr(names[column])}" for column in columns]
    return [REASONS[one] or name for one, name in zip(part, named, strict=True)]


@dataclass(frozen=True)
class _Sample:
    """Given units that limits, slopes and growth are learnt from.

    Attributes:
        near: of the graph.
        given: boolean, (nodes,), all given units.
        rows: positions of the sample's units, rising.
        combined: (nodes, terms), features or combinations of them.
        positions: (units, 2 · terms + 1)
        fold: (units,), the number of the fifth that each is held out with.
    """

    near: Surroundings
    given: Tensor
    rows: Tensor
    combined: Tensor
    positions: Floats
    fold: npt.NDArray[np.int64]

    @classmethod
    def of(cls, data: Data, given: Tensor, scaler: Scaler) -> Self:
        """Draw a sample of the given units.

        Args:
            data: the graph.
            given: boolean, (nodes,).
            scaler: of the features.
        """
        draw, rows, near = numpy_rng(0, "novelty"), given.nonzero().flatten(), Surroundings(data)
        rows = rows[torch.from_numpy(np.sort(draw.permutation(len(rows))[:MOST]))]
        combined = combinations(data.x, scaler)
        fold = draw.permutation(len(rows)) % FOLDS
        return cls(near, given, rows, combined, near.positions(combined, rows), fold)

    def limits(self, x: Tensor, scaler: Scaler) -> Limits:
        """Return what is usual for a fifth of the units, seen from the others.

        Args:
            x: (nodes, columns), features of the graph.
            scaler: of the features.
        """
        folds = []
        for number in range(FOLDS if len(self.rows) < MOST else 1):
            out: Masks = self.fold == number
            if out.all() or not out.any():  # a single given unit
                continue
            rest = self._without(out)
            others = FeatureRange.of(x, rest.nonzero().flatten(), scaler.scale)
            unusual = Metric.of(self.positions[~out])(self.positions)
            far = self.near.distances(others.cut(x)[1], rest, unusual, self.rows)
            folds.append(far.select(out))
        return Limits.fit(folds) if folds else Limits(0.0, 1.0, 1.0, without_path=True)

    def slopes(self, own: Any, moves: Floats) -> Floats:
        """Return the slopes of predictions, (2, columns).

        Args:
            own: (nodes, columns), SciPy CSR, features beyond an inner range.
            moves: (units,), by how much predictions move when features are cut at it.
        """
        units, columns = len(self.rows), own.shape[1]
        far = self.near.distances(own, self.given, np.zeros(units), self.rows)
        return fit_slopes(far, moves, shared=columns > WIDE or units < 20 * columns)

    def growth(self, slopes: Floats, y: Floats, limits: Limits) -> Growth:
        """Return how errors grow on regions, and on the most unusual units, when held out.

        Args:
            slopes: (2, columns)
            y: (units,), centred targets.
            limits: of the usual.
        """
        two_hops = self.near.average(self.near.average(self.combined))[self.rows]
        ridge, usual = Ridge.best(regression_terms(two_hops, self.positions), y, self.fold)
        regions = self.near.regions(self.given)[self.rows.numpy()]
        unusual = Metric.of(self.positions)(self.positions)
        extreme = unusual > np.quantile(unusual, 1 - EXTREME)
        groups: list[Masks] = [*(regions == number for number in range(REGIONS)), extreme]
        parts, most_hops = [], 0.0
        for out in groups:
            if 0 < out.sum() < len(out) / 2:
                far, seen = self._held_out(out, limits)
                reached = far.hops[far.hops < UNREACHABLE]
                most_hops = max(most_hops, float(reached.max(initial=0.0)) - limits.hops)
                parts.append((ridge.errors_without(out), far, seen))
        if not parts:
            return Growth(slopes, 0.0, 0.0, (0.0, 0.0))
        errors = np.concatenate([part for part, *_ in parts])
        largest = (most_hops, math.inf)
        excess = np.hstack([seen.excess(far, largest) for _, far, seen in parts])
        farthest = (most_hops, float(excess[1].max()))
        return Growth(slopes, *fit_growth(usual, errors, excess), farthest)

    def _held_out(self, out: Masks, limits: Limits) -> tuple[Distances, Limits]:
        """Return the distances of some units from the others, and the limits of the others."""
        metric = Metric.of(self.positions[~out])
        usual = float(np.quantile(metric(self.positions[~out]), SHARE))
        own = sp.csr_matrix((len(self.given), 1))
        unusual = metric(self.positions)
        far = self.near.distances(own, self._without(out), unusual, self.rows)
        return far.select(out), replace(limits, unusual=usual)

    def _without(self, out: Masks) -> Tensor:
        """Return all given units but some of the sample, as a mask."""
        rest = self.given.clone()
        rest[self.rows[torch.from_numpy(out)]] = False
        return rest
