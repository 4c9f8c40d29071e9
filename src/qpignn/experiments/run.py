"""Run the cells that are not in the store yet, and keep each row as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from qpignn.errors import check_integer
from qpignn.experiments.cell import Cell
from qpignn.experiments.engines import run_all
from qpignn.experiments.store import Store

CHANGED = (
    "expected the code and the data files to stay as they were when the run began, got others; "
    "run it again"
)


@dataclass
class Outcome:
    """Rows in the order of the cells, and what failed.

    Attributes:
        rows: one per finished cell.
        reused: how many of them were in the store already.
        failures: cells that raised, with the error's message.
    """

    rows: list[dict[str, Any]]
    reused: int
    failures: list[tuple[Cell, str]] = field(default_factory=list)


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    engine: str = "processes",
    jobs: int = 1,
    fresh: bool = False,
    on_done: Callable[[Cell, str | None], None] = lambda cell, error: None,
) -> Outcome:
    """Run what is missing. A failing cell does not stop the others.

    Args:
        cells: what is wanted.
        store: where rows are found and kept; each is written as soon as its cell is done.
        engine: where they run, see :mod:`qpignn.experiments.engines`.
        jobs: how many at once, of one thread each; 1 runs here.
        fresh: run all, found or not.
        on_done: called after each cell, with the error's message if it failed.

    Returns:
        The rows of all cells, and what failed.
    """
    check_integer("jobs", jobs)
    keys = [cell.key() for cell in cells]  # once: data files may change while cells run
    stored = {} if fresh else store.get_rows(keys)
    missing = {key: cell for key, cell in zip(keys, cells, strict=True) if key not in stored}
    outcome = Outcome([], reused=sum(key in stored for key in keys))
    for cell, row, error in run_all([*missing.values()], engine=engine, jobs=jobs):
        key = "" if row is None else cell.key(row["inputs"])
        problem = None
        if row is not None and key in missing:
            store.put(cell, row, key)
            stored[key] = row
        else:
            problem = str(error or CHANGED)
            outcome.failures.append((cell, problem))
        on_done(cell, problem)
    outcome.rows = [stored[key] for key in keys if key in stored]
    return outcome
