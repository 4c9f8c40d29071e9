"""Features and targets in the nets' units, and bounds back in the target's unit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from qpignn.data.scaling import (
    Scaler,
    TargetScaler,
    count_nodes_that_differ,
    fit_feature_scaler,
    fit_range_scalers,
    fit_target_scaler,
)
from qpignn.errors import QpignnWarning, plural, quoted
from qpignn.methods.limits import Limits

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.base import Bounds

Scaling = Literal["standard", "range", "none"]
SCALINGS: tuple[str, ...] = get_args(Scaling)
Dtype = Literal["float32", "float64"]
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in get_args(Dtype)}


@dataclass(frozen=True)
class Scalers:
    """Scalers that were fitted on the given units.

    Attributes:
        x: of the features.
        y: of the target.
        limits: interval that all targets lie in, in the target's unit.
    """

    x: Scaler
    y: TargetScaler
    limits: Limits

    @classmethod
    def fit(
        cls, data: Data, given: Tensor, scaling: str, limits: Limits, transform: str = "none"
    ) -> Scalers:
        """Fit scalers.

        Args:
            data: a checked graph.
            given: boolean, the units to fit on.
            scaling: ``standard`` per column, ``range`` (one range for all columns) or ``none``.
            limits: interval that all targets lie in.
            transform: a rising function of the target, see :data:`qpignn.data.scaling.TRANSFORMS`.

        Returns:
            The scalers.
        """
        if scaling == "range":
            return cls(*fit_range_scalers(data.x, data.y, given), limits)
        if scaling == "none":
            nothing = TargetScaler(transform, Scaler.nothing())
            return cls(Scaler.nothing(data.x.shape[1]), nothing, limits)
        target = fit_target_scaler(data.y, given, transform)
        return cls(fit_feature_scaler(data.x, given), target, limits)

    def warn_of_constant_columns(self, data: Data) -> None:
        """Warn of columns that vary in the graph, but not on the given units.

        Args:
            data: the graph of the fit.
        """
        counts = count_nodes_that_differ(data.x, self.x)
        if not counts:
            return
        names = data.get("feature_names")
        columns = [column if names is None else names[column] for column in counts]
        warnings.warn(
            f"feature columns {quoted(columns)}: constant on the labelled nodes, with other values "
            f"on up to {plural(max(counts.values()), 'other node')}. Nothing can be learnt from "
            f"such columns, and they are left out; if the target depends on one, intervals cover "
            f"less on those nodes: label some of them",
            QpignnWarning,
            stacklevel=5,
        )

    def in_target_unit(self, values: Tensor) -> Tensor:
        """Return bounds or predictions in the target's unit, cut at its limits.

        Args:
            values: in the nets' units.
        """
        return self.limits.cut(self.y.inverse(values))

    def to_user(self, bounds: Bounds) -> Bounds:
        """Return bounds in the target's unit; warn if most predictions lie beyond its limits.

        Args:
            bounds: in the nets' units, ``epistemic`` as a share of the width.
        """
        from qpignn.methods.base import Bounds

        prediction = self.y.inverse(bounds.prediction)
        low, high = self.limits.low, self.limits.high
        cut = int(((prediction < low) | (prediction > high)).sum())
        if 2 * cut > len(prediction):
            warnings.warn(
                f"y_min, y_max: {cut:,} of {len(prediction):,} predictions were outside {low:g} to "
                f"{high:g} and are cut there; are the limits in the target's unit, and these nodes "
                f"like those of the fit?",
                QpignnWarning,
                stacklevel=6,
            )
        lower, upper = self.in_target_unit(bounds.lower), self.in_target_unit(bounds.upper)
        share = None if bounds.epistemic is None else bounds.epistemic * (upper - lower)
        return Bounds(self.limits.cut(prediction), lower, upper, share, bounds.side)

    def state(self) -> dict[str, Tensor]:
        """Return the scalers as tensors, to be saved beside a model."""
        x = {f"x_scaler.{name}": tensor for name, tensor in self.x.state().items()}
        return x | {f"y_scaler.{name}": tensor for name, tensor in self.y.state().items()}
