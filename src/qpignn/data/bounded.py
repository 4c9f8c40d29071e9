"""Reading files within a memory limit, judged by the bytes that are really unpacked.

The size of a packed file says nothing about its content: one byte of gzip may stand for a thousand.
So bytes are counted as they are unpacked, together with the signs that begin a new object in memory
(the delimiters of a table, the tags of XML):

    memory needed ≈ per_byte · bytes + Σ_mark price(mark) · count(mark)

and reading stops with an error as soon as that exceeds the limit. The prices were measured as the
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
LEAST = 1 << 26  # bytes of memory: less cannot be kept to, because libraries read ahead


Source = gzip.GzipFile | io.BufferedReader | IO[bytes]


class Price(NamedTuple):
    """What content takes in memory while it is read.

    Attributes:
        per_byte: bytes of memory per unpacked byte.
        marks: further bytes of memory per occurrence of some single bytes.
    """

    per_byte: int
    marks: dict[bytes, int]


XML = Price(6, {b"<": 400, b"=": 400})  # elements and their attributes


def text_price(delimiter: str) -> Price:
    """Return the price of a text table: its marks are the ends of cells and of rows with an id."""
    return Price(6, {delimiter.encode(): 32, b"\n": 192})


def open_packed(path: Path) -> gzip.GzipFile | io.BufferedReader:
    """Open a file for its unpacked bytes: ``.gz`` is unpacked on the way."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")


class BoundedReader(io.RawIOBase):
    """A binary stream that raises before its content needs more than ``limit`` bytes of memory.

    Args:
        source: the stream of unpacked bytes; closed together with this one.
        limit: bytes of memory that the content may need.
        price: how much memory it needs.
        what: what is read, for the error: "a table".
        advice: what to do about a file that is too large, for the error.
    """

    def __init__(self, source: Source, limit: int, price: Price, *, what: str, advice: str) -> None:
        super().__init__()
        self._source, self._price = source, price
        self._limit, self._what, self._advice = limit, what, advice
        self.restart()

    def restart(self) -> None:
        """Count anew: what was read before has been dealt with."""
        self._bytes = self._cost = 0

    @property
    def cost(self) -> int:
        """Memory that the content read since the last restart needs, in bytes."""
        return self._cost

    def readable(self) -> bool:
        """Return true: see :class:`io.RawIOBase`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer.

        Raises:
            ReadError: if the content needs more memory than the limit.
        """
        block = self._source.read(len(buffer))
        buffer[: len(block)] = block
        self._bytes += len(block)
        self._cost += self._price.per_byte * len(block)
        self._cost += sum(price * block.count(mark) for mark, price in self._price.marks.items())
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
    """Return the stream for readers that ask for a few bytes at a time."""
    return io.BufferedReader(reader, BUFFER)
