"""Scaling of features and targets: fitted on given nodes only, per column, invertible.

A feature column that does not vary on the given nodes has an infinite scale: it is 0 after scaling,
on all nodes, because nothing can be learnt about its effect. Dense and CSR columns are scaled in
the same way. A CSR matrix stays sparse: its stored values are divided by σ, and the shift is left
to the first layer of a net, which applies it implicitly: ((x − μ)/σ)·W = (x/σ)·W − (μ/σ)·W.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from qpignn.data.matrix import (
    FILLED,
    columns,
    is_sparse,
    select_rows,
    stored_values,
    to_csr,
    with_columns,
    with_values,
)
from qpignn.errors import ArrayError, check_choice
from qpignn.io.tensors import check_tensors
from qpignn.runtime.memory import allocate_tensor, row_chunks

LARGEST = torch.finfo(torch.float64).max
FLAT = 1e-12  # spread of a constant column, in units of its largest value: rounding noise
FAR = 64  # a column of which a share p is zero has |μ|/σ of at most √((1 − p)/p)


@dataclass(frozen=True)
class Scaler:
    """z = (x − shift) / scale, column by column, computed in float64.

    Attributes:
        shift: (columns,); zero where zeros stay zeros.
        scale: (columns,); positive, infinite for a column that is left out.
    """

    shift: Tensor
    scale: Tensor

    def transform(self, x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return a scaled matrix or scaled targets.

        Args:
            x: dense (nodes, columns) features or (nodes,) targets.
            dtype: of the result.
        """
        self._check(x)
        scaled = allocate_tensor(tuple(x.shape), dtype)
        for part in row_chunks(len(x)):
            scaled[part] = ((x[part].double() - self.shift) / self.scale).to(dtype)
        return scaled

    def transform_sparse(
        self, x: Tensor, dtype: torch.dtype = torch.float32
    ) -> tuple[Tensor, Tensor | None]:
        """Scale a CSR matrix without making it dense.

        A column whose shift is more than :data:`FAR` scales has hardly any zeros where the scaler
        was fitted; adding its shift afterwards would cancel digits, so it is stored in full.

        Args:
            x: (nodes, columns), CSR.
            dtype: of the results.

        Returns:
            A CSR matrix, and the offset (columns,) that is to be added to each of its rows, zeros
            included; None where it is zero.
        """
        self._check(x)
        offset = -self.shift / self.scale
        scaled = with_values(x, (x.values().double() / self.scale[x.col_indices()]).to(dtype))
        far = (offset.abs() > FAR).nonzero().flatten()
        if len(far):
            full = (columns(x, far.tolist()).double() - self.shift[far]) / self.scale[far]
            scaled = with_columns(scaled, far, full.to(dtype))
            offset[far] = 0
        return scaled, offset.to(dtype) if bool((offset != 0).any()) else None

    def inverse(self, z: Tensor) -> Tensor:
        """Return the inverse of :meth:`transform`, in float64.

        Args:
            z: scaled values.
        """
        self._check(z)
        return z.double() * self.scale + self.shift

    def state(self) -> dict[str, Tensor]:
        """Return the fitted numbers, to be saved with a model."""
        return {"shift": self.shift, "scale": self.scale}

    @classmethod
    def nothing(cls, columns: int = 1) -> Scaler:
        """Return a scaler that leaves values as they are.

        Args:
            columns: number of columns.
        """
        return cls(torch.zeros(columns).double(), torch.ones(columns).double())

    @classmethod
    def from_state(cls, state: dict[str, Tensor], columns: int = 1) -> Scaler:
        """Return the scaler of a saved :meth:`state`.

        Args:
            state: the saved tensors, from an untrusted file.
            columns: expected number of columns.

        Raises:
            ValueError: if they are not valid numbers of a scaler.
        """
        stored = cls(state["shift"], state["scale"])
        check_tensors(stored.state(), cls.nothing(columns).state())
        if not bool(stored.shift.isfinite().all()):
            raise ValueError("shift: expected finite numbers, got others")
        if not bool((stored.scale > 0).all()):
            raise ValueError("scale: expected numbers above 0, got others")
        return stored

    def _check(self, x: Tensor) -> None:
        width = x.shape[1] if x.dim() == 2 else 1
        if width != len(self.scale):
            raise ArrayError(
                f"expected {len(self.scale)} columns as in the data the scaler was fitted on, "
                f"got {width}; give the same columns"
            )


Transform = Literal["none", "log1p", "sqrt"]
TRANSFORMS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "none": (lambda y: y, lambda z: z),
    "log1p": (lambda y: y.sign() * y.abs().log1p(), lambda z: z.sign() * z.abs().expm1()),
    "sqrt": (lambda y: y.sign() * y.abs().sqrt(), lambda z: z.sign() * z.square()),
}
"""Increasing, odd functions of the target, and their inverses."""


@dataclass(frozen=True)
class TargetScaler:
    """An increasing transform, then shift and scale, so that bounds map to bounds.

    Attributes:
        name: one of :data:`TRANSFORMS`.
        scaler: fitted on transformed targets.
    """

    name: str
    scaler: Scaler

    def transform(self, y: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return transformed and scaled targets.

        Args:
            y: (nodes,).
            dtype: of the result.
        """
        return self.scaler.transform(TRANSFORMS[self.name][0](y.double()), dtype)

    def inverse(self, z: Tensor) -> Tensor:
        """Return the inverse of :meth:`transform`, in float64, finite where ``z`` is.

        Args:
            z: scaled values.
        """
        y = TRANSFORMS[self.name][1](self.scaler.inverse(z))
        return torch.where(z.isfinite(), y.clamp(-LARGEST, LARGEST), y)

    def state(self) -> dict[str, Tensor]:
        """Return the fitted numbers and the transform's name, to be saved with a model."""
        return {"transform": torch.tensor(list(self.name.encode())), **self.scaler.state()}

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> TargetScaler:
        """Return the scaler of a saved :meth:`state`.

        Args:
            state: the saved tensors, from an untrusted file.
        """
        name = bytes(state["transform"].flatten()[:20].tolist()).decode()
        return cls(check_choice("transform", name, TRANSFORMS), Scaler.from_state(state))


def fit_feature_scaler(x: Tensor, given: Tensor) -> Scaler:
    """Fit the scaler of feature columns, dense or CSR, on the given nodes.

    A column is standardised by its mean and standard deviation. One that is mostly zero, such as a
    word or a category (non-zero on less than a share :data:`qpignn.data.matrix.FILLED` of the given
    nodes), keeps its zeros, and its other values are scaled to a root mean square of 2: its
    standard deviation would be tiny, and dividing by it would let rare words outweigh all others. A
    column that does not vary on the given nodes is left out: its scale is infinite.

    Args:
        x: (nodes, columns), dense or CSR.
        given: boolean, (nodes,).

    Returns:
        The scaler.

    Raises:
        ArrayError: if no node is given.
    """
    if not bool(given.any()):
        raise ArrayError(
            "expected at least one given node to fit a scaler on, got none; label some"
        )
    rows = given.nonzero().flatten()
    moments = _sparse_moments(x, rows) if is_sparse(x) else _dense_moments(x, rows)
    rare = moments.filled < FILLED
    shift = torch.where(rare, 0.0, moments.mean)
    scale = torch.where(rare, moments.rms * FILLED**0.5, moments.deviation)
    return moments.scaler(shift, scale, math.inf)


def count_nodes_that_differ(x: Tensor, scaler: Scaler) -> dict[int, int]:
    """Return, for each column that a scaler leaves out, how many nodes differ from its shift.

    Args:
        x: (nodes, columns) features, dense or CSR.
        scaler: fitted on some nodes, where the left-out columns are equal to their shift.

    Returns:
        A dictionary from the column to the number of nodes; columns without any are not in it.
    """
    left_out = scaler.scale.isinf().nonzero().flatten()
    if not len(left_out):
        return {}
    if is_sparse(x):
        stored = to_csr(x)
        places, values = stored.col_indices(), stored.values().double()
        other = ~_close(values, scaler.shift[places])
        counts = places[other].bincount(minlength=x.shape[1])
        zeros = x.shape[0] - places.bincount(minlength=x.shape[1])
        counts = (counts + torch.where(scaler.shift == 0, 0, zeros))[left_out]
    else:
        parts = (x[part][:, left_out].double() for part in row_chunks(len(x)))
        shift = scaler.shift[left_out]
        counts = torch.stack([(~_close(part, shift)).sum(dim=0) for part in parts]).sum(dim=0)
    pairs = zip(left_out.tolist(), counts.tolist(), strict=True)
    return {column: count for column, count in pairs if count}


def _close(values: Tensor, constant: Tensor) -> Tensor:
    """Return whether values are equal to a constant up to the rounding of its mean."""
    return (values - constant).abs() <= FLAT * torch.maximum(values.abs(), constant.abs())


def fit_target_scaler(y: Tensor, given: Tensor, transform: str = "none") -> TargetScaler:
    """Fit the scaler of targets by mean and standard deviation of the given labelled nodes.

    Args:
        y: (nodes,); NaN = unlabelled.
        given: boolean, (nodes,).
        transform: one of :data:`TRANSFORMS`, applied first.

    Returns:
        The scaler.

    Raises:
        ArrayError: if no given node is labelled.
    """
    labels = _labels(y, given)
    if len(labels) == 0:
        raise ArrayError(
            "expected at least one labelled node to fit a scaler, got none; label some"
        )
    labels = TRANSFORMS[transform][0](labels).unsqueeze(1)
    moments = _dense_moments(labels, torch.arange(len(labels)))
    return TargetScaler(transform, moments.scaler(moments.mean, moments.deviation, 1.0))


def fit_range_scalers(x: Tensor, y: Tensor, given: Tensor) -> tuple[Scaler, TargetScaler]:
    """Fit scalers to [0, 1] by one minimum and maximum over all feature columns, and of targets.

    Columns share their range, so that columns of small
    numbers become nearly constant.

    Args:
        x: (nodes, columns), dense or CSR.
        y: (nodes,); NaN = unlabelled.
        given: boolean, (nodes,).

    Returns:
        The scaler of features and the scaler of targets.
    """
    values = stored_values(select_rows(x, given)).double()
    low, high = values.min(), values.max()
    if is_sparse(x):
        low, high = low.clamp(max=0), high.clamp(min=0)
    labels = _labels(y, given)
    targets = _range_scaler(labels.min(), labels.max(), 1)
    return _range_scaler(low, high, x.shape[1]), TargetScaler("none", targets)


def _labels(y: Tensor, given: Tensor) -> Tensor:
    """Return the targets of the given labelled nodes, in float64."""
    return y[given & ~torch.isnan(y)].double()


def _range_scaler(low: Tensor, high: Tensor, columns: int) -> Scaler:
    return Scaler(low.repeat(columns), _positive(high - low).repeat(columns))


def _positive(span: Tensor) -> Tensor:
    return torch.where(span > 0, span, 1.0)


@dataclass(frozen=True)
class _Moments:
    """Moments of each column over some rows, divided by its largest absolute value.

    Without that division 1e200² would overflow.

    Attributes:
        size: the largest absolute value; 1 where all are zero.
        mean, deviation: over all rows, zeros included.
        filled: share of the rows that are not zero.
        rms: root mean square of the values that are not zero; 0 where there are none.
    """

    size: Tensor
    mean: Tensor
    deviation: Tensor
    filled: Tensor
    rms: Tensor

    def scaler(self, shift: Tensor, scale: Tensor, flat: float) -> Scaler:
        """Return the scaler of the undivided columns; constant ones get scale ``flat``.

        A column is constant if its spread is rounding noise.
        """
        return Scaler(shift * self.size, torch.where(scale <= FLAT, flat, scale * self.size))


def _dense_moments(x: Tensor, rows: Tensor) -> _Moments:
    """Return the moments of a dense matrix, read a few rows at a time."""

    def total(number: Callable[[Tensor], Tensor]) -> Tensor:
        parts = [number(x[rows[p]].double()).sum(dim=0) for p in row_chunks(len(rows))]
        return torch.stack(parts).sum(dim=0)

    largest = [x[rows[part]].double().abs().amax(dim=0) for part in row_chunks(len(rows))]
    size = _positive(torch.stack(largest).amax(dim=0))
    mean = total(lambda chunk: chunk / size) / len(rows)
    deviation = (total(lambda chunk: (chunk / size - mean).square_()) / len(rows)).sqrt()
    count = total(lambda chunk: (chunk != 0).double())
    squares = total(lambda chunk: (chunk / size).square_())
    return _Moments(size, mean, deviation, count / len(rows), (squares / _positive(count)).sqrt())


def _sparse_moments(x: Tensor, rows: Tensor) -> _Moments:
    """Return the moments of a CSR matrix, computed from the stored values only."""
    chosen = to_csr(select_rows(x, rows))
    places, values = chosen.col_indices(), chosen.values().double()
    none = torch.zeros(x.shape[1], dtype=torch.float64)

    def total(numbers: Tensor) -> Tensor:
        return none.index_add(0, places, numbers)

    size = _positive(none.scatter_reduce(0, places, values.abs(), "amax"))
    values = values / size[places]
    mean = total(values) / len(rows)
    count = places.bincount(minlength=len(none)).double()
    squares = total((values - mean[places]).square()) + (len(rows) - count) * mean.square()
    rms = (total(values.square()) / _positive(count)).sqrt()
    return _Moments(size, mean, (squares / len(rows)).sqrt(), count / len(rows), rms)
