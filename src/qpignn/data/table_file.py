"""Shared by readers of table files: errors that name the file, and limits on memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qpignn.errors import ReadError, similar_to
from qpignn.io.files import file_kind

BYTES_PER_CELL = 200
"""Memory that a cell of a table may take while it is read."""
MOST_ROWS = 1 << 19


def check_file(path: Path) -> None:
    """Raise where there is no file.

    Args:
        path: where it should be.

    Raises:
        ReadError: with similar names in the same folder.
    """
    try:
        if path.is_file():
            return
        there = path.parent.iterdir() if path.parent.is_dir() else ()
        hint = similar_to(path.name, (one.name for one in there if one.is_file()))
        got = file_kind(path.stat().st_mode) if path.exists() else "nothing"
    except OSError as error:  # a folder that may not be looked into, a name that is too long
        hint, got = "", str(error.strerror)
    raise ReadError(f"{path}: expected a file, got {got}{hint or '; check the path'}")


def piece_rows(memory: int, cells: int) -> int:
    """Return how many rows may be read at once.

    Args:
        memory: bytes of memory that they may take.
        cells: number of cells per row.
    """
    return max(1, min(MOST_ROWS, memory // (BYTES_PER_CELL * max(cells, 1))))


@contextmanager
def named_errors(path: Path, encoding: str = "utf-8") -> Iterator[None]:
    """Turn errors of pandas, Arrow and openpyxl into a ``ReadError`` that names the file.

    Args:
        path: the file that is read in the context.
        encoding: in which its text is decoded, for messages.

    Yields:
        Nothing.

    Raises:
        ReadError: for any such error.
    """
    import pandas as pd
    import pyarrow as pa

    try:
        yield
    except (
        *(ValueError, TypeError, AttributeError),  # a damaged description of columns
        *(ReadError, LookupError, OSError, EOFError, zlib.error, pa.ArrowException),
        pd.errors.ParserWarning,
    ) as error:
        message = f"cannot be read as a table: {error}; save it again"
        match error:
            case UnicodeDecodeError():
                message = (
                    f"expected text in {encoding.removesuffix('-sig')}, got bytes that are not (at "
                    f"position {error.start}); save it as UTF-8 or pass its encoding, such as "
                    f"encoding='latin-1' (--encoding latin-1)"
                )
            case KeyError() | IndexError():  # what a description names is not there
                message = f"cannot be read as a table: no {error}; save it again"
            case LookupError():
                message = (
                    f"expected a supported encoding, got {error}; a common one is encoding='utf-8'"
                )
            case pd.errors.EmptyDataError():
                message = (
                    "expected a header line with column names, got no columns; is the file empty?"
                )
            case ReadError():
                message = str(error)
            case pd.errors.ParserWarning():
                message = (
                    "expected rows as long as the header line, got longer ones; name all columns, "
                    "or quote cells that contain the delimiter"
                )
        raise ReadError(f"{path}: {message}") from error
