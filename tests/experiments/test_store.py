from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from qpignn.errors import ReadError
from qpignn.experiments.cell import Cell
from qpignn.experiments.store import Store


def test_store_get_returns_rows_by_cell(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "results.sqlite")
    cells = [Cell("basic", "qpignn", seed) for seed in range(3)]
    store.put(cells[1], {"picp": 0.9})
    assert store.get(cells) == {cells[1].key(): {"picp": 0.9}}
    store.put(cells[1], {"picp": 0.8})
    assert Store(store.path).get(cells) == {cells[1].key(): {"picp": 0.8}}


def test_store_get_of_1200_cells(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.sqlite")
    cells = [Cell("basic", "qpignn", seed) for seed in range(1200)]
    for cell in cells[::100]:
        store.put(cell, {"seed": cell.seed})
    assert sorted(row["seed"] for row in store.get(cells).values()) == list(range(0, 1200, 100))


RACE = """
import multiprocessing, sys
from qpignn.experiments.cell import Cell
from qpignn.experiments.store import Store

def write(path, start, first):
    start.wait()
    for seed in range(first, first + 3):
        Store(path).put(Cell("basic", "qpignn", seed), {"s": seed})

context = multiprocessing.get_context("fork")
cells = [Cell("basic", "qpignn", seed) for seed in range(18)]
for turn in range(8):
    path, start = f"{sys.argv[1]}/{turn}.sqlite", context.Barrier(6)
    writers = [context.Process(target=write, args=(path, start, 3 * i)) for i in range(6)]
    for writer in writers: writer.start()
    for writer in writers: writer.join()
    assert len(Store(path).get(cells)) == 18, turn
"""


def test_store_created_by_six_processes_at_once(tmp_path: Path) -> None:
    """Six processes make one new file at the same moment, eight times."""
    subprocess.run([sys.executable, "-c", RACE, str(tmp_path)], check=True, timeout=120)


def test_store_of_a_text_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look like a file of some kind" * 20)
    with pytest.raises(ReadError, match=r"notes\.txt: expected a results file of qpignn"):
        Store(path)


def test_store_of_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE results (name TEXT)")
    with pytest.raises(ReadError, match=r"other\.sqlite: expected a results file of qpignn"):
        Store(path)
