"""Widening beyond what was learnt: how half-widths grow with the distance from the given units.

A unit's half-width h, at a level whose two-sided normal quantile is z, becomes

    h' = max(√((g·h₀)² + (z·s)²), g·h₀ + s),   g² = 1 + a·r + b·u,   s² = Σⱼ σⱼ²·eⱼ² + τⱼ²·ēⱼ²

* eⱼ and ēⱼ: by how many standard deviations column j of the unit's features, and on average that of
  its neighbours, lies beyond the range of the given units. Predictions are made with features cut
  at that range, so s is the part of the target that they leave out: σⱼ is its slope. The first form
  takes it for random, which decides far away, the second for a shift, which decides near the range.
* r: number of edges to the nearest given unit, beyond the usual number.
* u: how unusual the combination of features is, beyond the usual, as a share of the usual.
* h₀ = max(h, h̄) for a unit beyond a limit, with h̄ the mean half-width of the given units, else h.

All of it is learnt from the given units: the limits from fifths that are held out, slopes from
predictions with features cut at an inner range (:func:`fit_slopes`), a and b from the errors of a
small regression on regions and extremes that it was not fitted on (:func:`fit_growth`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import nnls
from scipy.stats import norm

from qpignn.calibration.width_scaling import Floats, Masks

SHARE = 0.997  # of held-out units that stay within each limit
TRIM = 0.99  # squared errors above this quantile are cut: growth is that of typical errors
PENALTIES = (1.0, 10.0, 100.0)  # of the small regression, whose terms have variance 1
UNREACHABLE = 1e6  # number of edges to a given unit where there is no path


@dataclass(frozen=True)
class Distances:
    """How far units are from the given ones.

    Attributes:
        own: (units, columns), SciPy CSR: eⱼ.
        around: the same for ēⱼ.
        hops: (units,), number of edges to the nearest given unit, or :data:`UNREACHABLE`.
        unusual: (units,), distance of the features from their mean over the given units, in the
            metric of their covariance.
    """

    own: Any
    around: Any
    hops: Floats
    unusual: Floats

    def select(self, units: Any) -> Self:
        """Return the distances of some units.

        Args:
            units: a mask or positions.
        """
        own, around = rows_of(self.own, units), rows_of(self.around, units)
        return type(self)(own, around, self.hops[units], self.unusual[units])

    @property
    def beyond(self) -> Floats:
        """The largest eⱼ or ēⱼ of each unit, (units,)."""
        own, around = (part.max(axis=1).toarray().ravel() for part in (self.own, self.around))
        return np.asarray(np.maximum(own, around), dtype=np.float64)


def rows_of(matrix: Any, rows: Any) -> Any:
    """Return some rows of a SciPy CSR matrix; of one without entries, without searching it.

    Args:
        matrix: (rows, columns)
        rows: a mask, positions or a slice.
    """
    if matrix.nnz:
        return matrix[rows]
    return sp.csr_matrix((len(np.empty(matrix.shape[0])[rows]), matrix.shape[1]))


@dataclass(frozen=True)
class Limits:
    """What is usual, as learnt from held-out given units.

    Attributes:
        beyond: of the distance beyond the range of a column, in standard deviations.
        hops: of the number of edges to the nearest given unit.
        unusual: of the distance of the features.
        without_path: whether units without a path to a given unit are usual.
    """

    beyond: float
    hops: float
    unusual: float
    without_path: bool = False

    @classmethod
    def fit(cls, held_out: Iterable[Distances]) -> Self:
        """Return the limits that :data:`SHARE` of held-out units stay within, one at a time.

        Args:
            held_out: distances of some given units from the others.
        """
        columns = zip(*((part.beyond, part.hops, part.unusual) for part in held_out), strict=True)
        beyond, hops, unusual = (np.concatenate(column) for column in columns)
        apart: Masks = hops == UNREACHABLE
        connected = hops[~apart] if not apart.all() else np.zeros(1)
        usual = [float(np.quantile(one, SHARE)) for one in (beyond, connected, unusual)]
        return cls(usual[0], usual[1], usual[2], without_path=bool(apart.mean() > 1 - SHARE))

    def ratios(self, distances: Distances) -> Floats:
        """Return each distance divided by its limit, (3, units); above 1 is beyond it.

        Args:
            distances: of units.
        """
        smallest = float(np.finfo(np.float64).tiny)
        return np.stack(
            [
                (1 + distances.beyond) / (1 + self.beyond),  # the limit may be 0
                self._hops(distances) / max(self.hops, 1.0),
                distances.unusual / max(self.unusual, smallest),
            ]
        )

    def excess(self, distances: Distances, farthest: tuple[float, float]) -> tuple[Floats, Floats]:
        """Return r and u, (units,) each.

        Args:
            distances: of units.
            farthest: largest r and largest u.
        """
        _, _, unusual = self.ratios(distances)
        hops = np.clip(self._hops(distances) - self.hops, 0, farthest[0])
        return hops, np.clip(unusual - 1, 0, farthest[1])

    def _hops(self, distances: Distances) -> Floats:
        usual = self.without_path & (distances.hops == UNREACHABLE)
        return np.where(usual, self.hops, distances.hops)


@dataclass(frozen=True)
class Growth:
    """How errors grow beyond the limits.

    Attributes:
        slopes: (2, columns), σⱼ² and τⱼ².
        hops: a.
        unusual: b.
        farthest: largest r on which a was learnt, and largest u on which b was; units farther
            away count as that far.
    """

    slopes: Floats
    hops: float
    unusual: float
    farthest: tuple[float, float]

    def factor(self, distances: Distances, limits: Limits) -> Floats:
        """Return g, (units,).

        Args:
            distances: of units.
            limits: of the usual.
        """
        hops, unusual = limits.excess(distances, self.farthest)
        return np.asarray(np.sqrt(1 + self.hops * hops + self.unusual * unusual))

    def left_out(self, distances: Distances) -> Floats:
        """Return s, (units,), in the unit of the slopes.

        Args:
            distances: of units.
        """
        own, around = (
            part.power(2) @ slopes
            for part, slopes in zip((distances.own, distances.around), self.slopes, strict=True)
        )
        return np.asarray(np.sqrt(own + around))


def widened(least: Floats, factor: Floats, left_out: Floats, level: float) -> Floats:
    """Return h', (units,), bit-equal to h₀ where nothing grows.

    Args:
        least: (units,), h₀.
        factor: (units,), g.
        left_out: (units,), s, in the unit of the half-widths.
        level: wanted coverage of the interval.
    """
    z = float(norm.ppf((1 + level) / 2))
    grows = (factor > 1) | (left_out > 0)
    half = factor * least
    grown = np.maximum(np.hypot(half, z * left_out), half + left_out)
    return np.where(grows, grown, least)


def fit_slopes(distances: Distances, moves: Floats, *, shared: bool) -> Floats:
    """Return σⱼ² and τⱼ², (2, columns): squared moves are regressed on e² and ē².

    Args:
        distances: of given units from an inner range of the features.
        moves: (units,), by how much predictions move when features are cut at that range.
        shared: one slope for all columns.
    """
    own, around = distances.own.power(2), distances.around.power(2)
    columns = own.shape[1]
    if shared:
        design = np.stack([own.sum(axis=1).A1, around.sum(axis=1).A1], axis=1)
    else:
        design = np.hstack([own.toarray(), around.toarray()])
    slopes = nnls(design, np.square(moves))[0].reshape(2, -1)
    return np.broadcast_to(slopes, (2, columns)).copy()


def fit_growth(usual_errors: Floats, errors: Floats, excess: Floats) -> tuple[float, float]:
    """Return a and b: squared errors on far units, relative to usual ones, regressed on r and u.

    Args:
        usual_errors: on units that were held out at random.
        errors: (units,), on units that were held out because they are far from the others.
        excess: (2, units), r and u of these units.
    """
    largest = np.quantile(np.square(errors), TRIM)
    usual, far = (np.minimum(np.square(part), largest) for part in (usual_errors, errors))
    hops, unusual = nnls(excess.T, far / usual.mean() - 1)[0]
    return float(hops), float(unusual)


class Ridge:
    """A ridge regression, and its errors on rows that it leaves out.

    Args:
        design: (units, terms).
        y: (units,), targets.
        penalty: on the squared weights.
    """

    def __init__(self, design: Floats, y: Floats, penalty: float) -> None:
        self.design, self.y, self.penalty = design, y, penalty
        self._products = design.T @ design + penalty * np.eye(design.shape[1])
        self._moments = design.T @ y

    @classmethod
    def best(cls, design: Floats, y: Floats, folds: npt.NDArray[np.int64]) -> tuple[Self, Floats]:
        """Return the regression of the best penalty, and its errors on the folds, (units,).

        Args:
            design: (units, terms).
            y: (units,), targets.
            folds: (units,), the number of each unit's fold, from 0.
        """
        fits = [cls(design, y, penalty) for penalty in PENALTIES]
        errors = np.stack([fit.fold_errors(folds) for fit in fits])
        best = int(np.square(errors).mean(axis=1).argmin())
        return fits[best], errors[best]

    def errors_without(self, rows: Masks) -> Floats:
        """Return the errors on some rows of a fit on the others.

        Args:
            rows: (units,), boolean.
        """
        left, y = self.design[rows], self.y[rows]
        products, moments = self._products - left.T @ left, self._moments - left.T @ y
        return np.asarray(y - left @ np.linalg.solve(products, moments))

    def fold_errors(self, folds: npt.NDArray[np.int64]) -> Floats:
        """Return the errors on each fold of a fit on the others, (units,).

        Args:
            folds: (units,), the number of each unit's fold, from 0.
        """
        errors = np.empty(len(self.y))
        for fold in range(int(folds.max()) + 1):
            rows: Masks = folds == fold
            errors[rows] = self.errors_without(rows)
        return errors
