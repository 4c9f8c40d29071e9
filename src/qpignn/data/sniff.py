"""Detection of a text file's encoding, delimiter and decimal sign from its first lines."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from qpignn.data.bounded import open_packed
from qpignn.errors import ReadError, brief, plural, quoted

DELIMITERS = ",;\t|"
DECIMALS = (".", ",")
THOUSANDS = (",", ".", " ", "'", "’", "\u00a0", "\u202f")
SAMPLE_ROWS = 200
SAMPLE = 1 << 18  # characters looked at, at most
LONGEST_HEADER = 1 << 24
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
"""Byte-order marks, and the encodings they belong to."""
OTHERS = {
    b"PK\x03\x04": "an Excel workbook or a zip archive; rename it to .xlsx, or unpack it",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls); save it as .xlsx or CSV",
    b"PAR1": "Parquet; rename it to .parquet",
    b"\x1f\x8b": "gzip; rename it to .csv.gz",
    b"<": "HTML or XML; save it as CSV",
    **dict.fromkeys((b"{", b"["), "JSON; save it as CSV, as with pd.read_json(...).to_csv(...)"),
}
"""First bytes of files that are not text tables, whatever their name."""
DECIMAL_COMMA = re.compile(r"[+-]?(?:\d*,\d{1,2}|0,\d+|\d{4,},\d+|\d+,\d{4,})(?:[eE][+-]?\d+)?")
DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
LEADING_ZEROS = re.compile(r"0\d+")


@dataclass(frozen=True)
class Layout:
    """The format of a text file.

    Attributes:
        encoding: Python's name of it.
        delimiter: the character between columns.
        decimal: ``.`` or ``,``.
        zeros: columns of digits of which some begin with a zero, as codes do, each with an
            example.
    """

    encoding: str
    delimiter: str
    decimal: str
    zeros: dict[str, str] = field(default_factory=dict)


def sniff(path: Path, *, encoding: str, decimal: str, thousands: str | None) -> Layout:
    """Detect the format of a text file from its first lines.

    Args:
        path: the file, possibly gzipped.
        encoding: as the user gave it; a byte-order mark of UTF-16 overrides UTF-8.
        decimal: ``.``, ``,`` or ``auto``: a comma where columns are separated by another character
            and numbers are written with it. With ``,`` and columns that are separated by commas,
            it is a comma only if quoted numbers are written with it.
        thousands: the separator of digit groups, if the user gave one.

    Returns:
        The format.

    Raises:
        ReadError: if it is not a text table, or has no header line.
    """
    _check_signs(decimal, thousands)
    encoding = _encoding(path, encoding)
    with TextIOWrapper(open_packed(path), encoding=encoding, newline="") as file:
        header = file.readline(LONGEST_HEADER)
        if len(header) == LONGEST_HEADER:
            raise ReadError(
                f"expected a header line, got one of over {LONGEST_HEADER:,} characters; check "
                f"that the file is a text table"
            )
        rest = file.read(SAMPLE)
    lines = (header + rest).splitlines(keepends=True)
    if len(rest) == SAMPLE:
        lines = lines[:-1] or lines  # the last line may be cut
    delimiter = _delimiter(lines)
    rows = _rows(lines, delimiter)
    names = [name.strip() for name in rows[0]] if rows else []
    _check_title(names, rows[1:])
    columns = list(zip(*(row for row in rows[1:] if len(row) == len(names)), strict=True))
    cells = [[cell.strip() for cell in column if cell.strip()] for column in columns]
    if decimal == delimiter or (decimal == "auto" and delimiter != ","):
        decimal = _decimal([cell for column in cells for cell in column], thousands)
    elif decimal == "auto":
        decimal = "," if thousands == "." else "."
    zeros = {
        name: coded
        for name, digits in zip(names, cells, strict=False)
        if (coded := next((cell for cell in digits if LEADING_ZEROS.fullmatch(cell)), None))
        and all(cell.isdigit() for cell in digits)
    }
    return Layout(encoding, delimiter, decimal, zeros)


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    try:
        rows = csv.reader(lines, delimiter=delimiter)
        return [row for row in islice(rows, SAMPLE_ROWS) if row]
    except csv.Error:  # a cell longer than Python's own reader takes
        return []


def _check_signs(decimal: str, thousands: str | None) -> None:
    if decimal not in (*DECIMALS, "auto"):
        raise ReadError(f"decimal: expected '.', ',' or 'auto', got {brief(decimal)}; pass one")
    if thousands is not None and (thousands not in THOUSANDS or thousands == decimal):
        raise ReadError(
            f"thousands: expected the sign between groups of three digits, such as ',' or '.', and "
            f"another than the decimal sign {decimal!r}, got {brief(thousands)}; pass that sign"
        )


def _encoding(path: Path, encoding: str) -> str:
    if not isinstance(encoding, str):
        raise ReadError(
            f"encoding: expected a name such as 'utf-8', got {brief(encoding)}; pass one"
        )
    with open_packed(path) as file:
        start = file.read(1024)
    if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
        return encoding
    for mark, name in MARKS.items():
        if start.startswith(mark):
            return name
    for mark, other in OTHERS.items():
        if start.lstrip().startswith(mark):
            raise ReadError(f"expected a table of text, got {other}")
    if b"\0" in start:
        raise ReadError(
            "expected text in utf-8, got zero bytes, as in UTF-16; pass its encoding, such as "
            "encoding='utf-16-le' (--encoding utf-16-le)"
        )
    return "utf-8-sig"


def _delimiter(lines: list[str]) -> str:
    """Return the delimiter: the candidate that is most frequent in the header line.

    Where the header has none of them, as a title has none, the lines below are counted.
    """
    header = lines[0] if lines else ""
    counted = header if any(sign in header for sign in DELIMITERS) else "".join(lines[1:20])
    return max(DELIMITERS, key=counted.count)


def _check_title(names: list[str], rows: list[list[str]]) -> None:
    """Raise where the first line is a title above the header line."""
    if not rows:
        return
    usual, count = Counter(len(row) for row in rows).most_common(1)[0]
    named = [name for name in names if name]
    if len(named) <= 1 < usual and 2 * count > len(rows):
        below = next(row for row in rows if len(row) == usual)
        raise ReadError(
            f"expected column names in the first line, got {quoted(named) or 'nothing'} above "
            f"lines of {plural(usual, 'column')} ({quoted(below, 3)}): it looks like a title; "
            f"delete the lines above the column names"
        )


def _decimal(cells: list[str], thousands: str | None) -> str:
    if thousands in DECIMALS:
        return "," if thousands == "." else "."
    comma = any(DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    return "," if comma and not any(DECIMAL_POINT.fullmatch(cell) for cell in cells) else "."
