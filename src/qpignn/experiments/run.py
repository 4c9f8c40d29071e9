"""The engine: run the cells that are not in the store yet, in this process or in several."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

import torch

from qpignn.errors import whole_number
from qpignn.experiments.cell import Cell
from qpignn.experiments.store import Store


@dataclass
class Outcome:
    """Rows in the order of the cells, and what failed.

    Attributes:
        rows: one per finished cell.
        reused: how many of them were in the store already.
        failures: cells that raised, with the error's words.
    """

    rows: list[dict[str, Any]]
    reused: int
    failures: list[tuple[Cell, str]] = field(default_factory=list)


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    jobs: int = 1,
    fresh: bool = False,
    on_done: Callable[[Cell, str | None], None] = lambda cell, error: None,
) -> Outcome:
    """Run what is missing. A failing cell does not stop the others.

    Args:
        cells: what is wanted.
        store: where rows are found and kept; each is written as soon as its cell is done.
        jobs: processes, of one thread each; 1 runs here.
        fresh: run all, found or not.
        on_done: called after each cell, with the error's words if it failed.
    """
    whole_number("jobs", jobs)
    known = {} if fresh else store.get(cells)
    missing = [cell for cell in cells if cell.key() not in known]
    outcome = Outcome([], reused=len(cells) - len(missing))
    for cell, row, error in _run(missing, jobs):
        if row is not None:
            store.put(cell, row)
            known[cell.key()] = row
        else:
            outcome.failures.append((cell, str(error)))
        on_done(cell, error)
    outcome.rows = [known[cell.key()] for cell in cells if cell.key() in known]
    return outcome


Done = tuple[Cell, dict[str, Any] | None, str | None]


def _run(cells: list[Cell], jobs: int) -> Iterator[Done]:
    if jobs == 1 or len(cells) <= 1:
        yield from map(_attempt, cells)
        return
    # spawned, not forked: a fork would copy torch's thread pool in an unusable state
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=torch.set_num_threads, initargs=(1,)
    )
    try:
        for future in as_completed([pool.submit(_attempt, cell) for cell in cells]):
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _attempt(cell: Cell) -> Done:
    try:
        return cell, cell.run(), None
    except Exception as error:
        return cell, None, f"{type(error).__name__}: {error}"
