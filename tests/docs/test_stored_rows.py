"""Finished fits of the pages of results in a file of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from qpignn.experiments.cell import Cell
from qpignn.experiments.store import Store
from stored_rows import read_rows, write_rows


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "here.sqlite")
    for seed in range(3):
        cell = Cell("basic", "sqr", seed)
        store.put(cell, {"picp": seed / 10, "inputs": cell.inputs()})
    return store


def keys(*seeds: int) -> list[str]:
    return [Cell("basic", "sqr", seed).key() for seed in seeds]


def test_rows_written_and_read_into_another_store_are_equal(store: Store, tmp_path: Path) -> None:
    path, other = tmp_path / "rows.xz", Store(tmp_path / "there.sqlite")
    assert write_rows(store, keys(0, 2), path) == 2
    assert read_rows(other, path) == 2
    assert other.get_rows(keys(0, 1, 2)) == store.get_rows(keys(0, 2))
    assert other.latest_day(keys(0)) == store.latest_day(keys(0))
    assert read_rows(other, path) == 0  # it has them


def test_rows_with_curves_or_intervals_are_left_out(store: Store, tmp_path: Path) -> None:
    cell = Cell("basic", "sqr", 0, keep=("history",))
    store.put(cell, {"picp": 0.5, "inputs": cell.inputs(), "history": {}})
    assert write_rows(store, [*keys(1), cell.key()], tmp_path / "rows.xz") == 1


def test_rows_of_other_code_are_left_out(store: Store, tmp_path: Path) -> None:
    cell, path = Cell("basic", "sqr", 0), tmp_path / "rows.xz"
    store.put(cell, {"picp": 0.5, "inputs": {**cell.inputs(), "code": "0" * 64}})
    write_rows(store, keys(0, 1), path)
    other = Store(tmp_path / "there.sqlite")
    assert read_rows(other, path) == 1
    assert [*other.get_rows(keys(0, 1))] == keys(1)


def test_no_file_adds_nothing(store: Store, tmp_path: Path) -> None:
    assert read_rows(store, tmp_path / "rows.xz") == 0
