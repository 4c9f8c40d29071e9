"""SIGINT (Ctrl-C) that cannot get lost.

Python discards an exception that is raised inside a destructor, a weak-reference callback or a
ctypes callback. A KeyboardInterrupt that happens to be raised there vanishes, and the program goes
on as if Ctrl-C had never been pressed. Within :func:`recorded_interrupts` every SIGINT is also
recorded, so that long work can ask for it at its next safe point.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_pending = False


@contextmanager
def recorded_interrupts() -> Iterator[None]:
    """Record SIGINT while the block runs, beside raising KeyboardInterrupt as usual.

    Does nothing in other threads than the main one, and where the calling program has a SIGINT
    handler of its own.

    Yields:
        Nothing.
    """
    owns = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not owns:
        yield
        return
    signal.signal(signal.SIGINT, _record)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        forget_interrupt()


def raise_pending_interrupt() -> None:
    """Raise an exception if a recorded SIGINT has not been handled yet.

    Raises:
        KeyboardInterrupt: in that case.
    """
    if _pending:
        forget_interrupt()
        raise KeyboardInterrupt


def forget_interrupt() -> None:
    """Mark the recorded SIGINT as handled."""
    global _pending  # noqa: PLW0603  # signals belong to the process
    _pending = False


def _record(number: int, frame: FrameType | None) -> None:
    global _pending  # noqa: PLW0603
    _pending = True
    raise KeyboardInterrupt
