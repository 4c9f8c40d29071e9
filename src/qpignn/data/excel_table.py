"""A sheet of an Excel workbook (.xlsx) as a table, and tables as workbooks."""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import pandas as pd

from qpignn.data.bounded import BLOCK, BoundedReader, MemoryCost
from qpignn.data.table_file import BYTES_PER_CELL, named_errors
from qpignn.errors import ReadError, SettingError, import_optional, quoted
from qpignn.runtime.memory import free_memory

EXCEL = (".xlsx", ".xlsm")
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, ParseError),
    *(LookupError, OverflowError, RuntimeError),  # missing parts, dates beyond time, a password
    *(EOFError, NotImplementedError),  # cut parts, unknown compression
)
"""Errors of zipfile and openpyxl on a file that is not a valid workbook."""
SHEET = MemoryCost(6, {b"<": 100})  # of XML that is read element by element
MOST_CELLS = 16_384  # columns of a sheet
MOST_ROWS = 1_048_576  # rows of a sheet


@dataclass(frozen=True)
class ExcelTable:
    """One sheet of a workbook; its first row names the columns.

    Attributes:
        path: the workbook.
        columns: their names.
        frame: the whole sheet: a workbook cannot be read by pieces.
    """

    path: Path
    columns: list[str]
    frame: pd.DataFrame

    @classmethod
    def open(cls, path: Path, sheet: str | None = None, kind: str = "table") -> ExcelTable:
        """Read a sheet.

        Args:
            path: the workbook.
            sheet: its name; by default the only one, or the one that ``kind`` names.
            kind: which table is read: ``node``, ``edge`` or ``table``.

        Returns:
            The table.

        Raises:
            ReadError: if there is no such sheet, no header row, or too little memory.
        """
        openpyxl = import_optional("openpyxl", "an Excel file")
        with named_errors(path):
            try:
                _check_size(path)
                with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
                    name = _sheet(book.sheetnames, sheet, kind)
                    rows = _rows(book[name])
            except BROKEN as error:
                raise ReadError(
                    f"expected an Excel workbook, got another file: {error}; save it as .xlsx again"
                ) from error
            frame = _frame(rows, name)
        return cls(path, list(frame.columns), frame)

    def read(self) -> pd.DataFrame:
        """Return the whole sheet."""
        return self.frame


def _check_size(path: Path) -> None:
    """Raise where the parts of a workbook need more than the free memory when unpacked.

    The sizes in the archive's directory may be wrong, so every part is unpacked and counted.
    """
    limit, advice = free_memory(), "save it as CSV or Parquet"
    with zipfile.ZipFile(path) as packed:
        for part in packed.infolist():
            source = packed.open(part)
            with BoundedReader(source, limit, SHEET, what="a workbook", advice=advice) as file:
                while file.read(BLOCK):
                    pass
                limit -= file.cost


def _rows(sheet: Any) -> list[list[Any]]:
    """Return the rows of a sheet that are not empty.

    The dimensions that a sheet declares may be wrong: cells are counted as they are read, and
    shared texts as often as they occur.
    """
    sheet.reset_dimensions()
    limit, needed, rows = free_memory(), 0, []
    for i, row in enumerate(sheet.iter_rows(values_only=True)):
        if i >= MOST_ROWS:
            raise ReadError(f"expected at most {MOST_ROWS:,} rows, got more; save it as CSV")
        used = max((n for n, cell in enumerate(row, 1) if cell is not None), default=0)
        text = sum(len(cell) for cell in row[:used] if isinstance(cell, str))
        needed += SHEET.per_byte * text + 4 * BYTES_PER_CELL * used
        if needed > limit:
            raise ReadError(
                f"expected a sheet that fits into memory ({limit:,} bytes), got cells that need "
                f"more in the first {i + 1:,} rows; save it as CSV or Parquet"
            )
        if used:
            rows.append(list(row[:used]))
    return rows


def _sheet(names: list[str], wanted: str | None, kind: str) -> str:
    option = f"{kind}_sheet=... (--{kind}-sheet)"
    if wanted is not None:
        if wanted not in names:
            raise ReadError(
                f"expected a sheet called {wanted!r}, got {quoted(names, 12)}; use {option}"
            )
        return wanted
    if not names:
        raise ReadError("expected a workbook with a sheet, got none; is it the right file?")
    called = [name for name in names if name.strip().lower() in (kind, f"{kind}s")]
    if len(called) == 1:
        return called[0]
    if len(names) > 1:
        raise ReadError(
            f"expected a workbook with one sheet, or one called {kind}s, got "
            f"{quoted(names, 12)}; name the sheet with {option}"
        )
    return names[0]


def _frame(rows: list[list[Any]], sheet: str) -> pd.DataFrame:
    if not rows:
        raise ReadError(
            f"sheet {sheet!r}: expected a header row with column names, got no cells; add one"
        )
    width = max(len(row) for row in rows)
    if len(rows[0]) < width and sum(cell is not None for cell in rows[0]) <= 1:
        raise ReadError(
            f"sheet {sheet!r}: expected column names in the first row, got "
            f"{quoted(rows[0][:1])} above rows of {width} columns: it looks like a title; delete "
            f"the rows above the column names"
        )
    first, *body = [[*row, *[None] * (width - len(row))] for row in rows]
    names = ["" if cell is None else str(cell).strip() for cell in first]
    if "" in names:
        raise ReadError(
            f"sheet {sheet!r}: expected a name for every column, got none for column "
            f"{names.index('') + 1}; write one into the first row"
        )
    if again := sorted(name for name, count in Counter(names).items() if count > 1):
        raise ReadError(
            f"sheet {sheet!r}: expected each column once, got repeated: {quoted(again)}; rename"
        )
    return pd.DataFrame(body, columns=names).infer_objects()


def to_excel(frame: pd.DataFrame) -> bytes:
    """Return a table as the bytes of a workbook.

    Text that begins with ``=`` is stored as text, not as a formula.

    Args:
        frame: the table.

    Raises:
        SettingError: if openpyxl is not installed, or a sheet cannot hold so many rows.
    """
    openpyxl = import_optional("openpyxl", "an Excel file")
    if len(frame) >= MOST_ROWS or frame.shape[1] > MOST_CELLS:
        raise SettingError(
            f"--out: expected at most {MOST_ROWS - 1:,} rows for an Excel sheet, got "
            f"{len(frame):,}; write .csv or .parquet"
        )
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("intervals")

    def cell(value: Any) -> Any:
        plain = value.item() if hasattr(value, "item") else value
        if isinstance(plain, int | float) and abs(plain) < math.inf:
            return plain
        made = WriteOnlyCell(sheet, value=str(plain))
        made.data_type = "s"  # not "f": a formula
        return made

    try:
        sheet.append([cell(str(name)) for name in frame.columns])
        for row in frame.itertuples(index=False):
            sheet.append([cell(value) for value in row])
    except IllegalCharacterError as error:
        raise SettingError(
            f"--out: expected text that an Excel sheet can hold, got control characters ({error}); "
            f"write .csv or .parquet"
        ) from error
    content = BytesIO()
    book.save(content)
    return content.getvalue()
