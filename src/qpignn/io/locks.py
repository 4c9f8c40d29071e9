"""Locks on folders, and consistent reading of several files that a process may be writing.

A lock is an exclusive ``flock`` on a small file in the folder. It excludes other threads, other
processes (also in other containers, where process ids repeat) and other hosts that share the file
system. The kernel releases it when its process ends, so a killed process leaves no stale lock.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from qpignn.errors import LockedError, QpignnError, ReadError

LOCK_NAME = ".qpignn.lock"
LONGEST_WAIT = 60.0  # seconds; a writer holds the lock only while it renames files
POLL = 0.01  # seconds between two attempts
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)
"""Error codes of file systems without locks; ``filelock`` itself handles ``ENOSYS``."""
ATTEMPTS = 40
PAUSE = 0.05  # seconds between two attempts to read without the lock

Result = TypeVar("Result")


@contextmanager
def lock_folder(
    folder: Path, *, wait: float = LONGEST_WAIT, name: str = LOCK_NAME
) -> Iterator[None]:
    """Hold the lock of a folder while the block runs.

    The lock file stays in the folder afterwards: deleting it could let two processes lock two
    different files of the same name. On a file system without locks, the existence of a second
    file (created with ``O_EXCL``) is the lock; one that a killed process of this host left behind
    is recognised and removed.

    Args:
        folder: an existing folder.
        wait: seconds to wait for another holder.
        name: the name of the lock file.

    Yields:
        Nothing.

    Raises:
        LockedError: if another holder keeps the lock for longer than ``wait``.
        OSError: if the lock file cannot be created.
    """
    path = folder / name
    try:
        lock = _acquired(FileLock(path, timeout=wait, poll_interval=POLL))
    except OSError as error:
        if error.errno not in NO_LOCKS or isinstance(error, LockedError):
            raise
        lock = _acquired(SoftFileLock(f"{path}.held", timeout=wait, poll_interval=POLL))
    try:
        yield
    finally:
        lock.release()


def _acquired(lock: BaseFileLock) -> BaseFileLock:
    try:
        lock.acquire()
    except Timeout as error:
        path = Path(lock.lock_file)
        raise LockedError(
            f"{path.parent}: expected a folder that no other process writes to, got one that "
            f"another process has locked ({path.name}); wait until it has finished, or choose "
            f"another folder"
        ) from error
    return lock


_reading: ContextVar[bool] = ContextVar("reading", default=False)
"""Whether an enclosing :func:`read_consistent` already makes sure that files belong together."""


def read_consistent(folder: Path, names: Iterable[str], read: Callable[[], Result]) -> Result:
    """Read files that belong together, all of them as the same writer left them.

    Reading takes no lock. If a file was replaced meanwhile, or if reading fails and a writer may
    have been at work, the files are read again under the folder's lock. Where the lock cannot be
    taken (a read-only folder), they are read again after a pause.

    Args:
        folder: where the files are.
        names: the files' names, relative to the folder.
        read: reads them; raises a :class:`QpignnError` where they do not fit together.

    Returns:
        What ``read`` returns.

    Raises:
        QpignnError: what ``read`` raises although no process is changing the files.
        ReadError: if the files change every time they are read.
    """
    if _reading.get():
        return read()
    paths = [folder / name for name in names]
    token = _reading.set(True)
    try:
        return _read_whole(folder, paths, read)
    finally:
        _reading.reset(token)


def _read_whole(folder: Path, paths: list[Path], read: Callable[[], Result]) -> Result:
    failed: QpignnError | None = None
    for _ in range(ATTEMPTS):
        before, failed = _stamps(paths), None
        try:
            result = read()
        except QpignnError as error:
            failed = error
        unchanged = _stamps(paths) == before
        if failed is None and unchanged:
            return result
        if os.path.lexists(folder / LOCK_NAME):  # a writer of several files has been here
            try:
                with lock_folder(folder):
                    if failed is not None and _stamps(paths) == before:
                        raise failed  # no writer was at work: the files are as they are
                    return read()
            except OSError as error:
                if isinstance(error, QpignnError):
                    raise
        elif failed is not None and unchanged:
            raise failed
        time.sleep(PAUSE)
    raise failed or ReadError(
        f"{folder}: expected files that stay as they are while they are read, got files that "
        f"changed {ATTEMPTS} times; wait until their writer has finished"
    )


def _stamps(paths: list[Path]) -> list[tuple[int, ...] | None]:
    """Return what changes with every replacement of a file; None where there is no file."""
    return [file_stamp(path) for path in paths]


def file_stamp(file: Path | int) -> tuple[int, ...] | None:
    """Return a file's inode, size and times of change, or None where there is no file.

    The inode's change time cannot be set back by ``utime``, as the time of modification can.

    Args:
        file: path or descriptor.
    """
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
