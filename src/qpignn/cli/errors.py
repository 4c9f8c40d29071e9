"""How a command ends: one line and an exit code, whatever happens in it.

0 is done, 2 the user's mistake or machine (a message of ours, a full disk, too little memory), 1 a
bug of ours, 130 Ctrl-C, 141 a reader that wants no more. Tracebacks are for ``--debug``.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

import typer

from qpignn.cli.output import printable, speaks
from qpignn.errors import QpignnError, RankError
from qpignn.io.files import DISK_FULL
from qpignn.runtime.interrupts import raise_pending_interrupt, recorded_interrupts
from qpignn.runtime.memory import free_memory

MISTAKE, BUG, INTERRUPTED, PIPE = 2, 1, 130, 141
LITTLE = 1 << 28  # bytes: less does not hold the largest library
debugging: ContextVar[bool] = ContextVar("debugging", default=False)
"""Whether tracebacks are shown."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command end as told above."""

    @wraps(command)
    def run(*words: Any, **options: Any) -> None:
        try:
            with recorded_interrupts():
                command(*words, **options)
                sys.stdout.flush()  # here, where a reader that has gone away is still noticed
                raise_pending_interrupt()
        except (typer.Exit, SystemExit):
            raise
        except BrokenPipeError:
            _be_silent()
            raise typer.Exit(PIPE) from None
        except (Exception, KeyboardInterrupt) as error:
            if debugging.get() or os.environ.get("QPIGNN_DEBUG"):
                traceback.print_exception(error)
            message, code = told(error)
            if code == INTERRUPTED:
                _forget_interrupt()
            if code != INTERRUPTED or speaks():
                typer.secho(printable(message), fg="red", err=True)
            raise typer.Exit(code) from None

    return run


def told(error: BaseException) -> tuple[str, int]:
    """Return the line and the exit code that an error ends with."""
    if isinstance(error, KeyboardInterrupt):
        return f"interrupted{f': {error}' if str(error) else ''}", INTERRUPTED
    if isinstance(error, RankError):
        return f"error: {error}", BUG
    if _limited_address_space(error):
        return (
            f"error: expected enough address space to load libraries, got {_line(error)}; raise "
            f"the limit (ulimit -v)"
        ), MISTAKE
    if isinstance(error, QpignnError | OSError):  # a full disk, a read-only folder: not a bug
        return f"error: {_full(error) or error}", MISTAKE
    if _no_memory(error):
        return (
            f"error: expected enough memory, got none left ({_line(error)}); end other programs, "
            f"take smaller nets (--set hidden=16) or smaller steps (--set batch_size=1024), or "
            f"keep the graph on disk (qpignn convert)"
        ), MISTAKE
    return (
        f"error: this is a bug in qpignn: {_line(error)}; run again with --debug and report it"
    ), BUG


def _full(error: BaseException) -> str | None:
    """Say what to do about a full disk where no error of ours does: behind standard output."""
    if isinstance(error, QpignnError) or getattr(error, "errno", None) not in DISK_FULL:
        return None
    return (
        f"expected room for what is written, got {_line(error)}; free some room on the disk, or "
        f"write elsewhere"
    )


def _limited_address_space(error: BaseException) -> bool:
    """Return whether a library could not be loaded into the address space.

    The loader says so; CPython raises a ``SystemError`` where a module could not even do that.
    """
    if "failed to map segment" in str(error):
        return True
    return isinstance(error, SystemError | ImportError) and free_memory() < LITTLE


def _no_memory(error: BaseException) -> bool:
    """Whether Python, NumPy or torch found no memory; torch has no error of its own for the CPU."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    known = type(error).__name__ == "OutOfMemoryError"
    return known or "can't allocate memory" in str(error)


def _line(error: BaseException) -> str:
    """Return an error's kind and words in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _forget_interrupt() -> None:
    """Let the process end with our exit code, not by SIGINT.

    CPython remembers a KeyboardInterrupt that left ``exec`` of a string, as imports of libraries
    use it, even after it was caught, and then ``python -m`` ends by the signal; the next ``exec``
    clears that.
    """
    exec("")


def _be_silent() -> None:
    """Let nothing be written to a reader that has gone away, not even when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
