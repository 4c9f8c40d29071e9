"""Reading within a memory limit: costs by hand, and where reading stops."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from qpignn.data.bounded import BoundedReader, MemoryCost, buffered, open_packed
from qpignn.errors import ReadError

COST = MemoryCost(2, {b",": 10, b"\n": 100})


def reader(content: bytes, limit: int) -> BoundedReader:
    return BoundedReader(io.BytesIO(content), limit, COST, what="a table", advice="split it")


def test_bounded_reader_cost_counts_bytes_and_marks_since_restart() -> None:
    """Eight bytes with two commas and one newline: 2·8 + 2·10 + 100 = 136."""
    file = reader(b"a,b,cde\n", 136)
    assert file.read() == b"a,b,cde\n"
    assert file.cost == 136
    file.restart()
    assert file.cost == 0


def test_bounded_reader_above_limit_raises() -> None:
    with pytest.raises(ReadError, match=r"a table that fits into memory \(135 bytes\).*split it"):
        reader(b"a,b,cde\n", 135).read()


def test_open_packed_gzip_returns_unpacked_bytes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"id\n1\n")
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write(b"id\n1\n")
    for name in ("t.csv", "t.csv.gz"):
        with open_packed(tmp_path / name) as file:
            assert file.read() == b"id\n1\n"


def test_bounded_reader_close_closes_source() -> None:
    source = io.BytesIO(b"x" * 10)
    with buffered(BoundedReader(source, 100, COST, what="a table", advice="")) as file:
        assert file.read(3) == b"xxx"
    assert source.closed
