from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from qpignn.errors import ReadError
from qpignn.experiments.cell import Cell
from qpignn.experiments.store import Store


def test_rows_come_back_by_cell(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "results.sqlite")
    cells = [Cell("basic", "qpignn", seed) for seed in range(3)]
    store.put(cells[1], {"picp": 0.9})
    assert store.get(cells) == {cells[1].key(): {"picp": 0.9}}
    store.put(cells[1], {"picp": 0.8})
    assert Store(store.path).get(cells) == {cells[1].key(): {"picp": 0.8}}


def test_many_cells_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.sqlite")
    cells = [Cell("basic", "qpignn", seed) for seed in range(1200)]
    for cell in cells[::100]:
        store.put(cell, {"seed": cell.seed})
    assert sorted(row["seed"] for row in store.get(cells).values()) == list(range(0, 1200, 100))


def test_writers_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    cells = [Cell("basic", "qpignn", seed) for seed in range(40)]
    threads = [
        threading.Thread(target=lambda part=part: [Store(path).put(c, {"s": c.seed}) for c in part])
        for part in (cells[:20], cells[20:])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Store(path).get(cells)) == 40


def test_a_file_that_is_something_else(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look like a file of some kind" * 20)
    with pytest.raises(ReadError, match=r"notes\.txt: expected a results file of qpignn"):
        Store(path)


def test_a_database_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE results (name TEXT)")
    with pytest.raises(ReadError, match=r"other\.sqlite: expected a results file of qpignn"):
        Store(path)
