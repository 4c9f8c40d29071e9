"""Split-conformal calibration of any method, or of a net that the user has trained."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from torch import Tensor, nn

from qpignn.calibration.conformal import SCORES, Score, SplitConformal
from qpignn.errors import (
    ModelFileError,
    QpignnWarning,
    SettingError,
    SplitError,
    brief,
    check_bool,
    check_choice,
    check_number,
)
from qpignn.intervals import check_levels
from qpignn.io.tensors import pack_json, unpack_json
from qpignn.methods.base import Bounds, IntervalMethod
from qpignn.methods.fitted import Fitted, as_fitted, saved_settings
from qpignn.methods.groups import KnownResiduals, local_difficulty, node_groups
from qpignn.methods.net_training import part_of
from qpignn.methods.prefit import Prefit
from qpignn.runtime.randomness import numpy_rng
from qpignn.runtime.torch_state import torch_defaults
from qpignn.tasks.base import FitInputs, unit_mask
from qpignn.tasks.catalog import TaskName, find_task

if TYPE_CHECKING:
    from torch_geometric.data import Data

Floats = npt.NDArray[np.float64]


@dataclass(eq=False, repr=False)
class Conformal(IntervalMethod):
    """Any method, with intervals that cover at least the wanted share of exchangeable nodes.

    Part of the given units is held out of the method's fit and scored
    (:class:`qpignn.calibration.SplitConformal`). Guarantee: a new unit that is exchangeable with
    those (as under a random split of a graph that is seen whole) is covered with a probability of
    at least the wanted level, and at most 1/(n + 1) more; with groups, in every group by itself.
    There is no guarantee for a unit singled out by its features, nor under shift. With too few
    scored units for a level the bound is infinite, and a warning says so. Bounds are cut at the
    method's limits of the target (``y_min``, ``y_max``), which keeps the guarantee: a scored unit
    beyond a limit counts as missed however wide the interval is.

    Args:
        method: the method to calibrate; a copy of it is fitted.
        score: ``cqr`` moves both bounds by one amount, ``normalised`` multiplies half-widths by
            one factor, ``absolute`` gives every unit the same half-width around its prediction.
        calibration: share of the given units that are scored.
        groups: calibrate each group by itself: ``degree`` (quarters of the graph's nodes),
            ``community``, or the name of an attribute of the graph with one label per node.
        neighbourhood: divide scores by the method's errors on fitted nodes nearby, so that
            intervals are wider in difficult neighbourhoods. The fitted nodes are recognised by
            ``node_id`` in other graphs; a graph without ids must have them in the same rows, with
            the same features.

    Attributes:
        method_: the fitted copy of the method.
        group_state_: what is needed to find the groups in other graphs.
        widenings_: by level and group.
        residuals_: errors on the fitted nodes, with ``neighbourhood``.

    Example:
        >>> from qpignn import Conformal, load_dataset, make_method
        >>> data = load_dataset("basic", nodes=80)
        >>> model = Conformal(make_method("sqr", epochs=5)).fit(data)
        >>> len(model.predict_interval(data))
        80
    """

    method: IntervalMethod
    score: Score = field(default="cqr", kw_only=True)
    calibration: float = field(default=0.25, kw_only=True)
    groups: str | None = field(default=None, kw_only=True)
    neighbourhood: bool = field(default=False, kw_only=True)

    method_: IntervalMethod = field(init=False)
    group_state_: Any = field(init=False)
    widenings_: dict[float, dict[str, float]] = field(init=False)
    residuals_: KnownResiduals | None = field(init=False)

    @classmethod
    def prefit(
        cls,
        model: nn.Module | Callable[..., Any],
        data: "Data",
        calibration_mask: Any,
        *,
        confidence_level: float | list[float] = 0.9,
        **settings: Any,
    ) -> Self:
        """Return a calibrated form of a net that is already trained.

        Args:
            model: called as ``model(data.x, data.edge_index)``; returns one number per node, or two
                (lower and upper), or three (lower, prediction, upper).
            data: the graph.
            calibration_mask: boolean, nodes for calibration; must be labelled, and not used for
                training the net.
            confidence_level: wanted coverage, or several.
            settings: ``score``, ``groups`` and so on.

        Raises:
            SettingError: if a setting, or the model, is not what it must be.
            SplitError: if no node of the mask is labelled.
        """
        with torch_defaults():
            if not callable(model):
                raise SettingError(
                    f"model: expected a net or a function of x and edge_index, got {brief(model)}"
                )
            made = cls(Prefit(model, confidence_level), **settings)
            task = find_task(made.task)
            data = task.check(data)
            made.check_settings()
            if made.neighbourhood:
                raise SettingError(
                    "neighbourhood: expected a method fitted here, whose errors on its own nodes "
                    "are known, got a net trained elsewhere; leave it out"
                )
            labelled = ~task.targets(data).isnan()
            scored = unit_mask(calibration_mask, task.count(data)) & labelled
            if not bool(scored.any()):
                raise SplitError("calibration_mask: expected labelled nodes, got none")
            inputs = FitInputs(data, labelled, task)
            made.method_ = Prefit(model, confidence_level)._fit_checked(inputs)
            made.history_ = made.method_.history_
            calibrated_on = made._calibrate(inputs, scored, torch.zeros_like(scored))
            made.fitted_ = Fitted.of(made, data, calibrated_on)
            return made

    @property
    def confidence_level(self) -> float | list[float]:  # type: ignore[override]
        """The wanted coverage: that of the method inside."""
        return self.method.confidence_level

    @property
    def seed(self) -> int:  # type: ignore[override]
        """The seed of the method inside; it also decides which units are scored."""
        return self.method.seed

    @property
    def task(self) -> TaskName:  # type: ignore[override]
        """The task of the method inside."""
        return self.method.task

    @property
    def parameters_(self) -> int:  # type: ignore[override]
        """Number of trained weights."""
        return self.method_.parameters_

    def free_levels(self) -> tuple[float, ...]:
        """Return those of the method inside."""
        return self.method.free_levels()

    def check_settings(self) -> None:
        """Check all settings, those of the method inside among them.

        Raises:
            SettingError: if one has a value that is not allowed.
        """
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

    def _fit(self, inputs: FitInputs) -> int | None:
        positions = inputs.given.nonzero().flatten().numpy()
        count = max(1, round(self.calibration * len(positions)))
        if count == len(positions):
            raise SplitError(
                f"expected given nodes both to fit on and to calibrate with, got "
                f"{len(positions)} given nodes and calibration={self.calibration:g}"
            )
        order = numpy_rng(self.seed, "calibration").permutation(positions)
        scored = torch.zeros_like(inputs.given)
        scored[torch.from_numpy(order[:count])] = True
        fitted = inputs.given & ~scored
        self.method_ = clone(self.method)._fit_checked(replace(inputs, given=fitted))
        self.history_ = self.method_.history_
        return self._calibrate(inputs, scored, fitted)

    def _calibrate(self, inputs: FitInputs, scored: Tensor, fitted: Tensor) -> int:
        """Keep the widening of every level and group; return the number of scored units."""
        data, units = inputs.data, scored.numpy()
        self.residuals_ = self._residuals_on(inputs, fitted) if self.neighbourhood else None
        targets = inputs.task.targets(data).numpy()[units]
        reachable = self.method_.limits_.allow(targets)  # in the targets' own precision
        labels, self.group_state_ = node_groups(data, self.groups, new=True)
        difficulty = self._difficulty(data)[units]
        calibrator = SplitConformal(self.score)
        self.widenings_ = {}
        for level in check_levels(self.confidence_level):
            intervals = self.method_._intervals_at(data, level).select(units)
            y = targets.astype(np.float64)
            widenings = calibrator.fit(intervals, y, labels[units], difficulty, reachable)
            self.widenings_[level] = widenings
            short = [label for label, widening in widenings.items() if np.isinf(widening)]
            if short:
                warnings.warn(
                    f"too few calibration nodes for a level of {level:g}"
                    + (f" in the groups {', '.join(short)}" if self.groups else f" ({len(y)})")
                    + ": their intervals are infinite",
                    QpignnWarning,
                    stacklevel=5,
                )
        return len(targets)

    def _residuals_on(self, inputs: FitInputs, fitted: Tensor) -> KnownResiduals:
        """Return the method's errors on the units it was fitted on."""
        intervals = self.method_._intervals_at(inputs.data, self.method_.levels_[-1])
        errors = np.abs(inputs.task.targets(inputs.data).double().numpy() - intervals.prediction)
        return KnownResiduals.of(inputs.data, fitted, errors)

    def _difficulty(self, data: "Data") -> Floats:
        if self.residuals_ is None:
            return np.ones(find_task(self.task).count(data))
        return local_difficulty(data.edge_index, self.residuals_.on(data))

    def _predict(self, data: "Data", level: float) -> Bounds:
        labels, _ = node_groups(data, self.groups, state=self.group_state_)
        difficulty, calibrator = self._difficulty(data), SplitConformal(self.score)
        lows, highs = [], []
        for inner in (fitted for fitted in self.levels_ if fitted <= level):
            intervals = self.method_._intervals_at(data, inner)
            low, high = calibrator.bounds(intervals, self.widenings_[inner], labels, difficulty)
            lows.append(low)
            highs.append(high)
        lower, upper = np.minimum.reduce(lows), np.maximum.reduce(highs)
        columns = (np.clip(intervals.prediction, lower, upper), lower, upper)
        value, start, end = (self.method_.limits_.cut(torch.from_numpy(one)) for one in columns)
        return Bounds(
            *(value, start, end),
            side=intervals.side,
            novelty=intervals.novelty,
            novelty_reason=intervals.novelty_reason,
            known_neighbours=intervals.known_neighbours,
        )

    def _state(self) -> dict[str, Tensor]:
        content = {"groups": self.group_state_, "widenings": list(self.widenings_.items())}
        state = {"conformal": pack_json(content)}
        if self.residuals_ is not None:
            state |= self.residuals_.state()
        inner = as_fitted(self.method_)._state()
        return state | {f"method.{name}": tensor for name, tensor in inner.items()}

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        content = unpack_json(state["conformal"])
        self.group_state_ = content["groups"]
        self.widenings_ = dict(content["widenings"])
        self.residuals_ = KnownResiduals.from_state(state) if self.neighbourhood else None
        if not self.neighbourhood:
            state.pop("residuals", None)  # an earlier version wrote a NaN for every node
        self._check_restored()
        self.method_ = copy.copy(self.method)
        self.method_.fitted_ = replace(fitted, settings=saved_settings(self.method))
        self.method_._restore(part_of(state, "method"), self.method_.fitted_)

    def _check_restored(self) -> None:
        """Raise ValueError unless what was read from a file is what was written."""
        widenings = [*self.widenings_.values()]
        edges = self.group_state_ if self.groups == "degree" else []
        right = (
            [*self.widenings_] == check_levels(self.confidence_level)
            and all(isinstance(one, dict) for one in widenings)
            and all(isinstance(number, float) for one in widenings for number in one.values())
            and isinstance(edges, list)
            and all(isinstance(edge, float) for edge in edges)
        )
        if not right:
            raise ValueError("groups or widenings have invalid types")

    @classmethod
    def load(cls, folder: str | Path, model: Any = None, *, encoder: Any = None) -> Self:
        """Return a method from :meth:`save`'s folder.

        Args:
            folder: where the method was saved.
            model: the net that :meth:`prefit` was given, which is never written to a file.
            encoder: the encoder of the method inside, where that is not a named one.

        Raises:
            ModelFileError: if the folder holds no such model, or the net or encoder is missing.
        """
        made = super().load(folder, encoder=encoder)
        if isinstance(made.method_, Prefit):
            if model is None:
                raise ModelFileError(
                    f"{folder}: expected the net it was calibrated for; give it as "
                    f"Conformal.load(folder, model=net)"
                )
            made.method_.model = model
        return made
