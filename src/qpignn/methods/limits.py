"""Limits of the target: bounds are cut at them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from qpignn.errors import SettingError, check_number

Limit = float | Literal["auto"] | None
"""A limit of the target: a number, none, or the sign of the given targets."""
AUTO: Literal["auto"] = "auto"


@dataclass(frozen=True)
class Limits:
    """The interval that all targets lie in.

    Attributes:
        low: its lower end, infinite where there is no limit.
        high: its upper end.
        low_found: whether the lower limit was derived from the given targets, not set by the user.
            An infinite bound stays infinite at such a limit: one of the side that was not wanted,
            or of a level with too few units, must not look like a finite one.
        high_found: the same for the upper limit.
    """

    low: float = -math.inf
    high: float = math.inf
    low_found: bool = False
    high_found: bool = False

    @classmethod
    def find(cls, y_min: Any, y_max: Any, y: npt.NDArray[np.floating[Any]]) -> Self:
        """Return the limits that follow from settings and given targets.

        Args:
            y_min: a number, None for no limit, or ``auto``: 0 where no given target is negative.
            y_max: the same; ``auto``: 0 where no given target is positive.
            y: the given targets. A new one that is exchangeable with these n lies beyond a limit
                found in them with a probability of at most 1/(n + 1).

        Raises:
            SettingError: where a given target lies beyond a limit that was set.
        """
        low_found = isinstance(y_min, str) and bool(y.min() >= 0)
        high_found = isinstance(y_max, str) and bool(y.max() <= 0)
        low, high = settings_range(y_min, y_max)
        if bool(((y < low) | (y > high)).any()):  # in the targets' own precision
            raise SettingError(
                f"y_min, y_max: expected the given targets between {low:g} and {high:g}, got some "
                f"from {y.min():g} to {y.max():g}"
            )
        return cls(0.0 if low_found else low, 0.0 if high_found else high, low_found, high_found)

    @classmethod
    def from_state(cls, state: Tensor, y_min: Any, y_max: Any) -> Self:
        """Return the limits that :meth:`state` described.

        Args:
            state: as read from a file; unchecked.
            y_min: setting of the fit.
            y_max: setting of the fit.

        Raises:
            ValueError: if the tensor does not hold two limits.
        """
        if state.shape != (2,) or state.dtype != torch.float64 or bool(state.isnan().any()):
            raise ValueError(f"limits: expected two numbers, float64, got {tuple(state.shape)}")
        low, high = state.tolist()
        if not low < high:
            raise ValueError(f"limits: expected a lower and a higher one, got {low:g} and {high:g}")
        return cls(
            low, high, isinstance(y_min, str) and low == 0, isinstance(y_max, str) and high == 0
        )

    def state(self) -> Tensor:
        """Return the two limits, to be saved beside a model."""
        return torch.tensor([self.low, self.high], dtype=torch.float64)

    def as_settings(self) -> tuple[float | None, float | None]:
        """Return the lower and the upper limit, None where there is none."""
        low, high = (None if math.isinf(limit) else limit for limit in (self.low, self.high))
        return low, high

    def cut(self, values: Tensor) -> Tensor:
        """Return bounds or predictions, those beyond a limit moved to it.

        Args:
            values: in the target's unit.
        """
        cut = values.clamp(self.low, self.high)
        if self.low_found:
            cut = torch.where(values == -math.inf, values, cut)
        return torch.where(values == math.inf, values, cut) if self.high_found else cut

    def allow(self, y: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.bool_]:
        """Return which targets lie within the limits.

        Args:
            y: (units,), targets.
        """
        return (self.low <= y) & (y <= self.high)


def check_limits(y_min: Any, y_max: Any) -> None:
    """Check the settings ``y_min`` and ``y_max``.

    Args:
        y_min: a number, None or ``auto``.
        y_max: a number above ``y_min``, None or ``auto``.

    Raises:
        SettingError: if one is something else.
    """
    for name, limit in (("y_min", y_min), ("y_max", y_max)):
        if limit is not None and not (isinstance(limit, str) and limit == AUTO):
            check_number(name, limit, what='"auto", a number, or None for no limit')
    low, high = settings_range(y_min, y_max)
    if not low < high:
        raise SettingError(f"y_min: expected a number below y_max, got {low!r} and {high!r}")


def settings_range(y_min: Any, y_max: Any) -> tuple[float, float]:
    """Return the limits that were set as numbers, infinite where none was.

    Args:
        y_min: the setting.
        y_max: the setting.
    """
    return (
        -math.inf if y_min is None or isinstance(y_min, str) else float(y_min),
        math.inf if y_max is None or isinstance(y_max, str) else float(y_max),
    )
