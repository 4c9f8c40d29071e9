"""DuckDB sorts and merges edges within its memory, and touches nothing else."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qpignn.data.edge_sort import open_database, sorted_edges
from qpignn.errors import SettingError

NODES = 6
ROW = st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 8))
SLOW = "SELECT max(hash(range)) FROM range(100_000_000_000)"


def merged(
    database: Any, nodes: int = NODES, *, directed: bool = True
) -> list[tuple[int, int, float, int]]:
    blocks = list(sorted_edges(database, nodes, directed=directed))
    columns = [np.concatenate(column).tolist() for column in zip(*blocks, strict=True)]
    return list(zip(*columns, strict=True))


@settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(listed=st.lists(ROW, min_size=1, max_size=40), directed=st.booleans())
def test_sorted_edges_of_any_rows_equal_a_dictionary_of_them(
    tmp_path: Path, listed: list[tuple[int, int, int]], directed: bool
) -> None:
    weights: dict[tuple[int, int], list[int]] = defaultdict(list)
    for source, target, weight in listed:
        if source != target:
            weights[target, source].append(weight)
            if not directed:
                weights[source, target].append(weight)
    own = [(source, target) for source, target, _ in listed]
    with open_database(tmp_path, 1) as database:
        database.executemany("INSERT INTO edges VALUES (?, ?, ?)", listed)
        got = merged(database, directed=directed)
    assert got == [
        (source, target, pytest.approx(np.mean(values)), own.count((source, target)))
        for (target, source), values in sorted(weights.items())
    ]


def test_sorted_edges_without_rows_yields_no_edges(tmp_path: Path) -> None:
    with open_database(tmp_path, 1) as database:
        assert merged(database) == []


def test_sorted_edges_of_an_edge_that_spans_batches_yields_it_once(tmp_path: Path) -> None:
    repeated = 300_000  # more than two batches
    with open_database(tmp_path, 1) as database:
        database.execute("INSERT INTO edges VALUES (1, 0, 5), (2, 1, 7)")
        repeat = f"SELECT 0, 1, 1 + 2 * (range % 2) FROM range({repeated})"
        database.execute(f"INSERT INTO edges {repeat}")
        assert merged(database) == [(1, 0, 5, 1), (0, 1, 2, repeated), (2, 1, 7, 1)]


PEAK = """
import sys
from pathlib import Path
from qpignn.data.edge_sort import open_database, sorted_edges
def peak():
    return 1024 * int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
def edges(rows):
    with open_database(Path(sys.argv[1]), 1) as database:
        ends = "hash(range) % 1000000, hash(-range) % 1000000"
        database.execute(f"INSERT INTO edges SELECT {ends}, 1 FROM range({rows})")
        return sum(len(block[0]) for block in sorted_edges(database, 10**6, directed=False))
edges(250_000)
before = peak()
kept = edges(4_000_000)
print(peak() - before, kept)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_sorted_edges_larger_than_the_memory_stay_within_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PEAK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    peak, kept = map(int, done.stdout.split())
    assert kept > 7_990_000
    assert peak < 20 * kept  # two positions and a weight, once; sorted in memory it is twice that
    assert list(tmp_path.iterdir()) == []


def test_open_database_reads_no_files_and_loads_no_extensions(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (tmp_path / "t.csv").write_text("a\n1\n")
    for statement in (
        f"SELECT * FROM '{tmp_path / 't.csv'}'",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'other.db'}'",
        "SELECT * FROM 'https://example.org/t.csv'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
    ):
        with open_database(own, 1) as database, pytest.raises(duckdb.Error):
            database.execute(statement)
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "own"}


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """SIGINT as in a terminal: shells start background jobs with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts")
def test_open_database_interrupted_during_a_query_raises_keyboard_interrupt(tmp_path: Path) -> None:
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), open_database(tmp_path, 1) as database:
        database.execute(SLOW).fetchall()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_open_database_with_another_error_in_the_block_lets_it_through(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="of another kind"), open_database(tmp_path, 1):
        raise RuntimeError("of another kind")


def test_open_database_that_needs_more_memory_advises_to_allow_more(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingError, match=r"memory: expected .* got 134,217,728 bytes .*--memory"),
        open_database(tmp_path, 1) as database,
    ):
        database.execute("SELECT list(range) FROM range(100_000_000)").fetchall()


@pytest.mark.parametrize(
    ("kind", "message", "code"),
    [
        ("IOException", "Could not write file: No space left on device", errno.ENOSPC),
        ("IOException", "Could not write file: File too large", errno.EIO),
        ("OutOfMemoryException", "set by the 'max_temp_directory_size' setting", errno.ENOSPC),
    ],
)
def test_open_database_on_a_full_disk_raises_an_os_error(
    tmp_path: Path, kind: str, message: str, code: int
) -> None:
    reported = os.strerror(code) if code == errno.ENOSPC else message
    with pytest.raises(OSError, match=reported) as got, open_database(tmp_path, 1):
        raise getattr(duckdb, kind)(message)
    assert got.value.errno == code
