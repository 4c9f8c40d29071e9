"""Scaling of features and targets: fitted on given nodes only, per column, invertible.

A column that does not vary on the given nodes is only shifted, never divided by zero. Sparse
columns are divided by their largest absolute value and never shifted, so zeros stay zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from qpignn.data.matrix import is_sparse, select_rows, stored_values, to_scipy, with_values
from qpignn.errors import ArrayError, one_of
from qpignn.room import new_tensor, row_chunks

LARGEST = torch.finfo(torch.float64).max


@dataclass(frozen=True)
class Scaler:
    """z = (x − shift) / scale, column by column; numbers are kept in float64.

    Attributes:
        shift: (columns,); all zero for sparse columns.
        scale: (columns,); positive.
    """

    shift: Tensor
    scale: Tensor

    def transform(self, x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Scale a (nodes, columns) matrix, dense or sparse, or (nodes,) targets."""
        self._check(x)
        if is_sparse(x):
            return with_values(x, (x.values().double() / self.scale[x.col_indices()]).to(dtype))
        scaled = new_tensor(tuple(x.shape), dtype)
        for part in row_chunks(len(x)):
            scaled[part] = ((x[part].double() - self.shift) / self.scale).to(dtype)
        return scaled

    def inverse(self, z: Tensor) -> Tensor:
        """Undo :meth:`transform`; float64."""
        self._check(z)
        if is_sparse(z):
            return with_values(z, z.values().double() * self.scale[z.col_indices()])
        return z.double() * self.scale + self.shift

    def state(self) -> dict[str, Tensor]:
        """Return the fitted numbers, to be saved beside a model."""
        return {"shift": self.shift, "scale": self.scale}

    @classmethod
    def nothing(cls, columns: int = 1) -> Scaler:
        """Return a scaler that leaves values as they are."""
        return cls(torch.zeros(columns).double(), torch.ones(columns).double())

    @classmethod
    def from_state(cls, state: dict[str, Tensor], columns: int = 1) -> Scaler:
        """Rebuild a scaler of so many columns from :meth:`state`, or raise ValueError."""
        for name in ("shift", "scale"):
            numbers = state[name]
            right = numbers.dtype == torch.float64 and numbers.shape == (columns,)
            if not (right and bool(numbers.isfinite().all())):
                raise ValueError(f"{name}: expected {columns} finite numbers, float64, got others")
        if not bool((state["scale"] > 0).all()):
            raise ValueError("scale: expected numbers above 0, got others")
        return cls(state["shift"], state["scale"])

    def _check(self, x: Tensor) -> None:
        columns = x.shape[1] if x.dim() == 2 else 1
        if columns != len(self.scale):
            raise ArrayError(
                f"expected {len(self.scale)} columns as in the data the scaler was fitted on, "
                f"got {columns}"
            )
        if is_sparse(x) and bool((self.shift != 0).any()):
            raise ArrayError(
                "expected dense features: this scaler shifts columns, which would fill a sparse "
                "matrix; fit it on sparse features without negative values"
            )


TRANSFORMS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "none": (lambda y: y, lambda z: z),
    "log1p": (
        lambda y: y.sign() * y.abs().log1p(),
        lambda z: z.sign() * z.abs().expm1(),
    ),
    "sqrt": (lambda y: y.sign() * y.abs().sqrt(), lambda z: z.sign() * z.square()),
}
"""Rising functions of the target and their inverses; both mirror negative numbers."""


@dataclass(frozen=True)
class TargetScaler:
    """A rising transform, then shift and scale: bounds of the one are bounds of the other.

    Attributes:
        name: one of :data:`TRANSFORMS`.
        scaler: fitted on transformed targets.
    """

    name: str
    scaler: Scaler

    def transform(self, y: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Bring targets to the net's units."""
        return self.scaler.transform(TRANSFORMS[self.name][0](y.double()), dtype)

    def inverse(self, z: Tensor) -> Tensor:
        """Undo :meth:`transform`; float64, and finite where ``z`` is."""
        y = TRANSFORMS[self.name][1](self.scaler.inverse(z))
        return torch.where(z.isfinite(), y.clamp(-LARGEST, LARGEST), y)

    def state(self) -> dict[str, Tensor]:
        """Return the fitted numbers and the transform's name, to be saved beside a model."""
        return {"transform": torch.tensor(list(self.name.encode())), **self.scaler.state()}

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> TargetScaler:
        """Rebuild from :meth:`state`."""
        name = bytes(state["transform"].flatten()[:20].tolist()).decode()
        return cls(one_of("transform", name, TRANSFORMS), Scaler.from_state(state))


def fit_feature_scaler(x: Tensor, given: Tensor) -> Scaler:
    """Standardise dense columns by mean and deviation, sparse ones by largest absolute value."""
    if not bool(given.any()):
        raise ArrayError("expected at least one given node to fit a scaler on, got none")
    if is_sparse(x):
        largest = abs(to_scipy(select_rows(x, given))).max(axis=0).toarray().ravel()
        scale = torch.from_numpy(largest).double()
        return Scaler(torch.zeros_like(scale), torch.where(scale > 0, scale, 1.0))
    return _standard(x, given.nonzero().flatten())


def fit_target_scaler(y: Tensor, given: Tensor, transform: str = "none") -> TargetScaler:
    """Standardise (transformed) targets by mean and deviation of the given labelled nodes."""
    known = y[given]
    known = known[~torch.isnan(known)].double()
    if len(known) == 0:
        raise ArrayError("expected at least one labelled given node to fit a scaler on, got none")
    known = TRANSFORMS[transform][0](known).unsqueeze(1)
    return TargetScaler(transform, _standard(known, torch.arange(len(known))))


def fit_range_scalers(x: Tensor, y: Tensor, given: Tensor) -> tuple[Scaler, TargetScaler]:
    """Map features, and targets, to 0…1 by ONE minimum and maximum over all columns.

    This is the published code's scaling: columns share their range, so small ones are crushed.
    """
    values = stored_values(select_rows(x, given)).double()
    low, high = values.min(), values.max()
    if is_sparse(x):
        low, high = low.clamp(max=0), high.clamp(min=0)
    columns = x.shape[1]
    known = y[given].double()
    known = known[~torch.isnan(known)]
    return (
        Scaler(low.expand(columns).clone(), _positive(high - low).expand(columns).clone()),
        TargetScaler(
            "none", Scaler(known.min().reshape(1), _positive(known.max() - known.min()).reshape(1))
        ),
    )


def _positive(span: Tensor) -> Tensor:
    return torch.where(span > 0, span, 1.0)


def _standard(x: Tensor, rows: Tensor) -> Scaler:
    """Mean and deviation of some rows, read a few at a time."""

    def total(number: Callable[[Tensor], Tensor]) -> Tensor:
        parts = [number(x[rows[p]].double()).sum(dim=0) for p in row_chunks(len(rows))]
        return torch.stack(parts).sum(dim=0)

    largest = [x[rows[part]].double().abs().amax(dim=0) for part in row_chunks(len(rows))]
    size = _positive(torch.stack(largest).amax(dim=0))  # divided out: squares of 1e200 overflow
    shift = total(lambda chunk: chunk / size) / len(rows)
    scale = (total(lambda chunk: (chunk / size - shift).square_()) / len(rows)).sqrt()
    flat = scale <= 1e-12  # a column counts as constant when its spread is rounding noise
    shift, scale = shift * size, scale * size
    return Scaler(shift, torch.where(flat, 1.0, scale))
