from __future__ import annotations

import gzip
import time
import warnings
from pathlib import Path

import pytest

from qpignn import read_graph
from qpignn.data.sniff import sniff
from qpignn.data.tables import open_table
from qpignn.errors import GraphError, QpignnWarning, ReadError


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    file = tmp_path / "edges.csv"
    file.write_text("from,to,km\na,b,1.5\nb,c,2.5\n")
    return file


def test_sniff_decimal_comma_per_file(tmp_path: Path, edges: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("id;height;t\na;1,5;2\nb;2,25;\nc;10,0;3,5\n")
    data = read_graph(nodes, edges, target="t", edge_weight="km")
    assert data.x.flatten().tolist() == [1.5, 2.25, 10.0]
    assert data.y[2] == 3.5
    assert sorted(set(data.edge_weight.tolist())) == [1.5, 2.5]
    asked = read_graph(nodes, edges, target="t", edge_weight="km", decimal=",")
    assert asked.edge_weight.tolist() == data.edge_weight.tolist()


def test_sniff_quoted_decimal_comma_if_requested(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text('id,height,t\na,"1,5",2\nb,"2,25",3\n')
    with pytest.raises(GraphError, match=r"a decimal comma.*decimal=',' \(--decimal ,\)"):
        read_graph(nodes, None, target="t")  # "1,5" might mean two things
    assert read_graph(nodes, None, target="t", decimal=",").x.flatten().tolist() == [1.5, 2.25]


@pytest.mark.parametrize("cells", [("1,234", "2,500"), ("1.234", "1,5")])
def test_sniff_ambiguous_commas_raise(tmp_path: Path, cells: tuple[str, str]) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text(f"id;size;t\na;{cells[0]};2\nb;{cells[1]};3\n")
    assert sniff(nodes, encoding="utf-8", decimal="auto", thousands=None).decimal == "."
    with pytest.raises(GraphError, match="expected numbers"):
        read_graph(nodes, None, target="t")


def test_sniff_thousands_if_requested(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text('id,size,t\na,"1,234",2\nb,"1,234,567.5",3\nc,12,4\n')
    with pytest.raises(GraphError, match=r"\(--decimal ,\) or thousands=',' \(--thousands ,\)"):
        read_graph(nodes, None, target="t")
    data = read_graph(nodes, None, target="t", thousands=",")
    assert data.x.flatten().tolist() == [1234, 1234567.5, 12]
    nodes.write_text("id;size;t\na;1.234,5;2\nb;12,25;3\n")
    data = read_graph(nodes, None, target="t", thousands=".")
    assert data.x.flatten().tolist() == [1234.5, 12.25]


def test_sniff_decimal_comma_not_thousands(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text('id,size,t\na,"1,5",2\nb,"1,234",3\n')
    with pytest.raises(GraphError, match="expected numbers, got '1,5'"):
        read_graph(nodes, None, target="t", thousands=",")
    with pytest.raises(ReadError, match="another than the decimal sign ',', got ','"):
        read_graph(nodes, None, target="t", thousands=",", decimal=",")
    with pytest.raises(ReadError, match=r"decimal: expected '.', ',' or 'auto', got '/'"):
        read_graph(nodes, None, target="t", decimal="/")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize("packed", [False, True])
def test_sniff_byte_order_mark_sets_encoding(tmp_path: Path, encoding: str, packed: bool) -> None:
    text = "id\tname\tt\nä\tone\t1\nö\ttwo\t2\n".encode(encoding)
    nodes = tmp_path / ("nodes.tsv.gz" if packed else "nodes.tsv")
    nodes.write_bytes(gzip.compress(text) if packed else text)
    assert read_graph(nodes, None, target="t").node_id.tolist() == ["ä", "ö"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"id": 1, "t": 2}]', "expected a table of text, got JSON; save it as CSV"),
        (b'  {"id": [1]}', "got JSON"),
        (b"<html><table></table>", "got HTML or XML"),
        (b"PK\x03\x04rest", "got an Excel workbook or a zip archive; rename it to .xlsx"),
        ("id,t\na,1\n".encode("utf-16-le"), "zero bytes, as in UTF-16; pass its encoding"),
        (
            b"Stations in 2024\nid,size,t\na,1,2\nb,2,3\n",
            r"expected column names in the first line, got 'Stations in 2024' above lines of 3 "
            r"columns \('id', 'size', 't'\): it looks like a title; delete the lines above",
        ),
        (b"Stations,,\nid,size,t\na,1,2\n", "it looks like a title"),
        (b"\nStations in 2024\n\nid;size;t\na;1;2\n", "it looks like a title"),
    ],
)
def test_sniff_other_file_types_raise(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "nodes.csv"
    file.write_bytes(content)
    with pytest.raises(ReadError, match=f"nodes.csv: .*{message}"):
        read_graph(file, None, target="t")


def test_open_table_json_suffix_raises(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text("{}")
    with pytest.raises(ReadError, match=r"got .json; save it as CSV or Parquet"):
        read_graph(tmp_path / "nodes.json", None, target="t")


def test_from_frames_leading_zeros_warn(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("id,area,size,t\na,01001,10,2\nb,36061,20,3\nc,06037,5,4\n")
    with pytest.warns(
        QpignnWarning, match=r"'area' holds numbers with leading zeros, such as 01001"
    ):
        read_graph(nodes, None, target="t")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = read_graph(nodes, None, target="t", categorical=["area"])
        read_graph(nodes, None, target="t", ignore=["area"])
    assert "area=01001" in data.feature_names


def test_sniff_very_long_cell_read(tmp_path: Path) -> None:
    nodes = tmp_path / "n.csv"
    nodes.write_text(f"id,v,t,note\n1,1.5,1,{'x' * 200_000}\n2,2.5,2,y\n3,0.5,3,z\n")
    data = read_graph(nodes, None, target="t", ignore=["note"])
    assert data.x.flatten().tolist() == [1.5, 2.5, 0.5]


def test_sniff_many_columns_fast(tmp_path: Path) -> None:
    names = [f"column{i}" for i in range(40_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join(["1"] * 40_000) + "\n")
    started = time.process_time()
    assert open_table(tmp_path / "wide.csv").columns == names
    assert time.process_time() - started < 5  # it was 15 s when names were compared in pairs
