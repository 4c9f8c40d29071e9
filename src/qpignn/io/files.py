"""Atomic writing of one file or several, and reading of untrusted files.

A reader sees the old content of a file or the new, never a part. When reading, only regular files
are opened, and the size of JSON is limited.
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
"""Bytes of a JSON document: enough for the names of a million columns."""
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
CACHE_DIR = "QPIGNN_CACHE_DIR"
PERMISSION_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


def check_path(name: str, value: Any) -> Path:
    """Return an argument that must be the path of a file or folder.

    Args:
        name: of the argument.
        value: as the caller gave it.

    Raises:
        SettingError: if it is no path.
    """
    try:
        return Path(value)
    except TypeError as error:
        raise SettingError(
            f"{name}: expected the path of a file or folder, got {brief(value)}"
        ) from error


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Convert operating-system errors within the block to one that names the path.

    Args:
        path: what is being written.

    Yields:
        Nothing.

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
            advice = "free some space on the disk, or choose another folder"
        elif error.errno in PERMISSION_DENIED:
            advice = "choose a folder you may write to"
        failed = WriteError(
            f"{path}: expected a place to write to, got {error.strerror or error}; {advice}"
        )
        failed.errno = error.errno
        raise failed from error


def json_safe(value: Any) -> Any:
    """Return a document in which infinity and NaN, which JSON does not have, are None.

    Args:
        value: nested lists, dictionaries and scalars.
    """
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
    is not trusted may contain either in place of a file.

    Args:
        path: the file; a symbolic link to a regular file is followed.

    Returns:
        The open file.

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
    """Check that a file is a regular one.

    Args:
        path: for the message.
        mode: ``st_mode`` of ``os.stat``.

    Raises:
        ValueError: if it is a pipe, a socket, a device or a folder.
    """
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path.name}: expected a regular file, got {file_kind(mode)}")


def file_kind(mode: int) -> str:
    """Return the kind of a file for an error message.

    Args:
        mode: ``st_mode`` of ``os.stat``.
    """
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
    """Read an untrusted JSON document.

    Args:
        path: the file.

    Returns:
        The document.

    Raises:
        ValueError: if it is too large, nested too deeply, or not JSON; NaN and Infinity are not.
        OSError: if it cannot be read.
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
    """Write a file under a temporary name, then rename it.

    A symbolic link at the path is replaced, never followed. Within :func:`atomic_files` the file
    is renamed at the end of the block.

    Args:
        path: the final name.
        content: its bytes.

    Raises:
        WriteError: if that is not possible; the previous file stays.
    """
    with atomic_files() as files:
        files.write(path, content)


def remove_file(path: Path) -> None:
    """Delete a file if it exists; within :func:`atomic_files` at the end of the block.

    Args:
        path: the file.
    """
    with atomic_files() as files:
        files.remove(path)


class AtomicFiles:
    """Files that are replaced together; created by :func:`atomic_files`."""

    def __init__(self) -> None:
        self.changes: list[tuple[Path, Path | None]] = []  # path, temporary file

    def write(self, path: Path, content: bytes) -> None:
        """Write a temporary file next to the path.

        Args:
            path: the final name.
            content: its bytes.
        """
        temporary = temporary_name(path)
        self.changes.append((path, temporary))
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:  # x: a new file, never the target of a link
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else the name may outlive a power cut, and the bytes not

    def move(self, temporary: Path, path: Path) -> None:
        """Rename a file that is already written, and on the same disk.

        Args:
            temporary: its present name.
            path: its final name.
        """
        self.changes.append((path, temporary))
        with write_errors(path), temporary.open("rb") as file:
            os.fsync(file.fileno())

    def remove(self, path: Path) -> None:
        """Delete a file at the end of the block, if it exists.

        Args:
            path: the file.
        """
        self.changes.append((path, None))

    def where(self, path: Path) -> Path | None:
        """Return the file that holds the new content of a path; None if it will be deleted.

        Args:
            path: the final name.
        """
        return dict(self.changes).get(path, path)

    def give_names(self) -> None:
        """Rename all files; several are renamed under the lock of the first one's folder."""
        if len(self.changes) == 1:
            path, temporary = self.changes[0]
            with write_errors(path):
                _change(path, temporary)
            return
        folder = self.changes[0][0].parent
        with ExitStack() as lock:
            with write_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
                lock.enter_context(lock_folder(folder))
            self._give_names()

    def _give_names(self) -> None:
        """Rename all files; if one fails, those before it get their old content back."""
        old: list[tuple[Path, Path | None]] = []  # each name, and where its old file is kept
        try:
            for path, temporary in self.changes:
                with write_errors(path):
                    old.append((path, _keep(path)))
                    _change(path, temporary)
        except BaseException:
            for path, kept in reversed(old):
                with suppress(OSError):
                    _change(path, kept)
            raise
        finally:
            for _, kept in old:
                _delete(kept)


def temporary_name(path: Path) -> Path:
    """Return a name beside ``path`` that no other process, thread or host chooses.

    Process ids do not distinguish writers: in containers every first process has the id 1.

    Args:
        path: the final name.
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


def _change(path: Path, temporary: Path | None) -> None:
    """Replace a file, or delete it."""
    if temporary is None:
        path.unlink(missing_ok=True)
    else:
        os.replace(temporary, path)


def _delete(path: Path | None) -> None:
    with suppress(OSError):
        if path is not None:
            path.unlink(missing_ok=True)


_open: ContextVar[AtomicFiles | None] = ContextVar("atomic files", default=None)
"""The enclosing :func:`atomic_files` block."""


@contextmanager
def atomic_files() -> Iterator[AtomicFiles]:
    """Replace several files together, at the end of the block.

    Until then no existing file is changed, so that a full disk destroys no earlier result. A kill
    during the renaming may leave some old and some new files; formats of several files detect this
    by digests in the file that is renamed last. Files are renamed under the lock of the folder of
    the first one (:func:`qpignn.io.locks.lock_folder`), so that the files of two writers do not
    mix.

    Yields:
        The files; those of the outer block where blocks are nested.

    Raises:
        WriteError: if a file cannot be written; the existing files stay.
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
        for _, temporary in files.changes:  # those that have not been renamed
            _delete(temporary)
