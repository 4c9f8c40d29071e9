from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hostile import within
from qpignn import convert_graph, read_graph
from qpignn.data import excel_table
from qpignn.data.excel_table import to_excel
from qpignn.errors import ReadError, SettingError

openpyxl = pytest.importorskip("openpyxl", reason='needs the extra "excel"')

NODES = [
    ["FIPS", "ID", "size", "t"],
    [1001, "a", 1.5, 2],
    [1003, "b", 2.5, None],
    [1005, "c", 3, 4],
]
EDGES = [["from", "to"], ["a", "b"], ["b", "c"]]


def book(path: Path, **sheets: list[list[Any]]) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def test_read_graph_sheets_named_nodes_and_edges_found(tmp_path: Path) -> None:
    file = book(tmp_path / "graph.xlsx", Notes=[["hello"]], Nodes=NODES, Edges=EDGES)
    data = read_graph(file, file, target="t", id="ID", ignore=["FIPS"])
    assert data.node_id.tolist() == ["a", "b", "c"]
    assert data.x.flatten().tolist() == [1.5, 2.5, 3.0]
    assert data.y.isnan().tolist() == [False, True, False]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_excel_table_sheet_chosen_by_name_or_if_single(tmp_path: Path) -> None:
    alone = book(tmp_path / "nodes.xlsx", Sheet1=NODES)
    assert read_graph(alone, None, target="t", id="FIPS").node_id.tolist() == [1001, 1003, 1005]
    two = book(tmp_path / "two.xlsx", first=EDGES, second=NODES)
    with pytest.raises(ReadError, match=r"got 'first', 'second'; name the sheet with node_sheet"):
        read_graph(two, None, target="t")
    data = read_graph(two, two, target="t", id="ID", node_sheet="second", edge_sheet="first")
    assert data.num_edges == 4
    with pytest.raises(ReadError, match="a sheet called 'third', got 'first', 'second'"):
        read_graph(two, None, target="t", node_sheet="third")


def test_read_graph_workbook_integer_ids_match_text_file(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("from,to\n1001,1003\n")
    nodes = book(tmp_path / "nodes.xlsx", Sheet1=NODES)
    data = read_graph(nodes, tmp_path / "edges.csv", target="t", id="FIPS", ignore=["ID"])
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "expected a header row with column names, got no cells"),
        (
            [["Stations in 2024"], *NODES],
            "got 'Stations in 2024' above rows of 4 columns: it looks",
        ),
        ([["id", None, "t"], ["a", 1, 2]], "a name for every column, got none for column 2"),
        ([["id", "t", "t"], ["a", 1, 2]], "each column once, got repeated: 't'"),
    ],
)
def test_excel_table_sheet_without_header_raises(
    tmp_path: Path, rows: list[list[Any]], message: str
) -> None:
    file = book(tmp_path / "nodes.xlsx", Sheet1=rows)
    with pytest.raises(ReadError, match=f"nodes.xlsx: .*{message}"):
        read_graph(file, None, target="t")


def test_excel_table_invalid_workbook_raises(tmp_path: Path) -> None:
    (tmp_path / "nodes.xlsx").write_text("id,t\na,1\n")
    with pytest.raises(ReadError, match="expected an Excel workbook, got another file"):
        read_graph(tmp_path / "nodes.xlsx", None, target="t")
    with zipfile.ZipFile(tmp_path / "other.xlsx", "w") as packed:
        packed.writestr("hello.txt", "hello")
    with pytest.raises(ReadError, match="expected an Excel workbook, got another file"):
        read_graph(tmp_path / "other.xlsx", None, target="t")
    with pytest.raises(ReadError, match=r"read by pieces .*got an Excel workbook"):
        convert_graph(book(tmp_path / "n.xlsx", s=NODES), None, tmp_path / "g", target="t", id="ID")


def test_excel_table_larger_than_memory_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = book(tmp_path / "nodes.xlsx", Sheet1=NODES)
    monkeypatch.setattr(excel_table, "free_memory", lambda: 1000)
    with pytest.raises(ReadError, match=r"fits into memory .* bytes when unpacked"):
        read_graph(file, None, target="t")
    monkeypatch.setattr(excel_table, "_check_size", lambda path: None)
    with pytest.raises(ReadError, match=r"sheet that fits into memory .*first 1 rows"):
        read_graph(file, None, target="t")


def test_excel_table_empty_rows_left_out(tmp_path: Path) -> None:
    rows = [["id", "v", "t"], [None] * 3, [1, 0.5, 1.0], [None] * 3, [2, 1.5, 2.0], [3, 2.5, 4.0]]
    data = read_graph(book(tmp_path / "book.xlsx", Sheet1=rows), None, target="t")
    assert data.x.flatten().tolist() == [0.5, 1.5, 2.5]


def test_to_excel_too_many_rows_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel_table, "MOST_ROWS", 3)
    assert to_excel(pd.DataFrame({"id": [1, 2]}))  # and the header
    with pytest.raises(SettingError, match=r"at most 2 rows for an Excel sheet, got 3; write .csv"):
        to_excel(pd.DataFrame({"id": [1, 2, 3]}))


def lying(file: Path, part: str, content: bytes) -> Path:
    """Add a part to a workbook whose two headers say that it unpacks to 10 bytes."""
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(part, content)
    whole = bytearray(file.read_bytes())
    size = len(content).to_bytes(4, "little")
    assert whole.count(size) == 2
    file.write_bytes(whole.replace(size, (10).to_bytes(4, "little")))
    return file


def test_excel_table_understated_sizes_raises(tmp_path: Path) -> None:
    file = lying(book(tmp_path / "nodes.xlsx", Sheet1=NODES), "xl/extra.xml", b" " * 200_000_003)
    with within(megabytes=100), pytest.raises(ReadError, match="got another file"):
        read_graph(file, None, target="t", id="ID")


def test_excel_table_many_tags_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of tags becomes many megabytes of elements."""
    file = book(tmp_path / "nodes.xlsx", Sheet1=NODES)
    assert read_graph(file, None, target="t", id="ID").num_nodes == 3
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/extra.xml", b"<a/>" * 1_000_000)
    assert file.stat().st_size < 100_000
    monkeypatch.setattr(excel_table, "free_memory", lambda: 2**26)
    with within(megabytes=50), pytest.raises(ReadError, match="workbook that fits into memory"):
        read_graph(file, None, target="t", id="ID")


def test_excel_table_long_texts_count_as_well_as_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shared texts stand in the file once, and in a table as often as they occur."""
    rows = [["ID", "t", "x"], *([i, i, "z" * 30_000] for i in range(500))]
    file = book(tmp_path / "nodes.xlsx", Sheet1=rows)
    monkeypatch.setattr(excel_table, "_check_size", lambda path: None)
    monkeypatch.setattr(excel_table, "free_memory", lambda: 2**25)
    with pytest.raises(ReadError, match=r"sheet that fits into memory .*first \d+ rows"):
        read_graph(file, None, target="t", id="ID")
    short = book(tmp_path / "short.xlsx", Sheet1=[[*row[:2], "z"] for row in rows])
    assert len(excel_table.ExcelTable.open(short).frame) == 500


def test_to_excel_round_trip_keeps_formulas_as_text(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"id": ["=1+1", "b", "-2"], "prediction": [1.5, 2.5, -1.0], "n": [1, 2, 3]}
    )
    (tmp_path / "out.xlsx").write_bytes(to_excel(frame.assign(upper=[1.0, float("inf"), 2.0])))
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert [cell.data_type for cell in sheet["A"]] == ["s"] * 4  # text, never "f", a formula
    assert [cell.value for cell in sheet["A"]] == ["id", "=1+1", "b", "-2"]
    assert [cell.value for cell in sheet["B"]] == ["prediction", 1.5, 2.5, -1]
    assert sheet["D3"].value == "inf"
    with pytest.raises(SettingError, match="control characters"):
        to_excel(pd.DataFrame({"id": ["\x01"]}))


def test_excel_table_without_openpyxl_names_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = book(tmp_path / "nodes.xlsx", Sheet1=NODES)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(SettingError, match=r'needs openpyxl.*install "qpignn\[excel\]"'):
        read_graph(file, None, target="t")
