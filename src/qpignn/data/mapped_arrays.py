"""Memory-mapped arrays in ``.npy`` files.

A header is matched by a pattern, not evaluated, since its author is unknown.
"""

from __future__ import annotations

import math
import mmap
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from qpignn.data.graph import MASKS

KINDS = {
    "x": ("<f4", "<f8"),
    "edge_index": ("<i8",),
    "y": ("<f8",),
    "edge_weight": ("<f4",),
    "node_weight": ("<f4",),
    "pos": ("<f8",),
    **dict.fromkeys(MASKS, ("|b1",)),
}
"""Names of the arrays and the types each may have."""
HEADER = re.compile(
    r"\{'descr': '([<|]\w\d)', 'fortran_order': False, "
    r"'shape': \((\d{1,19}), ?(\d{0,19})\), \} *\n",
    re.ASCII,
)


@contextmanager
def array_file(path: Path, kind: str, shape: tuple[int, ...]) -> Iterator[BinaryIO]:
    """Create an ``.npy`` file whose numbers are then written one after the other.

    Args:
        path: the file.
        kind: type of the array, as numpy spells it (``<f4``).
        shape: shape of the array.

    Yields:
        The open file, positioned behind the header.
    """
    with path.open("wb") as file:
        header = {"descr": kind, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        yield file


def read_header(file: BinaryIO) -> tuple[tuple[int, ...], str, int]:
    """Return an array's shape, its type, and the offset of its numbers.

    Args:
        file: an open ``.npy`` file.

    Raises:
        ValueError: if the file has no such header.
    """
    file.seek(0)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("another version of .npy")
    text = file.read(int.from_bytes(file.read(2), "little")).decode("latin-1")
    if (match := HEADER.fullmatch(text)) is None:
        raise ValueError(f"the header {text[:80]!r}")
    return tuple(int(part) for part in match.groups()[1:] if part), match[1], file.tell()


def mapped_array(file: BinaryIO, described: dict[str, Any]) -> npt.NDArray[Any]:
    """Map the array of an open file into memory; changes do not reach the file.

    Args:
        file: an ``.npy`` file.
        described: its ``dtype``, ``shape`` and ``bytes``.

    Returns:
        The mapped array.

    Raises:
        ValueError: if the file contains another array than described.
    """
    shape, kind, start = read_header(file)
    # compared first: the stated type may not be a type
    same = (kind, list(shape)) == (described["dtype"], described["shape"])
    size = start + math.prod(shape) * np.dtype(kind).itemsize if same else 0
    if not same or size != described["bytes"]:
        raise ValueError(f"an array of type {kind} and shape {list(shape)}")
    flat: npt.NDArray[Any] = np.frombuffer(_private_map(file, size), kind, math.prod(shape), start)
    return flat.reshape(shape)


def _private_map(file: BinaryIO, size: int) -> mmap.mmap:
    """Map a file copy-on-write."""
    if sys.platform != "linux":
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    # without this flag Linux refuses to map more than there is memory: every page might be changed
    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)
    return mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE | no_reserve)
