"""How far long work has come: a bar on stderr, or one line that renews itself in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ShowProgress = Callable[[int, str], None]
"""Called with how much is done, and a few words on it."""
WIDE = 160  # columns of a file
PAUSE = {"terminal": 0.1, "notebook": 0.5}  # seconds between looks worth having


@contextmanager
def progress_bar(what: str, total: int, *, shown: bool = True) -> Iterator[ShowProgress]:
    """Show progress through a known number of things while the block runs."""
    if not shown:
        yield lambda done, words: None
    elif _in_notebook():
        yield _seldom(_notebook_line(what, total), total, PAUSE["notebook"])
    else:
        with _bar(what, total) as show:
            yield _seldom(show, total, PAUSE["terminal"])


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return type(get_ipython()).__name__ == "ZMQInteractiveShell"


def _seldom(show: ShowProgress, total: int, pause: float) -> ShowProgress:
    last = -pause

    def sometimes(done: int, words: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= pause or done >= total:
            last = now
            show(done, words)

    return sometimes


def _notebook_line(what: str, total: int) -> ShowProgress:
    from IPython.display import Pretty, display

    started = time.monotonic()
    place = display(Pretty(f"{what} …"), display_id=True)

    def show(done: int, words: str) -> None:
        took = time.monotonic() - started
        place.update(Pretty(f"{what} {done:,}/{total:,}  {took:.0f} s  {words}"))

    return show


@contextmanager
def _bar(what: str, total: int) -> Iterator[ShowProgress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (  # narrow, so that the words behind them fit into 80 columns
        TextColumn(what),
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.description}", markup=False),
    )
    console = Console(file=sys.stderr)
    if not console.is_terminal:  # a file has no edge to be cut at
        console.width = max(console.width, WIDE)
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, words: bar.update(task, completed=done, description=words)
