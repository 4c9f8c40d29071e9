from __future__ import annotations

import gzip
import time
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest

from qpignn import read_graph
from qpignn.data.column_roles import ColumnRoles
from qpignn.data.readers import graph_from_tables, read_tables
from qpignn.data.tables import open_table
from qpignn.errors import GraphError, ReadError

NODES = "id,speed,flow\n007,1.5,10\nNA,2.5,\n12345678901234567890123,3.5,30\n"
EDGES = "from,to\n007,NA\nNA, 12345678901234567890123\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text(NODES, encoding="utf-8")
    edges.write_text(EDGES, encoding="utf-8")
    return nodes, edges


def test_read_graph_text_ids_kept_exactly(files: tuple[Path, Path]) -> None:
    data = read_graph(*files, target="flow")
    assert data.node_id.tolist() == ["007", "NA", "12345678901234567890123"]
    assert data.y.isnan().tolist() == [False, True, False]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_read_graph_other_delimiters_detected(files: tuple[Path, Path], delimiter: str) -> None:
    files[0].write_text(NODES.replace(",", delimiter))
    assert read_graph(*files, target="flow").x.shape == (3, 1)


def test_read_graph_byte_order_mark_and_gzip_read(files: tuple[Path, Path], tmp_path: Path) -> None:
    files[0].write_text(NODES, encoding="utf-8-sig")
    packed = tmp_path / "edges.csv.gz"
    packed.write_bytes(gzip.compress(EDGES.encode()))
    assert read_graph(files[0], packed, target="flow").num_edges == 4


def test_read_graph_spaces_stripped(files: tuple[Path, Path]) -> None:
    files[0].write_text("id, speed, flow\n007, 1.5, 10\nNA, 2.5,  \n12345678901234567890123,1,3\n")
    data = read_graph(*files, target="flow")
    assert data.feature_names == ["speed"]
    assert data.y.isnan().tolist() == [False, True, False]


def test_read_graph_encoding_used(files: tuple[Path, Path]) -> None:
    files[0].write_text(NODES.replace("007", "Núñez"), encoding="latin-1")
    files[1].write_text(EDGES.replace("007", "Núñez"), encoding="latin-1")
    assert read_graph(*files, target="flow", encoding="latin-1").node_id[0] == "Núñez"
    with pytest.raises(ReadError, match=r"nodes.csv: expected text in utf-8.*encoding='latin-1'"):
        read_graph(*files, target="flow")
    with pytest.raises(ReadError, match="unknown encoding: klingon"):
        read_graph(*files, target="flow", encoding="klingon")


def test_read_graph_parquet_types_kept(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "n.parquet", tmp_path / "e.parquet"
    pd.DataFrame({"id": [5, 2**62], "x": [1.0, 2.0], "t": [1.0, None]}).to_parquet(nodes)
    pd.DataFrame({"s": [5], "d": [2**62], "w": [3.0]}).to_parquet(edges)
    data = read_graph(nodes, edges, target="t", edge_weight="w")
    assert data.node_id.tolist() == [5, 2**62]
    assert data.edge_weight.tolist() == [3.0, 3.0]


def test_read_graph_without_edges_empty(files: tuple[Path, Path]) -> None:
    assert read_graph(files[0], None, target="flow").num_edges == 0


def test_read_graph_edge_ends_used(files: tuple[Path, Path]) -> None:
    files[1].write_text("km,from,to\n3,007,NA\n")
    data = read_graph(*files, target="flow", edge_ends=("from", "to"), edge_weight="km")
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.edge_weight.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("", ReadError, "expected a header line"),
        (
            "code,flow\n1,2\n",
            ReadError,
            "column of node ids called 'id'.*got 'code', 'flow'; .*--id",
        ),
        ("id,speed\n007,1\n", GraphError, "lacks the column 'flow'"),
        ("id,speed,flow\n007,1,2\n008,1,2,3,4\n", ReadError, "cannot be read as a table"),
        ("id,speed,flow\n007,1,2\n007,1,3\n", GraphError, "got repeated: '007'"),
        ("id,speed,flow\n007,1,2\n,1,3\n", GraphError, "an id for every node"),
        (
            "id,speed,flow\n007,1 km,2\n008,2,3\n009,3,4\n",
            GraphError,
            "expected numbers, got '1 km' at node '007'",
        ),
    ],
)
def test_read_graph_invalid_node_file_raises(
    files: tuple[Path, Path], content: str, error: type[Exception], message: str
) -> None:
    files[0].write_text(content)
    with pytest.raises(error, match=message):
        read_graph(*files, target="flow")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,speed,flow,speed\n007,1,2,3\n", "each column name once, got repeated: 'speed'"),
        (",id,speed,flow\n0,007,1,2\n", "none for column 1; was the file written with its row"),
        ("id,speed,flow\n007,1,2,\n", "rows as long as the header line, got longer"),
    ],
)
def test_read_graph_invalid_header_raises(
    files: tuple[Path, Path], content: str, message: str
) -> None:
    files[0].write_text(content)
    with pytest.raises(ReadError, match=f"nodes.csv: .*{message}"):
        read_graph(*files, target="flow")


def test_read_graph_edge_file_without_header_raises(files: tuple[Path, Path]) -> None:
    files[1].write_text("007,NA\nNA,12345678901234567890123\n")
    with pytest.raises(ReadError, match=r"got an edge .'007', 'NA' are node ids"):
        read_graph(*files, target="flow")


def test_read_graph_missing_file_raises(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="expected a file, got nothing"):
        open_table(tmp_path / "absent.csv")
    with pytest.raises(ReadError, match="got a folder"):
        open_table(tmp_path)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(NODES.encode() * 50)[:60])
    with pytest.raises(ReadError, match=r"cut.csv.gz: cannot be read as a table"):
        open_table(tmp_path / "cut.csv.gz")
    (tmp_path / "fake.parquet").write_text("id,x\n")
    with pytest.raises(ReadError, match=r"fake.parquet: cannot be read as a table"):
        open_table(tmp_path / "fake.parquet")


def test_read_tables_returns_unencoded_tables(files: tuple[Path, Path]) -> None:
    tables = read_tables(*files, ColumnRoles(id="id"))
    assert tables.nodes.columns.to_list() == ["id", "speed", "flow"]
    assert tables.nodes["id"].to_list() == ["007", "NA", "12345678901234567890123"]
    assert tables.edges is not None
    assert tables.edges.to_numpy().tolist()[0] == ["007", "NA"]
    assert (tables.directed, tables.id) == (None, "id")
    assert read_tables(files[0], None).edges is None


def test_read_graph_text_columns_are_categories(files: tuple[Path, Path]) -> None:
    files[0].write_text(
        "id,road,speed,flow\n007,main,1,10\nNA, side,,\n12345678901234567890123,main,3,30\n"
    )
    data = read_graph(*files, target="flow", missing="impute")
    assert data.feature_names == ["road=main", "road=side", "speed", "speed is blank"]
    assert data.x.tolist() == [[1, 0, 1, 0], [0, 1, 2, 1], [1, 0, 3, 0]]
    again = read_graph(*files, target=None, coding=data.coding)
    assert again.x.tolist() == data.x.tolist()


def test_read_graph_thousands_separators_raise(files: tuple[Path, Path]) -> None:
    files[0].write_text('id,speed,flow\n007,"1,234",10\nNA,"2,345",20\n8,"5",30\n')
    with pytest.raises(GraphError, match=r"got '1,234' at node '007' .*thousands or decimal"):
        read_graph(*files, target="flow")


@pytest.fixture
def roads() -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_node("007", speed=1.5, kind="main", flow=10.0)
    graph.add_node("NA", speed=2.5, kind="side")
    graph.add_node("c", speed=3.5, kind="main", flow=30.0)
    graph.add_edge("007", "NA", km=2.0)
    graph.add_edge("NA", "c", km=4.0)
    return graph


@pytest.mark.parametrize("name", ["g.graphml", "g.GraphML", "g.graphml.gz"])
def test_read_graph_graphml_nodes_edges_direction(
    roads: nx.DiGraph, tmp_path: Path, name: str
) -> None:
    nx.write_graphml(roads, tmp_path / name)
    data = read_graph(tmp_path / name, None, target="flow", edge_weight="km")
    assert data.node_id.tolist() == ["007", "NA", "c"]
    values = dict(zip(data.feature_names, data.x.T.tolist(), strict=True))
    assert values == {"speed": [1.5, 2.5, 3.5], "kind=main": [1, 0, 1], "kind=side": [0, 1, 0]}
    assert data.y.isnan().tolist() == [False, True, False]
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert data.edge_weight.tolist() == [2.0, 4.0]


def test_read_tables_undirected_graphml(roads: nx.DiGraph, tmp_path: Path) -> None:
    nx.set_node_attributes(roads, "x", "code")
    nx.write_graphml(roads.to_undirected(), tmp_path / "g.graphml")
    nodes, edges, directed, id = read_tables(tmp_path / "g.graphml", None, ColumnRoles(id="code"))
    assert nodes["code"].to_list() == ["007", "NA", "c"]
    assert nodes["code_attribute"].to_list() == ["x", "x", "x"]
    assert edges is not None
    assert edges[["from", "to", "km"]].to_numpy().tolist() == [["007", "NA", 2], ["NA", "c", 4]]
    assert (directed, id) == (False, "code")
    data = read_graph(tmp_path / "g.graphml", None, target="flow", id="code", features=["speed"])
    assert data.num_edges == 4


def test_graph_from_tables_direction_of_file_overrides(roads: nx.DiGraph, tmp_path: Path) -> None:
    nx.write_graphml(roads, tmp_path / "g.graphml")
    tables = read_tables(tmp_path / "g.graphml", None)
    data = graph_from_tables(tables, target="flow", directed=False)
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]


def test_read_graph_graphml_without_edges_and_multigraph(roads: nx.DiGraph, tmp_path: Path) -> None:
    twice = nx.MultiDiGraph(roads)
    twice.add_edge("007", "NA", km=6.0)
    nx.write_graphml(twice, tmp_path / "twice.graphml")
    data = read_graph(tmp_path / "twice.graphml", None, target="flow", edge_weight="km")
    assert data.edge_weight.tolist() == [4.0, 4.0]
    roads.clear_edges()
    nx.write_graphml(roads, tmp_path / "none.graphml")
    bare = read_graph(tmp_path / "none.graphml", None, target="flow", edge_weight="km")
    assert bare.num_edges == 0


HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
KEY = '<key id="k" for="node" attr.name="x" attr.type="int"><default>5</default></key>'


def graphml(inside: str) -> str:
    return f'{HEAD}{KEY}<graph edgedefault="undirected">{inside}</graph></graphml>'


def test_read_graph_graphml_key_defaults_applied(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(graphml('<node id="a"><data key="k">7</data></node><node id="b"/>'))
    assert read_graph(path, None, target=None).x.tolist() == [[7], [5]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<graphml><graph>", "expected GraphML, got broken XML"),
        ("", "expected GraphML, got broken XML"),
        ("<table/>", "cannot be read as GraphML"),
        (graphml(""), "expected a graph with nodes, got none"),
        (graphml("<node/>"), "a name for every node"),
        (graphml('<node id="a"/><node id="a"/>'), "each node once, got repeated: 'a'"),
        (
            graphml('<node id="a"/><edge source="a" target="b"/>'),
            "edges name nodes that the file lacks: 'b'",
        ),
        (graphml('<node id="a"><data key="k">many</data></node>'), "cannot be read as GraphML"),
        (graphml('<node id="a"><data key="q">1</data></node>'), "cannot be read as GraphML"),
    ],
)
def test_read_graph_invalid_graphml_raises(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(content)
    with pytest.raises(ReadError, match=f"g.graphml: .*{message}"):
        read_graph(path, None, target="x")


def test_read_graph_graphml_with_edge_file_raises(files: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(graphml('<node id="a"/>'))
    with pytest.raises(ReadError, match=r"a GraphML file alone.*got also .*edges.csv"):
        read_graph(path, files[1], target="x")
    with pytest.raises(ReadError, match="a GraphML file alone"):
        read_graph(files[0], path, target="x")
    with pytest.raises(ReadError, match="expected a file, got nothing"):
        read_graph(tmp_path / "absent.graphml", None, target="x")
    (tmp_path / "cut.graphml.gz").write_bytes(gzip.compress(graphml("").encode() * 50)[:40])
    with pytest.raises(ReadError, match=r"cut.graphml.gz: cannot be read"):
        read_graph(tmp_path / "cut.graphml.gz", None, target="x")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_read_graph_graphml_entities_raise(tmp_path: Path, encoding: str) -> None:
    grow = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    node = '<node id="a"><data key="k">&e11;</data></node>'
    path = tmp_path / "bomb.graphml"
    text = f'<!DOCTYPE graphml [<!ENTITY e0 "ha">{grow}]>{graphml(node)}'
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?>{text}', encoding=encoding)
    start = time.monotonic()
    with pytest.raises(ReadError, match=r"bomb.graphml: .*got a DOCTYPE"):
        read_graph(path, None, target="x")
    assert time.monotonic() - start < 1


def test_read_graph_misspelt_name_suggests_similar(files: tuple[Path, Path]) -> None:
    near = files[0].with_name(files[0].name.replace("nodes", "node"))
    with pytest.raises(ReadError, match=f"did you mean {files[0].name}"):
        read_graph(near, files[1], target="flow")
    with pytest.raises(GraphError, match=r"lacks the column 'flwo'.*did you mean flow\?"):
        read_graph(*files, target="flwo")
