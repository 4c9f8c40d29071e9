"""The interface of all methods: fit, predict_interval, save, load, as in scikit-learn.

Public methods check their input and call a hook. Targets of units that are not given are NaN before
``_fit`` sees the graph. Public methods run under
:func:`qpignn.runtime.torch_state.torch_defaults`, so that results do not depend on what the calling
program has set in torch or NumPy.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from torch import Tensor

from qpignn.data.encoding import FeatureEncoder
from qpignn.data.scaling import TargetScaler
from qpignn.diagnostics.diagnosis import Diagnosis, diagnose
from qpignn.encoders.inputs import shared_matrices
from qpignn.errors import ModelFileError, QpignnError, QpignnWarning, check_choice, check_integer
from qpignn.intervals import Intervals, check_levels
from qpignn.io.files import check_path
from qpignn.io.tensors import check_tensors, pack_json, unpack_json
from qpignn.methods.fitted import (
    Fitted,
    as_fitted,
    choose_level,
    fitted_state,
    method_from_settings,
    uses_edge_features,
    warn_if_interrupted,
    with_encoder,
)
from qpignn.methods.limits import Limits
from qpignn.methods.novelty import Novelty, UnitNovelty, fit_novelty
from qpignn.methods.serialization import read_folder, write_folder
from qpignn.runtime import distributed
from qpignn.runtime.randomness import SEED_BITS
from qpignn.runtime.torch_state import torch_defaults
from qpignn.tasks.base import FitInputs, unit_mask
from qpignn.tasks.catalog import TASKS, TaskName, find_task
from qpignn.training.callbacks import Callback, use_callbacks
from qpignn.training.history import History
from qpignn.training.loop import interrupts

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.known_neighbours import KnownNeighbours

NoveltySetting = Literal["widen", "off"]
NOVELTY_SETTINGS: tuple[str, ...] = get_args(NoveltySetting)
CURVE = tuple(tenth / 10 for tenth in range(1, 10))
"""Levels of a calibration curve, for methods that predict at any level."""
BROKEN = (
    *(TypeError, ValueError, LookupError, AttributeError, RuntimeError, OverflowError),
    QpignnError,
)
"""What reading a damaged description or damaged weights may raise."""


@dataclass(frozen=True)
class Bounds:
    """Predictions for units, each (units,), in the target's unit.

    Attributes:
        prediction: point predictions.
        lower: lower bounds.
        upper: upper bounds.
        epistemic: the part of the width that is due to the model, where a method separates it.
        novelty: how far units are from the given ones.
        novelty_reason: what puts units beyond what was learnt, in words.
        side: ``both``, ``lower`` or ``upper``; see :class:`qpignn.intervals.Intervals`.
        known_neighbours: number of neighbours whose targets are known.
        width_without: width of the interval without the targets of neighbours.
    """

    prediction: Tensor
    lower: Tensor
    upper: Tensor
    epistemic: Tensor | None = None
    side: str | None = None
    novelty: npt.NDArray[np.float64] | None = None
    novelty_reason: npt.NDArray[Any] | None = None
    known_neighbours: npt.NDArray[np.float64] | None = None
    width_without: npt.NDArray[np.float64] | None = None


class IntervalMethod(BaseEstimator, ABC):  # type: ignore[misc]
    """A model that gives every unit of a graph an interval.

    Constructors take settings only; what ``fit`` learns ends in an underscore. A method on nets is
    best derived from :class:`qpignn.methods.net.NetMethod`. Any other one is a dataclass of its
    settings (``confidence_level``, ``seed`` and ``task`` among them) that implements four hooks:
    :meth:`_fit`, :meth:`_predict`, :meth:`_state` and :meth:`_restore`.

    Attributes:
        any_level: whether intervals of levels that were not fitted can be predicted; not where
            widths are calibrated on held-out units, for the fitted levels.
        settings_before: values of settings that folders saved by earlier versions lack.
        novelty: ``widen`` or ``off``; see :mod:`qpignn.methods.novelty`.
        novelty_: what is known of the given units; None if off.
        known_neighbours_: what the given units tell about their neighbours; None if unused.
        y_scaler_: transform and scale of the target that the method computes with, if any.
        limits_: interval that all targets lie in; ``Conformal`` cuts its bounds there, too.
        parameters_: number of trained weights.
    """

    any_level: ClassVar[bool] = False
    settings_before: ClassVar[Mapping[str, Any]] = {}

    confidence_level: float | list[float]
    seed: int
    task: TaskName = "node"
    verbose: bool
    fitted_: Fitted
    history_: History
    novelty: NoveltySetting = "off"
    novelty_: Novelty | None = None
    known_neighbours_: KnownNeighbours | None = None
    y_scaler_: TargetScaler | None = None
    limits_: Limits = Limits()
    parameters_: int

    def fit(
        self,
        data: Data,
        train_mask: Any = None,
        *,
        on_interrupt: str = "keep",
        initial_weights: Mapping[str, Tensor] | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Self:
        """Learn from the given units.

        Started by ``torchrun``, all ranks must call this, with the same graph; each ends with the
        same fit. Data that are legal but may be a mistake are reported in warnings
        (:mod:`qpignn.data.warnings`).

        Args:
            data: a graph with targets on some units.
            train_mask: boolean, the units whose targets may be used; default the graph's own
                ``train_mask`` and ``val_mask``, or every labelled unit outside its ``test_mask``.
                Whatever the method holds out for itself comes from these.
            on_interrupt: what Ctrl-C during training does. ``keep`` ends the training, keeps the
                partly trained model and warns, now and at every later use; ``raise`` lets the
                KeyboardInterrupt through and leaves the method unfitted. Outside of training, and
                before the first epoch is done, there is nothing to keep and it always goes through.
            initial_weights: weights that the nets' training starts from, named as in ``net_``;
                default random ones.
            callbacks: called during every training of the fit; see
                :mod:`qpignn.training.callbacks`.

        Returns:
            The fitted method itself.
        """
        with torch_defaults():
            self.check_settings()
            task = find_task(self.task)
            data = task.check(data)
            given = task.given(data, train_mask)
            for message in task.warnings(data, given, edge_features=uses_edge_features(self)):
                warnings.warn(message, QpignnWarning, stacklevel=2)
            deprecated = self.__dict__.pop("_initial_weights", None)
            weights = deprecated if initial_weights is None else initial_weights
            with interrupts(on_interrupt), use_callbacks(callbacks):
                self._fit_checked(FitInputs(data, given, task, weights))
        warn_if_interrupted(self)
        return self

    def _fit_checked(self, inputs: FitInputs) -> Self:
        """Learn from the given units of a checked graph."""
        self.__dict__.pop("fitted_", None)  # a fit that fails leaves no fit behind
        inputs = inputs.without_hidden_targets()
        with distributed.process_group():
            calibrated_on = self._fit(inputs)
            self.novelty_ = fit_novelty(self, inputs) if self.novelty == "widen" else None
        self.fitted_ = Fitted.of(self, inputs.data, calibrated_on)
        return self

    def predict_interval(
        self, data: Data, mask: Any = None, *, confidence_level: float | None = None
    ) -> Intervals:
        """Return the intervals of all units, or of some, in the target's unit.

        Args:
            data: a graph with the feature columns of the fit.
            mask: boolean, (units,), the wanted units; default all.
            confidence_level: one of the fitted levels (any level, for methods whose class has
                ``any_level``); default the highest fitted.
        """
        warn_if_interrupted(self)
        (intervals,) = self._intervals(data, confidence_level)
        return intervals if mask is None else intervals.select(unit_mask(mask, len(intervals)))

    def predict_levels(
        self, data: Data, *, confidence_level: float | None = None
    ) -> list[Intervals]:
        """Return the intervals of all units at the wanted level, then at all others there are.

        Args:
            data: a graph with the feature columns of the fit.
            confidence_level: the wanted level; default the highest fitted.
        """
        warn_if_interrupted(self)
        return self._intervals(data, confidence_level, curve=True)

    def predict(self, data: Data, mask: Any = None) -> npt.NDArray[np.float64]:
        """Return point predictions, (units,).

        Args:
            data: a graph with the feature columns of the fit.
            mask: boolean, (units,), the wanted units; default all.
        """
        warn_if_interrupted(self)
        (intervals,) = self._intervals(data)
        chosen = slice(None) if mask is None else unit_mask(mask, len(intervals)).numpy()
        return intervals.prediction[chosen]

    def _intervals(
        self, data: Data, confidence_level: float | None = None, *, curve: bool = False
    ) -> list[Intervals]:
        """Return the intervals at a level, and with ``curve`` at all others, of any graph."""
        with torch_defaults():
            fitted = fitted_state(self)
            data = find_task(self.task).check(data, need_target=False)
            fitted.check(data)
            level = choose_level(self.levels_, confidence_level, any_level=self._predicts_any_level)
            levels = dict.fromkeys([level, *(self.curve_levels_ if curve else ())])  # each once
            with shared_matrices():
                cut = None if self.novelty_ is None else self.novelty_.of(data)
                return [self._intervals_at(data, one, cut) for one in levels]

    def _intervals_at(
        self, data: Data, level: float, cut: tuple[Data, UnitNovelty] | None = None
    ) -> Intervals:
        """Return the intervals of a checked graph at a level.

        Args:
            data: the graph.
            level: a fitted level, or any one for a class with ``any_level``.
            cut: what :meth:`Novelty.of` returned for the graph; default, it is computed here.
        """
        method, task, novelty = as_fitted(self), find_task(self.task), self.novelty_
        if self._predicts_any_level:
            method.confidence_level = level
        if novelty is None:
            bounds = method._predict(data, level)
        else:
            graph, units = novelty.of(data) if cut is None else cut
            bounds = novelty.widen(method._predict(graph, level), units, level, self.limits_)
        named = {"node_id": task.ids(data), "id_name": data.get("id_name", "id")}
        return Intervals(**vars(bounds), confidence_level=level, **named)

    def diagnose(
        self,
        data: Data,
        *,
        confidence_level: float | None = None,
        by: Mapping[str, Any] | Sequence[str] = (),
    ) -> Diagnosis:
        """Evaluate the intervals on the graph's test units, group by group and level by level.

        Args:
            data: the graph, with its masks and all known targets.
            confidence_level: which of the fitted levels; default the highest.
            by: columns to divide by; see :func:`qpignn.diagnostics.diagnosis.diagnose`.

        Returns:
            Findings as sentences, and the tables behind them.
        """
        with torch_defaults():
            wanted, *others = self.predict_levels(data, confidence_level=confidence_level)
            return diagnose(
                data,
                wanted,
                others,
                by=by,
                calibration_nodes=self.fitted_.calibrated_on,
                training_warning=self.history_.warning(),
            )

    def save(self, folder: str | Path) -> None:
        """Write the fitted method to a folder (no pickle): weights and a readable description.

        Args:
            folder: where to; made if it does not exist.
        """
        description = {
            "method": type(self).__name__,
            **asdict(fitted_state(self)),
            "interrupted": self.history_.interrupted,  # for readers; load uses the history
        }
        with torch_defaults():
            state = {**as_fitted(self)._state(), "history": pack_json(asdict(self.history_))}
        write_folder(check_path("folder", folder), description, state)

    @classmethod
    def load(cls, folder: str | Path, *, encoder: Any = None) -> Self:
        """Return a method from :meth:`save`'s folder; warns if its training was interrupted.

        Args:
            folder: where the method was saved.
            encoder: the module, class or function it was fitted with, where that is not a named
                encoder: a folder holds no code.

        Raises:
            ModelFileError: if the folder holds no such model, a damaged one, or one whose encoder
                is missing.
        """
        description, state = read_folder(check_path("folder", folder), cls.__name__)
        names = {field.name for field in fields(Fitted)}
        fitted = Fitted(**{name: description[name] for name in names & description.keys()})
        settings = with_encoder(fitted.settings, encoder, folder)
        try:
            fitted.check_types()
            method = method_from_settings(cls, settings)
            method.check_settings()
            method.history_ = History.from_dict(unpack_json(state.pop("history")))
            with torch_defaults():
                method._restore(state, fitted)
                method.fitted_ = fitted
                check_tensors(state, as_fitted(method)._state())
        except BROKEN as error:
            message = f"{folder}: the description does not fit the weights or this version: {error}"
            raise ModelFileError(message) from error
        warn_if_interrupted(method)
        return method

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        check_levels(self.confidence_level)
        check_integer("seed", self.seed, 0, SEED_BITS)
        check_choice("task", self.task, TASKS)
        check_choice("novelty", self.novelty, NOVELTY_SETTINGS)

    def free_levels(self) -> tuple[float, ...]:
        """Return levels that cost no more training beside the wanted one."""
        return ()

    @property
    def coding_(self) -> FeatureEncoder | None:
        """How the fit's table became features, for ``from_frames(..., coding=model.coding_)``."""
        coding = fitted_state(self).coding
        return None if coding is None else FeatureEncoder.from_dict(coding)

    @property
    def levels_(self) -> list[float]:
        """The levels that were fitted, rising."""
        return check_levels(fitted_state(self).settings["confidence_level"])

    @property
    def curve_levels_(self) -> list[float]:
        """The levels a calibration curve can show."""
        return sorted({*self.levels_, *(CURVE if self._predicts_any_level else ())})

    @property
    def _predicts_any_level(self) -> bool:
        """Whether the fitted method predicts at levels that were not fitted."""
        return self.any_level

    @abstractmethod
    def _fit(self, inputs: FitInputs) -> int | None:
        """Learn from a checked graph in which only given units have targets.

        Returns:
            The number of units that determined how wide intervals are, None if none did.
        """

    @abstractmethod
    def _predict(self, data: Data, level: float) -> Bounds:
        """Return the bounds of every unit of a checked graph at a fitted level."""

    @abstractmethod
    def _state(self) -> dict[str, Tensor]:
        """Return everything learnt, as tensors."""

    @abstractmethod
    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        """Take back what :meth:`_state` returned, from a fit described by ``fitted``."""
