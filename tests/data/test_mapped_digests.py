"""The files of a mapped graph must have the digests that its description states."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from qpignn import example_tables, from_frames, open_graph
from qpignn.data import mapped_digests
from qpignn.data.mapped import write_graph
from qpignn.errors import ReadError

CHANGED = r"got other bytes in {} than its description states \(SHA-256\).*convert again"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QPIGNN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(mapped_digests, "FOLDER", "graphs")
    return tmp_path / "cache" / "graphs"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    nodes, edges = example_tables(2000)
    write_graph(tmp_path / "g", from_frames(nodes, edges, target="pollution"))
    return tmp_path / "g"


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were read for whole digests, file by file."""
    plain, sizes = mapped_digests._checked, list[int]()

    def counted(path: Path, *arguments: Any) -> dict[str, Any]:
        sizes.append(path.stat().st_size)
        return plain(path, *arguments)

    monkeypatch.setattr(mapped_digests, "_checked", counted)
    return sizes


def reverse_rows(path: Path) -> None:
    """Reverse the rows of an array in place: same header, same size."""
    array = np.load(path, mmap_mode="r+")
    array[:] = array[::-1].copy()
    array.flush()


@pytest.mark.parametrize("opened", [False, True], ids=["never opened", "opened before"])
@pytest.mark.parametrize("name", ["x.npy", "y.npy", "edge_index.npy"])
def test_open_graph_of_changed_numbers_raises(graph: Path, name: str, opened: bool) -> None:
    if opened:
        open_graph(graph)
    reverse_rows(graph / name)
    with pytest.raises(ReadError, match=CHANGED.format(name)):
        open_graph(graph)


def test_open_graph_of_one_changed_bit_with_the_old_time_stamp_raises(tmp_path: Path) -> None:
    """No sampled block contains the bit, and ``utime`` restores the time of modification."""
    x, none = torch.zeros(30_000, 10), torch.zeros((2, 0), dtype=torch.long)
    write_graph(tmp_path / "g", Data(x=x, edge_index=none))
    open_graph(tmp_path / "g")
    path = tmp_path / "g" / "x.npy"
    before = path.stat()
    distance = (before.st_size - mapped_digests.BLOCK) / (mapped_digests.BLOCKS - 1)
    assert distance > 2 * mapped_digests.BLOCK
    with path.open("r+b") as file:
        file.seek(int(10 * distance + 1.5 * mapped_digests.BLOCK))
        file.write(b"\1")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    with pytest.raises(ReadError, match=CHANGED.format("x.npy")):
        open_graph(tmp_path / "g")


def test_open_graph_of_reversed_ids_raises(tmp_path: Path) -> None:
    write_graph(tmp_path / "g", from_frames(*example_tables(60), target="pollution"))
    path = tmp_path / "g" / "ids.parquet"
    pd.read_parquet(path).iloc[::-1].to_parquet(path, index=False)
    content = path.read_bytes()
    described = json.loads((tmp_path / "g" / "mapped.json").read_text())
    described["files"][path.name]["bytes"] = len(content)
    (tmp_path / "g" / "mapped.json").write_text(json.dumps(described))
    with pytest.raises(ReadError, match=CHANGED.format("ids.parquet")):
        open_graph(tmp_path / "g")


def test_open_graph_again_reads_only_a_sample(graph: Path, read_bytes: list[int]) -> None:
    open_graph(graph)
    files = sum(1 for path in graph.iterdir() if path.suffix in (".npy", ".parquet"))
    assert len(read_bytes) == files
    read_bytes.clear()
    open_graph(graph)
    assert read_bytes == []
    (graph / "x.npy").touch()  # the bytes are the same: read again, and accepted
    open_graph(graph)
    assert len(read_bytes) == 1


def test_open_graph_whose_stamps_hide_a_change_is_refused_by_the_sample(
    graph: Path, cache: Path
) -> None:
    """As on a file system that does not change time stamps: the record is given the new ones."""
    open_graph(graph)
    reverse_rows(graph / "x.npy")
    (record,) = cache.iterdir()
    document = json.loads(record.read_text())
    status = (graph / "x.npy").stat()
    stamp = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    document["files"]["x.npy"]["stamp"] = stamp
    record.write_text(json.dumps(document))
    with pytest.raises(ReadError, match=CHANGED.format("x.npy")):
        open_graph(graph)


def test_open_graph_with_a_record_in_its_own_folder_ignores_it(graph: Path, cache: Path) -> None:
    """Records are looked up in the user's cache only, and hold for one path."""
    open_graph(graph)
    (record,) = cache.iterdir()
    reverse_rows(graph / "x.npy")
    document = json.loads(record.read_text())
    status = (graph / "x.npy").stat()
    stamp = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    document["files"]["x.npy"] |= {"stamp": stamp}
    for place in (graph / record.name, graph / "graphs" / record.name):
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(document))
    record.unlink()
    with pytest.raises(ReadError, match=CHANGED.format("x.npy")):
        open_graph(graph)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": 1, "files": []}', "\x00"])
def test_open_graph_with_a_damaged_record_checks_again(
    graph: Path, cache: Path, content: str, read_bytes: list[int]
) -> None:
    open_graph(graph)
    (record,) = cache.iterdir()
    record.write_text(content)
    read_bytes.clear()
    open_graph(graph)
    assert read_bytes


def test_open_graph_of_another_description_does_not_use_the_record(
    graph: Path, read_bytes: list[int]
) -> None:
    """Numbers and description changed together are another graph, which is checked by itself."""
    open_graph(graph)
    read_bytes.clear()
    reverse_rows(graph / "x.npy")
    described = json.loads((graph / "mapped.json").read_text())
    digest = hashlib.sha256((graph / "x.npy").read_bytes()).hexdigest()
    described["files"]["x.npy"]["sha256"] = digest
    (graph / "mapped.json").write_text(json.dumps(described))
    x = torch.from_numpy(np.load(graph / "x.npy"))
    assert torch.equal(open_graph(graph).x, x)
    assert len(read_bytes) == 1


def test_open_graph_without_a_cache_that_can_be_written_checks_every_time(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: list[int]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QPIGNN_CACHE_DIR", str(tmp_path / "file"))
    open_graph(graph)
    first = len(read_bytes)
    open_graph(graph)
    assert len(read_bytes) == 2 * first > 0


@pytest.mark.parametrize("digest", [None, 5, ["x"]])
def test_open_graph_with_a_digest_that_is_none_raises(graph: Path, digest: object) -> None:
    described = json.loads((graph / "mapped.json").read_text())
    described["files"]["x.npy"]["sha256"] = digest
    (graph / "mapped.json").write_text(json.dumps(described))
    with pytest.raises(ReadError, match=r"a damaged mapped\.json"):
        open_graph(graph)
