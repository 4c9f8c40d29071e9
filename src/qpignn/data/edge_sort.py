"""Edges sorted and merged out of core by DuckDB, which keeps on disk what exceeds its memory.

All SQL is constant: columns of the user's tables are renamed before DuckDB reads them. It opens no
files but its temporary ones, loads no extensions and does not use the network.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qpignn.data.bounded import LEAST
from qpignn.errors import SettingError, import_optional
from qpignn.runtime.interrupts import raise_pending_interrupt, recorded_interrupts
from qpignn.runtime.memory import free_memory

BATCH = 1 << 17  # sorted rows that are merged at a time
START = """
SET enable_progress_bar = false; SET enable_external_access = false; SET lock_configuration = true;
CREATE TABLE edges (source BIGINT NOT NULL, target BIGINT NOT NULL, weight FLOAT NOT NULL);
"""
LISTED = "SELECT source, target, weight, 1::UTINYINT AS listed FROM edges"
REVERSED = "SELECT target, source, weight, 0::UTINYINT FROM edges"


@contextmanager
def open_database(folder: Path, memory: int) -> Iterator[Any]:
    """Open a DuckDB database with an empty table ``edges`` (source, target, weight).

    One thread is used: memory grows with threads, and most of the time goes into reading text.

    Args:
        folder: for temporary files.
        memory: bytes of memory to use, at least 128 MiB and at most what is free.

    Yields:
        The connection.

    Raises:
        SettingError: if DuckDB is not installed, or ``memory`` is too small for the edges.
        OSError: if the disk is full or cannot be written to.
        KeyboardInterrupt: if SIGINT arrives during a query.
    """
    duckdb = import_optional("duckdb", "converting an edge table")
    limit = max(2 * LEAST, min(memory, free_memory()))
    settings = {"threads": 1, "memory_limit": f"{limit}B", "temp_directory": str(folder)}
    try:
        with recorded_interrupts(), duckdb.connect(config=settings) as database:
            database.execute(START)
            try:
                yield database
            except RuntimeError:  # DuckDB raises it in place of KeyboardInterrupt
                raise_pending_interrupt()
                raise
            raise_pending_interrupt()  # a query may also end without an error
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        message = str(error).splitlines()[0]
        full = (os.strerror(errno.ENOSPC), "max_temp_directory_size")  # 90 % of the free space
        if any(text in str(error) for text in full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        if isinstance(error, duckdb.IOException):
            raise OSError(errno.EIO, message) from error
        raise SettingError(
            f"memory: expected enough memory to sort the edges, got {limit:,} bytes for DuckDB "
            f"({message}); allow more with memory=... (--memory)"
        ) from error


def sorted_edges(
    database: Any, nodes: int, *, directed: bool
) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Yield the edges of a database by target, then source: each once, without self-loops.

    Args:
        database: a connection of :func:`open_database`.
        nodes: number of nodes.
        directed: whether edges go one way; otherwise each is yielded in both directions.

    Yields:
        Arrays of equal length: the positions of sources and of targets (int64), the mean weight
        (float32) of the rows that list the edge, and the number of those that list it in this
        direction.
    """
    rows = LISTED if directed else f"{LISTED} UNION ALL {REVERSED}"
    query = f"SELECT * FROM ({rows}) WHERE source <> target ORDER BY target, source"
    edges, sums = np.empty(0, np.int64), np.empty((3, 0))  # sums of weights, rows, listed rows
    for batch in database.sql(query).to_arrow_reader(BATCH):
        source, target, weight, listed = (column.to_numpy() for column in batch.columns)
        edges = np.concatenate([edges[-1:], target * nodes + source])
        values = np.stack([weight, np.ones(len(weight)), listed])
        sums = np.concatenate([sums[:, -1:], values], axis=1)
        starts = np.flatnonzero(np.diff(edges, prepend=-1))
        edges, sums = edges[starts], np.add.reduceat(sums, starts, axis=1)
        yield _block(edges[:-1], sums[:, :-1], nodes)  # the next batch may continue the last edge
    yield _block(edges[-1:], sums[:, -1:], nodes)


def _block(
    edges: npt.NDArray[np.int64], sums: npt.NDArray[np.float64], nodes: int
) -> tuple[npt.NDArray[Any], ...]:
    target, source = np.divmod(edges, nodes)
    return source, target, (sums[0] / sums[1]).astype(np.float32), sums[2]
