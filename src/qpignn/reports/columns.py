"""Columns of the user's table on the report page: selection, formatting and size limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch_geometric.data import Data

from qpignn.data.encoding import NUMBER
from qpignn.data.graph import node_ids
from qpignn.data.matrix import column as matrix_column
from qpignn.data.matrix import is_sparse
from qpignn.errors import ArrayError, SettingError, brief, quoted
from qpignn.reports.markup import rounded

BYTES = 6_000_000  # size limit of all columns, as JSON
MOST = 200  # columns, at most
DIGITS = 9  # significant digits; 7 for single precision
LONGEST = 300  # characters of a text, at most
EXACT = 2**53  # larger integers are shown as text, because JavaScript would round them

Rows = npt.NDArray[np.int64]
Columns = pd.DataFrame | Mapping[str, Any] | None
"""One value per node each; None for the graph's named features."""


def column_content(data: Data, columns: Columns, shown: Rows) -> dict[str, Any]:
    """Return columns for the page's table and node cards.

    Columns that repeat the ids or the targets are skipped. Columns are taken in order, up to
    ``MOST`` columns and ``BYTES`` bytes.

    Args:
        data: the graph.
        columns: one value per node each, in the order of the graph's nodes; None for the graph's
            named features.
        shown: indices of the nodes that the page lists.

    Returns:
        ``list``, with ``name``, ``kind`` (number or text) and values of each column, and
        ``left_out``, the names of those that did not fit. Text columns have ``categories`` and
        ``codes``, the position of each value in them; −1 is blank. Columns that are not ``shown``
        (the coordinates, which the map has) are hidden in the table at first.

    Raises:
        SettingError: if ``columns`` is neither a table nor a mapping.
        ArrayError: if a column does not have one value per node.
    """
    included: list[dict[str, Any]] = []
    left_out: list[str] = []
    hidden = data.get("pos_names") or ()
    ids = [str(name) for name in node_ids(data)[shown]]
    y = None if data.get("y") is None else data.y.double().numpy()[shown]
    size = 0
    for name, column in _source(data, columns):
        values = column.iloc[shown]
        if left_out or len(included) == MOST:
            left_out.append(name)
        elif not _repeats(values, ids, y):
            content = {"name": name, "shown": name not in hidden, **_content(values)}
            size += len(json.dumps(content))
            if size <= BYTES:
                included.append(content)
            else:
                left_out.append(name)
    return {"list": included, "left_out": left_out}


def _source(data: Data, columns: Columns) -> Iterator[tuple[str, pd.Series[Any]]]:
    nodes = data.x.shape[0]
    if columns is None:
        yield from _features(data)
        return
    if isinstance(columns, pd.DataFrame) and len(columns) != nodes:
        raise ArrayError(
            f"columns: expected a table with one row per node ({nodes:,}), got "
            f"{len(columns):,} rows; give the node table in the order of the graph's nodes"
        )
    if not isinstance(columns, pd.DataFrame | Mapping):
        raise SettingError(
            f"columns: expected a pandas table or a mapping from names to values, got "
            f"{brief(columns)}"
        )
    for name, values in columns.items():
        try:
            series = pd.Series(values)
        except (TypeError, ValueError) as error:
            raise ArrayError(f"columns: expected values for {name!r}, got {error}") from error
        if len(series) != nodes:
            raise ArrayError(
                f"columns: expected one value per node for {name!r} ({nodes:,}), got "
                f"{len(series):,}"
            )
        yield str(name), series


def _features(data: Data) -> Iterator[tuple[str, pd.Series[Any]]]:
    """Yield named features; categorical ones with the categories of the original table.

    Sparse features that do not come from a table, such as bags of words, are left out.
    """
    names, coding = list(data.get("feature_names") or []), data.get("coding")
    if coding is None or coding.feature_names != names:
        for i, name in enumerate([] if is_sparse(data.x) else names):
            yield str(name), pd.Series(data.x[:, i].numpy())
        return
    for coded in coding.columns:
        if coded.kind == NUMBER:
            values = matrix_column(data.x, names.index(coded.feature_names[0])).numpy()
        else:
            values = coding.categories_of(data.x, coded.name)
        yield coded.name, pd.Series(values)


def _repeats(column: pd.Series[Any], ids: list[str], y: npt.NDArray[Any] | None) -> bool:
    """Return whether a column repeats the ids or the targets, which the page shows anyway."""
    if _is_number(column) and y is not None:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.array_equal(numbers, y, equal_nan=True):
            return True
    return all(str(value) == id for value, id in zip(column, ids, strict=True))


def _is_number(column: pd.Series[Any]) -> bool:
    types = pd.api.types
    real = types.is_numeric_dtype(column) and not types.is_bool_dtype(column)
    return bool(real and not types.is_complex_dtype(column))


def _content(column: pd.Series[Any]) -> dict[str, Any]:
    if _is_number(column):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if not pd.api.types.is_integer_dtype(column):
            digits = 7 if column.dtype == np.float32 else DIGITS
            return {"kind": "number", "values": rounded(numbers, digits)}
        if np.nanmax(np.abs(numbers), initial=0) <= EXACT:
            integers = [None if pd.isna(value) else int(value) for value in column]
            return {"kind": "number", "values": integers}
    codes, categories = pd.factorize(_texts(column))
    return {"kind": "text", "categories": [str(one) for one in categories], "codes": codes.tolist()}


def _texts(column: pd.Series[Any]) -> npt.NDArray[np.object_]:
    """Return values as text, None for blanks; dates without a time of day of 00:00:00."""
    texts = [str(value) for value in column]
    if pd.api.types.is_datetime64_any_dtype(column):
        texts = [text.removesuffix(" 00:00:00") for text in texts]
    shortened = np.empty(len(texts), dtype=object)
    shortened[:] = [text if len(text) <= LONGEST else text[: LONGEST - 1] + "…" for text in texts]
    shortened[column.isna().to_numpy()] = None
    return shortened


def left_out_note(names: list[str]) -> str:
    """Return a sentence on the columns that are not on the page; empty if all are.

    Args:
        names: names of the columns that were left out.
    """
    if not names:
        return ""
    return (
        f"{len(names):,} further columns are not on this page, to limit its size "
        f"({quoted(names, 5)}); choose columns with write_report(..., columns=)"
    )
