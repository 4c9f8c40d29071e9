"""Memory utilities: free memory, memory-mapped tensors, allocator hints."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qpignn.errors import WriteError
from qpignn.runtime.cgroups import cgroup_free_memory

if TYPE_CHECKING:
    import torch
    from torch import Tensor

CHUNK_ROWS = 2**16  # rows that are worked on at a time where a graph is large
SMALL = 2**20  # bytes that are allocated without a look at the free memory
KEPT = 30 * 2**20  # bytes; from 32 MiB on glibc does not learn
TUNABLES, LARGE_PAGES = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"
PROC = Path("/proc")


def free_memory(proc: Path = PROC) -> int:
    """Return how many bytes this process may still allocate.

    The minimum of the machine's available memory, what the limits of all control groups leave
    (:func:`qpignn.runtime.cgroups.cgroup_free_memory`), and what a limit on the address space
    (``ulimit -v``) leaves. Outside Linux it is the machine's whole memory.

    Args:
        proc: where the ``proc`` file system is mounted.
    """
    free = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError, StopIteration):  # not on Linux
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
        free.append(1024 * next(int(s.split()[1]) for s in lines if s.startswith("MemAvailable")))
    limited = cgroup_free_memory(proc / "self")
    if limited is not None:
        free.append(limited)
    with suppress(OSError, ImportError):  # not on Linux, not on Unix
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            pages = int((proc / "self" / "statm").read_text(encoding="ascii").split()[0])
            free.append(limit - pages * os.sysconf("SC_PAGE_SIZE"))
    return max(min(free), 0)


def retain_freed_memory() -> None:
    """Let the C library keep freed blocks of up to 30 MiB for the next step.

    glibc returns large blocks to the system, and a step that allocates them again waits for every
    page. Its threshold rises to the size of a block that is freed; this one is never written to.
    With other C libraries nothing happens.
    """
    import torch

    torch.empty(KEPT, dtype=torch.uint8)


@contextmanager
def huge_pages() -> Iterator[None]:
    """Let processes that are started within the block use huge pages, where supported.

    A step reads tens of megabytes, and with pages of 4 kB much of its time is spent on address
    translation. glibc reads the variable when a process starts, so this process does not change.
    A value that the user has set stays.

    Yields:
        Nothing.
    """
    if TUNABLES in os.environ:
        yield
        return
    os.environ[TUNABLES] = LARGE_PAGES
    try:
        yield
    finally:
        os.environ.pop(TUNABLES, None)


def row_chunks(rows: int) -> Iterator[slice]:
    """Yield slices that divide rows into chunks.

    Args:
        rows: how many there are.
    """
    for start in range(0, rows, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, rows))


def allocate_tensor(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return an empty tensor; one that would take half of the free memory lies in a file.

    The file has no name (it goes away with the tensor) and is made where temporary files are:
    ``TMPDIR`` names another disk. Its space is reserved first, since writing to a mapped file on a
    full disk would end the process with SIGBUS.

    Args:
        shape: of the tensor.
        dtype: of its numbers.

    Raises:
        WriteError: if there is not enough space for the file.
    """
    import torch

    size = math.prod(shape) * dtype.itemsize
    if size < SMALL or size < free_memory() / 2:
        return torch.empty(shape, dtype=dtype)
    try:
        with tempfile.TemporaryFile() as file:
            _reserve(file.fileno(), size)
            numbers = np.memmap(file, dtype=np.uint8, mode="w+", shape=(size,))
    except OSError as error:
        failed = WriteError(
            f"{tempfile.gettempdir()}: expected {size:,} bytes of free disk space for an array "
            f"that does not fit into memory, got {error.strerror or error}; free some space, or "
            f"set TMPDIR to a folder on another disk"
        )
        failed.errno = error.errno
        raise failed from error
    return torch.from_numpy(numbers).view(dtype).view(shape)


def _reserve(file: int, size: int) -> None:
    """Give an empty file its blocks on the disk, or raise OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    zeros = bytes(SMALL)  # macOS and Windows: what is written has its blocks
    for start in range(0, size, SMALL):
        os.write(file, zeros[: size - start])
