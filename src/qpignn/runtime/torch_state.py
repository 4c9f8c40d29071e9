"""Torch and NumPy settings that the calling program may have changed, pinned around a method.

The default dtype, the default device, autocast, gradient and inference mode, and NumPy's reaction
to floating-point errors are global or per thread. :func:`torch_defaults` gives a fit or a
prediction the same values whatever the calling program has set, and restores the program's values
afterwards.
:func:`caller_defaults` restores default dtype and device inside, to call a net of the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from threading import Lock

import numpy as np
import torch

DTYPE = torch.float32
_CPU = torch.device("cpu")
_host: ContextVar[tuple[torch.dtype, torch.device] | None] = ContextVar("host", default=None)


class _DefaultDtype:
    """The default dtype is one per process: the first thread to enter sets it, the last resets."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._entered = 0
        self._before = DTYPE

    def enter(self) -> torch.dtype:
        """Set the default dtype; return the one that the calling program has set."""
        with self._lock:
            if not self._entered:
                self._before = torch.get_default_dtype()
                torch.set_default_dtype(DTYPE)
            self._entered += 1
            return self._before

    def leave(self) -> None:
        """Restore the calling program's default dtype when no thread needs ours any more."""
        with self._lock:
            self._entered -= 1
            if not self._entered:
                torch.set_default_dtype(self._before)


_default_dtype = _DefaultDtype()


@contextmanager
def torch_defaults() -> Iterator[None]:
    """Run a block under torch's and NumPy's initial settings.

    Pinned are the default dtype (float32), the default device (CPU), autocast (off), gradient mode
    (on), inference mode (off) and ``numpy.errstate`` (warnings). The calling program's values are
    restored afterwards, also after an exception.

    Yields:
        Nothing.
    """
    if _host.get() is not None:  # pinned already, in this thread or task
        yield
        return
    with ExitStack() as stack:
        device = torch.get_default_device()
        if device.type != "cpu":  # a device context costs time in every call, so only where needed
            stack.enter_context(_CPU)
        dtype = _default_dtype.enter()
        stack.callback(_default_dtype.leave)
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        token = _host.set((dtype, device))
        stack.callback(_host.reset, token)
        yield


@contextmanager
def caller_defaults() -> Iterator[None]:
    """Restore the calling program's default dtype and device, within :func:`torch_defaults`.

    Yields:
        Nothing.
    """
    host = _host.get()
    if host is None:
        yield
        return
    dtype, device = host
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device if device.type != "cpu" else ExitStack():
            yield
    finally:
        torch.set_default_dtype(before)
