"""Finished rows in one SQLite file; each is written in one transaction, so it is there or not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from qpignn import __version__
from qpignn.errors import ReadError, WriteError
from qpignn.experiments.cell import Cell
from qpignn.io.files import check_path, write_errors

TABLE = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY,
    cell TEXT NOT NULL,
    row TEXT NOT NULL,
    version TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
)
"""
OF_THE_DISK = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
)


class Store:
    """Rows by the key of their cell.

    Args:
        path: the file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = check_path("results file", path)
        with write_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connected() as connection:
            connection.execute(TABLE)
            connection.execute("SELECT key, cell, row, version FROM results LIMIT 1")

    def get(self, cells: Iterable[Cell]) -> dict[str, dict[str, Any]]:
        """Return the rows that are there, by key.

        Args:
            cells: the cells.
        """
        return self.get_rows(cell.key() for cell in cells)

    def get_rows(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the rows that are there under some keys, by key.

        Args:
            keys: keys of cells.
        """
        return {key: json.loads(row) for key, row in self._select("key, row", keys)}

    def latest_day(self, keys: Iterable[str]) -> str | None:
        """Return the day (UTC, as in 2026-01-31) on which the newest of some rows was finished.

        Args:
            keys: keys of cells.
        """
        return max((day for (day,) in self._select("DATE(finished)", keys)), default=None)

    def _select(self, columns: str, keys: Iterable[str]) -> list[tuple[Any, ...]]:
        """Return some columns of the rows that are there under some keys."""
        query = f"SELECT {columns} FROM results WHERE key IN (SELECT value FROM json_each(?))"
        with self._connected() as connection:  # one placeholder: SQLite limits their number
            return connection.execute(query, [json.dumps([*keys])]).fetchall()

    def put(self, cell: Cell, row: dict[str, Any], key: str | None = None) -> None:
        """Keep a finished cell's row.

        Args:
            cell: what was run.
            row: its figures.
            key: under which; by default the cell's key at present.
        """
        values = (key or cell.key(), json.dumps(asdict(cell)), json.dumps(row), __version__)
        insert = "INSERT OR REPLACE INTO results (key, cell, row, version) VALUES (?, ?, ?, ?)"
        with self._connected() as connection, connection:
            connection.execute(insert, values)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Open the file while the block runs; errors of SQLite become a ``QpignnError``."""
        try:
            # no write-ahead log: two processes that switch a new file to it at once do not wait
            # for each other, and one of them fails
            with closing(sqlite3.connect(self.path, timeout=60)) as connection:
                yield connection
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR)
            if code & 0xFF in OF_THE_DISK:
                raise WriteError(
                    f"{self.path}: expected a results file to read and write, got {error}; free "
                    f"some space on the disk, or name another file"
                ) from error
            raise ReadError(
                f"{self.path}: expected a results file of qpignn (SQLite), got {error}; name "
                f"another file"
            ) from error
