"""Finished fits of the pages of results, as a file of the repository.

``make results`` takes from ``rows.jsonl.xz`` the fits that were run by the present code on the
present data files and runs the missing ones only, so that the pages can be made again, or a run be
continued, on another machine. Every line is one fit: the cell, the row of figures, the version and
the time it was finished. Fits whose intervals or training are drawn are left out: their rows are
large, and they are few.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from qpignn.experiments.cell import Cell
from qpignn.experiments.store import Store
from qpignn.io.files import write_atomically

ROWS = Path(__file__).with_name("rows.jsonl.xz")
COLUMNS = "cell, row, version, finished"


def write_rows(store: Store, keys: Iterable[str], path: Path = ROWS) -> int:
    """Write the finished fits among some to a file; return their number.

    Args:
        store: where they are.
        keys: of the fits.
        path: the file.
    """
    wanted = {*keys}
    with closing(sqlite3.connect(store.path)) as connection:
        rows = connection.execute(f"SELECT key, {COLUMNS} FROM results ORDER BY cell")
        some = [row for key, *row in rows if key in wanted and not json.loads(row[0])["keep"]]
        lines = [json.dumps(row) for row in some]
    write_atomically(path, lzma.compress("\n".join(lines).encode(), preset=9))
    return len(lines)


def read_rows(store: Store, path: Path = ROWS) -> int:
    """Add the fits of a file to a store, unless it has them; return how many were added.

    Fits by other code, or on other data files, are left out.

    Args:
        store: where they are added.
        path: the file; if there is none, nothing is added.
    """
    if not path.exists():
        return 0
    rows = []
    for line in lzma.decompress(path.read_bytes()).decode().splitlines():
        described, row, *rest = json.loads(line)
        cell = Cell(**json.loads(described))
        inputs = cell.inputs()
        if json.loads(row)["inputs"] == inputs:
            rows.append((cell.key(inputs), described, row, *rest))
    with closing(sqlite3.connect(store.path)) as connection, connection:
        before = connection.total_changes
        insert = f"INSERT OR IGNORE INTO results (key, {COLUMNS}) VALUES (?, ?, ?, ?, ?)"
        connection.executemany(insert, rows)
        return connection.total_changes - before
