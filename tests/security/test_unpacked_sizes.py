"""Small files that unpack to gigabytes end in one sentence and exit code 2, in little memory."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hostile import within
from qpignn import convert_graph, read_graph
from qpignn.data import parquet_table, text_table
from qpignn.data.parquet_table import ParquetTable, read_parquet
from qpignn.data.text_table import TextTable
from qpignn.errors import ReadError

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
GIGABYTE = 2**30
PEAK = "print(*[s.split()[1] for s in open('/proc/self/status') if s.startswith('VmHWM')])"
"""Prints a process's own peak memory in kB: ru_maxrss is inherited from the process that forked."""
ZEROS = gzip.compress(b"0" * 2**26)


def bomb(path: Path, start: str, gigabytes: int = 1, end: str = "\n") -> Path:
    """Write a gzipped file of some text with gigabytes of zeros in it, as members of gzip."""
    repeated = ZEROS * (gigabytes * GIGABYTE // 2**26)
    path.write_bytes(gzip.compress(start.encode()) + repeated + gzip.compress(end.encode()))
    assert path.stat().st_size < 4 * 10**6
    return path


def repeated_text(path: Path, rows: int = 100_000, length: int = 100_000) -> Path:
    """Write a Parquet file whose dictionary repeats one long text in every row."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["z" * length])
    table = pa.table({"id": list(range(rows)), "t": [1.0] * rows, "x": text})
    pq.write_table(table, path, store_schema=False)  # read back as plain strings
    return path


def run(*arguments: object, gigabytes: int = 4) -> tuple[int, str, float]:
    """Run a command within a limited address space; return exit code, stderr and peak GB."""
    script = (
        "import resource, runpy, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({gigabytes * GIGABYTE},) * 2)\n"
        "try:\n    runpy.run_module('qpignn', run_name='__main__')\n"
        f"finally:\n    {PEAK}"
    )
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stderr, int(done.stdout.split()[-1]) * 1024 / GIGABYTE


@pytest.mark.parametrize("command", ["fit", "convert"])
@pytest.mark.parametrize("name", ["cell.csv.gz", "edges.csv.gz", "g.graphml.gz", "long.parquet"])
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_commands_small_file_of_gigabytes_ends_with_one_sentence(
    tmp_path: Path, command: str, name: str
) -> None:
    nodes, edges = tmp_path / "nodes.csv", None
    nodes.write_text("id,t,x\na,1,2\nb,2,3\nc,3,4\n")
    if name == "edges.csv.gz":
        edges = bomb(tmp_path / name, "from,to\na,b\nb,")
    elif name == "cell.csv.gz":
        nodes = bomb(tmp_path / name, "id,t,x\na,1,")
    elif name == "g.graphml.gz":
        nodes = bomb(tmp_path / name, f'{HEAD}<node id="a">', end="</node></graph></graphml>")
    else:
        nodes = repeated_text(tmp_path / name)
    arguments = ["--nodes", nodes, *([] if edges is None else ["--edges", edges])]
    code, output, peak = run(command, *arguments, "--target", "t", "--out", tmp_path / "out")
    assert code == 2, output
    lines = [line for line in output.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, output
    by_pieces = command == "convert" and "graphml" in name
    assert ("got GraphML, which cannot be read" if by_pieces else "fits into memory") in lines[0]
    assert name in lines[0]
    assert "bug" not in output
    assert peak < 1.2, peak


def test_read_parquet_counts_a_repeated_text_in_every_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = repeated_text(tmp_path / "nodes.parquet", rows=2_000, length=20_000)
    assert path.stat().st_size < 10**5
    assert len(read_parquet(path)) == 2_000
    monkeypatch.setattr(parquet_table, "free_memory", lambda: 6 * 30_000_000)
    with within(megabytes=30), pytest.raises(ReadError, match=r"got 2,000 rows .* bytes of text"):
        read_parquet(path)
    with pytest.raises(ReadError, match="fits into memory"):
        ParquetTable.open(path).column("x")
    assert len(ParquetTable.open(path).column("t")) == 2_000


def test_parquet_pieces_have_fewer_rows_where_text_is_long(tmp_path: Path) -> None:
    path = repeated_text(tmp_path / "nodes.parquet", rows=4_000, length=10_000)
    table = ParquetTable.open(path)
    sizes = [len(piece) for piece in table.pieces(4_000, ["id", "x"], memory=2**26)]
    assert sum(sizes) == 4_000
    assert max(sizes) * 10_000 * 6 <= 2**26
    with pytest.raises(ReadError, match=r"rows that fits into memory .*--memory"):
        next(
            ParquetTable.open(
                repeated_text(tmp_path / "long.parquet", rows=1_000, length=200_000)
            ).pieces(10, ["x"], memory=2**26)
        )


def test_text_pieces_have_fewer_rows_where_text_is_long_and_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    frame = pd.DataFrame({"id": range(6_000), "x": ["z" * 20_000] * 6_000})
    frame.to_csv(path, index=False)
    pieces = list(TextTable.open(path).pieces(6_000, memory=2**26))
    assert pd.concat(pieces)["id"].tolist() == list(range(6_000))
    assert max(map(len, pieces)) < 3_000
    assert len(list(TextTable.open(path).pieces(6_000, memory=2**33))) < len(pieces)


def test_text_table_memory_follows_cells_as_well_as_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files of as many bytes: one of long cells fits, one of single digits does not."""
    digits, texts = tmp_path / "digits.csv", tmp_path / "words.csv"
    digits.write_text("id,t,x\n" + "1,2,3\n" * 200_000)
    texts.write_text("id,t,x\n" + ("1" * 25 + ",2.00000000000000000,3.0000000000000\n") * 20_000)
    assert abs(texts.stat().st_size - digits.stat().st_size) < 100_000
    monkeypatch.setattr(text_table, "free_memory", lambda: 2**24)
    assert len(TextTable.open(texts).read()) == 20_000
    with pytest.raises(ReadError, match=r"a table that fits into memory .*qpignn convert"):
        TextTable.open(digits).read()


def test_text_table_open_quote_in_the_header_is_refused(tmp_path: Path) -> None:
    path = bomb(tmp_path / "nodes.csv.gz", 'id,"x\n')
    with within(megabytes=700), pytest.raises(ReadError, match="closing quote"):
        TextTable.open(path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_peak_memory_of_reading_stays_below_the_bound(tmp_path: Path) -> None:
    """The bound is not too low: what is counted before is at least what is taken."""
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("id,a,b,c,d\n" + "".join(f"{i},1,2,3,4\n" for i in range(600_000)))
    small = tmp_path / "small.csv"
    small.write_text("id,a\n1,2\n3,4\n")
    data = nodes.read_bytes()
    bound = 6 * len(data) + 32 * data.count(b",") + 192 * data.count(b"\n")
    script = f"""
import qpignn
qpignn.read_graph({str(small)!r}, None, target=None)  # loads what is loaded late
{PEAK}
qpignn.read_graph({str(nodes)!r}, None, target=None)
{PEAK}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    before, after = map(int, done.stdout.split())
    assert 0 < 1024 * (after - before) < bound


def test_convert_graph_reads_a_gzipped_table_larger_than_its_memory(tmp_path: Path) -> None:
    """The bound of a conversion is per piece: a large honest table is read."""
    nodes = tmp_path / "nodes.csv.gz"
    lines = "".join(f"{i},{i % 7},{i % 11}.5\n" for i in range(600_000))
    nodes.write_bytes(gzip.compress(b"id,t,x\n" + lines.encode(), 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    convert_graph(nodes, None, tmp_path / "graph", target="t", memory=2**20)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert taken * 1024 < 400 * 2**20
    assert read_graph(nodes, None, target="t").num_nodes == 600_000
