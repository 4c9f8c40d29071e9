"""Nets that calibrate themselves on the nodes each of them held out."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import skew
from torch import Tensor

from qpignn.calibration.cross_fit import (
    FEW,
    TAILS,
    Floats,
    Reach,
    Stretch,
    calibrate_members,
    disagreement,
    enough_for,
)
from qpignn.data.scaling import TRANSFORMS
from qpignn.errors import QpignnWarning, SettingError, check_choice, plural
from qpignn.intervals import SIDES, check_levels
from qpignn.methods.base import Bounds, Fitted
from qpignn.methods.net import NetMethod
from qpignn.methods.training_set import Seen
from qpignn.training.loop import keeps_interrupted

if TYPE_CHECKING:
    from torch_geometric.data import Data

Outputs = tuple[Tensor, Tensor, Tensor]
"""value (members, nodes); half-widths below and above (levels, members, nodes)."""

MEMBERS = 10
HELPING_LEVELS = (0.5, 0.8)  # trained too when self-calibrating: they steady the value
SMALLEST = 1e-12  # half-width, in the net's units: softplus ends at 0 for extreme features
HEAVY_TAIL = 1.5  # skewness from which logarithms are tried; an exponential law has 2
TRIED = ("none", "log1p")  # transforms of a heavy-tailed target that compete
AS_TRAINED = Stretch(1.0, 1.0)
UNBOUNDED = Stretch(math.inf, math.inf)


class SelfCalibrating(NetMethod):
    """Nets that say a value and half-widths, averaged, and stretched to the wanted coverage.

    A method says whether it calibrates at all, and how it trains on what it has seen.
    """

    side: str
    tails: str | None
    target_transform: str

    @abstractmethod
    def _calibrates(self) -> bool:
        """Whether half-widths are stretched by what held-out nodes tell."""

    def free_levels(self) -> tuple[float, ...]:
        """The helping levels, which are trained anyway."""
        return HELPING_LEVELS if self._calibrates() and self.side == "both" else ()

    def _train_seen(self, seen: Seen) -> None:
        """Train on what was seen, after whatever must be decided first."""
        self._train(seen)

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        super().check_settings()
        check_choice("side", self.side, SIDES)
        check_choice("tails", "free" if self.tails is None else self.tails, TAILS)
        check_choice("target_transform", self.target_transform, ("auto", *TRANSFORMS))
        lowest = check_levels(self.confidence_level)[0]
        if self.side != "both" and lowest <= 0.5:
            raise SettingError(
                f"side: expected levels above 0.5 for a {self.side} bound, got {lowest:g}"
            )
        if self.scaling == "range" and self.target_transform not in ("auto", "none"):
            raise SettingError(
                f"target_transform: expected none with scaling 'range', got "
                f"{self.target_transform!r}"
            )

    def _members(self) -> int:
        return (MEMBERS if self._calibrates() else 1) if self.members is None else self.members

    def _holds_out(self) -> bool:
        return self._calibrates() or super()._holds_out()

    def _tails(self) -> str:
        return self.tails or ("free" if self._calibrates() else "symmetric")

    def _two_sided(self, level: float) -> float:
        """Return the level of the two-sided interval one of whose bounds is the wanted one."""
        return level if self.side == "both" else round(2 * level - 1, 12)

    def _trained_levels(self) -> list[float]:
        wanted = [self._two_sided(level) for level in check_levels(self.confidence_level)]
        return sorted({*wanted, *HELPING_LEVELS}) if self._calibrates() else wanted

    def _shown_level(self) -> float:
        return self._two_sided(check_levels(self.confidence_level)[-1])

    def _fit(self, data: Data, given: Tensor) -> None:
        heavy = is_heavy_tailed(data.y[given].double().numpy())
        names = self._transforms(heavy, int(given.sum()))
        best, best_price = self._fit_transformed(data, given, names[0], heavy)
        self._warn_of_left_out(data)
        done, interrupted = len(self.history_), self.history_.interrupted
        for name in names[1:]:
            if interrupted:
                break
            try:
                learnt, price = self._fit_transformed(data, given, name, heavy)
            except KeyboardInterrupt:  # before an epoch was done: the first fit is kept
                if not keeps_interrupted():
                    raise
                interrupted = True
                break
            done, interrupted = done + len(self.history_), self.history_.interrupted
            if price < best_price and not interrupted:
                best, best_price = learnt, price
        self.__dict__.update(best)
        if interrupted:
            self.history_.interrupt(done, len(names) * self.epochs)

    def _transforms(self, heavy: bool, labels: int) -> tuple[str, ...]:
        """Return which transforms of the target to try.

        With few labels transforms do not compete, as forms of intervals do not: the winner would
        cover too little.

        Args:
            heavy: whether the target has a heavy tail.
            labels: number of given nodes.
        """
        if self.target_transform != "auto":
            return (self.target_transform,)
        compares = self._calibrates() and self.side == "both" and self.scaling == "standard"
        if not (compares and heavy):
            return ("none",)
        return TRIED if labels >= FEW else TRIED[-1:]

    def _fit_transformed(
        self, data: Data, given: Tensor, transform: str, heavy: bool
    ) -> tuple[dict[str, Any], float]:
        """Train, and calibrate if asked to; return all that was learnt, and its price."""
        self._fit_scalers(data, given, transform)
        seen = self._see(data, given, self._held_out(data, given))
        self._train_seen(seen)
        self.stretches_, price = {}, 0.0
        for level in check_levels(self.confidence_level):
            self.stretches_[level], cost = self._stretched(seen, level, heavy)
            price += cost
        learnt = ("net_", "x_scaler_", "y_scaler_", "history_", "stretches_")
        return {name: getattr(self, name) for name in learnt}, price

    def _stretched(self, seen: Seen, level: float, heavy: bool) -> tuple[Stretch, float]:
        """Return a level's stretch, and the price of the held-out intervals it makes.

        With fewer held-out nodes than the level needs, bounds are infinite, and a warning is given.
        """
        if not self._calibrates():
            return AS_TRAINED, 0.0
        held_out = seen.held_out.numpy()
        judged = self._calibrated_on = int(held_out.any(axis=0).sum())
        if judged < enough_for(level):
            warnings.warn(
                f"{plural(judged, 'held-out node')} of {len(seen.y):,} labelled: too few to "
                f"calibrate a level of {level:g}, which needs {enough_for(level)}; its intervals "
                f"are infinite. Label more nodes, or ask for a lower level",
                QpignnWarning,
                stacklevel=5,
            )
            return UNBOUNDED, 0.0
        with torch.no_grad():
            outputs = self._run(seen)
        return calibrate_members(
            self._reach(outputs, level),
            held_out,
            seen.y.double().numpy(),
            level,
            side=self.side,
            tails=self._tails(),
            unit=self._in_targets_unit,
            heavy_tailed=heavy,
        )

    def _in_targets_unit(self, z: Floats) -> Floats:
        """Return bounds as a user sees them: in the target's unit, cut at its limits."""
        found: Floats = self.limits_.cut(self.y_scaler_.inverse(torch.from_numpy(z))).numpy()
        return found

    def _reach(self, outputs: Outputs, level: float) -> Reach:
        """Return what each member says at a wanted level."""
        value, below, above = (part.double().numpy() for part in outputs)
        trained = self._trained_levels().index(self._two_sided(level))
        return Reach(value, *(np.maximum(half[trained], SMALLEST) for half in (below, above)))

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        super()._restore(state, fitted)
        rows = state["stretches"].tolist()
        self.stretches_ = {level: Stretch(*numbers) for level, *numbers in rows}
        if [*self.stretches_] != check_levels(self.confidence_level):
            raise ValueError("stretches: expected one for every level of the fit, got others")

    def _state(self) -> dict[str, Tensor]:
        rows = [[level, *astuple(stretch)] for level, stretch in self.stretches_.items()]
        return {**super()._state(), "stretches": torch.tensor(rows, dtype=torch.float64)}

    def _bounds(self, outputs: Outputs) -> tuple[Tensor, Tensor]:
        value, below, above = outputs
        return value - below, value + above

    def _interval(self, outputs: Outputs, level: float) -> Bounds:
        value = outputs[0].double().mean(dim=0).numpy()
        lower = upper = value  # and every level's interval holds those of the levels inside it
        for inner in check_levels(self.confidence_level):
            if inner <= level:
                low, high = self.stretches_[inner].bounds(self._reach(outputs, inner).mean())
                lower, upper = np.minimum(lower, low), np.maximum(upper, high)
        share = None
        bounded = self.stretches_[level] != UNBOUNDED
        if self._members() > 1 and self.side == "both" and bounded:
            share = torch.from_numpy(disagreement(self._reach(outputs, level), level))
        return Bounds(
            torch.from_numpy(value),
            torch.from_numpy(lower),
            torch.from_numpy(upper),
            share,
            self.side,
        )


def is_heavy_tailed(y: Floats) -> bool:
    """Whether targets from 0 up are so skewed that a few of them are far larger than the rest."""
    if not 0 <= y.min() < y.max():
        return False
    return bool(skew(y / y.max()) > HEAVY_TAIL)  # in units of the largest: cubes of 1e200 overflow
