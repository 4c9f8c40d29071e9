"""Writing files whole (a reader sees the old file or the new one, never a part), and JSON."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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

    A link that lies there is replaced, never followed: nothing is written elsewhere.

    Raises:
        WriteError: where that is not possible; what was there before stays.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.unlink(missing_ok=True)
            with temporary.open("xb") as file:  # x: not through a link either
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else the name may outlive a power cut, and the bytes not
            os.replace(temporary, path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
