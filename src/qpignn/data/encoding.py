"""Encoding of a node table's columns as features, stored so that other tables are encoded alike.

A number stays a number. A category is one-hot encoded: one column of zeros and ones per value, in
the sorted order of their text. Where blanks are allowed, a column that has some gets an indicator
column, which is 1 where the value was blank.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from qpignn.data.columns import Floats, feature_labels, feature_numbers, learn_feature
from qpignn.data.matrix import columns
from qpignn.errors import GraphError, QpignnWarning, check_choice, check_number, plural, quoted

MISSING = ("error", "impute")
"""How blanks among the features are treated."""

NUMBER, CATEGORY = "number", "category"
OTHER, BLANK = "(other)", "(blank)"


@dataclass(frozen=True)
class Column:
    """One column of the node table and its encoding.

    Attributes:
        name: the column's name.
        kind: ``number`` or ``category``.
        categories: the values of a category as text, sorted.
        fill: the number that replaces a blank; ``None`` where blanks raise an error.
        blank: whether an indicator column marks the blanks.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    fill: float | None = None
    blank: bool = False

    @property
    def feature_names(self) -> list[str]:
        """Names of the features this column becomes, in their order."""
        values = [f"{self.name}={value}" for value in self.categories]
        names = values if self.kind == CATEGORY else [self.name]
        return [*names, f"{self.name} is blank"] if self.blank else names


@dataclass(frozen=True, repr=False)
class FeatureEncoder:
    """The encoding of a table's columns as features.

    Attributes:
        columns: the feature columns, in their order.
        missing: ``error`` (a blank raises an error) or ``impute`` (a blank number becomes the
            median of the table the encoder was fitted on, a blank category none of the known ones).
    """

    columns: tuple[Column, ...]
    missing: str = "error"

    def __repr__(self) -> str:
        return f"FeatureEncoder({len(self.columns)} columns, {len(self.feature_names)} features)"

    @property
    def feature_names(self) -> list[str]:
        """Names of all features: ``income``, ``income is blank``, ``region=north``."""
        return [name for column in self.columns for name in column.feature_names]

    @property
    def category_columns(self) -> list[str]:
        """Names of the columns that are categories."""
        return [column.name for column in self.columns if column.kind == CATEGORY]

    @classmethod
    def learn(
        cls,
        frame: pd.DataFrame,
        columns: Sequence[Any],
        ids: pd.Index,
        *,
        missing: str = "error",
        categorical: Sequence[Any] = (),
    ) -> Self:
        """Fit an encoder to a table.

        Args:
            frame: the node table.
            columns: its feature columns, each once.
            ids: the nodes' ids, for messages.
            missing: ``error`` or ``impute``.
            categorical: columns that are categories whatever they hold, such as integer codes.

        Returns:
            The encoder.

        Raises:
            GraphError: naming the column, the value, the node and what to do.
        """
        check_choice("way to treat missing values", missing, MISSING)
        forced = {*categorical}
        learnt = [_learnt_column(frame[name], ids, missing, name in forced) for name in columns]
        out = cls(tuple(learnt), missing)
        if again := [name for name, count in Counter(out.feature_names).items() if count > 1]:
            raise GraphError(
                f"expected features of different names, got {quoted(again)} from two columns; "
                f"rename one of them"
            )
        return out

    def encode(self, frame: pd.DataFrame, ids: pd.Index) -> Floats:
        """Return a table's features, (nodes, features).

        Columns that the encoder was not fitted on are ignored. A new category becomes zeros; one
        warning names all of them.

        Args:
            frame: the node table, with every column of the fit.
            ids: the nodes' ids, for messages.

        Raises:
            GraphError: where a column is missing or holds another kind of values than in the fit.
        """
        labels = {str(label): label for label in frame.columns}
        names = dict.fromkeys(column.name for column in self.columns)
        if lacking := [name for name in names if name not in labels]:
            extra = [name for name in labels if name not in names]
            also = f"; it has {quoted(extra, 12)}, which the fit did not use" if extra else ""
            raise GraphError(
                f"the node table lacks the column{'s' * (len(lacking) > 1)} {quoted(lacking, 12)} "
                f"of the fit{also}; give every column the fit used, under the same name"
            )
        unknown: list[str] = []
        parts = [self._encoded(one, frame[labels[one.name]], ids, unknown) for one in self.columns]
        if unknown:
            warnings.warn(
                f"expected categories that occurred in the fit, got new ones, which are treated as "
                f"none of the known categories: {'; '.join(unknown)}; fit again with a table that "
                f"has them if they matter",
                QpignnWarning,
                stacklevel=2,
            )
        return np.concatenate(parts, axis=1)

    def categories_of(self, x: Any, column: str) -> npt.NDArray[np.object_]:
        """Return each node's category, decoded from its features.

        Args:
            x: features as :meth:`encode` gave them, (nodes, features); an array, or a tensor,
                dense or CSR.
            column: name of a category column.

        Returns:
            One label per node, (nodes,): ``(other)`` for a category that the encoder was not
            fitted on (or a blank without an indicator column), ``(blank)`` for a blank.
        """
        check_choice("category column", column, self.category_columns)
        place = [one.name for one in self.columns].index(column)
        start = sum(len(one.feature_names) for one in self.columns[:place])
        names = [*self.columns[place].categories, *[BLANK] * self.columns[place].blank]
        ones = columns(torch.as_tensor(x), range(start, start + len(names))).numpy() > 0.5
        labels = np.array([*names, OTHER], dtype=object)
        return labels[np.where(ones.any(axis=1), ones.argmax(axis=1), len(names))]

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain JSON."""
        columns = [asdict(one) | {"categories": [*one.categories]} for one in self.columns]
        return {"missing": self.missing, "columns": columns}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the encoder that :meth:`to_dict` described.

        Args:
            values: the parsed JSON, from an untrusted file.

        Raises:
            KeyError: where a field is missing.
            TypeError: where a field has another type.
            ValueError: where a field has an invalid value.
        """
        _check_types(values, {"missing": str, "columns": list})
        missing = values["missing"]
        if missing not in MISSING:
            raise ValueError(f"missing: expected {quoted(MISSING)}, got {missing!r}")
        columns = tuple(_stored_column(column, missing) for column in values["columns"])
        names = [column.name for column in columns]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"columns: expected at least one, each name once, got {quoted(names)}")
        return cls(columns, missing)

    def _encoded(
        self, column: Column, values: pd.Series[Any], ids: pd.Index, unknown: list[str]
    ) -> Floats:
        """Return the features of one column; new categories are added to ``unknown``."""
        blanks = self.missing == "impute"
        if column.kind == NUMBER:
            out, blank = feature_numbers(values, ids, blanks=blanks)
            if column.fill is not None:
                out[blank] = column.fill
        else:
            labels, blank = feature_labels(values, ids, blanks=blanks)
            codes: dict[str | None, int] = {value: i for i, value in enumerate(column.categories)}
            places = np.array([codes.get(label, -1) for label in labels], dtype=np.int64)
            if new := [str(labels[row]) for row in np.flatnonzero((places < 0) & ~blank)]:
                nodes = plural(len(new), "node")
                unknown.append(f"column {column.name!r}: {quoted(sorted(set(new)))} ({nodes})")
            out = (places[:, None] == np.arange(len(codes))).astype(np.float64)
        return np.column_stack([out, blank] if column.blank else [out])


def _learnt_column(column: pd.Series[Any], ids: pd.Index, missing: str, forced: bool) -> Column:
    name, impute = str(column.name), missing == "impute"
    is_number, values, blank = learn_feature(column, ids, blanks=impute, forced=forced)
    if is_number:
        fill = _median(values[~blank]) if impute else None
        return Column(name, NUMBER, (), fill, bool(blank.any()))
    labels = sorted({*values} - {None})
    return Column(name, CATEGORY, tuple(labels), None, bool(blank.any()))


def _median(values: Floats) -> float:
    with np.errstate(over="ignore"):
        middle = float(np.median(values))
    return middle if math.isfinite(middle) else 2 * float(np.median(values / 2))


def _check_types(values: dict[str, Any], types: dict[str, type]) -> None:
    for name, kind in types.items():  # what is not a JSON object cannot be indexed by names
        if not isinstance(values[name], kind):
            raise TypeError(f"{name}: expected {kind.__name__}, got {type(values[name]).__name__}")


def _stored_column(values: dict[str, Any], missing: str) -> Column:
    _check_types(values, {"name": str, "kind": str, "categories": list, "blank": bool})
    name, kind, categories = values["name"], values["kind"], values["categories"]
    if kind not in (NUMBER, CATEGORY):
        raise ValueError(f"kind: expected {NUMBER} or {CATEGORY}, got {kind!r}")
    if not all(isinstance(value, str) for value in categories):
        raise TypeError(f"categories: expected text, got {quoted(categories)}")
    if len(set(categories)) < len(categories) or bool(categories) != (kind == CATEGORY):
        raise ValueError(f"categories of {name!r}: expected each once, got {quoted(categories)}")
    fill = None if values["fill"] is None else check_number("fill", values["fill"])
    if (fill is not None) != (kind == NUMBER and missing == "impute"):
        raise ValueError(f"fill of {name!r}: expected one for numbers if blanks are imputed")
    if values["blank"] and missing == "error":
        raise ValueError(f"blank of {name!r}: expected false, since blanks raise an error")
    return Column(name, kind, tuple(categories), fill, values["blank"])
