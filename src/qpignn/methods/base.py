"""The contract every method keeps: fit, predict_interval, save, load, with scikit-learn's manners.

Public methods check and translate; a method implements ``_fit``, ``_predict``, ``_state`` and
``_restore``. Targets outside the given nodes are NaN before ``_fit`` sees the graph. Public methods
run under :func:`qpignn.runtime.torch_state.torch_defaults`, so that results do not depend on what
the calling program has set in torch or NumPy.
"""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from qpignn.data.encoding import FeatureEncoder
from qpignn.data.graph import check_graph, given_nodes, labelled, node_ids, test_nodes
from qpignn.data.settings import hide_targets
from qpignn.data.warnings import data_warnings
from qpignn.diagnostics.diagnosis import Diagnosis, diagnose
from qpignn.errors import (
    ArrayError,
    GraphError,
    ModelFileError,
    NotFittedError,
    QpignnError,
    QpignnWarning,
    SettingError,
    SplitError,
    brief,
    check_integer,
    quoted,
)
from qpignn.intervals import Intervals, check_level, check_levels
from qpignn.io.files import check_path
from qpignn.io.tensors import check_tensors, pack_json, unpack_json
from qpignn.methods.limits import Limits
from qpignn.methods.serialization import read_folder, write_folder
from qpignn.runtime import distributed
from qpignn.runtime.randomness import SEED_BITS
from qpignn.runtime.torch_state import torch_defaults
from qpignn.training.callbacks import Callback, use_callbacks
from qpignn.training.history import History
from qpignn.training.loop import interrupts

if TYPE_CHECKING:
    from torch_geometric.data import Data

CURVE = tuple(tenth / 10 for tenth in range(1, 10))
"""Levels of a calibration curve, where any can be asked for."""


@dataclass(frozen=True)
class Fitted:
    """What a fit was made with; later changes of settings do not touch it."""

    settings: dict[str, Any]
    columns: int
    names: list[str] | None
    coding: dict[str, Any] | None
    calibrated_on: int | None
    weighted: bool | None = None
    """Whether edges had different weights; None for a model saved before this was recorded."""

    def check_types(self) -> None:
        """Raise TypeError or ValueError unless what was read from a file is what was written."""
        right = (
            isinstance(self.settings, dict)
            and "confidence_level" in self.settings
            and type(self.columns) is int
            and self.columns > 0
            and isinstance(self.names, list | None)
            and (self.names is None or len(self.names) == self.columns)
            and all(isinstance(name, str) for name in self.names or ())
            and isinstance(self.coding, dict | None)
            and (self.calibrated_on is None or type(self.calibrated_on) is int)
            and isinstance(self.weighted, bool | None)
        )
        if not right:
            raise TypeError(
                "settings, columns, names, coding, calibrated_on or weighted have invalid types"
            )
        if self.coding is not None:
            FeatureEncoder.from_dict(self.coding)

    def check(self, data: Data) -> None:
        """Raise unless a graph has the feature columns of the fit.

        Warn if its edges have weights and those of the fit had none, or the reverse.
        """
        names = data.get("feature_names")
        if self.names is not None and names is not None and names != self.names:
            missing = [name for name in self.names if name not in names]
            unknown = [name for name in names if name not in self.names]
            what = (
                f"missing {quoted(missing) or 'none'}, unknown {quoted(unknown) or 'none'}"
                if missing or unknown
                else "the same ones in another order"
            )
            raise GraphError(
                f"expected the {self.columns} feature columns of the fit ({quoted(self.names)}), "
                f"got {what}; give the graph the columns it was fitted with"
            )
        if data.x.shape[1] != self.columns:
            raise GraphError(
                f"expected {self.columns} feature columns as in the fit, got {data.x.shape[1]}"
            )
        if self.weighted is not None and data.edge_index.shape[1]:
            self._check_weights(is_weighted(data))

    def _check_weights(self, weighted: bool) -> None:
        if weighted != self.weighted:
            having = {True: "with different weights", False: "that all count alike"}
            warnings.warn(
                f"edge_weight: expected edges {having[not weighted]}, as in the fit, got edges "
                f"{having[weighted]}: intervals may cover less; give edge_weight as in the fit",
                QpignnWarning,
                stacklevel=4,
            )


def is_weighted(data: Data) -> bool:
    """Whether some edges count more than others."""
    weight = data.get("edge_weight")
    return weight is not None and len(weight) > 0 and bool((weight != weight[0]).any())


@dataclass(frozen=True)
class Bounds:
    """One number a node each, in the target's own unit; see :class:`qpignn.intervals.Intervals`."""

    prediction: Tensor
    lower: Tensor
    upper: Tensor
    epistemic: Tensor | None = None
    side: str | None = None


class IntervalMethod(BaseEstimator, ABC):  # type: ignore[misc]
    """A model that gives every node of a graph an interval.

    Constructors take settings only; what ``fit`` learns ends in an underscore.
    """

    any_level = False
    """Whether intervals of levels that were not fitted can be asked for."""

    _calibrated_on: int | None = None
    """How many nodes decided how wide intervals are, where a method looks at that."""

    confidence_level: float | list[float]
    seed: int
    verbose: bool
    history_: History

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Names of the settings: those of this class and of the ones it builds on."""
        found = {
            name
            for kind in cls.__mro__
            if issubclass(kind, IntervalMethod) and "__init__" in vars(kind)
            for name, parameter in inspect.signature(kind).parameters.items()
            if parameter.kind != parameter.VAR_KEYWORD
        }
        return sorted(found)

    def fit(
        self,
        data: Data,
        train_mask: Any = None,
        *,
        on_interrupt: str = "keep",
        callbacks: Iterable[Callback] = (),
    ) -> Self:
        """Learn from the given nodes.

        Args:
            data: a graph with targets on some nodes.
            train_mask: boolean, the nodes whose targets may be used; default the graph's own
                ``train_mask`` and ``val_mask``, or every labelled node outside its ``test_mask``.
                Whatever the method holds out for itself comes from these.
            on_interrupt: what Ctrl-C during training does. ``keep`` ends the training, keeps the
                partly trained model and warns, now and at every later use; ``raise`` lets the
                KeyboardInterrupt through and leaves the method unfitted. Outside of training, and
                before the first epoch is done, there is nothing to keep and it always goes through.
            callbacks: called during every training of the fit; see
                :mod:`qpignn.training.callbacks`.

        Started by ``torchrun``, all ranks must call this, with the same graph; each ends with the
        same fit. What is legal but deserves a second look is told in warnings
        (:mod:`qpignn.data.warnings`).
        """
        with torch_defaults():
            self.check_settings()
            data = check_graph(data)
            given = _checked_given(data, train_mask)
            for doubt in data_warnings(data, given):
                warnings.warn(doubt, QpignnWarning, stacklevel=2)
            with interrupts(on_interrupt), use_callbacks(callbacks):
                self._fit_on(data, given)
        self._warn_if_interrupted()
        return self

    def _fit_on(self, data: Data, given: Tensor) -> Self:
        """Learn from the given nodes of a checked graph."""
        self.__dict__.pop("fitted_", None)  # a fit that fails leaves no fit behind
        try:
            with distributed.process_group():
                self._fit(check_graph(hide_targets(data, given)), given)
        finally:
            self.__dict__.pop("_initial_weights", None)  # they were for this fit only
        self.fitted_ = self._fitted_on(data)
        return self

    def predict_interval(
        self, data: Data, mask: Any = None, *, confidence_level: float | None = None
    ) -> Intervals:
        """Return the intervals of all nodes, or of a boolean mask's, in the target's own unit.

        ``confidence_level`` chooses among the fitted levels (any level, for methods whose class
        says ``any_level``); default the highest fitted.
        """
        self._warn_if_interrupted()
        return self._predict_interval(data, mask, confidence_level=confidence_level)

    def _warn_if_interrupted(self) -> None:
        """Warn that a fit was interrupted; called by public methods, whose caller is named."""
        message = self.history_.warning() if hasattr(self, "fitted_") else None
        if message is not None:
            warnings.warn(message, QpignnWarning, stacklevel=3)

    def _predict_interval(
        self, data: Data, mask: Any = None, *, confidence_level: float | None = None
    ) -> Intervals:
        """Return the intervals without a word about the fit; see :meth:`predict_interval`."""
        with torch_defaults():
            fitted = self._fitted()
            data = check_graph(data, need_target=False)
            fitted.check(data)
            level = self._level(confidence_level)
            asked = self._as_fitted()
            if self.any_level:
                asked.confidence_level = level
            bounds = asked._predict(data, level)
        columns = (bounds.prediction, bounds.lower, bounds.upper)
        intervals = Intervals(
            *columns,
            level,
            node_ids(data),
            epistemic=bounds.epistemic,
            side=bounds.side,
            id_name=data.get("id_name", "id"),
        )
        return intervals if mask is None else intervals.select(as_mask(mask, len(intervals)))

    def diagnose(
        self,
        data: Data,
        *,
        confidence_level: float | None = None,
        by: Mapping[str, Any] | Sequence[str] = (),
    ) -> Diagnosis:
        """Judge the intervals on the graph's held-out nodes, group by group and level by level.

        Args:
            data: the graph, with its masks and all known targets.
            confidence_level: which of the fitted levels; default the highest.
            by: columns to divide by; see :func:`qpignn.diagnostics.diagnosis.diagnose`.
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

    def predict_levels(
        self, data: Data, *, confidence_level: float | None = None
    ) -> list[Intervals]:
        """Return the intervals of all nodes at the wanted level, then at all others there are."""
        self._warn_if_interrupted()
        wanted = self._level(confidence_level)
        levels = [wanted, *(level for level in self.curve_levels_ if level != wanted)]
        return [self._predict_interval(data, confidence_level=level) for level in levels]

    def predict(self, data: Data, mask: Any = None) -> npt.NDArray[np.float64]:
        """Return point predictions."""
        self._warn_if_interrupted()
        return self._predict_interval(data, mask).prediction

    def save(self, folder: str | Path) -> None:
        """Write the fitted method to a folder (no pickle): weights and a readable description."""
        fitted = self._fitted()
        described = {
            "method": type(self).__name__,
            **asdict(fitted),
            "interrupted": self.history_.interrupted,  # for readers; load goes by the history
        }
        with torch_defaults():
            state = {**self._as_fitted()._state(), "history": pack_json(asdict(self.history_))}
        write_folder(check_path("folder", folder), described, state)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Rebuild a method from :meth:`save`'s folder; warns where its training was interrupted."""
        description, state = read_folder(check_path("folder", folder), cls.__name__)
        known = {field.name for field in fields(Fitted)}
        fitted = Fitted(**{name: description[name] for name in known & description.keys()})
        try:
            fitted.check_types()
            method = cls._from_settings(fitted.settings)
            method.check_settings()
            method.history_ = History.from_dict(unpack_json(state.pop("history")))
            with torch_defaults():
                method._restore(state, fitted)
                method.fitted_ = fitted
                check_tensors(state, method._as_fitted()._state())
        except (
            *(TypeError, ValueError, KeyError, AttributeError),
            *(RuntimeError, OverflowError, QpignnError),
        ) as error:
            message = f"{folder}: the description does not fit the weights or this version: {error}"
            raise ModelFileError(message) from error
        method._warn_if_interrupted()
        return method

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        check_levels(self.confidence_level)
        check_integer("seed", self.seed, 0, SEED_BITS)

    @property
    @abstractmethod
    def parameters_(self) -> int:
        """Number of trained weights."""

    def free_levels(self) -> tuple[float, ...]:
        """Levels that cost no more training beside the wanted one, for a calibration curve."""
        return ()

    def _fitted_on(self, data: Data) -> Fitted:
        return Fitted(
            settings=self._settings(),
            columns=int(data.x.shape[1]),
            names=data.get("feature_names"),
            coding=None if data.get("coding") is None else data.coding.to_dict(),
            calibrated_on=self._calibrated_on,
            weighted=is_weighted(data) if data.edge_index.shape[1] else None,
        )

    def _settings(self) -> dict[str, Any]:
        """Return the settings as they can be written to a file."""
        settings = copy.deepcopy(self.get_params(deep=False))
        levels = check_levels(self.confidence_level)
        one = isinstance(self.confidence_level, Real)
        return {**settings, "confidence_level": levels[0] if one else levels}

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        """Make a method from what :meth:`_settings` returned."""
        return cls(**settings)

    def _as_fitted(self) -> Self:
        """Return this method with the settings of its fit, whatever they have become since."""
        same: Self = copy.copy(self).set_params(**self._fitted().settings)
        return same

    def _fitted(self) -> Fitted:
        if not hasattr(self, "fitted_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return self.fitted_

    @property
    def coding_(self) -> FeatureEncoder | None:
        """How the fit's table became features, for ``from_frames(..., coding=model.coding_)``."""
        coding = self._fitted().coding
        return None if coding is None else FeatureEncoder.from_dict(coding)

    @property
    def levels_(self) -> list[float]:
        """The levels that were fitted, rising."""
        return check_levels(self._fitted().settings["confidence_level"])

    @property
    def curve_levels_(self) -> list[float]:
        """The levels a calibration curve can show."""
        return sorted({*self.levels_, *(CURVE if self.any_level else ())})

    def _level(self, wanted: float | None) -> float:
        """Return a fitted level, the highest unless told, or raise."""
        if wanted is None:
            return self.levels_[-1]
        level = check_level(wanted)
        if self.any_level:
            return level
        for fitted in self.levels_:
            if math.isclose(level, fitted, abs_tol=1e-9):
                return fitted
        raise SettingError(
            f"confidence_level: expected one of the fitted levels {self.levels_}, got {level:g}; "
            f"fit again with it among the levels"
        )

    def _limits(self) -> Limits:
        """Where targets lie; a method around this one cuts its bounds there, too."""
        return Limits()

    @abstractmethod
    def _fit(self, data: Data, given: Tensor) -> None:
        """Learn from a checked graph; only ``given`` nodes have targets."""

    @abstractmethod
    def _predict(self, data: Data, level: float) -> Bounds:
        """Return what is known of every node at a fitted level, in the target's own unit."""

    @abstractmethod
    def _state(self) -> dict[str, Tensor]:
        """Return everything learnt, as tensors."""

    @abstractmethod
    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        """Take back what :meth:`_state` returned, from a fit described by ``fitted``."""


def _checked_given(data: Data, train_mask: Any) -> Tensor:
    if train_mask is None:
        given = given_nodes(data)
    else:
        given = as_mask(train_mask, data.x.shape[0]) & labelled(data)
        shared = int((given & test_nodes(data)).sum())
        if shared:
            raise SplitError(
                f"expected a train_mask apart from the graph's test_mask, got {shared} nodes in "
                f"both; leave them out of one"
            )
    if not bool(given.any()):
        raise SplitError(
            f"expected labelled nodes to learn from, got none: {int(labelled(data).sum())} nodes "
            f"are labelled, but the mask gives none of them"
        )
    weight = data.get("node_weight")
    if weight is not None:
        given = given & (weight > 0)  # a node that counts for nothing decides nothing
        if not bool(given.any()):
            raise GraphError("node_weight: expected weight on the given nodes, got zeros only")
    return given


def as_mask(mask: Any, nodes: int) -> Tensor:
    """Return a boolean mask over the nodes, or raise."""
    try:
        values = np.asarray(mask)
    except (TypeError, ValueError, RuntimeError):  # lists of different lengths, odd tensors
        values = np.empty(0, dtype=object)
    if values.dtype != np.bool_ or values.shape != (nodes,):
        raise ArrayError(
            f"mask: expected {nodes} booleans, one a node, got {values.shape} of {values.dtype} "
            f"({brief(mask)}); a list of positions becomes a mask by "
            f"np.isin(np.arange({nodes}), positions)"
        )
    return torch.as_tensor(values)
