"""What a column of a table holds: numbers, categories, or neither.

Text that can be parsed as numbers is read as numbers. Dates, nested values, numbers with a typo
among them and free text raise errors, each with advice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from qpignn.errors import GraphError, brief, plural, quoted, similar_to

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LARGEST_WEIGHT = 1e30  # sums of a hundred million such weights fit into float32
MOST_CATEGORIES = 100
FEW_NODES = 20

LEAVE_OUT = "leave the column out with ignore=[...] (--ignore on the command line)"
FORCE = "categorical=[...] (--categorical)"
FILL = (
    "fill them, leave the column out, or fit with missing='impute' "
    "(--missing impute on the command line)"
)
DATES = (date, time, timedelta, np.datetime64, np.timedelta64, pd.Period)
ISO_DATE = re.compile(
    r"[12]\d{3}(?:[-/](?:0?[1-9]|1[0-2])|([-/.])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])"
    r"(?:[T ]\d.*)?)"
)
OTHER_DATE = re.compile(r"(\d{1,2})(?:([-.])(\d{1,2})\2\d{4}|/(\d{1,2})/(?:\d{4}|\d{2}))( \d.*)?")
WRITTEN_NUMBERS = {
    "a decimal comma": re.compile(r"[+-]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))"),
    "a comma (thousands or decimal?)": re.compile(r"[+-]?\d{1,3},\d{3}"),
    "thousands separators": re.compile(
        r"[+-]?\d{1,3}(?:([ ,.'’\u00a0\u202f])\d{3})(?:\1\d{3})*(?:[.,]\d+)?"
    ),
    "a per cent sign": re.compile(r"[+-]?\d+(?:[.,]\d+)?\s?%"),
}


READ_WITH = {
    "a decimal comma": "decimal=',' (--decimal ,)",
    "a comma (thousands or decimal?)": "decimal=',' (--decimal ,) or thousands=',' (--thousands ,)",
    "thousands separators": "thousands=... (--thousands SIGN)",
}
"""Reading options for numbers written in another form, by that form."""


@contextmanager
def valid_unicode() -> Iterator[None]:
    """Turn the error of pandas about text that cannot be encoded into a ``GraphError``.

    Yields:
        Nothing; use it as a context manager or decorator.

    Raises:
        GraphError: if text holds a lone surrogate.
    """
    try:
        yield
    except UnicodeEncodeError as error:
        raise GraphError(
            f"expected text, got {brief(error.object)} with half of a character in it (a lone "
            f"surrogate, {error.object[error.start]!a}); correct it where the text was read"
        ) from error


def several(option: str, columns: Any) -> list[Any]:
    """Return a list of columns that the user gave, as a list.

    Args:
        option: name of the argument, for messages.
        columns: a list, tuple or other iterable of column names, but not a single name.

    Raises:
        GraphError: if it is a single name or cannot be iterated over.
    """
    if isinstance(columns, str) or not hasattr(columns, "__iter__"):
        raise GraphError(
            f"{option}: expected a list of columns, got {brief(columns)}; write "
            f"{option}=[{columns!r}]"
        )
    return list(columns)


def require_columns(kind: str, frame: pd.DataFrame, wanted: Sequence[str]) -> None:
    """Check that a table is a DataFrame with some columns and without repeated columns.

    Args:
        kind: ``node`` or ``edge``, for messages.
        frame: the table.
        wanted: names of the columns it must have.

    Raises:
        GraphError: naming what is missing, repeated or not a table.
    """
    if not isinstance(frame, pd.DataFrame):
        raise GraphError(
            f"the {kind} table: expected a pandas DataFrame, got {type(frame).__name__}; make one "
            f"with pd.DataFrame(...), or read files with read_graph"
        )
    if not frame.columns.is_unique:
        again = frame.columns[frame.columns.duplicated()].unique()
        raise GraphError(
            f"the {kind} table: expected each column once, got repeated: {quoted(again)}; rename "
            f"or drop them"
        )
    if odd := [column for column in wanted if not isinstance(column, Hashable)]:
        raise GraphError(
            f"the {kind} table: expected the name of one column, got {quoted(odd)}; it has "
            f"{quoted(frame.columns, most=12)}"
        )
    if missing := [column for column in wanted if column not in frame]:
        raise GraphError(
            f"the {kind} table lacks the column{'s' * (len(missing) > 1)} {quoted(missing)}; "
            f"it has {quoted(frame.columns, most=12)}{similar_to(missing[0], frame.columns)}"
        )


def numbers(
    column: pd.Series[Any],
    ids: pd.Index,
    what: str,
    *,
    blanks: bool = False,
    fill: str = "fill them or leave the column out",
    correct: str = "write them as numbers, or choose another column",
) -> Floats:
    """Return a column as float64; text, dates and (unless ``blanks``) missing values raise.

    Args:
        column: numbers, or text that can be parsed as numbers.
        ids: the nodes' ids, for messages.
        what: the column's role and name, for messages.
        blanks: whether blanks become NaN.
        fill: what to do about blanks, for messages.
        correct: what to do about text, for messages.

    Raises:
        GraphError: naming the column, the value and the node.
    """
    _refuse_dates(column, what)
    values = column
    if not pd.api.types.is_numeric_dtype(column):
        column = _cleaned_text(column)  # blank text is missing
        values = _to_numeric(column, what)
        text = (values.isna() & column.notna()).to_numpy()
        if text.any():
            raise GraphError(f"{_not_a_number(column, text, ids, what)}; {correct}")
    if pd.api.types.is_complex_dtype(values):
        raise GraphError(f"{what}: expected real numbers, got complex ones; {correct}")
    if not blanks:
        _check_blanks(values.isna().to_numpy(), ids, what, "a number", fill)
    return values.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)


def _not_a_number(column: pd.Series[Any], text: Mask, ids: pd.Index, what: str) -> str:
    row = int(np.flatnonzero(text)[0])
    value = column.iloc[row]
    style = _written_with(value)
    hint = f", which looks like a number with {style}: write plain digits such as 1234.5"
    if style and (options := READ_WITH.get(style)):
        hint += f", or read the file with {options}"
    return (
        f"{what}: expected numbers, got {quoted([value])} at node {quoted([ids[row]])} "
        f"({plural(int(text.sum()), 'such value')}){hint if style else ''}"
    )


def _to_numeric(column: pd.Series[Any], what: str) -> pd.Series[Any]:
    try:
        return pd.to_numeric(column, errors="coerce")
    except (TypeError, OverflowError) as error:  # lists, dictionaries, numbers beyond float64
        raise GraphError(f"{what}: expected numbers, got {error}; {LEAVE_OUT}") from error


def _cleaned_text(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column as objects, with text of spaces only as missing."""
    column = column.astype(object)
    spaces = [isinstance(value, str) and not value.strip() for value in column]
    return column.mask(np.array(spaces, dtype=bool))


def learn_feature(
    column: pd.Series[Any], ids: pd.Index, *, blanks: bool, forced: bool
) -> tuple[bool, Any, Mask]:
    """Return whether a feature column holds numbers, not categories; its values; its blanks.

    Args:
        column: the column.
        ids: the nodes' ids, for messages.
        blanks: whether some values may be blank.
        forced: whether the user declared it a category.

    Returns:
        The kind, and the values and blanks as :func:`feature_numbers` or :func:`feature_labels`
        return them.

    Raises:
        GraphError: if it holds neither: dates, nested values, mostly numbers and some text, blanks
            only, or too many different texts (over 100, or more than one for every two of over 20
            nodes).
    """
    what = _feature(column)
    is_number = _holds_numbers(column, ids, what, forced=forced)
    read: Callable[..., Any] = feature_numbers if is_number else feature_labels
    values, blank = read(column, ids, blanks=blanks)
    if blank.all():
        raise GraphError(f"{what}: expected some values, got blanks only; {LEAVE_OUT}")
    labels = set() if is_number or forced else {*values} - {None}
    nodes = len(column)
    if len(labels) > MOST_CATEGORIES or (nodes > FEW_NODES and 2 * len(labels) > nodes):
        raise GraphError(
            f"{what}: expected numbers or a few categories, got {len(labels):,} different texts on "
            f"{nodes:,} nodes ({quoted(sorted(labels), 3)}): it looks like a name or free text; "
            f"{LEAVE_OUT}, or force it with {FORCE}"
        )
    return is_number, values, blank


def _feature(column: pd.Series[Any]) -> str:
    return f"feature column {str(column.name)!r}"


def _holds_numbers(column: pd.Series[Any], ids: pd.Index, what: str, *, forced: bool) -> bool:
    if not forced and pd.api.types.is_numeric_dtype(column):
        return True
    cleaned = _cleaned_text(column)
    _refuse_nested(cleaned, ids, what)
    _refuse_dates(column, what, forced=forced)
    if forced or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    text = (_to_numeric(cleaned, what).isna() & cleaned.notna()).to_numpy()
    if not text.any():
        return True
    filled = int(cleaned.notna().sum())
    written = sum(_written_with(value) is not None for value in cleaned[text])
    if 2 * (filled - int(text.sum()) + written) > filled:
        raise GraphError(
            f"{_not_a_number(cleaned, text, ids, what)}; correct the values, {LEAVE_OUT}, or treat "
            f"all of them as categories with {FORCE}"
        )
    return False


def _written_with(value: Any) -> str | None:
    """Return the form in which text is written that looks like a number but is none."""
    if not isinstance(value, str):
        return None
    forms = WRITTEN_NUMBERS.items()
    return next((form for form, pattern in forms if pattern.fullmatch(value.strip())), None)


def _refuse_nested(column: pd.Series[Any], ids: pd.Index, what: str) -> None:
    for row, value in enumerate(column):
        if not pd.api.types.is_scalar(value):
            raise GraphError(
                f"{what}: expected numbers or text, got a {type(value).__name__} at node "
                f"{quoted([ids[row]])}; give each part a column of its own, or {LEAVE_OUT}"
            )


def _refuse_dates(column: pd.Series[Any], what: str, *, forced: bool = False) -> None:
    """Raise for dates; where categories are wanted, dates written as text are accepted."""
    kinds = pd.api.types
    dates = kinds.is_datetime64_any_dtype(column) or kinds.is_timedelta64_dtype(column)
    if not dates and not kinds.is_numeric_dtype(column):
        values = _cleaned_text(column).dropna()
        objects = any(isinstance(value, DATES) for value in values)
        texts = sum(isinstance(value, str) and _is_date(value.strip()) for value in values)
        dates = objects or (not forced and texts > 0 and 10 * texts >= 9 * len(values))
    if dates:
        raise GraphError(
            f"{what}: expected numbers, got dates; turn them into a number that matters, such as "
            f"days since an event or the month, or {LEAVE_OUT}"
        )


def _is_date(text: str) -> bool:
    match = OTHER_DATE.fullmatch(text)
    if match is None:
        return ISO_DATE.fullmatch(text) is not None
    low, high = sorted((int(match[1]), int(match[3] or match[4])))
    return 1 <= low <= 12 and high <= 31


def _check_blanks(blank: Mask, ids: pd.Index, what: str, wanted: str, advice: str = FILL) -> None:
    if blank.any():
        row = int(np.flatnonzero(blank)[0])
        raise GraphError(
            f"{what}: expected {wanted} for every node, got a blank at node {quoted([ids[row]])} "
            f"({plural(int(blank.sum()), 'blank')}); {advice}"
        )


def feature_numbers(column: pd.Series[Any], ids: pd.Index, *, blanks: bool) -> tuple[Floats, Mask]:
    """Return a feature column of numbers as float64, NaN where it is blank, and its blanks.

    Args:
        column: the column.
        ids: the nodes' ids, for messages.
        blanks: whether blanks are allowed.

    Raises:
        GraphError: naming the node whose value is blank, infinite or not a number.
    """
    values = numbers(column, ids, _feature(column), blanks=blanks, fill=FILL)
    if len(bad := np.flatnonzero(np.isinf(values))):
        raise GraphError(
            f"expected finite numbers, got {values[bad[0]]:g} in column {column.name!r} of node "
            f"{quoted([ids[int(bad[0])]])} ({plural(len(bad), 'such value')}); fill or drop them"
        )
    return values, np.isnan(values)


def feature_labels(
    column: pd.Series[Any], ids: pd.Index, *, blanks: bool
) -> tuple[list[str | None], Mask]:
    """Return each value of a category column as text, and which are blank.

    Args:
        column: the column.
        ids: the nodes' ids, for messages.
        blanks: whether blanks are allowed; they become None.

    Raises:
        GraphError: naming the node whose value is blank or nested, such as a list.
    """
    what, cleaned = _feature(column), _cleaned_text(column)
    _refuse_nested(cleaned, ids, what)
    blank = cleaned.isna().to_numpy()
    if not blanks:
        _check_blanks(blank, ids, what, "a category")
    labels = [None if none else _label(value) for value, none in zip(cleaned, blank, strict=True)]
    return labels, blank


def _label(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))  # codes that were read as 3.0 because the column has blanks
    return str(value).strip()
