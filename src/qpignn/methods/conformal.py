"""Split-conformal calibration of any method, or of a net the user trained elsewhere.

Nodes a method was not fitted on are scored by how far outside its interval they lie; the interval
of a new node is widened by the ⌈(n + 1)·level⌉-th smallest score. If those nodes and the new one
are exchangeable, it then covers with at least the wanted probability, whatever the method is worth.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from torch import Tensor, nn

from qpignn.calibration.cross_fit import conformal_quantile
from qpignn.data.graph import check_graph
from qpignn.errors import (
    ModelFileError,
    QpignnWarning,
    SettingError,
    SplitError,
    brief,
    check_bool,
    check_choice,
    check_number,
    check_setting_names,
)
from qpignn.intervals import Intervals, check_levels
from qpignn.io.tensors import pack_json, unpack_json
from qpignn.methods.base import Bounds, Fitted, IntervalMethod, as_mask
from qpignn.methods.groups import KnownResiduals, local_difficulty, node_groups
from qpignn.methods.net import part_of
from qpignn.methods.prefit import Prefit
from qpignn.runtime.randomness import numpy_rng
from qpignn.runtime.torch_state import torch_defaults

if TYPE_CHECKING:
    from torch_geometric.data import Data

Floats = npt.NDArray[np.float64]
SCORES = ("cqr", "normalised", "absolute")
SMALLEST = 1e-150  # half-width: of a net that says one number a node, say


class Conformal(IntervalMethod):
    """Any method, with intervals that cover at least the wanted share of exchangeable nodes.

    Part of the given nodes is kept from the method and scores it. Promise: for a new node that is
    exchangeable with those (as under a random split of a graph that is seen whole), the chance of
    being covered is at least the wanted level, and at most 1/(n + 1) more; with groups, in every
    group by itself. No promise for a node singled out by its features, nor under shift. Where too
    few nodes score for a level the bound is infinite, and a warning says so. Bounds are cut at the
    method's limits of the target (``y_min``, ``y_max``), which keeps the promise: a scoring node
    beyond a limit counts as missed however wide the interval is.

    Args:
        method: the method to calibrate; a copy of it is fitted.
        score: ``cqr`` moves both bounds by one amount, ``normalised`` stretches half-widths by one
            factor, ``absolute`` gives every node the same half-width around its prediction.
        calibration: share of the given nodes that score.
        groups: calibrate each group by itself: ``degree`` (quarters of the graph's nodes),
            ``community``, or the name of an attribute of the graph with one label a node.
        neighbourhood: divide scores by how badly the method did on fitted nodes nearby, so that
            intervals are wider in difficult neighbourhoods. The fitted nodes are recognised by
            ``node_id`` in other graphs; a graph without ids must have them in the same rows, with
            the same features.

    Example:
        >>> from qpignn import Conformal, load_dataset, make_method
        >>> data = load_dataset("basic", nodes=80)
        >>> model = Conformal(make_method("sqr", epochs=5)).fit(data)
        >>> len(model.predict_interval(data))
        80
    """

    def __init__(
        self,
        method: IntervalMethod,
        *,
        score: str = "cqr",
        calibration: float = 0.25,
        groups: str | None = None,
        neighbourhood: bool = False,
        **unknown: Any,
    ) -> None:
        check_setting_names("Conformal", unknown, self._get_param_names())
        self.method = method
        self.score = score
        self.calibration = calibration
        self.groups = groups
        self.neighbourhood = neighbourhood

    @classmethod
    def prefit(
        cls,
        model: nn.Module | Callable[..., Any],
        data: Data,
        calibration_mask: Any,
        *,
        confidence_level: float | list[float] = 0.9,
        **settings: Any,
    ) -> Self:
        """Calibrate a net that is already trained, on labelled nodes it was not trained on.

        Args:
            model: called as ``model(data.x, data.edge_index)``; returns one number a node, or two
                (lower and upper), or three (lower, prediction, upper).
            data: the graph.
            calibration_mask: boolean, nodes for calibration; must be labelled, and strangers to
                the net's training.
            confidence_level: wanted coverage, or several.
            settings: ``score``, ``groups`` and so on.
        """
        with torch_defaults():
            if not callable(model):
                raise SettingError(
                    f"model: expected a net or a function of x and edge_index, got {brief(model)}"
                )
            data = check_graph(data)
            made = cls(Prefit(model, confidence_level), **settings)
            made.check_settings()
            if made.neighbourhood:
                raise SettingError(
                    "neighbourhood: expected a method fitted here, whose misses on its own nodes "
                    "are known, got a net trained elsewhere; leave it out"
                )
            nodes = as_mask(calibration_mask, data.x.shape[0]) & ~data.y.isnan()
            if not bool(nodes.any()):
                raise SplitError("calibration_mask: expected labelled nodes, got none")
            made.method_ = Prefit(model, confidence_level)._fit_on(data, ~data.y.isnan())
            made.history_ = made.method_.history_
            made._calibrate(data, nodes, torch.zeros_like(nodes))
            made.fitted_ = made._fitted_on(data)
            return made

    def free_levels(self) -> tuple[float, ...]:
        """Those of the method inside."""
        return self.method.free_levels()

    @property
    def confidence_level(self) -> float | list[float]:  # type: ignore[override]
        """The wanted coverage: that of the method inside."""
        return self.method.confidence_level

    @property
    def seed(self) -> int:  # type: ignore[override]
        """The seed of the method inside; it also decides which nodes score."""
        return self.method.seed

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        if not isinstance(self.method, IntervalMethod):
            raise SettingError(
                f"method: expected a method of this library, such as make_method('sqr'), "
                f"got {brief(self.method)}"
            )
        self.method.check_settings()
        check_choice("score", self.score, SCORES)
        if not 0 < check_number("calibration", self.calibration) < 1:
            raise SettingError(
                f"calibration: expected a share strictly between 0 and 1, got {self.calibration!r}"
            )
        check_bool("neighbourhood", self.neighbourhood)
        if not isinstance(self.groups, str | None):
            raise SettingError(
                f"groups: expected degree, community or the name of a column, "
                f"got {brief(self.groups)}"
            )

    @property
    def parameters_(self) -> int:
        """Number of trained weights."""
        return self.method_.parameters_

    method_: IntervalMethod

    def _fit(self, data: Data, given: Tensor) -> None:
        positions = given.nonzero().flatten().numpy()
        count = max(1, round(self.calibration * len(positions)))
        if count == len(positions):
            raise SplitError(
                f"expected given nodes both to fit on and to calibrate with, got "
                f"{len(positions)} given nodes and calibration={self.calibration:g}"
            )
        order = numpy_rng(self.seed, "calibration").permutation(positions)
        scoring = torch.zeros_like(given)
        scoring[torch.from_numpy(order[:count])] = True
        self.method_ = clone(self.method)._fit_on(data, given & ~scoring)
        self.history_ = self.method_.history_
        self._calibrate(data, scoring, given & ~scoring)

    def _calibrate(self, data: Data, scoring: Tensor, fitted: Tensor) -> None:
        """Keep the widening of every level and group, from the scores of some nodes."""
        self._residuals = self._residuals_on(data, fitted)
        nodes = scoring.numpy()
        y = data.y.double().numpy()[nodes]
        allowed = self.method_._limits().allow(data.y.numpy()[nodes])  # in their own precision
        labels, self.group_state_ = node_groups(data, self.groups, new=True)
        scale = self._difficulty(data)[nodes]
        self._calibrated_on = len(y)
        self.widenings_: dict[float, dict[str, float]] = {}
        for level in check_levels(self.confidence_level):
            said = self.method_._predict_interval(data, confidence_level=level).select(nodes)
            scores = self._scores(said, y) / scale
            scores[~allowed] = np.inf  # no widening reaches them
            self.widenings_[level] = {
                label: conformal_quantile(scores[labels[nodes] == label], level)
                for label in sorted(set(labels[nodes]))
            }
            short = [label for label, found in self.widenings_[level].items() if np.isinf(found)]
            if short:
                warnings.warn(
                    f"too few calibration nodes for a level of {level:g}"
                    + (f" in the groups {', '.join(short)}" if self.groups else f" ({len(y)})")
                    + ": their intervals are infinite",
                    QpignnWarning,
                    stacklevel=4,
                )

    def _residuals_on(self, data: Data, fitted: Tensor) -> KnownResiduals | None:
        """Return how far off the method was on the nodes it was fitted on."""
        if not self.neighbourhood:
            return None
        off = np.abs(data.y.double().numpy() - self.method_._predict_interval(data).prediction)
        return KnownResiduals.of(data, fitted, off)

    def _difficulty(self, data: Data) -> Floats:
        if self._residuals is None:
            return np.ones(data.x.shape[0])
        return local_difficulty(data.edge_index, self._residuals.on(data))

    def _scores(self, said: Intervals, y: Floats) -> Floats:
        """Return how far each target lies beyond the bounds that were asked for."""
        low, high, unit = self._unwidened(said)
        below, above = (low - y) / unit, (y - high) / unit
        return {"both": np.maximum(below, above), "lower": below, "upper": above}[said.side]

    def _unwidened(self, said: Intervals) -> tuple[Floats, Floats, Floats | float]:
        """Return the bounds that are widened, and the unit that scores are measured in."""
        if self.score == "cqr":
            return said.lower, said.upper, 1.0
        unit = 1.0 if self.score == "absolute" else _half(said)
        return said.prediction, said.prediction, unit

    def _predict(self, data: Data, level: float) -> Bounds:
        labels, _ = node_groups(data, self.groups, state=self.group_state_)
        scale = self._difficulty(data)
        lower = upper = None
        for inner in self.levels_:
            if inner > level:
                continue
            said = self.method_._predict_interval(data, confidence_level=inner)
            known = self.widenings_[inner]
            widening = np.array([known.get(label, np.inf) for label in labels]) * scale
            low, high = self._widened(said, widening)
            lower = low if lower is None else np.minimum(lower, low)
            upper = high if upper is None else np.maximum(upper, high)
        assert lower is not None
        assert upper is not None
        prediction = np.clip(said.prediction, lower, upper)
        limits = self.method_._limits()
        return Bounds(
            limits.cut(torch.from_numpy(prediction)),
            limits.cut(torch.from_numpy(lower)),
            limits.cut(torch.from_numpy(upper)),
            side=said.side,
        )

    def _widened(self, said: Intervals, widening: Floats) -> tuple[Floats, Floats]:
        """Return the bounds moved out by the widening; those that are infinite stay so."""
        low, high, unit = self._unwidened(said)
        with np.errstate(invalid="ignore"):  # ∞ − ∞ and 0 · ∞: bounds without an end
            low, high = low - widening * unit, high + widening * unit
        endless = np.isinf(unit)
        low = np.where(np.isneginf(said.lower) & (endless | np.isnan(low)), -np.inf, low)
        high = np.where(np.isposinf(said.upper) & (endless | np.isnan(high)), np.inf, high)
        if said.side == "lower":  # the other bound was not asked for
            return np.minimum(low, said.upper), said.upper
        if said.side == "upper":
            return said.lower, np.maximum(high, said.lower)
        with np.errstate(invalid="ignore"):
            middle = (said.lower + said.upper) / 2  # where bounds moved in until they crossed
        return np.where(low > high, middle, low), np.where(low > high, middle, high)

    def _settings(self) -> dict[str, Any]:
        inner = {"method": type(self.method).__name__, "settings": self.method._settings()}
        own = {**self.get_params(deep=False), "method": inner}
        return {**own, "confidence_level": self.method._settings()["confidence_level"]}

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        settings = dict(settings)
        settings.pop("confidence_level")
        inner = settings.pop("method")
        from qpignn.methods.catalog import class_named

        made = class_named(inner["method"])._from_settings(inner["settings"])
        return cls(made, **settings)

    def _as_fitted(self) -> Self:
        same = copy.copy(self)
        for name, value in self._fitted().settings.items():
            if name not in ("method", "confidence_level"):
                setattr(same, name, value)
        return same

    def _state(self) -> dict[str, Tensor]:
        words = {"groups": self.group_state_, "widenings": list(self.widenings_.items())}
        state = {"conformal": pack_json(words)}
        if self._residuals is not None:
            state |= self._residuals.state()
        inner = self.method_._as_fitted()._state()
        return state | {f"method.{name}": tensor for name, tensor in inner.items()}

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        words = unpack_json(state["conformal"])
        self.group_state_ = words["groups"]
        self.widenings_ = dict(words["widenings"])
        self._residuals = KnownResiduals.from_state(state) if self.neighbourhood else None
        if not self.neighbourhood:
            state.pop("residuals", None)  # an earlier version wrote a NaN for every node
        self._check_restored()
        self.method_ = copy.copy(self.method)
        self.method_.fitted_ = replace(fitted, settings=self.method._settings())
        self.method_._restore(part_of(state, "method"), self.method_.fitted_)

    def _check_restored(self) -> None:
        """Raise ValueError unless what was read from a file is what was written."""
        known = [*self.widenings_.values()]
        edges = self.group_state_ if self.groups == "degree" else []
        right = (
            [*self.widenings_] == check_levels(self.confidence_level)
            and all(isinstance(one, dict) for one in known)
            and all(isinstance(number, float) for one in known for number in one.values())
            and isinstance(edges, list)
            and all(isinstance(edge, float) for edge in edges)
            and isinstance(self.groups, str | None)
            and isinstance(self.neighbourhood, bool)
        )
        if not right:
            raise ValueError("groups or widenings have invalid types")

    @classmethod
    def load(cls, folder: str | Path, model: Any = None) -> Self:
        """Rebuild from :meth:`save`'s folder; ``model`` is the net that :meth:`prefit` was given.

        A user's own net is never written to a file.
        """
        made = super().load(folder)
        if isinstance(made.method_, Prefit):
            if model is None:
                raise ModelFileError(
                    f"{folder}: expected the net it was calibrated for; give it as "
                    f"Conformal.load(folder, model=net)"
                )
            made.method_.model = model
        return made


def _half(said: Intervals) -> Floats:
    """Return half-widths, or for one bound its distance from the prediction.

    Never so near to zero that a distance divided by one would be infinite.
    """
    if said.side == "both":
        half = said.width / 2
    else:
        half = np.abs(said.prediction - (said.lower if said.side == "lower" else said.upper))
    return np.maximum(half, SMALLEST)
