"""What a fit was made with, and how the settings of methods are written and read back."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.base import BaseEstimator

from qpignn.data.encoding import FeatureEncoder
from qpignn.encoders import catalog
from qpignn.encoders.catalog import encoder_description, encoder_of_file
from qpignn.encoders.inputs import count_edge_features
from qpignn.errors import GraphError, NotFittedError, QpignnWarning, SettingError, quoted
from qpignn.intervals import check_level, check_levels

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.base import IntervalMethod

Method = TypeVar("Method", bound="IntervalMethod")


@dataclass(frozen=True)
class Fitted:
    """What a fit was made with; later changes of settings do not change it.

    Attributes:
        settings: of the method, as written to files.
        columns: number of feature columns.
        names: of the feature columns, if known.
        coding: how a table became features, if it was one.
        calibrated_on: number of units that determined the widths; None if none did.
        weighted: whether edges had different weights; None without edges, and for a model saved
            before this was recorded.
        edge_columns: number of edge features, a weight included; 0 for encoders that use none.
    """

    settings: dict[str, Any]
    columns: int
    names: list[str] | None
    coding: dict[str, Any] | None
    calibrated_on: int | None
    weighted: bool | None = None
    edge_columns: int = 0

    @classmethod
    def of(cls, method: IntervalMethod, data: Data, calibrated_on: int | None) -> Fitted:
        """Describe a fit.

        Args:
            method: the method that was fitted.
            data: the graph it was fitted on.
            calibrated_on: number of units that determined the widths.

        Returns:
            The description.
        """
        edge_columns = 0
        if uses_edge_features(method):
            edge_columns = count_edge_features(data.get("edge_attr"), data.get("edge_weight"))
        return cls(
            settings=saved_settings(method),
            columns=int(data.x.shape[1]),
            names=data.get("feature_names"),
            coding=None if data.get("coding") is None else data.coding.to_dict(),
            calibrated_on=calibrated_on,
            weighted=is_weighted(data) if data.edge_index.shape[1] else None,
            edge_columns=edge_columns,
        )

    def check_types(self) -> None:
        """Check the fields after they were read from a file.

        Raises:
            TypeError: if a field has another type than the one that is written.
        """
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
            and type(self.edge_columns) is int
            and self.edge_columns >= 0
        )
        if not right:
            raise TypeError(
                "settings, columns, names, coding, calibrated_on, weighted or edge_columns have "
                "invalid types"
            )
        if self.coding is not None:
            FeatureEncoder.from_dict(self.coding)

    def check(self, data: Data) -> None:
        """Check that a graph has the feature columns of the fit.

        Warn if its edges have different weights and those of the fit had not, or the reverse.

        Args:
            data: a checked graph.

        Raises:
            GraphError: if columns are missing, unknown or in another order.
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
        weighted = is_weighted(data)
        if self.weighted is not None and data.edge_index.shape[1] and weighted != self.weighted:
            having = {True: "with different weights", False: "that all count alike"}
            warnings.warn(
                f"edge_weight: expected edges {having[self.weighted]}, as in the fit, got edges "
                f"{having[weighted]}: intervals may cover less; give edge_weight as in the fit",
                QpignnWarning,
                stacklevel=4,
            )


def is_weighted(data: Data) -> bool:
    """Return whether some edges count more than others.

    Args:
        data: a checked graph.
    """
    weight = data.get("edge_weight")
    return weight is not None and len(weight) > 0 and bool((weight != weight[0]).any())


def settings_of(cls: type[IntervalMethod]) -> list[str]:
    """Return the names of a method's settings, sorted.

    Args:
        cls: the method's class.
    """
    return sorted(inspect.signature(cls).parameters)


def fitted_state(method: IntervalMethod) -> Fitted:
    """Return what a method was fitted with.

    Args:
        method: the method.

    Raises:
        NotFittedError: if it is not fitted.
    """
    if not hasattr(method, "fitted_"):
        raise NotFittedError(f"this {type(method).__name__} is not fitted yet; call fit first")
    return method.fitted_


def saved_settings(method: IntervalMethod) -> dict[str, Any]:
    """Return the settings as they can be written to a file.

    A method inside is described by its class and settings, a user's encoder by its name, any other
    net or function by None.

    Args:
        method: the method.
    """
    settings: dict[str, Any] = {}
    for name, value in method.get_params(deep=False).items():
        if isinstance(value, BaseEstimator):
            settings[name] = {"method": type(value).__name__, "settings": saved_settings(value)}
        elif callable(value):
            settings[name] = encoder_description(value) if name == "encoder" else None
        else:
            settings[name] = copy.deepcopy(value)
    levels = check_levels(method.confidence_level)
    one = isinstance(method.confidence_level, Real)
    return {**settings, "confidence_level": levels[0] if one else levels}


def method_from_settings(cls: type[Method], settings: dict[str, Any]) -> Method:
    """Return an unfitted method from what :func:`saved_settings` returned.

    Args:
        cls: the method's class.
        settings: as read from a file; unchecked.
    """
    from qpignn.methods.catalog import class_named

    values = {**cls.settings_before, **settings}
    if "confidence_level" not in settings_of(cls):  # that of the method inside
        del values["confidence_level"]
    for name, value in values.items():
        if isinstance(value, dict) and value.keys() == {"method", "settings"}:
            inner = class_named(value["method"])
            values[name] = method_from_settings(inner, value["settings"])
    return cls(**values)


def uses_edge_features(method: IntervalMethod) -> bool:
    """Return whether the encoder of a method, or of the method inside it, uses ``edge_attr``.

    Args:
        method: the method; one without an encoder uses no edge features.
    """
    settings = method.get_params()
    encoder = settings.get("encoder", settings.get("method__encoder"))
    return encoder is not None and catalog.uses_edge_features(encoder)


def with_encoder(settings: Any, encoder: Any, folder: str | Path) -> Any:
    """Return stored settings with the user's own encoder, given by the caller of ``load``.

    Args:
        settings: as read from a file; those of a method inside another are changed, too.
        encoder: the encoder; None for named ones.
        folder: of the model, for messages.

    Raises:
        ModelFileError: if a user's own encoder is missing, or one is given for a named encoder.
    """
    if not isinstance(settings, dict):
        return settings
    if isinstance(inner := settings.get("method"), dict):
        inner = {**inner, "settings": with_encoder(inner.get("settings"), encoder, folder)}
        return {**settings, "method": inner}
    chosen = encoder_of_file(settings.get("encoder", "sage"), encoder, folder)
    return {**settings, "encoder": chosen} if "encoder" in settings else settings


def as_fitted(method: Method) -> Method:
    """Return a copy of a method with the settings of its fit, whatever they have become since.

    Args:
        method: a fitted method.
    """
    same = copy.copy(method)
    own = settings_of(type(method))
    for name, value in fitted_state(method).settings.items():
        kept = getattr(method, name)
        if name in own and not (isinstance(kept, BaseEstimator) or callable(kept)):
            setattr(same, name, value)
    return same


def choose_level(fitted: Sequence[float], wanted: float | None, *, any_level: bool) -> float:
    """Return the level to predict at.

    Args:
        fitted: the fitted levels, rising.
        wanted: the caller's choice; default the highest fitted.
        any_level: whether levels that were not fitted can be chosen.

    Raises:
        SettingError: if the level was not fitted and must be.
    """
    if wanted is None:
        return fitted[-1]
    level = check_level(wanted)
    if any_level:
        return level
    for one in fitted:
        if math.isclose(level, one, abs_tol=1e-9):
            return one
    raise SettingError(
        f"confidence_level: expected one of the fitted levels {fitted}, got {level:g}; "
        f"fit again with it among the levels"
    )


def warn_if_interrupted(method: IntervalMethod) -> None:
    """Warn that a fit was interrupted; called by public methods, whose caller is named.

    Args:
        method: the method.
    """
    message = method.history_.warning() if hasattr(method, "fitted_") else None
    if message is not None:
        warnings.warn(message, QpignnWarning, stacklevel=3)
