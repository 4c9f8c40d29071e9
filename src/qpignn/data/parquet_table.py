"""Parquet files as tables: read whole, by columns, or by pieces of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from qpignn.data.bounded import LEAST
from qpignn.data.table_file import named_errors
from qpignn.errors import ReadError
from qpignn.runtime.memory import free_memory

BATCH = 1024  # rows whose texts are measured together
PER_VALUE, PER_BYTE = 24, 6  # bytes of memory per cell and per byte of text
"""Measured as the peak memory of read_graph."""


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file that is read whole, by columns or by pieces of rows.

    Attributes:
        path: the file.
        columns: their names, without those of a stored index.
        rows: number of rows.
        truths: boolean columns whose blanks become NaN, as they are in text files.
    """

    path: Path
    columns: list[str]
    rows: int
    truths: frozenset[str] = frozenset()

    @classmethod
    def open(cls, path: Path) -> ParquetTable:
        """Open a file and read its schema.

        Args:
            path: the file.

        Returns:
            The table.
        """
        with named_errors(path):
            empty = pq.read_schema(path).empty_table().to_pandas()  # without a stored index
            rows = pq.read_metadata(path).num_rows
        return cls(path, [str(name) for name in empty.columns], rows)

    def read(self) -> pd.DataFrame:
        """Return the whole file as a table."""
        return read_parquet(self.path)

    def most_rows(self) -> int:
        """Return the number of rows."""
        return self.rows

    def column(self, name: str) -> pd.Series[Any]:
        """Return one column, with the type that it has when the whole file is read.

        Args:
            name: of the column.

        Raises:
            ReadError: if the file is damaged, or the column needs more than the free memory.
        """
        with named_errors(self.path):
            _check_memory(self.path, [name])
            return self._piece(pq.read_table(self.path, columns=[name]))[name]

    def pieces(
        self, rows: int, columns: Sequence[str], *, memory: int | None = None
    ) -> Iterator[pd.DataFrame]:
        """Read some columns by pieces.

        Args:
            rows: largest number of rows of a piece; fewer where their text is long.
            columns: which columns.
            memory: bytes of memory that a piece may need (at least 64 MiB); default the free
                memory.

        Yields:
            A table of some rows, in the order of the file.

        Raises:
            ReadError: if the file is damaged, or a few rows need more than ``memory``.
        """
        most = free_memory() if memory is None else max(memory, LEAST)
        with named_errors(self.path), pq.ParquetFile(self.path) as file:
            longest = max(_text_bytes(self.path, columns), default=0)
            if PER_BYTE * longest > most:
                raise ReadError(
                    f"expected a piece of rows that fits into memory ({most:,} bytes), got "
                    f"{longest:,} bytes of text in {BATCH:,} rows; allow more with memory=... "
                    f"(--memory)"
                )
            rows = min(rows, BATCH * most // (PER_BYTE * longest)) if longest else rows
            for batch in file.iter_batches(rows, columns=list(columns)):
                yield self._piece(pa.Table.from_batches([batch]))

    def _piece(self, table: pa.Table) -> pd.DataFrame:
        """Return some columns or rows, with row numbers as index."""
        piece = _frame(table).reset_index(drop=True)
        for name in self.truths & set(piece.columns):
            piece[name] = piece[name].where(piece[name].notna(), np.nan)
        return piece


def read_parquet(path: Path, rows: int | None = None) -> pd.DataFrame:
    """Read a Parquet file whole.

    A few bytes can encode very many rows, or a long text in every row, so both are counted first.

    Args:
        path: the file.
        rows: expected number of rows; by default any number that fits into memory.

    Returns:
        The table.

    Raises:
        ReadError: if the file is damaged, has other than ``rows`` rows, or needs more than the
            free memory.
    """
    with named_errors(path):
        count = pq.read_metadata(path).num_rows
        if rows is not None and count != rows:
            raise ReadError(f"expected {rows:,} rows, got {count:,}; write the file again")
        _check_memory(path)
        return _frame(pq.read_table(path))


def _check_memory(path: Path, columns: Sequence[str] | None = None) -> None:
    """Raise where columns (default all) need more than the free memory.

    Cells are counted from the metadata of each row group, by which Arrow reads. Texts are measured
    as they are unpacked, because dictionaries repeat a long text in a few bits.
    """
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    values = 0
    for i, leaf in enumerate(metadata.schema):
        if columns is None or leaf.path.split(".")[0] in columns:
            nested = leaf.max_repetition_level > 0
            values += sum(g.column(i).num_values for g in groups) if nested else rows
    limit = free_memory()
    for text in accumulate(_text_bytes(path, columns), initial=0):
        if PER_VALUE * values + PER_BYTE * text > limit:
            counted = f" with more than {text:,} bytes of text" if text else ""
            raise ReadError(
                f"expected a table that fits into memory ({limit:,} bytes), got {rows:,} rows and "
                f"{values:,} cells{counted}; leave columns out, or let 'qpignn convert' read it by "
                f"pieces"
            )


def _text_bytes(path: Path, columns: Sequence[str] | None = None) -> Iterator[int]:
    """Yield the unpacked bytes of text, a few rows at a time."""
    names = [
        field.name
        for field in pq.read_schema(path)
        if not _is_fixed(field.type) and (columns is None or field.name in columns)
    ]
    if not names:
        return
    with pq.ParquetFile(path, read_dictionary=names) as file:
        for batch in file.iter_batches(BATCH, columns=names):
            yield sum(_unpacked_bytes(column) for column in batch.columns)


def _is_fixed(kind: pa.DataType) -> bool:
    """Return whether all values of a type have the same size of a few bytes."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_null(kind) or pa.types.is_decimal(kind))


def _unpacked_bytes(column: pa.Array) -> int:
    """Return the bytes of an array's values, each counted as often as it occurs."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    try:
        lengths = pc.binary_length(column.dictionary).cast(pa.int64())
    except pa.ArrowNotImplementedError:  # no text
        return int(column.nbytes) + len(column) * int(column.dictionary.nbytes)
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0)


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a DataFrame; text that is not UTF-8 raises here, not at its first use."""
    table.validate(full=True)
    return cast(pd.DataFrame, table.to_pandas())
