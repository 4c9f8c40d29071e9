from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from qpignn.errors import SettingError, UnknownNameError
from qpignn.experiments import engines
from qpignn.experiments.cell import Cell
from qpignn.experiments.engines import DIED, run_all

MEASURED = ("fit_seconds", "peak_mb")


def cells(count: int, **settings: Any) -> list[Cell]:
    fast = {"epochs": 2, **settings}
    return [Cell("basic", "sqr", i, settings=fast, options={"nodes": 60}) for i in range(count)]


def rows(engine: str, jobs: int = 2, count: int = 3) -> list[dict[str, Any]]:
    done = list(run_all(cells(count), engine=engine, jobs=jobs))
    assert [error for *_, error in done] == [None] * count
    ordered = sorted((row for _, row, _ in done if row), key=lambda row: row["seed"])
    return [{k: v for k, v in row.items() if k not in MEASURED} for row in ordered]


@pytest.fixture(autouse=True)
def _not_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's processes give way to all others by default; tests run beside them."""
    monkeypatch.setenv("RAY_worker_niceness", "0")


@pytest.mark.slow
def test_processes_and_a_local_ray_cluster_give_the_rows_of_this_process() -> None:
    here = rows("processes", jobs=1)
    assert rows("processes") == here
    pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    assert rows("ray") == here


def test_ray_reports_what_fails() -> None:
    pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    ((_, row, error),) = run_all(cells(1, lr=1e30), engine="ray", jobs=1)
    assert row is None
    assert str(error).startswith("TrainingError")


@pytest.mark.slow
def test_ray_joins_a_cluster_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        assert rows("ray", count=1) == rows("processes", jobs=1, count=1)
    finally:
        cluster.shutdown()


class Slow(Cell):
    """Still running when its neighbour dies."""

    def run(self) -> dict[str, Any]:
        time.sleep(4)
        return {"seed": self.seed}


class Deadly(Cell):
    """Kills the process it runs in, always or (with a file to remember by) once."""

    def run(self) -> dict[str, Any]:
        marker = Path(self.settings["marker"]) if "marker" in self.settings else None
        if marker is None or not marker.exists():
            if marker is not None:
                marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"seed": self.seed}


@pytest.mark.slow
def test_run_all_process_that_dies_fails_its_cell_only(tmp_path: Path) -> None:
    unlucky = Deadly("basic", "sqr", 7, settings={"marker": str(tmp_path / "died")})
    slow = Slow("basic", "sqr", 9)
    first, last = cells(2)
    work = [first, slow, Deadly("basic", "sqr", 8), unlucky, last]
    done = {}
    for cell, row, error in run_all(work, jobs=2):
        done[cell.seed] = (row, error)
        time.sleep(0.5)  # a process may die while the caller is busy
    assert sorted(done) == [0, 1, 7, 8, 9]
    assert done[8] == (None, DIED)  # it died again when tried again
    assert done[7] == ({"seed": 7}, None)  # tried again, it lived
    assert done[9] == ({"seed": 9}, None)  # its neighbour's death is not its own
    assert all(done[seed][1] is None for seed in range(2))


def test_unknown_engines_and_ray_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="unknown engine 'rays': did you mean ray"):
        run_all([], engine="rays")
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(SettingError, match=r"pip install \"qpignn\[ray\]\""):
        list(engines.run_all(cells(1), engine="ray"))


AFTER_A_FIT = """
import torch
from qpignn import QpiGNN, load_dataset
from qpignn.experiments.cell import Cell
from qpignn.experiments.engines import run_all

if __name__ == "__main__":
    torch.set_num_threads(2)
    QpiGNN(epochs=2).fit(load_dataset("basic", nodes=3000))  # starts OpenMP's threads
    cells = [Cell("basic", "sqr", i, settings={"epochs": 2}) for i in range(2)]
    print([error for *_, error in run_all(cells, jobs=2)])
"""


def test_run_all_in_a_process_that_has_fitted_does_not_hang(tmp_path: Path) -> None:
    """A forked process would wait forever for the threads of the process it is a copy of."""
    program = tmp_path / "program.py"
    program.write_text(AFTER_A_FIT)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=180
    )
    assert done.stdout == "[None, None]\n"
