"""Where cells run: in this process, in several, or on a Ray cluster. All give the same rows."""

from __future__ import annotations

import multiprocessing
import os
import threading
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from qpignn.data.sources.files import NOT_ORIGINAL
from qpignn.errors import check_choice, import_optional
from qpignn.experiments.cell import Cell
from qpignn.runtime.memory import huge_pages

Done = tuple[Cell, dict[str, Any] | None, str | None]
"""A cell, and its row or the words of its error."""

DIED = "the process running it died, twice; it may have needed more memory than there is"


def run_all(cells: list[Cell], *, engine: str = "processes", jobs: int = 1) -> Iterator[Done]:
    """Run cells and yield each as it is done; one that fails does not stop the others.

    Args:
        cells: what to run.
        engine: ``processes`` or ``ray``.
        jobs: how many cells at once, one thread each.

    Yields:
        Each cell as it ends, with its row or its error.
    """
    return ENGINES[check_choice("engine", engine, ENGINES)](cells, jobs)


def _processes(cells: list[Cell], jobs: int) -> Iterator[Done]:
    if jobs == 1 or len(cells) <= 1:
        yield from map(attempt, cells)
        return
    left, suspects = deque(cells), deque[Cell]()
    while left or suspects:
        if suspects:  # one by one: only a cell that dies alone is known to be at fault
            yield from _alone(suspects.popleft())
        else:
            yield from _until_one_dies(left, suspects, jobs)


def _until_one_dies(left: deque[Cell], suspects: deque[Cell], jobs: int) -> Iterator[Done]:
    """Run what is left; when a process dies, name those that were running and return."""
    running: dict[Future[Done], Cell] = {}
    with _pool(jobs) as pool:
        try:
            while left or running:
                while left and len(running) < jobs:  # no more, so that it is known who was running
                    running[pool.submit(attempt, left[0])] = left[0]
                    left.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    done = future.result()
                    del running[future]
                    yield done
        except BrokenProcessPool:
            suspects.extend(running.values())


def _alone(cell: Cell) -> Iterator[Done]:
    with _pool(1) as pool:
        try:
            yield pool.submit(attempt, cell).result()
        except BrokenProcessPool:
            yield cell, None, DIED


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    # spawned, not forked: a fork would copy torch's thread pool in an unusable state
    context = multiprocessing.get_context("spawn")
    # huge pages as long as the pool is there: it starts processes when it needs them
    with huge_pages(), ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin) as pool:
        yield pool


def _begin() -> None:
    """Make a process of the pool ready; it ends with the one that started it, even by a kill."""
    torch.set_num_threads(1)
    threadpool_limits(1)  # NumPy's and SciPy's, too
    warnings.filterwarnings("ignore", f".* {NOT_ORIGINAL}")  # the first process warns
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()  # else it would wait for work forever
        os._exit(1)


def _ray(cells: list[Cell], jobs: int) -> Iterator[Done]:
    """Use the cluster that ``RAY_ADDRESS`` names, or one of ``jobs`` processes on this machine."""
    ray = import_optional("ray", "the engine ray")
    started = not ray.is_initialized()
    if started:
        here = {"num_cpus": jobs, "include_dashboard": False}
        ray.init(log_to_driver=False, **({} if os.environ.get("RAY_ADDRESS") else here))
    run = ray.remote(num_cpus=1, max_retries=1)(attempt)
    try:
        waiting = {run.remote(cell): cell for cell in cells}
        while waiting:
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            cell = waiting.pop(ready)
            try:
                yield ray.get(ready)
            except ray.exceptions.RayError as error:
                yield cell, None, f"{DIED} ({type(error).__name__})"
    finally:
        if started:
            ray.shutdown()


def attempt(cell: Cell) -> Done:
    """Run one cell; an error becomes words.

    Args:
        cell: the cell.

    Returns:
        The row and None, or None and the error.
    """
    try:
        return cell, cell.run(), None
    except Exception as error:
        return cell, None, f"{type(error).__name__}: {error}"


ENGINES = {"processes": _processes, "ray": _ray}
