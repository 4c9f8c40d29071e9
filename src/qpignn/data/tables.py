"""A table file in pieces: rows of CSV, TSV or Parquet that need not all fit into memory.

A piece of a text file can mislead: a column of digits may be text further down. So text is looked
through once before its columns get types, those the whole file at once would give them.
"""

from __future__ import annotations

import gzip
import warnings
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from qpignn.errors import ReadError, brief, listed, near_names
from qpignn.files import as_path
from qpignn.room import free_memory

BLANKS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A"]
PARQUET = (".parquet", ".pq")
NO_TABLES = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods", ".numbers"), "save the sheet as CSV"),
    **dict.fromkeys((".zip", ".bz2", ".xz", ".zst", ".7z", ".tar"), "unpack it (gzip is read)"),
    **dict.fromkeys((".pkl", ".pickle", ".pt", ".feather", ".h5", ".npz"), "save it as Parquet"),
}
"""Files that hold no text, and what to do about them."""
BLOCK = 1 << 20  # bytes looked through at once for ends of lines
BYTES_A_CELL = 200
"""What a cell of a table may take in memory while it is read."""
MOST_ROWS = 1 << 19
LONGEST_HEADER = 1 << 24
MOST_PACKED = 1032  # how many bytes one byte of gzip can stand for
TRUTHS = "truth values and blanks"
TYPES = {"int": "int64", "float": "float64", "bool": "bool", "text": str}
ARROW = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    TRUTHS: pa.bool_(),
    "text": pa.large_string(),
}

Told = Callable[[int], None]
"""Called with the number of rows done."""


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file, by columns and by pieces of rows.

    Attributes:
        columns: their names, without those of a stored index.
        truths: columns of truth values whose blanks are to be NaN, as they are in text files.
    """

    path: Path
    columns: list[str]
    rows: int
    truths: frozenset[str] = frozenset()

    @classmethod
    def open(cls, path: Path) -> ParquetTable:
        """Look at a file's description."""
        with named_errors(path):
            described = pq.ParquetFile(path)
            seen = described.schema_arrow.empty_table().to_pandas()  # without a stored index
        return cls(path, [str(name) for name in seen.columns], described.metadata.num_rows)

    def read(self) -> pd.DataFrame:
        """Read the whole file."""
        return read_parquet(self.path)

    def most_rows(self) -> int:
        """Return how many rows there are."""
        return self.rows

    def column(self, name: str) -> pd.Series[Any]:
        """Read one column, as it is when the whole file is read."""
        with named_errors(self.path):
            found = _frame(pq.read_table(self.path, columns=[name]))[name]
        found = found.reset_index(drop=True)
        return found.where(found.notna(), np.nan) if name in self.truths else found

    def pieces(self, rows: int, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Read some columns, so many rows at once."""
        with named_errors(self.path), pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(rows, columns=list(columns)):
                piece = _frame(pa.Table.from_batches([batch])).reset_index(drop=True)
                for name in self.truths & set(columns):
                    piece[name] = piece[name].where(piece[name].notna(), np.nan)
                yield piece


@dataclass(frozen=True)
class TextTable:
    """A CSV or TSV file (maybe gzipped), by pieces of rows.

    Attributes:
        columns: the names in its header line.
        kept: those kept as text.
        form: what pandas must know to read it.
    """

    path: Path
    columns: list[str]
    kept: frozenset[str]
    form: dict[str, Any]

    @classmethod
    def open(cls, path: Path, text: Sequence[Any], encoding: str, decimal: str) -> TextTable:
        """Look at a file's header line; ``text`` names or numbers the columns kept as text."""
        if not isinstance(encoding, str):
            raise ReadError(f"encoding: expected a name such as 'utf-8', got {brief(encoding)}")
        with named_errors(path, encoding):
            return cls._open(path, text, encoding, decimal)

    @classmethod
    def _open(cls, path: Path, text: Sequence[Any], encoding: str, decimal: str) -> TextTable:
        # the byte-order mark some spreadsheets write is not part of the first column's name
        plain = encoding.lower().replace("_", "-") in ("utf-8", "utf8")
        form: dict[str, Any] = {"encoding": "utf-8-sig" if plain else encoding}
        opener = gzip.open if path.suffix.lower() == ".gz" else open
        with opener(path, "rt", encoding=form["encoding"], newline="") as file:
            header = file.readline(LONGEST_HEADER)
        if len(header) == LONGEST_HEADER:
            raise ReadError("expected a header line with column names, got a line without end")
        if header.count('"') % 2:  # a name that goes on in the next line
            check_unpacked(path)
        delimiter = max(",;\t|", key=header.count)
        if decimal not in (".", ",") or decimal == delimiter:
            raise ReadError(
                f"decimal: expected '.' or ',', other than what parts the columns ({delimiter!r}), "
                f"got {decimal!r}"
            )
        form |= {"sep": delimiter, "keep_default_na": False}
        first = pd.read_csv(path, nrows=1, header=None, dtype=str, **form)
        columns = [str(name).strip() for name in first.iloc[0]]
        _check_names(columns)
        named = {columns[n] if isinstance(n, int) and n < len(columns) else n for n in text}
        kept = frozenset(named & set(columns))
        form |= {
            "header": 0,
            "names": columns,
            "na_values": {name: [""] if name in kept else BLANKS for name in columns},
            "decimal": decimal,
            "index_col": False,
            "low_memory": False,
        }
        return cls(path, columns, kept, form)

    def read(self) -> pd.DataFrame:
        """Read the whole file."""
        types: Any = dict.fromkeys(self.kept, str)
        with named_errors(self.path, self.form["encoding"]), warnings.catch_warnings():
            check_unpacked(self.path)
            warnings.simplefilter("error", pd.errors.ParserWarning)  # longer rows would lose data
            whole: pd.DataFrame = pd.read_csv(self.path, dtype=types, **self.form)
        for name in self.kept:
            whole[name] = whole[name].str.strip()
        return whole

    def most_rows(self) -> int:
        """Return a number of rows that the file does not exceed: its lines below the header."""
        opener = gzip.open if self.path.suffix.lower() == ".gz" else open
        ends, last = {b"\n": 0, b"\r": 0}, b""
        with named_errors(self.path), opener(self.path, "rb") as file:
            while block := file.read(BLOCK):
                for end in ends:
                    ends[end] += block.count(end)
                last = block[-1:]
        return max(1, max(ends.values()) - (last in ends))

    def pieces(
        self,
        rows: int,
        columns: Sequence[str] | None = None,
        kinds: dict[str, str] | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Read so many rows at once.

        Args:
            rows: how many.
            columns: which columns; default all.
            kinds: their types, as :meth:`kinds` found them; by default each piece tells its own.
        """
        types: dict[str, Any] = {
            name: TYPES[kind] for name, kind in (kinds or {}).items() if kind in TYPES
        }
        types |= dict.fromkeys(self.kept, str)
        chosen = list(self.columns if columns is None else columns)
        # rows longer than the header are noticed only where all columns are read
        read: dict[str, Any] = {"usecols": chosen} if kinds is not None else {}
        with (
            named_errors(self.path, self.form["encoding"]),
            pd.read_csv(self.path, dtype=types, chunksize=rows, **read, **self.form) as reader,
        ):
            while (piece := _next_piece(reader)) is not None:
                piece = piece[chosen].reset_index(drop=True)
                for name in self.kept & set(chosen):
                    piece[name] = piece[name].str.strip()
                if len(piece):
                    yield piece

    def kinds(self, rows: int, told: Told) -> tuple[dict[str, str], int]:
        """Look the file through for the type each column has as a whole, and count its rows."""
        found: dict[str, set[str]] = {name: set() for name in self.columns}
        done = 0
        for piece in self.pieces(rows):
            for name in self.columns:
                found[name].add("text" if name in self.kept else _kind(piece[name]))
            done += len(piece)
            told(done)
        return {name: _common(kinds) for name, kinds in found.items()}, done

    def as_parquet(self, out: Path, rows: int, columns: Sequence[str], told: Told) -> ParquetTable:
        """Write columns as Parquet, typed as if the whole file were read at once.

        ``told`` hears of every row twice: the file is looked through before it is written.
        """
        kinds, count = self.kinds(rows, told)
        schema = pa.schema([(name, ARROW[kinds[name]]) for name in columns])
        truths = frozenset(name for name in columns if kinds[name] == TRUTHS)
        written = 0
        with pq.ParquetWriter(out, schema) as writer:
            for piece in self.pieces(rows, columns, kinds):
                for name in truths:
                    values = piece[name].astype(object)
                    piece[name] = values.where(values.notna(), None)
                writer.write_table(pa.Table.from_pandas(piece, schema, preserve_index=False))
                written += len(piece)
                told(count + written)
        return ParquetTable(out, list(columns), written, truths)


def open_table(
    path: str | Path, *, text: Sequence[Any] = (), encoding: str = "utf-8", decimal: str = "."
) -> TextTable | ParquetTable:
    """Look at a table's header. ``text`` names (or numbers) the columns to be kept as text."""
    path = as_path("file", path)
    check_file(path)
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        return ParquetTable.open(path)
    if suffix in NO_TABLES:
        raise ReadError(
            f"{path}: expected a table (.csv, .tsv, .parquet), got {suffix}; {NO_TABLES[suffix]}"
        )
    return TextTable.open(path, text, encoding, decimal)


def read_parquet(path: Path, rows: int | None = None) -> pd.DataFrame:
    """Read a Parquet file whole.

    A few bytes can say that there are very many rows, so these are counted first.

    Args:
        path: the file.
        rows: how many there must be; by default as many as there is memory for.
    """
    with named_errors(path):
        with pq.ParquetFile(path) as file:
            told = file.metadata
        if rows is not None and told.num_rows != rows:
            raise ReadError(f"expected {rows:,} rows, got {told.num_rows:,}")
        if 8 * told.num_rows * told.num_columns > free_memory():
            raise ReadError(
                f"expected a table that fits into memory, got {told.num_rows:,} rows of "
                f"{told.num_columns:,} columns"
            )
        return _frame(pq.read_table(path))


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return a table for pandas; text that is not UTF-8 raises here, not where it is first used."""
    table.validate(full=True)
    found: pd.DataFrame = table.to_pandas()
    return found


def check_unpacked(path: Path) -> None:
    """Raise where a gzipped file holds more text than there is memory for: a small one may."""
    most = free_memory() // 4  # text takes some times its size while it is read
    if path.suffix.lower() != ".gz" or path.stat().st_size * MOST_PACKED <= most:
        return
    size = 0
    with gzip.open(path, "rb") as file:
        while block := file.read(BLOCK):
            size += len(block)
            if size > most:
                raise ReadError(
                    f"expected a file that fits into memory, got more than {most:,} bytes when "
                    f"unpacked; 'qpignn convert' reads tables by pieces"
                )


def check_id_column(path: str | Path, columns: Sequence[str], id: str) -> None:
    """Raise where a node table has no column of ids."""
    if id not in columns:
        raise ReadError(
            f"{path}: expected an id column {id!r}, got {listed(columns, 12)}; "
            f"name the right one with id=... (--id on the command line)"
        )


def check_header(path: str | Path, columns: Sequence[str], ids: Container[Any]) -> None:
    """Raise where an edge table's first line names nodes, not columns."""
    if all(name in ids for name in columns[:2]):
        raise ReadError(
            f"{path}: expected a header line with column names, got an edge "
            f"({listed(columns[:2])} are node ids); add a line such as from,to"
        )


def piece_rows(memory: int, cells: int) -> int:
    """Return how many rows of so many cells may be read at once."""
    return max(1, min(MOST_ROWS, memory // (BYTES_A_CELL * max(cells, 1))))


def _next_piece(reader: Any) -> pd.DataFrame | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # longer rows would lose data
        piece: pd.DataFrame | None = next(reader, None)
    return piece


def _kind(column: pd.Series[Any]) -> str:
    """Say what a piece of a column looks like."""
    types = pd.api.types
    if bool(column.isna().all()):
        return "blank"
    if types.is_bool_dtype(column):
        return "bool"
    if types.is_float_dtype(column):
        return "float"
    if types.is_signed_integer_dtype(column):
        return "int"
    return TRUTHS if types.infer_dtype(column, skipna=True) == "boolean" else "text"


def _common(kinds: set[str]) -> str:
    """Say what a column is as a whole, from what its pieces look like."""
    real = kinds - {"blank"}
    if real <= {"int", "float"}:
        return "int" if kinds == {"int"} else "float"
    if real <= {"bool", TRUTHS}:
        return "bool" if kinds == {"bool"} else TRUTHS
    return "text"


def check_file(path: Path) -> None:
    """Raise where there is no file."""
    try:
        if path.is_file():
            return
        there = path.parent.iterdir() if path.parent.is_dir() else ()
        hint = near_names(path.name, (one.name for one in there if one.is_file()))
        got = "a folder" if path.is_dir() else "nothing"
    except OSError as error:  # a folder that may not be looked into, a name that is too long
        hint, got = "", str(error.strerror)
    raise ReadError(f"{path}: expected a file, got {got}{hint}")


def _check_names(columns: list[str]) -> None:
    again = sorted({name for name in columns if columns.count(name) > 1})
    if again:
        raise ReadError(f"expected each column name once, got repeated: {listed(again)}")
    if "" in columns:
        raise ReadError(
            f"expected a name for every column, got none for column {columns.index('') + 1}; was "
            f"the file written with its row index? Leave it out (pandas: index=False)"
        )


@contextmanager
def named_errors(path: Path, encoding: str = "utf-8") -> Iterator[None]:
    """Turn what pandas and Arrow raise over a file into errors of ours that name it."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ReadError(
            f"{path}: expected text in {encoding.removesuffix('-sig')}, got bytes that are not (at "
            f"position {error.start}); save it as UTF-8 or pass its encoding, such as "
            f"encoding='latin-1'"
        ) from error
    except LookupError as error:
        if isinstance(error, KeyError | IndexError):  # what a description names is not there
            raise ReadError(f"{path}: cannot be read as a table: no {error}") from error
        raise ReadError(f"{path}: {error}; a common one is encoding='utf-8'") from error
    except pd.errors.EmptyDataError as error:
        raise ReadError(
            f"{path}: expected a header line with column names, got no columns"
        ) from error
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error
    except pd.errors.ParserWarning as error:
        raise ReadError(
            f"{path}: expected rows as long as the header line, got longer ones"
        ) from error
    except (
        *(ValueError, TypeError, AttributeError),  # a damaged description of columns
        *(OSError, EOFError, zlib.error, pa.ArrowException),
    ) as error:
        raise ReadError(f"{path}: cannot be read as a table: {error}") from error
