from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qpignn.errors import SettingError
from qpignn.experiments.cell import Cell, grid
from qpignn.experiments.run import run_cells
from qpignn.experiments.store import Store

FAST = {"epochs": 2}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results.sqlite")


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    measured = ("fit_seconds", "peak_mb")
    return [{k: v for k, v in row.items() if k not in measured} for row in rows]


def test_run_cells_repeated_runs_missing_cells_only(store: Store) -> None:
    cells = grid(["basic", "edge"], ["qpignn"], 2, settings=FAST)
    ran: list[Cell] = []
    first = run_cells(cells[:3], store, on_done=lambda cell, error: ran.append(cell))
    assert (len(first.rows), first.reused, len(ran)) == (3, 0, 3)
    second = run_cells(cells, store, on_done=lambda cell, error: ran.append(cell))
    assert (len(second.rows), second.reused) == (4, 3)
    assert ran[3:] == cells[3:]
    assert second.rows[:3] == first.rows
    fresh = run_cells(cells[:1], store, fresh=True)
    assert fresh.reused == 0


def test_processes_give_the_same_rows_in_the_same_order(store: Store, tmp_path: Path) -> None:
    cells = grid(["basic"], ["qpignn"], 3, settings=FAST)
    alone = run_cells(cells, store)
    together = run_cells(cells, Store(tmp_path / "other.sqlite"), jobs=2)
    assert without_seconds(alone.rows) == without_seconds(together.rows)


def test_run_cells_failing_cell_does_not_stop_the_others(store: Store) -> None:
    cells = [
        Cell("basic", "qpignn", 0, settings={"epochs": 2, "lr": 1e30}),
        Cell("basic", "qpignn", 0, settings=FAST),
    ]
    outcome = run_cells(cells, store)
    assert len(outcome.rows) == 1
    ((failed, message),) = outcome.failures
    assert failed == cells[0]
    assert "TrainingError: the loss became" in message
    assert len(store.get(cells)) == 1


def test_run_cells_interrupted_keeps_finished_rows_only(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = grid(["basic"], ["qpignn"], 3, settings=FAST)
    run = Cell.run

    def interrupted(cell: Cell) -> dict[str, Any]:
        if cell.seed == 1:
            raise KeyboardInterrupt
        return run(cell)

    monkeypatch.setattr(Cell, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, store)
    assert len(store.get(cells)) == 1  # the finished one is kept
    monkeypatch.setattr(Cell, "run", run)
    assert run_cells(cells, store).reused == 1


def test_run_cells_jobs_below_one_is_refused(store: Store) -> None:
    with pytest.raises(SettingError, match="jobs: expected a whole number from 1 up, got 0"):
        run_cells([], store, jobs=0)
