"""Untrusted mapped graphs: headers are matched, not evaluated, and sizes are checked."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hostile import bombs, exchange_array, npy, within
from qpignn.data.mapped import open_graph, write_graph
from qpignn.errors import ReadError, SettingError

PLAIN = "{'descr': '<f8', 'fortran_order': False, 'shape': (40,), }"
NUMBERS = bytes(40 * 8)


def test_open_graph_with_an_exchanged_valid_array(graph: Path) -> None:
    exchange_array(graph, "y.npy", npy(PLAIN, NUMBERS))
    assert open_graph(graph).y.tolist() == [0.0] * 40


@pytest.mark.parametrize(
    "header",
    [
        PLAIN.replace("<f8", "|O"),
        PLAIN.replace("'<f8'", "[('a', '<f8')]"),
        PLAIN.replace("<f8", ">f8"),
        PLAIN.replace("<f8", "<M8[s]"),
        PLAIN.replace("<f8", "<f9"),
        PLAIN.replace("<f8", "<\xff8"),
        PLAIN.replace("False", "True"),
        PLAIN.replace("40", str(2**61)),
        PLAIN.replace("40", str(2**64)),
        PLAIN.replace("40", "-40"),
        PLAIN.replace("(40,)", f"({2**32}, {2**32})"),
        PLAIN.replace("(40,)", "(0, 1152921504606846976)"),
        PLAIN.replace("40", "__import__('os').system('touch pwned')"),
        PLAIN.replace("(40,)", "(" * 300 + "40" + ",)" * 300),
        PLAIN.replace("40", "-" * 9000 + "1"),
        "{}",
        "",
        "\x00" * 40,
    ],
    ids=lambda header: header[:70],
)
def test_open_graph_invalid_array_header_is_refused(
    graph: Path, header: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exchange_array(graph, "y.npy", npy(header, NUMBERS))
    with within(), pytest.raises(ReadError, match=r"y\.npy"):
        open_graph(graph)
    assert not (tmp_path / "pwned").exists()


def test_open_graph_header_and_description_beyond_the_file_are_refused(graph: Path) -> None:
    rows = 2**61  # times eight bytes is 0 in 64 bits
    description = json.loads((graph / "mapped.json").read_text())
    names = ("x.npy", "edge_index.npy", "y.npy")
    description["files"] = {name: description["files"][name] for name in names}
    columns = description["files"]["x.npy"]["shape"][1]
    (graph / "mapped.json").write_text(json.dumps({**description, "nodes": rows}))
    y = npy(PLAIN.replace("40", str(rows)))
    x = npy(PLAIN.replace("(40,)", f"({rows}, {columns})").replace("<f8", "<f4"))
    exchange_array(graph, "y.npy", y, shape=[rows])
    exchange_array(graph, "x.npy", x, shape=[rows, columns], dtype="<f4")
    with within(), pytest.raises(ReadError, match=r"a damaged x\.npy \(an array of type"):
        open_graph(graph)


@pytest.mark.parametrize("version", [(2, 0), (3, 0), (9, 9)])
def test_open_graph_huge_header_of_another_version_is_refused(
    graph: Path, version: tuple[int, int]
) -> None:
    exchange_array(graph, "y.npy", npy(PLAIN + " " * 10**6, NUMBERS, version))
    with within(), pytest.raises(ReadError, match=r"y\.npy"):
        open_graph(graph)


def test_open_graph_object_arrays_are_not_unpickled(graph: Path, tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, bombs(tmp_path / "trace", 40), allow_pickle=True)
    np.load(io.BytesIO(stream.getvalue()), allow_pickle=True)
    assert (tmp_path / "trace").exists()  # the bomb is a real one
    (tmp_path / "trace").unlink()
    for fields in ({}, {"dtype": "|O"}):
        exchange_array(graph, "y.npy", stream.getvalue(), **fields)
        with pytest.raises(ReadError, match=r"y\.npy|damaged"):
            open_graph(graph)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", ["../secret.npy", "/etc/passwd", "x", "y.npy/../y.npy", "a\0.npy"])
def test_open_graph_files_outside_the_folder_are_not_read(graph: Path, name: str) -> None:
    description = json.loads((graph / "mapped.json").read_text())
    description["files"][name] = description["files"]["y.npy"]
    (graph / "mapped.json").write_text(json.dumps(description))
    with pytest.raises(ReadError, match=r"a damaged mapped\.json"):
        open_graph(graph)


@pytest.mark.parametrize(
    "changes",
    [
        {"nodes": 40.0},
        {"nodes": True},
        {"nodes": -1},
        {"nodes": "40"},
        {"nodes": 10**400},
        {"labelled": None},
        {"directed": "no"},
        {"roles": [1]},
        {"feature_names": "abcdef"},
        {"feature_names": [1, 2, 3, 4, 5, 6]},
        {"files": []},
        {"files": {"x.npy": 5}},
        {"coding": {"missing": "error", "columns": [[]]}},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_open_graph_description_with_wrong_types_is_refused(
    graph: Path, changes: dict[str, Any]
) -> None:
    description = json.loads((graph / "mapped.json").read_text())
    (graph / "mapped.json").write_text(json.dumps({**description, **changes}))
    with within(), pytest.raises(ReadError):
        open_graph(graph)


@pytest.mark.parametrize("content", [b"[" * 10**6, b'{"nodes": NaN}', b"\xff", b"5", b"null"])
def test_open_graph_invalid_or_deep_json_is_refused(graph: Path, content: bytes) -> None:
    (graph / "mapped.json").write_bytes(content)
    with within(), pytest.raises(ReadError, match=r"a damaged mapped\.json"):
        open_graph(graph)


def parquet(table: pa.Table, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def many_rows(rows: int) -> bytes:
    """Return a few bytes of Parquet that say the same id very often."""
    part = pa.table({"id": pa.DictionaryArray.from_arrays(pa.array([0] * 10**6), pa.array(["x"]))})
    return parquet(pa.concat_tables([part] * (rows // 10**6)))


def test_ids_are_counted_before_they_are_read(graph: Path) -> None:
    content = many_rows(300 * 10**6)
    assert len(content) < 10**6
    exchange_array(graph, "ids.parquet", content)
    with within(megabytes=100), pytest.raises(ReadError, match="expected 40 rows, got 300,000,000"):
        open_graph(graph)


@pytest.mark.parametrize(
    "ids", [[[i] for i in range(40)], [{"a": i} for i in range(40)], [b"%d" % i for i in range(40)]]
)
def test_ids_are_numbers_or_text(graph: Path, ids: list[Any]) -> None:
    exchange_array(graph, "ids.parquet", parquet(pa.table({"id": ids})))
    with pytest.raises(ReadError, match=r"ids\.parquet"):
        open_graph(graph)


def test_write_graph_with_a_linked_staging_folder_is_refused(graph: Path, tmp_path: Path) -> None:
    data = open_graph(graph)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "mine.txt").write_text("mine")
    (graph / "unfinished").symlink_to(tmp_path / "outside")
    with pytest.raises(SettingError, match="got a link to elsewhere"):
        write_graph(graph, data)
    assert (tmp_path / "outside" / "mine.txt").read_text() == "mine"
    assert pd.read_parquet(graph / "ids.parquet").shape == (40, 1)
