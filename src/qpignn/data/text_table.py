"""CSV and TSV files as tables: read whole, or by pieces of rows if they do not fit into memory.

The type of a column depends on the whole file: a column of digits may hold text further down. So
the file is read once to determine the types that reading it whole would give.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from qpignn.data.bounded import BLOCK, LEAST, BoundedReader, buffered, open_packed, text_cost
from qpignn.data.column_roles import DEFAULTS, ColumnRoles
from qpignn.data.parquet_table import ParquetTable
from qpignn.data.sniff import LONGEST_HEADER, Layout, sniff
from qpignn.data.table_file import named_errors
from qpignn.errors import ReadError, quoted
from qpignn.runtime.memory import free_memory
from qpignn.runtime.progress import ShowProgress

FIRST_ROWS = 64  # of a file that is read by pieces
BY_PIECES = "'qpignn convert' reads tables by pieces"
MORE_MEMORY = (
    "allow more with memory=... (--memory), and look for a quote that is opened and never closed"
)
BLANKS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A"]
TRUTHS = "truth values and blanks"
TYPES = {"int": "int64", "float": "float64", "bool": "bool", "text": str}
ARROW = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    TRUTHS: pa.bool_(),
    "text": pa.large_string(),
}


@dataclass(frozen=True)
class TextTable:
    """A CSV or TSV file, possibly gzipped.

    Attributes:
        path: the file.
        columns: the names in its header line.
        kept: those kept as text.
        layout: its format.
        thousands: the separator of digit groups, if there is one.
        form: keyword arguments of ``pandas.read_csv``.
    """

    path: Path
    columns: list[str]
    kept: frozenset[str]
    layout: Layout
    thousands: str | None
    form: dict[str, Any]

    @classmethod
    def open(cls, path: Path, roles: ColumnRoles = DEFAULTS) -> TextTable:
        """Open a file and read its first lines.

        Args:
            path: the file.
            roles: its ``encoding``, ``decimal`` and ``thousands``.

        Returns:
            The table.

        Raises:
            ReadError: if it is not a text table with a header line.
        """
        thousands = roles.thousands
        with named_errors(path, str(roles.encoding)):
            layout = sniff(
                path, encoding=roles.encoding, decimal=roles.decimal, thousands=thousands
            )
            form: dict[str, Any] = {
                "encoding": layout.encoding,
                "sep": layout.delimiter,
                "keep_default_na": False,
            }
            with _bounded(
                *(path, layout, 8 * LONGEST_HEADER, "a header line"),
                "a quoted name in it may have no closing quote",
            ) as reader:
                first = pd.read_csv(buffered(reader), nrows=1, header=None, dtype=str, **form)
            columns = [str(name).strip() for name in first.iloc[0]]
            if again := sorted(name for name, count in Counter(columns).items() if count > 1):
                raise ReadError(
                    f"expected each column name once, got repeated: {quoted(again)}; rename them"
                )
            if "" in columns:
                raise ReadError(
                    f"expected a name for every column, got none for column "
                    f"{columns.index('') + 1}; was the file written with its row index? Leave it "
                    f"out (pandas: index=False)"
                )
        form |= {
            "header": 0,
            "names": columns,
            "na_values": dict.fromkeys(columns, BLANKS),
            "decimal": layout.decimal,
            "index_col": False,
            "low_memory": False,
        }
        return cls(path, columns, frozenset(), layout, thousands, form)

    def keeping_text(self, columns: Iterable[str]) -> TextTable:
        """Return the table with some columns kept as text, in which only empty cells are blank.

        Args:
            columns: names of columns; those it lacks are ignored.
        """
        kept = self.kept | (set(columns) & set(self.columns))
        blanks = {name: [""] if name in kept else BLANKS for name in self.columns}
        return replace(self, kept=kept, form={**self.form, "na_values": blanks})

    def read(self) -> pd.DataFrame:
        """Return the whole file as a table.

        Raises:
            ReadError: if it is damaged, or its text needs more than the free memory.
        """
        types: Any = dict.fromkeys(self.kept, str)
        with (
            named_errors(self.path, self.form["encoding"]),
            warnings.catch_warnings(),
            _bounded(self.path, self.layout, free_memory(), "a table", BY_PIECES) as reader,
        ):
            warnings.simplefilter("error", pd.errors.ParserWarning)  # longer rows would lose data
            whole: pd.DataFrame = pd.read_csv(buffered(reader), dtype=types, **self.form)
        whole = self._cleaned(whole)
        whole.attrs |= {"zeros": self.layout.zeros, "decimal": self.layout.decimal}
        return whole

    def _cleaned(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with kept text stripped of spaces, and grouped digits parsed."""
        for name in self.kept & set(frame.columns):
            frame[name] = frame[name].str.strip()
        if self.thousands is not None:
            for name in set(frame.columns) - self.kept:
                if not pd.api.types.is_numeric_dtype(frame[name]):
                    frame[name] = _ungrouped(frame[name], self.thousands, self.layout.decimal)
        return frame

    def most_rows(self) -> int:
        """Return an upper bound of the number of rows: the lines below the header."""
        ends, last = {b"\n": 0, b"\r": 0}, b""
        with named_errors(self.path), open_packed(self.path) as file:
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
        *,
        memory: int | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Read the file by pieces.

        Pieces begin small and grow up to ``rows`` as long as their text stays well below
        ``memory``, so that rows of long text make pieces of few rows.

        Args:
            rows: largest number of rows of a piece.
            columns: which columns; default all.
            kinds: their types, keys of ``ARROW``; by default determined for each piece.
            memory: bytes of memory that a piece may need (at least 64 MiB); default the free
                memory.

        Yields:
            A table of some rows, in the order of the file.

        Raises:
            ReadError: if the file is damaged, or the rows of one piece need more than ``memory``.
        """
        types: dict[str, Any] = {
            name: TYPES[kind] for name, kind in (kinds or {}).items() if kind in TYPES
        }
        types |= dict.fromkeys(self.kept, str)
        chosen = list(self.columns if columns is None else columns)
        # pandas detects rows longer than the header only where all columns are read
        read: dict[str, Any] = {"usecols": chosen} if kinds is not None else {}
        most = free_memory() if memory is None else max(memory, LEAST)
        size = min(rows, FIRST_ROWS)
        with (
            named_errors(self.path, self.form["encoding"]),
            _bounded(self.path, self.layout, most, "a piece of rows", MORE_MEMORY) as stream,
            pd.read_csv(
                buffered(stream), dtype=types, iterator=True, **read, **self.form
            ) as reader,
        ):
            while (piece := _next_piece(reader, size)) is not None:
                piece = self._cleaned(piece[chosen].reset_index(drop=True))
                if len(piece):
                    yield piece
                cost = max(1, stream.cost // max(1, len(piece)))
                size = max(1, min(rows, 4 * size, most // (4 * cost)))
                stream.restart()

    def as_parquet(
        self, out: Path, rows: int, columns: Sequence[str], show: ShowProgress, *, memory: int
    ) -> ParquetTable:
        """Write columns as Parquet, with the types that reading the whole file would give.

        Args:
            out: the Parquet file.
            rows: largest number of rows of a piece.
            columns: which columns.
            show: shows the number of rows that are done; every row counts twice, since the file is
                read once before it is written.
            memory: bytes of memory that a piece may need.

        Returns:
            The Parquet table.
        """
        seen: dict[str, set[str]] = {name: set() for name in columns}
        done = 0
        for piece in self.pieces(rows, memory=memory):
            for name in columns:
                seen[name].add("text" if name in self.kept else _kind(piece[name]))
            done += len(piece)
            show(done, "")
        kinds = {name: _common(pieces) for name, pieces in seen.items()}
        schema = pa.schema([(name, ARROW[kind]) for name, kind in kinds.items()])
        truths = frozenset(name for name, kind in kinds.items() if kind == TRUTHS)
        with pq.ParquetWriter(out, schema) as writer:
            for piece in self.pieces(rows, columns, kinds, memory=memory):
                plain = piece.astype(dict.fromkeys(truths, object))
                writer.write_table(pa.Table.from_pandas(plain, schema, preserve_index=False))
                done += len(piece)
                show(done, "")
        return replace(ParquetTable.open(out), truths=truths)


def _bounded(path: Path, layout: Layout, limit: int, what: str, advice: str) -> BoundedReader:
    """Open a file to be read within a memory limit."""
    content, cost = open_packed(path), text_cost(layout.delimiter)
    return BoundedReader(content, limit, cost, what=what, advice=advice)


def _next_piece(reader: Any, rows: int) -> pd.DataFrame | None:
    with warnings.catch_warnings(), suppress(StopIteration):
        warnings.simplefilter("error", pd.errors.ParserWarning)  # longer rows would lose data
        return cast(pd.DataFrame, reader.get_chunk(rows))
    return None


def _kind(column: pd.Series[Any]) -> str:
    """Return the type of a piece of a column."""
    if bool(column.isna().all()):
        return "blank"
    kind = {"b": "bool", "f": "float", "i": "int"}.get(column.dtype.kind, "text")
    truths = kind == "text" and pd.api.types.infer_dtype(column, skipna=True) == "boolean"
    return TRUTHS if truths else kind


def _common(kinds: set[str]) -> str:
    """Return the type of a whole column from the types of its pieces."""
    real = kinds - {"blank"}
    if real <= {"int", "float"}:
        return "int" if kinds == {"int"} else "float"
    if real <= {"bool", TRUTHS}:
        return "bool" if kinds == {"bool"} else TRUTHS
    return "text"


def _ungrouped(column: pd.Series[Any], thousands: str, decimal: str) -> pd.Series[Any]:
    """Return a column of text as numbers if all of it is, with or without groups of digits."""
    sign, point = re.escape(thousands), re.escape(decimal)
    number = re.compile(rf"[+-]?(?:\d{{1,3}}(?:{sign}\d{{3}})+|\d+)(?:{point}\d*)?")
    text = column.dropna().astype(str).str.strip()
    if not len(text) or not text.map(lambda one: number.fullmatch(one) is not None).all():
        return column
    plain = text.str.replace(thousands, "", regex=False).str.replace(",", ".", regex=False)
    return plain.astype("float64").reindex(column.index)
