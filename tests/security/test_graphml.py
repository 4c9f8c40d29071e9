"""Untrusted GraphML: no entity expands, no other file is read, no packed one fills memory."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hostile import within
from qpignn import read_graph
from qpignn.data import readers, text_table
from qpignn.errors import ReadError

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
KEY = '<key id="k" for="node" attr.name="x" attr.type="string"/>'


def graphml(value: str, before: str = "") -> str:
    values = {"a": value, "b": "c"}.items()
    node = "".join(f'<node id="{i}"><data key="k">{text}</data></node>' for i, text in values)
    inside = f'{HEAD}{KEY}<graph edgedefault="undirected">{node}</graph></graphml>'
    return f'<?xml version="1.0"?>{before}{inside}'


def test_read_graph_valid_graphml(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(graphml("&lt;script&gt;"))
    data = read_graph(path, None, target=None)
    assert data.feature_names == ["x=<script>", "x=c"]


def laughs(depth: int = 12) -> str:
    grow = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, depth))
    return f'<!DOCTYPE graphml [<!ENTITY e0 "ha">{grow}]>'


HOSTILE = {
    "billion laughs": graphml("&e11;", laughs()),
    "quadratic": graphml("&e;" * 10_000, f'<!DOCTYPE graphml [<!ENTITY e "{"x" * 10_000}">]>'),
    "external entity": graphml(
        "&e;", '<!DOCTYPE graphml [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    ),
    "external address": graphml(
        "&e;", '<!DOCTYPE graphml [<!ENTITY e SYSTEM "http://127.0.0.1:9/x">]>'
    ),
    "parameter entity": graphml(
        "x", '<!DOCTYPE graphml [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>'
    ),
    "external DTD": graphml("x", '<!DOCTYPE graphml SYSTEM "file:///etc/passwd">'),
    "defaults of attributes": graphml("x", '<!DOCTYPE graphml [<!ATTLIST node id CDATA "pwned">]>'),
    "in capitals after a comment": graphml("x", "<!-- a --><!DOCTYPE graphml []>"),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("name", HOSTILE)
def test_declarations_are_refused_before_anything_expands(
    tmp_path: Path, name: str, encoding: str
) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(HOSTILE[name], encoding=encoding)
    with within(seconds=2, megabytes=50), pytest.raises(ReadError, match="got a DOCTYPE") as caught:
        read_graph(path, None, target=None)
    assert "root:" not in str(caught.value)


def test_read_graph_undeclared_entity_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text(graphml("&e11;"))
    with pytest.raises(ReadError, match="broken XML"):
        read_graph(path, None, target=None)


def test_other_files_are_not_included(tmp_path: Path) -> None:
    include = (
        '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd" parse="text"/>'
    )
    path = tmp_path / "g.graphml"
    path.write_text(graphml(f"d{include}"))
    data = read_graph(path, None, target=None, missing="impute")
    assert not [name for name in data.feature_names if "root" in name]
    assert data.num_nodes == 2


def test_read_graph_deeply_nested_elements(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    deep = 100_000
    path.write_text(graphml("x").replace("<graph ", "<a>" * deep + "</a>" * deep + "<graph "))
    with within(seconds=10):
        assert read_graph(path, None, target=None).num_nodes == 2


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (readers, text_table):
        monkeypatch.setattr(module, "free_memory", lambda: 2**26)


@pytest.mark.parametrize("name", ["g.graphml.gz", "g.csv.gz", "quoted.csv.gz"])
@pytest.mark.usefixtures("little_memory")
def test_packed_files_are_not_unpacked_without_end(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    beginning = {
        "g.graphml.gz": b"<graphml>",
        "g.csv.gz": b"id,x\n1,2\n",
        "quoted.csv.gz": b'id,"x\n',
    }
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(beginning[name])
        for _ in range(300):
            file.write(b" " * 2**20)
    assert path.stat().st_size < 10**6
    with within(megabytes=150), pytest.raises(ReadError, match="fits into memory"):
        read_graph(path, None, target=None)


def test_read_graph_endless_header_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.csv.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(300):
            file.write(b"a" * 2**20)
    with (
        within(megabytes=200),
        pytest.raises(ReadError, match="a header line, got one of over 16,777,216 characters"),
    ):
        read_graph(path, None, target=None)
