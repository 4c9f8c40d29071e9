"""A Parquet file as a table: whole, by columns, or by pieces of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from qpignn.data.table_file import named_errors
from qpignn.errors import ReadError
from qpignn.room import free_memory


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


def read_parquet(path: Path, rows: int | None = None) -> pd.DataFrame:
    """Read a Parquet file whole.

    A few bytes can say that there are very many rows, so these are counted first.

    Args:
        path: the file.
        rows: how many there must be; by default as many as there is memory for.
    """
    with named_errors(path):
        with pq.ParquetFile(path) as file:
            described = file.metadata
        if rows is not None and described.num_rows != rows:
            raise ReadError(f"expected {rows:,} rows, got {described.num_rows:,}")
        if 8 * described.num_rows * described.num_columns > free_memory():
            raise ReadError(
                f"expected a table that fits into memory, got {described.num_rows:,} rows of "
                f"{described.num_columns:,} columns"
            )
        return _frame(pq.read_table(path))


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return a table for pandas; text that is not UTF-8 raises here, not where it is first used."""
    table.validate(full=True)
    found: pd.DataFrame = table.to_pandas()
    return found
