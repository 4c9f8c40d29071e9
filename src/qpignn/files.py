"""Writing files whole (a reader sees the old or the new, never a part), alone or together; JSON."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NoReturn

from qpignn.errors import QpignnError, SettingError, WriteError, brief

LARGEST_JSON = 1 << 26
"""Bytes of a description: room for the names of a million columns."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)


def as_path(name: str, value: Any) -> Path:
    """Return what names a file or folder as a path, or raise."""
    try:
        return Path(value)
    except TypeError as error:
        raise SettingError(
            f"{name}: expected the path of a file or folder, got {brief(value)}"
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says against writing into an error of ours that names the place.

    Raises:
        WriteError: in place of an ``OSError``, with its ``errno``.
    """
    try:
        yield
    except QpignnError:
        raise
    except OSError as error:
        advice = "choose another name"
        if error.errno in NO_ROOM:
            advice = "free some room on the disk, or choose another folder"
        elif error.errno in NO_RIGHT:
            advice = "choose a folder you may write to"
        told = WriteError(
            f"{path}: expected a place to write to, got {error.strerror or error}; {advice}"
        )
        told.errno = error.errno
        raise told from error


def finite(value: Any) -> Any:
    """Return a document for JSON, which has no infinity and no NaN: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(inside) for key, inside in value.items()}
    return [finite(inside) for inside in value] if isinstance(value, list | tuple) else value


def read_json(path: Path) -> Any:
    """Read a document that may come from anybody.

    Raises:
        ValueError: where it is too large, nested too deeply, or not JSON; NaN and Infinity are not.
        OSError: where it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_JSON + 1)
    if len(content) > LARGEST_JSON:
        raise ValueError(f"expected at most {LARGEST_JSON:,} bytes of JSON, got more")
    try:
        return json.loads(content.decode(), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("expected JSON, got brackets nested too deeply") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"expected JSON, which has no {name}")


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` under a temporary name, then give it the real one.

    A link that lies there is replaced, never followed: nothing is written elsewhere. Within
    :func:`together` the real name is given at the end of the block.

    Raises:
        WriteError: where that is not possible; what was there before stays.
    """
    with together() as files:
        files.write(path, content)


def remove_file(path: Path) -> None:
    """Take a file away if there is one; within :func:`together` at the end of the block."""
    with together() as files:
        files.remove(path)


class Together:
    """Files that belong together; made by :func:`together`."""

    def __init__(self) -> None:
        self.changes: list[tuple[Path, Path | None]] = []  # a name, and where its new file waits

    def write(self, path: Path, content: bytes) -> None:
        """Write a file beside its place."""
        waiting = path.with_name(f".{path.name}.{os.getpid()}")
        if (path, waiting) not in self.changes:
            self.changes.append((path, waiting))
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            waiting.unlink(missing_ok=True)
            with waiting.open("xb") as file:  # x: not through a link either
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else the name may outlive a power cut, and the bytes not

    def move(self, waiting: Path, path: Path) -> None:
        """Take a file that is already written, and on the same disk."""
        self.changes.append((path, waiting))
        with writing(path), waiting.open("rb") as file:
            os.fsync(file.fileno())

    def remove(self, path: Path) -> None:
        """Let a file be taken away, if there is one."""
        self.changes.append((path, None))

    def where(self, path: Path) -> Path | None:
        """Return where the bytes lie that a name is going to have; None if it is to go."""
        return dict(self.changes).get(path, path)

    def give_names(self) -> None:
        """Change all names; where one cannot be changed, those before get their old files back."""
        changed: list[tuple[Path, Path | None, bool]] = []
        several = len(self.changes) > 1
        try:
            with held(self.changes[0][0].parent) if several else nullcontext():
                for i, (path, waiting) in enumerate(self.changes):
                    there = os.path.lexists(path)
                    kept = path.with_name(f".{path.name}.{os.getpid()}.{i}") if several else None
                    changed.append((path, kept, there))
                    with writing(path):
                        _change(path, waiting, kept, there)
        except BaseException:
            for path, kept, there in reversed(changed):
                with suppress(OSError):
                    if not there:
                        path.unlink(missing_ok=True)
                    elif kept is not None:
                        os.replace(kept, path)
            raise
        finally:
            for _, kept, _ in changed:
                _away(kept)

    def forget(self) -> None:
        """Take away what waits and has not got a name."""
        for _, waiting in self.changes:
            _away(waiting)


def _change(path: Path, waiting: Path | None, kept: Path | None, there: bool) -> None:
    """Give a name its new file, or none; the old one is kept under another name."""
    if there and kept is not None:
        with suppress(OSError):  # a disk without links: then there is no way back
            kept.unlink(missing_ok=True)
            os.link(path, kept, follow_symlinks=False)
    if waiting is not None:
        os.replace(waiting, path)
    elif there:
        path.unlink()


def _away(path: Path | None) -> None:
    with suppress(OSError):
        if path is not None:
            path.unlink(missing_ok=True)


_open: ContextVar[Together | None] = ContextVar("together", default=None)
"""The block that this code runs in."""


@contextmanager
def together() -> Iterator[Together]:
    """Write several files that belong together: at the end of the block all have their names.

    Until then nothing that was there before is touched, so that a full disk costs no earlier
    result. A kill in the short moment when names are given may leave some old and some new files:
    what belongs together has a description, the last to get its name, that tells.

    Raises:
        WriteError: where a file cannot be written; what was there before stays.
    """
    outer = _open.get()
    if outer is not None:
        yield outer
        return
    files = Together()
    before = _open.set(files)
    try:
        yield files
        if files.changes:
            files.give_names()
    finally:
        _open.reset(before)
        files.forget()


@contextmanager
def held(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a folder against other processes that ask for it, for as long as the block lasts.

    A process that is killed lets go. Yields whether it is ours: without ``wait`` another may have
    it; on systems that cannot hold folders it always is.
    """
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows does not open folders
        yield True
        return
    try:
        yield _held(number, folder, wait=wait)
    finally:
        os.close(number)


def _held(number: int, folder: Path, *, wait: bool) -> bool:
    try:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        there, ours = folder.stat(), os.fstat(number)  # who had it may have deleted it
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
    except (BlockingIOError, FileNotFoundError):
        return False
    except (ImportError, OSError):
        return True
