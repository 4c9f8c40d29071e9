"""Error handling of commands: every error ends with one line on stderr and an exit code.

0: success. 2: invalid input, or a full disk or too little memory. 1: a bug in qpignn. 130: Ctrl-C.
141: the reader of a pipe has closed it. ``--debug`` shows tracebacks.
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

from qpignn.cli.output import is_main_process, printable
from qpignn.errors import QpignnError, RankError
from qpignn.io.files import DISK_FULL
from qpignn.runtime.interrupts import raise_pending_interrupt, recorded_interrupts
from qpignn.runtime.memory import free_memory

MISTAKE, BUG, INTERRUPTED, PIPE = 2, 1, 130, 141
LITTLE = 1 << 28  # bytes: too few to load the largest library
debugging: ContextVar[bool] = ContextVar("debugging", default=False)
"""Whether to show tracebacks."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that turns every error into a message and an exit code.

    Args:
        command: the command.
    """

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            with recorded_interrupts():
                command(*arguments, **options)
                sys.stdout.flush()  # here, where a closed pipe still raises
                raise_pending_interrupt()
        except (typer.Exit, SystemExit):
            raise
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(PIPE) from None
        except (Exception, KeyboardInterrupt) as error:
            if debugging.get() or os.environ.get("QPIGNN_DEBUG"):
                traceback.print_exception(error)
            message, code = describe_error(error)
            # CPython records a KeyboardInterrupt that was raised inside ``exec`` of a string, which
            # imports of libraries use, even after it was caught; ``python -m`` then ends by SIGINT,
            # not with our exit code. The next ``exec`` clears the record.
            exec("")
            if code != INTERRUPTED or is_main_process():
                typer.secho(printable(message), fg="red", err=True)
            raise typer.Exit(code) from None

    return run


def describe_error(error: BaseException) -> tuple[str, int]:
    """Return the message and the exit code of an error.

    Args:
        error: what a command raised.
    """
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
        return f"error: {_disk_full(error) or error}", MISTAKE
    if _no_memory(error):
        return (
            f"error: expected enough memory, got none left ({_line(error)}); end other programs, "
            f"take smaller nets (--set hidden=16) or smaller steps (--set batch_size=1024), or "
            f"keep the graph on disk (qpignn convert)"
        ), MISTAKE
    advice = "run again with --debug and report it"
    return f"error: this is a bug in qpignn: {_line(error)}; {advice}", BUG


def _disk_full(error: BaseException) -> str | None:
    """Return a message for a full disk that no ``QpignnError`` reports: behind standard output."""
    if isinstance(error, QpignnError) or getattr(error, "errno", None) not in DISK_FULL:
        return None
    return (
        f"expected enough disk space for the output, got {_line(error)}; free some space, or "
        f"write to another disk"
    )


def _limited_address_space(error: BaseException) -> bool:
    """Return whether a library could not be loaded into the address space.

    The dynamic loader reports it; CPython may raise a ``SystemError`` or ``ImportError`` instead.
    """
    imports = isinstance(error, SystemError | ImportError)
    return "failed to map segment" in str(error) or (imports and free_memory() < LITTLE)


def _no_memory(error: BaseException) -> bool:
    """Return whether an allocation failed; torch has no exception class for it on the CPU."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    return type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)


def _line(error: BaseException) -> str:
    """Return an error's class and message in one line."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _discard_output() -> None:
    """Redirect output to the null device, so that nothing is written to a closed pipe at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(null, stream.fileno())
