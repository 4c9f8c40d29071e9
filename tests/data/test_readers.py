from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from qpignn import read_graph
from qpignn.data.readers import read_table
from qpignn.errors import GraphError, ReadError

NODES = "id,speed,flow\n007,1.5,10\nNA,2.5,\n12345678901234567890123,3.5,30\n"
EDGES = "from,to\n007,NA\nNA, 12345678901234567890123\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text(NODES, encoding="utf-8")
    edges.write_text(EDGES, encoding="utf-8")
    return nodes, edges


def test_text_ids_keep_zeros_size_and_the_name_na(files: tuple[Path, Path]) -> None:
    data = read_graph(*files, target="flow")
    assert data.node_id.tolist() == ["007", "NA", "12345678901234567890123"]
    assert data.y.isnan().tolist() == [False, True, False]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_seen_in_the_header(files: tuple[Path, Path], delimiter: str) -> None:
    files[0].write_text(NODES.replace(",", delimiter))
    assert read_graph(*files, target="flow").x.shape == (3, 1)


def test_byte_order_mark_and_gzip(files: tuple[Path, Path], tmp_path: Path) -> None:
    files[0].write_text(NODES, encoding="utf-8-sig")
    packed = tmp_path / "edges.csv.gz"
    packed.write_bytes(gzip.compress(EDGES.encode()))
    assert read_graph(files[0], packed, target="flow").num_edges == 4


def test_spaces_around_names_and_blanks(files: tuple[Path, Path]) -> None:
    files[0].write_text("id, speed, flow\n007, 1.5, 10\nNA, 2.5,  \n12345678901234567890123,1,3\n")
    data = read_graph(*files, target="flow")
    assert data.feature_names == ["speed"]
    assert data.y.isnan().tolist() == [False, True, False]


def test_other_encodings_when_named(files: tuple[Path, Path]) -> None:
    files[0].write_text(NODES.replace("007", "Núñez"), encoding="latin-1")
    files[1].write_text(EDGES.replace("007", "Núñez"), encoding="latin-1")
    assert read_graph(*files, target="flow", encoding="latin-1").node_id[0] == "Núñez"
    with pytest.raises(ReadError, match=r"nodes.csv: expected text in utf-8.*encoding='latin-1'"):
        read_graph(*files, target="flow")
    with pytest.raises(ReadError, match="unknown encoding: klingon"):
        read_graph(*files, target="flow", encoding="klingon")


def test_parquet_keeps_types(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "n.parquet", tmp_path / "e.parquet"
    pd.DataFrame({"id": [5, 2**62], "x": [1.0, 2.0], "t": [1.0, None]}).to_parquet(nodes)
    pd.DataFrame({"s": [5], "d": [2**62], "w": [3.0]}).to_parquet(edges)
    data = read_graph(nodes, edges, target="t", edge_weight="w")
    assert data.node_id.tolist() == [5, 2**62]
    assert data.edge_weight.tolist() == [3.0, 3.0]


def test_a_graph_without_an_edge_file(files: tuple[Path, Path]) -> None:
    assert read_graph(files[0], None, target="flow").num_edges == 0


def test_named_edge_columns(files: tuple[Path, Path]) -> None:
    files[1].write_text("km,from,to\n3,007,NA\n")
    data = read_graph(*files, target="flow", edge_ends=("from", "to"), edge_weight="km")
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.edge_weight.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("", ReadError, "expected a header line"),
        ("code,flow\n1,2\n", ReadError, "expected an id column 'id', got 'code', 'flow'; .*--id"),
        ("id,speed\n007,1\n", GraphError, "lacks the column 'flow'"),
        ("id,speed,flow\n007,1,2\n008,1,2,3,4\n", ReadError, "cannot be read as a table"),
        ("id,speed,flow\n007,1,2\n007,1,3\n", GraphError, "got repeated: '007'"),
        ("id,speed,flow\n007,1,2\n,1,3\n", GraphError, "an id for every node"),
        ("id,speed,flow\n007,1 km,2\n", GraphError, "expected numbers, got '1 km' at node '007'"),
    ],
)
def test_files_that_are_no_node_table(
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
def test_headers_that_would_mislead(files: tuple[Path, Path], content: str, message: str) -> None:
    files[0].write_text(content)
    with pytest.raises(ReadError, match=f"nodes.csv: .*{message}"):
        read_graph(*files, target="flow")


def test_an_edge_file_without_a_header(files: tuple[Path, Path]) -> None:
    files[1].write_text("007,NA\nNA,12345678901234567890123\n")
    with pytest.raises(ReadError, match=r"got an edge .'007', 'NA' are node ids"):
        read_graph(*files, target="flow")


def test_not_there_a_folder_and_not_parquet(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="expected a file, got nothing"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(ReadError, match="got a folder"):
        read_table(tmp_path)
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(NODES.encode() * 50)[:60])
    with pytest.raises(ReadError, match=r"cut.csv.gz: cannot be read as a table"):
        read_table(tmp_path / "cut.csv.gz")
    (tmp_path / "fake.parquet").write_text("id,x\n")
    with pytest.raises(ReadError, match=r"fake.parquet: cannot be read as a table"):
        read_table(tmp_path / "fake.parquet")
