"""Converting piece by piece gives the graph that reading at once gives."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from qpignn import example_tables, read_graph
from qpignn.data import convert_edges, edge_sort
from qpignn.data.convert import convert_graph
from qpignn.data.mapped import describe_graph, open_graph
from qpignn.data.tables import TextTable, open_table
from qpignn.errors import GraphError, QpignnError, ReadError, SettingError

ARRAYS = ("x", "y", "node_weight", "pos", "train_mask", "val_mask", "test_mask")
MEMORY = (1 << 30, 30_000, 1)
"""All at once; pieces of some rows; pieces of one row."""


def assert_same(got: Data, wanted: Data) -> None:
    for name in ARRAYS:
        assert (got.get(name) is None) == (wanted.get(name) is None), name
        if got.get(name) is not None:
            torch.testing.assert_close(got[name], wanted[name], rtol=0, atol=0, equal_nan=True)
    assert got.feature_names == wanted.feature_names
    assert got.coding == wanted.coding
    ids = np.arange(len(wanted.x)) if got.get("node_id") is None else got.node_id
    assert list(ids) == list(wanted.node_id)
    order = np.lexsort(wanted.edge_index.numpy())  # by the last row, the target, first
    assert torch.equal(got.edge_index, wanted.edge_index[:, order])
    assert (got.get("edge_weight") is None) == (wanted.get("edge_weight") is None)
    if wanted.get("edge_weight") is not None:
        torch.testing.assert_close(got.edge_weight, wanted.edge_weight[order])


def stations() -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Stations with everything that a table can have."""
    nodes, edges = example_tables(120)
    rng = np.random.default_rng(1)
    nodes["id"] = [f"{i:04d}" for i in range(120)]
    names = dict(zip(example_tables(120)[0]["id"], nodes["id"], strict=True))
    edges = edges.replace(names)
    nodes["height"] = nodes["height"].where(rng.uniform(size=120) > 0.2)
    nodes["kind"] = nodes["kind"].where(rng.uniform(size=120) > 0.1)
    nodes["zone"] = rng.choice(["01", "1", "NA"], 120)
    nodes["open"] = rng.choice([True, False], 120)
    nodes["note"] = [f"text {i}" for i in range(120)]
    nodes["part"] = rng.choice(["train", "Validation ", "test", ""], 120)
    nodes["weight"] = rng.integers(0, 3, 120)
    edges["km"] = rng.uniform(size=len(edges)).round(3)
    edges = pd.concat([edges, edges.head(40).rename(columns={"from": "to", "to": "from"})])
    edges = pd.concat([edges, edges.tail(20).assign(km=7), edges.head(5).assign(to="0003")])
    roles = {
        "target": "pollution",
        "missing": "impute",
        "categorical": ["zone"],
        "ignore": ["note"],
        "split": "part",
        "node_weight": "weight",
        "edge_weight": "km",
    }
    return nodes, edges, roles


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("directed", [False, True])
def test_convert_graph_equals_read_graph(tmp_path: Path, memory: int, directed: bool) -> None:
    nodes, edges, roles = stations()
    files = tmp_path / "n.csv", tmp_path / "e.csv"
    nodes.to_csv(files[0], index=False)
    edges.to_csv(files[1], index=False)
    roles["directed"] = directed
    summary = convert_graph(*files, tmp_path / "g", memory=memory, **roles)
    assert_same(open_graph(tmp_path / "g"), read_graph(*files, **roles))
    assert summary == describe_graph(tmp_path / "g")
    assert summary.directed is directed
    assert summary.roles is not None
    assert summary.roles["ignore"] == ["note"]
    assert not (tmp_path / "g" / "unfinished").exists()


def test_named_coordinates_are_those_of_the_same_files(tmp_path: Path) -> None:
    nodes, edges, roles = stations()
    nodes["east"], nodes["north"] = np.arange(120) / 3, np.arange(120)[::-1] / 7
    files = tmp_path / "n.csv", tmp_path / "e.csv"
    nodes.to_csv(files[0], index=False)
    edges.to_csv(files[1], index=False)
    roles["coordinates"] = ["east", "north"]
    convert_graph(*files, tmp_path / "g", memory=30_000, **roles)
    got = open_graph(tmp_path / "g")
    np.testing.assert_allclose(got.pos, nodes[["east", "north"]])
    assert got.pos_names == ["east", "north"]
    assert_same(got, read_graph(*files, **roles))


def test_parquet_gzip_other_delimiters_and_named_columns(tmp_path: Path) -> None:
    nodes, edges, roles = stations()
    edges = edges[["km", "from", "to"]].rename(columns={"from": "a", "to": "b"})
    roles |= {"edge_ends": ("a", "b"), "features": ["height", "kind"], "categorical": ["kind"]}
    del roles["ignore"]
    nodes.to_parquet(tmp_path / "n.parquet")
    edges.to_parquet(tmp_path / "e.parquet")
    text = nodes.to_csv(index=False, sep=";", decimal=",")
    (tmp_path / "n.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    text = edges.to_csv(index=False, sep="\t", decimal=",")
    (tmp_path / "e.tsv").write_text(text, encoding="latin-1")
    form = {"encoding": "latin-1", "decimal": ","}
    for files in (("n.parquet", "e.parquet"), ("n.csv.gz", "e.tsv")):
        paths = [tmp_path / name for name in files]
        convert_graph(*paths, tmp_path / "g", memory=50_000, **roles, **form)
        assert_same(open_graph(tmp_path / "g"), read_graph(*paths, **roles, **form))


def test_numbers_that_float32_would_merge_stay_float64(tmp_path: Path) -> None:
    table = pd.DataFrame({"id": [0, 1, 2], "t": [1.0, None, 3.0], "year": [1.0, 2.0, 3.0]})
    for big, kind in ((table["year"], torch.float32), (table["year"] + 1e9, torch.float64)):
        table.assign(year=big).to_parquet(tmp_path / "n.parquet")
        convert_graph(tmp_path / "n.parquet", None, tmp_path / "g", target="t", memory=1)
        got = open_graph(tmp_path / "g")
        assert got.x.dtype == kind
        assert not (tmp_path / "g" / "ids.parquet").exists()
        assert_same(got, read_graph(tmp_path / "n.parquet", None, target="t"))


def test_parquet_with_an_index_and_integers_with_blanks(tmp_path: Path) -> None:
    big = 2**53
    table = pd.DataFrame(
        {
            "id": ["a", "b", "c", "d"],
            "t": [1.0, 2.0, None, 4.0],
            "code": pd.array([big + 1, big, big + 1, None], dtype="Int64"),
            "plain": [1, None, 3, 4],
            "flag": [True, None, False, True],
        }
    )
    path = tmp_path / "n.parquet"
    table.set_index(pd.Index([7, 8, 9, 5], name="row")).to_parquet(path)
    roles = {"target": "t", "missing": "impute", "categorical": ["code"]}
    for memory in MEMORY:
        convert_graph(path, None, tmp_path / "g", memory=memory, **roles)
        assert_same(open_graph(tmp_path / "g"), read_graph(path, None, **roles))


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2", "x", "x", "1", "x"],  # numbers, until there is text
        ["01", "1", "01", "x", "x", "x"],  # zeros that text would keep
        ["1", "2", "", "4", "5", "6.5"],
        ["", "", "", "True", "False", "true"],
        ["True", "False", "True", "False", "True", "1"],
        ["True", "False", "True", "x", "True", "x"],
        ["1", "2", "3", "18446744073709551615", "5", "6"],
        ["1.5", "2", "3", "123456789012345678901234", "5", "6"],
        ["NA", "nan", "None", "1e3", " 2 ", "3"],
        ["x", "x", "NA", "y", "null", " y"],
    ],
)
def test_convert_graph_infers_column_types_from_all_pieces(
    tmp_path: Path, values: list[str]
) -> None:
    lines = [f"n{i},{value},{i}" for i, value in enumerate(values)]
    path = tmp_path / "n.csv"
    path.write_text("\n".join(["id,v,t", *lines]))
    roles = {"target": "t", "missing": "impute"}
    for memory in (1, 1200, 1 << 20):
        convert_graph(path, None, tmp_path / "g", memory=memory, **roles)
        assert_same(open_graph(tmp_path / "g"), read_graph(path, None, **roles))


WORDS = ["", "NA", "0", "1", "01", "-3", "2.5", "1e3", "x", " y ", "True", "false", "inf", "1,5"]
WORDS += ["2024-01-02", "16777217"]
COLUMN = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=7, max_size=7),
    st.lists(st.sampled_from(["1", "2", "", "4.5"]), min_size=7, max_size=7),
    st.lists(st.sampled_from(["a", "b", "", "1"]), min_size=7, max_size=7),
)
TARGET = st.lists(st.sampled_from(["1", "2", "-3.5", ""]), min_size=7, max_size=7)
WEIGHT = st.sampled_from(["1", "0.25", "8", "3"])
EDGE = st.tuples(st.integers(0, 7), st.integers(0, 7), WEIGHT)
FAULTY = st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from(["", "-1", "x"]))


def outcome(work: Any) -> Data | str:
    try:
        return work()
    except QpignnError as error:
        return f"{type(error).__name__}: {error}"


@settings(deadline=None, max_examples=150)
@given(
    target=st.one_of(TARGET, COLUMN),
    columns=st.lists(COLUMN, min_size=1, max_size=2),
    nodes=st.integers(1, 7),
    edges=st.one_of(st.lists(EDGE, max_size=12), st.lists(EDGE | FAULTY, max_size=5)),
    missing=st.sampled_from(["error", "impute"]),
    directed=st.booleans(),
    memory=st.sampled_from([1, 1500, 4000, 1 << 20]),
)
def test_convert_graph_of_any_small_table_equals_read_graph(
    target: list[str],
    columns: list[list[str]],
    nodes: int,
    edges: list[tuple[int, int, str]],
    missing: str,
    directed: bool,
    memory: int,
) -> None:
    """The same graph or an error of the same kind; of nodes, the same words."""
    named = dict(zip(["a", "b"], columns, strict=False))
    frame = pd.DataFrame({"t": target, **named}).head(nodes)
    frame.insert(0, "id", [f"0{i}" for i in range(nodes)])
    ends = [(f"0{a % nodes}", f"0{b % nodes}", w) for a, b, w in edges]
    roles = {"target": "t", "missing": missing, "directed": directed, "edge_weight": "w"}
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "n.csv", Path(folder) / "e.csv"
        frame.to_csv(paths[0], index=False)
        pd.DataFrame(ends, columns=["from", "to", "w"]).to_csv(paths[1], index=False)
        wanted = outcome(lambda: read_graph(*paths, **roles))
        graph = Path(folder) / "g"

        def convert() -> Data:
            convert_graph(*paths, graph, memory=memory, **roles)
            return open_graph(graph)

        got = outcome(convert)
        if isinstance(wanted, str):
            assert isinstance(got, str)
            assert not graph.exists()
            if "edge" not in wanted and "edge" not in got:
                assert got == wanted
        else:
            assert not isinstance(got, str), got
            assert_same(got, wanted)


def many_edges(folder: Path, edges: int, nodes: int = 5000) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    ends = (nodes * rng.uniform(size=(edges, 2)) ** 2).astype(np.int64)  # some nodes have many
    ends[: edges // 20, 1] = 3  # and one has a twentieth of all
    paths = folder / "n.csv", folder / f"e{edges}.csv"
    table = pd.DataFrame({"id": np.arange(nodes), "v": rng.uniform(size=nodes)})
    table.assign(t=table["v"]).to_csv(paths[0], index=False)
    named = pd.DataFrame(ends, columns=["from", "to"])
    named.assign(w=rng.integers(1, 9, edges)).to_csv(paths[1], index=False)
    return paths


def test_convert_graph_of_many_edges_in_small_batches_equals_read_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_sort, "BATCH", 2048)  # DuckDB's smallest
    paths = many_edges(tmp_path, 300_000)
    roles = {"target": "t", "edge_weight": "w"}
    for directed in (False, True):
        convert_graph(*paths, tmp_path / "g", memory=1 << 20, directed=directed, **roles)
        assert_same(open_graph(tmp_path / "g"), read_graph(*paths, directed=directed, **roles))


def test_convert_graph_edge_repeated_beyond_memory_is_merged(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "n.csv", tmp_path / "e.csv"
    nodes.write_text("id,v,t\na,1,1\nb,2,2\nc,3,3\n")
    edges.write_text("from,to,w\n" + "a,b,1\na,b,3\n" * 50 + "b,c,4\n")
    roles = {"target": "t", "edge_weight": "w"}
    convert_graph(nodes, edges, tmp_path / "g", memory=1000, **roles)
    got = open_graph(tmp_path / "g")
    assert got.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]
    assert got.edge_weight.tolist() == [2, 2, 4, 4]
    convert_graph(nodes, edges, tmp_path / "g", memory=1000, target="t")
    assert open_graph(tmp_path / "g").edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]


def test_convert_graph_averages_the_two_directions_of_an_edge_to_the_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = pd.DataFrame(np.argwhere(np.triu(rng.uniform(size=(90, 90)) < 0.5, 1)))
    both = pd.concat([pairs, pairs[[1, 0]].set_axis([0, 1], axis=1)]).set_axis(
        ["from", "to"], axis=1
    )
    paths = tmp_path / "n.csv", tmp_path / "e.csv"
    pd.DataFrame({"id": range(90), "v": range(90), "t": range(90)}).to_csv(paths[0], index=False)
    both.assign(w=rng.lognormal(0, 9, len(both))).to_csv(paths[1], index=False)
    roles = {"target": "t", "edge_weight": "w"}
    convert_graph(*paths, tmp_path / "g", **roles)
    got, wanted = open_graph(tmp_path / "g"), read_graph(*paths, **roles)
    order = np.lexsort(wanted.edge_index.numpy())
    assert torch.equal(got.edge_weight, wanted.edge_weight[order])


TEXT_IDS = ["a", "A", "a b", "\u00e9", "e\u0301", "7", "07", "'; DROP TABLE edges; --", '"', "NA"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_convert_graph_with_unusual_ids_and_column_names_equals_read_graph(
    tmp_path: Path, suffix: str
) -> None:
    columns = ["a' OR 'a' = 'a", "rows.weight"]
    nodes = pd.DataFrame({"id": TEXT_IDS, "v": range(10), "t": range(10)})
    edges = pd.DataFrame({columns[0]: TEXT_IDS, columns[1]: TEXT_IDS[1:] + TEXT_IDS[:1]})
    files = tmp_path / f"n.{suffix}", tmp_path / f"e.{suffix}"
    for frame, file in zip((nodes, edges), files, strict=True):
        getattr(frame, f"to_{suffix}")(file, index=False)
    roles = {"target": "t", "edge_ends": columns}
    convert_graph(*files, tmp_path / "g", **roles)
    assert_same(open_graph(tmp_path / "g"), read_graph(*files, **roles))


IDS = {
    "integers": [3, 1, 2**62, -4],
    "floats": [0.5, 1.0, -0.0, 1e300],
    "bytes": [b"a", b"b", b"\x00", b""],
    "dates": pd.date_range("2024-01-01", periods=4),
    "truths and text": ["True", "False", "1", "1.0"],
    "categories": pd.Categorical(["x", "y", "z", "w"]),
}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("other", [None, "text"])
def test_convert_graph_with_ids_of_any_type_ends_as_read_graph_does(
    tmp_path: Path, kind: str, other: str | None
) -> None:
    ids = pd.Series(IDS[kind])
    named = ids if other is None else ids.astype(str)
    nodes = pd.DataFrame({"id": ids, "v": range(4), "t": range(4)})
    edges = pd.DataFrame({"from": named, "to": np.roll(named, 1)})
    files = tmp_path / "n.parquet", tmp_path / "e.parquet"
    nodes.to_parquet(files[0])
    edges.to_parquet(files[1])
    wanted = outcome(lambda: read_graph(*files, target="t"))
    got = outcome(lambda: convert_graph(*files, tmp_path / "g", target="t"))
    if isinstance(wanted, str):
        assert got == wanted
    else:
        edge_index = open_graph(tmp_path / "g").edge_index
        assert torch.equal(edge_index, wanted.edge_index[:, np.lexsort(wanted.edge_index.numpy())])


@pytest.mark.parametrize("match", ["number", "caseless"])
def test_convert_graph_with_inexact_matching_equals_read_graph(tmp_path: Path, match: str) -> None:
    files = tmp_path / "n.csv", tmp_path / "e.csv"
    files[0].write_text("id,v,t\n1,1,10\n2,2,20\nx,3,30\n")
    files[1].write_text("from,to\n01,2.0\n2,x\n" if match == "number" else "from,to\n1,X\n2,x\n")
    roles = {"target": "t", "match_ids": match}
    convert_graph(*files, tmp_path / "g", **roles)
    assert_same(open_graph(tmp_path / "g"), read_graph(*files, **roles))


def test_convert_graph_without_duckdb_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    (tmp_path / "n.csv").write_text(NODES)
    (tmp_path / "e.csv").write_text("from,to\na,b\n")
    with pytest.raises(SettingError, match=r'needs duckdb.*pip install "qpignn\[large\]"'):
        convert_graph(tmp_path / "n.csv", tmp_path / "e.csv", tmp_path / "g", target="t")
    assert not (tmp_path / "g").exists()
    convert_graph(tmp_path / "n.csv", None, tmp_path / "g", target="t")
    assert open_graph(tmp_path / "g").num_edges == 0


def test_convert_graph_of_one_column_as_both_ends_raises_as_read_graph_does(tmp_path: Path) -> None:
    files = tmp_path / "n.csv", tmp_path / "e.csv"
    files[0].write_text(NODES)
    files[1].write_text("from,to\na,b\n")
    roles = {"target": "t", "edge_ends": ["from", "from"]}
    wanted = outcome(lambda: read_graph(*files, **roles))
    assert outcome(lambda: convert_graph(*files, tmp_path / "g", **roles)) == wanted


def test_convert_graph_with_weights_that_are_all_tiny_raises_as_read_graph_does(
    tmp_path: Path,
) -> None:
    files = tmp_path / "n.csv", tmp_path / "e.csv"
    files[0].write_text(NODES)
    files[1].write_text("from,to,w\na,b,1e-40\nb,c,0\n")
    roles = {"target": "t", "edge_weight": "w"}
    wanted = outcome(lambda: read_graph(*files, **roles))
    assert "largest" in str(wanted)
    assert outcome(lambda: convert_graph(*files, tmp_path / "g", **roles)) == wanted


NODES = "id,v,t\na,1,10\nb,2,\nc,3,30\n"


@pytest.mark.parametrize(
    "edges",
    [
        "from,to\na,b\nb,c\nz,a\nz,b\n",
        "from,to\na,b\nb,c\nc,\na,b\n",
        "from,to\na,b\nb,c\nz,\n",
        "a,b\nb,c\n",
        "from\na\n",
        "from,to,w\na,b,1\nb,c,x\n",
        "from,to,w\na,b,1\nb,c,\n",
        "from,to,w\na,b,1\nb,c,inf\n",
        "from,to,w\na,b,1\nb,c,1,5\n",
    ],
)
@pytest.mark.parametrize("memory", MEMORY)
def test_convert_graph_invalid_edges_raise_with_their_row(
    tmp_path: Path, edges: str, memory: int
) -> None:
    paths = tmp_path / "n.csv", tmp_path / "e.csv"
    paths[0].write_text(NODES)
    paths[1].write_text(edges)
    roles = {"target": "t", "edge_weight": "w" if ",w" in edges else None}
    with pytest.raises(QpignnError) as wanted:
        read_graph(*paths, **roles)
    with pytest.raises(type(wanted.value)) as got:
        convert_graph(*paths, tmp_path / "g", memory=memory, **roles)
    assert str(got.value) == str(wanted.value)
    assert not (tmp_path / "g").exists()


def test_convert_graph_drops_self_loops_and_refuses_self_loops_only(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "n.csv", tmp_path / "e.csv"
    nodes.write_text(NODES)
    edges.write_text("from,to\na,a\na,b\nb,b\n")
    convert_graph(nodes, edges, tmp_path / "g", target="t", memory=1)
    assert open_graph(tmp_path / "g").edge_index.tolist() == [[1, 0], [0, 1]]
    edges.write_text("from,to\na,a\nb,b\n")
    with pytest.raises(GraphError, match="expected edges between different nodes"):
        convert_graph(nodes, edges, tmp_path / "g", target="t", memory=1)
    edges.write_text("from,to\n")
    convert_graph(nodes, edges, tmp_path / "g", target="t")
    assert open_graph(tmp_path / "g").num_edges == 0


@pytest.mark.parametrize(
    ("content", "options", "error", "message"),
    [
        ("", {}, ReadError, "expected a header line"),
        ("code,t\n1,2\n", {}, ReadError, "ids called 'id'.*got 'code', 't'; .*--id"),
        ("id,v,t\n", {}, GraphError, "n.csv: expected at least one node, got none"),
        ("id,v,t\na,1,2\na,1,3\n", {}, GraphError, "got repeated: 'a'"),
        ("id,v,t\na,1,2\n,1,3\n", {}, GraphError, "an id for every node, .* rows 2"),
        (NODES, {"target": "z"}, GraphError, "lacks the column 'z'"),
        (NODES, {"target": "v", "ignore": ["t"]}, GraphError, "at least one feature column"),
        (NODES, {"missing": "maybe"}, QpignnError, "unknown way to treat missing values"),
        (NODES, {"categorical": ["t"]}, GraphError, "expected feature columns, got 't'"),
        (NODES, {"edge_ends": ("a", "b")}, None, ""),
        (NODES, {"memory": 0}, SettingError, "memory: expected a whole number from 1 up"),
        (NODES, {"encoding": "klingon"}, ReadError, "unknown encoding: klingon"),
        (NODES, {"decimal": "/"}, ReadError, "n.csv: decimal: expected"),
        ("id,v,t\na,1,2\nb,1,2,3,4\n", {}, ReadError, "n.csv: cannot be read as a table"),
        ("id,v,t\na,1,2,\nb,1,2,\n", {}, ReadError, "rows as long as the header line"),
        ("id,v,v\na,1,2\n", {}, ReadError, "each column name once, got repeated: 'v'"),
        (",id,t\n0,1,2\n", {}, ReadError, "none for column 1; was the file written"),
        ("id,v,t\na,\xe4,2\n", {}, ReadError, "expected text in utf-8, got bytes"),
        ("id,v,t\na,1,\nb,2,\n", {}, GraphError, "at least one labelled node"),
    ],
)
def test_convert_graph_invalid_nodes_raise(
    tmp_path: Path,
    content: str,
    options: dict[str, Any],
    error: type[Exception] | None,
    message: str,
) -> None:
    path = tmp_path / "n.csv"
    path.write_bytes(content.encode("latin-1"))
    if error is None:
        convert_graph(path, None, tmp_path / "g", **{"target": "t", **options})
        return
    with pytest.raises(error, match=message):
        convert_graph(path, None, tmp_path / "g", **{"target": "t", **options})
    assert not (tmp_path / "g").exists()


def test_convert_graph_missing_files_or_other_formats_raise(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="expected a file, got nothing"):
        convert_graph(tmp_path / "n.csv", None, tmp_path / "g", target="t")
    (tmp_path / "n.csv").write_text(NODES)
    with pytest.raises(ReadError, match=r"did you mean n\.csv"):
        convert_graph(tmp_path / "m.csv", None, tmp_path / "g", target="t")
    (tmp_path / "n.parquet").write_text(NODES)
    with pytest.raises(ReadError, match=r"n.parquet: cannot be read as a table"):
        convert_graph(tmp_path / "n.parquet", None, tmp_path / "g", target="t")
    with pytest.raises(ReadError, match=r"g.graphml: expected tables .*read it whole"):
        convert_graph(tmp_path / "g.graphml", None, tmp_path / "g", target="t")


def test_convert_graph_failing_keeps_an_older_graph(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text(NODES)
    convert_graph(tmp_path / "n.csv", None, tmp_path / "g", target="t")
    with pytest.raises(GraphError):
        convert_graph(tmp_path / "n.csv", None, tmp_path / "g", target="z")
    assert open_graph(tmp_path / "g").num_nodes == 3


def test_convert_graph_interrupted_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = many_edges(tmp_path, 100)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(convert_edges, "sorted_edges", interrupt)
    with pytest.raises(KeyboardInterrupt):
        convert_graph(*paths, tmp_path / "g", target="t")
    assert not (tmp_path / "g").exists()


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


KILLED = """
import os, sys
from qpignn.data import convert_edges
from qpignn.data.convert import convert_graph
convert_edges.sorted_edges = lambda *_, **__: os.kill(os.getpid(), 9)
convert_graph(*sys.argv[1:], target="t")
"""


def test_convert_graph_killed_keeps_the_older_graph_and_can_be_repeated(tmp_path: Path) -> None:
    paths = many_edges(tmp_path, 1000)
    folder = tmp_path / "g"
    assert run(KILLED, *paths, folder).returncode == -9
    assert (folder / "unfinished").is_dir()
    with pytest.raises(ReadError, match=r"one without mapped.json .a conversion that did not fini"):
        open_graph(folder)
    older = many_edges(tmp_path, 50, nodes=40)
    convert_graph(*older, folder, target="t")
    before = open_graph(folder).edge_index
    paths = many_edges(tmp_path, 1000)
    assert run(KILLED, *paths, folder).returncode == -9
    assert torch.equal(open_graph(folder).edge_index, before)
    convert_graph(*paths, folder, target="t")
    assert_same(open_graph(folder), read_graph(*paths, target="t"))
    assert not (folder / "unfinished").exists()


def test_text_table_most_rows_counts_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for text, rows in (("a,b\n1,2\n3,4\n", 2), ("a,b\r\n1,2\r\n3,4", 2), ("a,b\r1,2\r", 1)):
        path.write_bytes(text.encode())
        table = open_table(path)
        assert isinstance(table, TextTable)
        assert table.most_rows() == rows == sum(map(len, table.pieces(1)))
