"""Writing files whole (a reader sees the old or the new, never a part), alone or together.

Also reading files that anybody may have made: only regular files are opened, and JSON is limited.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

from qpignn.errors import QpignnError, SettingError, WriteError, brief
from qpignn.io.locks import lock_folder

LARGEST_JSON = 1 << 26
"""Bytes of a description: room for the names of a million columns."""
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
CACHE_DIR = "QPIGNN_CACHE_DIR"
PERMISSION_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


def check_path(name: str, value: Any) -> Path:
    """Return what names a file or folder as a path, or raise."""
    try:
        return Path(value)
    except TypeError as error:
        raise SettingError(
            f"{name}: expected the path of a file or folder, got {brief(value)}"
        ) from error


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
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
        if error.errno in DISK_FULL:
            advice = "free some room on the disk, or choose another folder"
        elif error.errno in PERMISSION_DENIED:
            advice = "choose a folder you may write to"
        told = WriteError(
            f"{path}: expected a place to write to, got {error.strerror or error}; {advice}"
        )
        told.errno = error.errno
        raise told from error


def json_safe(value: Any) -> Any:
    """Return a document for JSON, which has no infinity and no NaN: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: json_safe(inside) for key, inside in value.items()}
    return [json_safe(inside) for inside in value] if isinstance(value, list | tuple) else value


def cache_folder() -> Path:
    """Return the user's cache folder of this library; ``QPIGNN_CACHE_DIR`` names another one."""
    import platformdirs

    return Path(os.environ.get(CACHE_DIR) or platformdirs.user_cache_dir("qpignn"))


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading that must be a regular file.

    Opening a named pipe would wait for a writer, and reading a device may never end; a folder that
    somebody else made may contain either in place of a file.

    Args:
        path: the file; a symbolic link to a regular file is followed.

    Raises:
        ValueError: if it is a pipe, a socket, a device or a folder.
        OSError: if it cannot be opened.
    """
    expect_regular(path, os.stat(path).st_mode)  # first: some devices act when they are opened
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    file = os.fdopen(number, "rb")
    try:
        expect_regular(path, os.fstat(number).st_mode)  # it may have been exchanged since
    except ValueError:
        file.close()
        raise
    return file


def expect_regular(path: Path, mode: int) -> None:
    """Raise ValueError unless ``mode`` (of ``os.stat``) is that of a regular file."""
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path.name}: expected a regular file, got {file_kind(mode)}")


def file_kind(mode: int) -> str:
    """Return what a file is, by its ``st_mode``, as words for an error message."""
    names = {
        stat.S_IFREG: "a file",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return names.get(stat.S_IFMT(mode), "something else")


def read_json(path: Path) -> Any:
    """Read a document that may come from anybody.

    Raises:
        ValueError: where it is too large, nested too deeply, or not JSON; NaN and Infinity are not.
        OSError: where it cannot be read.
    """
    with open_regular(path) as file:
        content = file.read(LARGEST_JSON + 1)
    if len(content) > LARGEST_JSON:
        raise ValueError(f"expected at most {LARGEST_JSON:,} bytes of JSON, got more")
    try:
        return json.loads(content.decode(), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("expected JSON, got brackets nested too deeply") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"expected JSON, which has no {name}")


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` under a temporary name, then give it the real one.

    A link that lies there is replaced, never followed: nothing is written elsewhere. Within
    :func:`atomic_files` the real name is given at the end of the block.

    Raises:
        WriteError: where that is not possible; what was there before stays.
    """
    with atomic_files() as files:
        files.write(path, content)


def remove_file(path: Path) -> None:
    """Take a file away if there is one; within :func:`atomic_files` at the end of the block."""
    with atomic_files() as files:
        files.remove(path)


class AtomicFiles:
    """Files that belong together; made by :func:`atomic_files`."""

    def __init__(self) -> None:
        self.changes: list[tuple[Path, Path | None]] = []  # a name, and where its new file waits

    def write(self, path: Path, content: bytes) -> None:
        """Write a file beside its place."""
        waiting = temporary_name(path)
        self.changes.append((path, waiting))
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with waiting.open("xb") as file:  # x: a new file, never one that a link leads to
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else the name may outlive a power cut, and the bytes not

    def move(self, waiting: Path, path: Path) -> None:
        """Take a file that is already written, and on the same disk."""
        self.changes.append((path, waiting))
        with write_errors(path), waiting.open("rb") as file:
            os.fsync(file.fileno())

    def remove(self, path: Path) -> None:
        """Let a file be taken away, if there is one."""
        self.changes.append((path, None))

    def where(self, path: Path) -> Path | None:
        """Return where the bytes lie that a name is going to have; None if it is to go."""
        return dict(self.changes).get(path, path)

    def give_names(self) -> None:
        """Rename all files; several are renamed under the lock of the first one's folder."""
        if len(self.changes) == 1:
            path, waiting = self.changes[0]
            with write_errors(path):
                _change(path, waiting)
            return
        folder = self.changes[0][0].parent
        with ExitStack() as lock:
            with write_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
                lock.enter_context(lock_folder(folder))
            self._give_names()

    def _give_names(self) -> None:
        """Rename all files; if one cannot be renamed, those before it get their old content."""
        old: list[Path | None] = []  # where the old file of each name is kept
        done: list[Path] = []
        try:
            for path, waiting in self.changes:
                with write_errors(path):
                    old.append(_keep(path))
                    _change(path, waiting)
                    done.append(path)
        except BaseException:
            for path, kept in reversed([*zip(done, old, strict=False)]):
                with suppress(OSError):
                    if kept is None:
                        path.unlink(missing_ok=True)
                    else:
                        os.replace(kept, path)
            raise
        finally:
            for kept in old:
                _delete(kept)

    def forget(self) -> None:
        """Take away what waits and has not got a name."""
        for _, waiting in self.changes:
            _delete(waiting)


def temporary_name(path: Path) -> Path:
    """Return a name beside ``path`` that no other process, thread or host chooses.

    Process ids do not tell writers apart: in containers every first process has the id 1.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


def _keep(path: Path) -> Path | None:
    """Link a file to another name and return that; None where there is no file."""
    if not os.path.lexists(path):
        return None
    kept = temporary_name(path)
    with suppress(OSError):  # a file system without links: then there is no way back
        os.link(path, kept, follow_symlinks=False)
    return kept


def _change(path: Path, waiting: Path | None) -> None:
    """Give a name its new file, or none."""
    if waiting is None:
        path.unlink(missing_ok=True)
    else:
        os.replace(waiting, path)


def _delete(path: Path | None) -> None:
    with suppress(OSError):
        if path is not None:
            path.unlink(missing_ok=True)


_open: ContextVar[AtomicFiles | None] = ContextVar("together", default=None)
"""The block that this code runs in."""


@contextmanager
def atomic_files() -> Iterator[AtomicFiles]:
    """Write several files that belong together: at the end of the block all have their names.

    Until then nothing that was there before is touched, so that a full disk costs no earlier
    result. A kill in the short moment when names are given may leave some old and some new files:
    what belongs together has a description, the last to get its name, that tells. Names are given
    under the lock of the folder of the first file (:func:`qpignn.io.locks.lock_folder`), so that
    the files of two writers do not mix.

    Raises:
        WriteError: where a file cannot be written; what was there before stays.
    """
    outer = _open.get()
    if outer is not None:
        yield outer
        return
    files = AtomicFiles()
    before = _open.set(files)
    try:
        yield files
        if files.changes:
            files.give_names()
    finally:
        _open.reset(before)
        files.forget()
