"""Reading files within a memory limit, estimated from the bytes that are unpacked.

The size of a compressed file does not bound its content: one byte of gzip may expand to a thousand.
Bytes are therefore counted as they are unpacked, together with the characters that begin a new
object in memory (the delimiters of a table, the tags of XML):

    memory needed ≈ per_byte · bytes + Σ_mark cost(mark) · count(mark)

and reading stops with an error as soon as that exceeds the limit. The costs were measured as the
peak memory of :func:`qpignn.read_graph` on files of one long cell, of single digits, of decimal
numbers, of distinct words, and of GraphML with and without attributes.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO, Any, NamedTuple

from qpignn.errors import ReadError

BLOCK = 1 << 20  # bytes read at once
BUFFER = 1 << 18
LEAST = 1 << 26  # smallest limit in bytes: libraries read ahead and would exceed a lower one


Source = gzip.GzipFile | io.BufferedReader | IO[bytes]


class MemoryCost(NamedTuple):
    """Memory that content takes while it is read.

    Attributes:
        per_byte: bytes of memory per unpacked byte.
        marks: further bytes of memory per occurrence of some single bytes.
    """

    per_byte: int
    marks: dict[bytes, int]


XML = MemoryCost(6, {b"<": 400, b"=": 400})  # elements and their attributes


def text_cost(delimiter: str) -> MemoryCost:
    """Return the memory cost of a text table, whose marks are the ends of cells and of rows.

    Args:
        delimiter: the character between columns.
    """
    return MemoryCost(6, {delimiter.encode(): 32, b"\n": 192})


def open_packed(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file for its unpacked bytes.

    Args:
        path: the file; ``.gz`` is unpacked while it is read.

    Returns:
        A binary stream.
    """
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")


class BoundedReader(io.RawIOBase):
    """A binary stream that raises before its content needs more than ``limit`` bytes of memory.

    Args:
        source: the stream of unpacked bytes; closed together with this one.
        limit: bytes of memory that the content may need.
        cost: how much memory it needs.
        what: what is read, for the error: "a table".
        advice: what to do about a file that is too large, for the error.
    """

    def __init__(
        self, source: Source, limit: int, cost: MemoryCost, *, what: str, advice: str
    ) -> None:
        super().__init__()
        self._source, self._memory = source, cost
        self._limit, self._what, self._advice = limit, what, advice
        self.restart()

    def restart(self) -> None:
        """Reset the count: memory of what was read before has been released."""
        self._bytes = 0
        self.cost = 0
        """Memory that the content read since the last restart needs, in bytes."""

    def readable(self) -> bool:
        """Return true, as :class:`io.RawIOBase` requires."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer.

        Args:
            buffer: a writable buffer of bytes.

        Returns:
            The number of bytes read.

        Raises:
            ReadError: if the content needs more memory than the limit.
        """
        block = self._source.read(len(buffer))
        buffer[: len(block)] = block
        self._bytes += len(block)
        self.cost += self._memory.per_byte * len(block)
        self.cost += sum(cost * block.count(mark) for mark, cost in self._memory.marks.items())
        if self.cost > self._limit:
            raise ReadError(
                f"expected {self._what} that fits into memory ({self._limit:,} bytes), got more "
                f"than {self._bytes:,} bytes when unpacked, which need about {self.cost:,}; "
                f"{self._advice}"
            )
        return len(block)

    def close(self) -> None:
        """Close this stream and its source."""
        if not self.closed:
            self._source.close()
        super().close()


def buffered(reader: BoundedReader) -> io.BufferedReader:
    """Return a buffered stream, for readers that ask for a few bytes at a time.

    Args:
        reader: the stream.
    """
    return io.BufferedReader(reader, BUFFER)
