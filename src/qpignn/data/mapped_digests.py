"""Checking the files of a mapped graph against the SHA-256 digests of its description.

Reading every byte of a graph larger than memory takes minutes, so it is done once per change of a
file. What was found is recorded in the user's cache folder, never in the graph's own folder, which
may come from elsewhere. A record holds for one path and, of every file, for its inode, size,
time of modification and time of inode change, and for the digest the description states. Where all
of these are as recorded, only blocks spread over the file are read and compared.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from qpignn.errors import ReadError, WriteError
from qpignn.io.files import cache_folder, read_json, write_atomically
from qpignn.io.locks import file_stamp
from qpignn.runtime.progress import ShowProgress, progress_bar

FOLDER = "graphs"
FORMAT = 1
BLOCK, BLOCKS = 4096, 64  # bytes of a sampled block, and how many of them
CHUNK = 1 << 24  # bytes read at once for a whole digest
CLOCK_TICK = 20_000_000  # nanoseconds within which two changes may get the same time stamp


def check_digests(
    folder: Path, described: Mapping[str, Any], files: Mapping[str, BinaryIO], *, verbose: bool
) -> None:
    """Raise unless open files of a folder have the digests they must have.

    Args:
        folder: where the files are.
        described: the description of each file, by name, with its ``sha256``.
        files: the same files, open for reading.
        verbose: whether to show progress where files are read whole.

    Raises:
        ReadError: naming the first file whose bytes are others.
    """
    name_of_record = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    place = cache_folder() / FOLDER / f"{name_of_record}.json"
    records = _read_record(place)
    stale = {}
    for name, file in files.items():
        if not _recorded(records.get(name), described[name]["sha256"], file):
            stale[name] = os.fstat(file.fileno()).st_size
        elif _sample(file) != records[name]["sample"]:
            raise _other_bytes(folder / name)
    done, total = 0, sum(stale.values())
    with progress_bar("checking the graph's files", total, shown=verbose and bool(stale)) as show:
        for name, size in stale.items():
            digest = described[name]["sha256"]
            records[name] = _checked(folder / name, digest, files[name], show, done)
            done += size
    if stale:
        with suppress(WriteError):  # without a record the files are read whole again next time
            document = {"format": FORMAT, "folder": str(folder.resolve()), "files": records}
            write_atomically(place, json.dumps(document).encode())


def _checked(
    path: Path, expected: str, file: BinaryIO, show: ShowProgress, done: int
) -> dict[str, Any]:
    """Read a file whole and return its record, or raise."""
    stamp = _settled_stamp(file)
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(CHUNK):
        digest.update(chunk)
        done += len(chunk)
        show(done, path.name)
    sample = _sample(file)
    if digest.hexdigest() != expected or file_stamp(file.fileno()) != stamp:
        raise _other_bytes(path)
    return {"stamp": list(stamp), "sha256": expected, "sample": sample}


def _settled_stamp(file: BinaryIO) -> tuple[int, ...]:
    """Return a file's stamp once a later change is sure to give it another one."""
    while True:
        stamp = file_stamp(file.fileno())
        assert stamp is not None
        fresh = max(stamp[2:]) + CLOCK_TICK - time.time_ns()
        if not 0 < fresh <= CLOCK_TICK:
            return stamp
        time.sleep(fresh / 1e9)


def _recorded(record: Any, expected: str, file: BinaryIO) -> bool:
    """Whether a record holds for an open file as it is now."""
    return (
        isinstance(record, dict)
        and record.get("stamp") == [*(file_stamp(file.fileno()) or ())]
        and record.get("sha256") == expected
        and isinstance(record.get("sample"), str)
    )


def _sample(file: BinaryIO) -> str:
    """Return a digest of the first and the last block and of blocks at equal distances between."""
    size = os.fstat(file.fileno()).st_size
    digest = hashlib.sha256()
    for i in range(BLOCKS):
        file.seek(max(size - BLOCK, 0) * i // (BLOCKS - 1))
        digest.update(file.read(BLOCK))
    return digest.hexdigest()


def _read_record(path: Path) -> dict[str, Any]:
    """Return the records of a folder's files, by name; none where nothing is recorded."""
    try:
        document = read_json(path)
        files = document["files"] if document["format"] == FORMAT else {}
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return files if isinstance(files, dict) else {}


def _other_bytes(path: Path) -> ReadError:
    got = f"other bytes in {path.name} than its description states (SHA-256)"
    return invalid_graph(path.parent, f"{got}: the file was changed or damaged")


def invalid_graph(folder: Path, got: str) -> ReadError:
    """Return the error for a folder that is not a valid mapped graph.

    Args:
        folder: the folder.
        got: what it holds.
    """
    return ReadError(
        f"{folder}: expected a folder written by 'qpignn convert' or write_graph, got {got}; "
        f"convert again"
    )
