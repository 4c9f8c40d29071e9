"""How much memory a piece of work took at its peak."""

from __future__ import annotations

import ctypes
import re
from contextlib import suppress
from pathlib import Path
from typing import Self

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """Peak resident memory above what there was before, in megabytes; Linux only, else None.

    The kernel keeps each process's high-water mark; it is set back to the present first, so that
    several pieces of work in one process are measured separately.
    """

    megabytes: float | None = None

    def __enter__(self) -> Self:
        _give_back()
        try:
            RESET.write_text("5", encoding="ascii")
            self._before = _resident("VmRSS")
        except OSError:
            self._before = None
        return self

    def __exit__(self, *error: object) -> None:
        peak = None if self._before is None else _resident("VmHWM")
        if peak is not None and self._before is not None:
            self.megabytes = max(0.0, peak - self._before)


def _give_back() -> None:
    """Return memory that earlier work freed but the allocator kept: it would hide a peak."""
    with suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _resident(what: str) -> float | None:
    matched = re.search(rf"{what}:\s+(\d+) kB", STATUS.read_text(encoding="ascii"))
    return None if matched is None else int(matched[1]) / 1024
