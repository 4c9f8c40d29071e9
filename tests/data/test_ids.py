from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qpignn import convert_graph, from_frames, join_frames, open_graph, read_graph
from qpignn.data.ids import NodeIndex, find_column, known_ends
from qpignn.errors import GraphError, QpignnWarning, UnknownNameError


def ring(ids: Any, name: str = "id") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes in a ring, listed in the order of their ids; each edge joins two that follow."""
    column = pd.Series(list(ids))
    nodes = pd.DataFrame(
        {name: column, "size": np.arange(len(column)) % 7, "t": 1.5 * column.index}
    )
    edges = pd.DataFrame({"from": column, "to": np.roll(column, -1)})
    return nodes, edges


def neighbours(data: Any) -> set[tuple[Any, Any]]:
    ids = data.node_id
    return {(ids[a], ids[b]) for a, b in data.edge_index.T.tolist()}


@pytest.mark.parametrize("name", ["ID", "Id", "Node_ID", "node id", "NODE"])
def test_from_frames_id_in_another_case_joins_the_right_nodes(name: str) -> None:
    ids = np.random.default_rng(0).permutation(20)  # row 0 is not node 0
    nodes, edges = ring(ids, name)
    data = from_frames(nodes, edges, target="t")
    assert data.node_id.tolist() == ids.tolist()
    assert data.feature_names == ["size"]
    assert data.id_name == name
    following = set(zip(ids, np.roll(ids, -1), strict=True))
    assert neighbours(data) == following | {(b, a) for a, b in following}


def test_from_frames_unnamed_integer_index_raises() -> None:
    nodes, edges = ring(np.random.default_rng(0).permutation(20), "station")
    with pytest.raises(
        GraphError, match=r"column of node ids called 'id'.*got 'station', 'size'"
    ) as e:
        from_frames(nodes, edges, target="t")
    assert "name it with id=... (--id on the command line)" in str(e.value)
    assert str(e.value).endswith("those with a different value in every row are 'station'")
    kept = nodes[nodes["size"] > 1]  # a filtered table has integers for an index too
    with pytest.raises(GraphError, match="column of node ids"):
        from_frames(kept, None, target="t")


def test_from_frames_error_lists_columns_with_edge_ids_first() -> None:
    nodes, edges = ring([f"s{i}" for i in range(20)], "station")
    nodes.insert(0, "row", np.arange(20))
    with pytest.raises(GraphError, match=r"every row are 'station', 'row'$"):
        from_frames(nodes, edges, target="t")
    nodes["station"] = "s0"
    with pytest.raises(GraphError, match="a different value in every row; add a column of ids"):
        from_frames(nodes.drop(columns=["row"]), edges, target="t")


def test_from_frames_named_index_holds_ids() -> None:
    nodes, edges = ring(range(5, 25), "station")
    data = from_frames(nodes.set_index("station"), edges, target="t")
    assert data.node_id.tolist() == list(range(5, 25))
    assert data.id_name == "station"


def test_from_frames_id_spelled_exactly_comes_first() -> None:
    nodes, edges = ring(range(20))
    data = from_frames(nodes.assign(ID=7.0), edges, target="t")
    assert data.feature_names == ["size", "ID"]
    both = nodes.rename(columns={"id": "Id"}).assign(ID=7.0)
    with pytest.raises(GraphError, match="expected one column called 'id', got 'Id', 'ID'"):
        from_frames(both, edges, target="t")


@pytest.mark.parametrize(
    ("ids", "ends"),
    [
        (range(10), [str(i) for i in range(10)]),  # Parquet nodes, CSV edges
        ([str(i) for i in range(10)], range(10)),
        ([2**70 + i for i in range(10)], [str(2**70 + i) for i in range(10)]),
    ],
)
def test_node_index_integer_matches_decimal_text(ids: Any, ends: Any) -> None:
    nodes, _ = ring(ids)
    _, edges = ring(ends)
    exact = from_frames(nodes, ring(ids)[1], target="t")
    assert from_frames(nodes, edges, target="t").edge_index.tolist() == exact.edge_index.tolist()


@pytest.mark.parametrize(
    ("ids", "ends", "match", "phrase"),
    [
        (["00001", "00002"], [1, 2], "number", "leading zeros or in a decimal point"),
        (["1", "2"], ["00001", "00002"], "number", "leading zeros or in a decimal point"),
        (["0.0", "1.0"], ["0", "1"], "number", "leading zeros or in a decimal point"),
        ([0, 1], ["0.0", "1.0"], "number", "leading zeros or in a decimal point"),
        (["Ab", "Cd"], ["ab", "CD"], "caseless", "upper and lower case"),
        (["a ", "b "], ["a", "b"], "caseless", "in spaces"),
    ],
)
def test_from_frames_similar_ids_error_names_match_ids(
    ids: list[Any], ends: list[Any], match: str, phrase: str
) -> None:
    nodes = pd.DataFrame({"id": ids, "size": [1.0, 2.0], "t": [1.0, 3.0]})
    edges = pd.DataFrame({"from": ends[:1], "to": ends[1:]})
    with pytest.raises(GraphError, match=rf"{phrase}.*\(--match-ids {match}\)"):
        from_frames(nodes, edges, target="t")
    data = from_frames(nodes, edges, target="t", match_ids=match)
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert list(data.node_id) == ids  # as they were


def test_node_index_leading_zeros_do_not_match_integer() -> None:
    index = NodeIndex(pd.Index([1, 2, 3]))
    assert index.positions(["1", "01", "1.0", "+1", "x"]).tolist() == [0, -1, -1, -1, -1]
    text = NodeIndex(pd.Index(["1", "01"]))
    assert text.positions([1]).tolist() == [0]


def test_node_index_ids_equal_as_numbers_raise() -> None:
    with pytest.raises(GraphError, match="stay different, got '1', '01', which become equal"):
        NodeIndex(pd.Index(["1", "01", "2"]), "number")
    with pytest.raises(UnknownNameError, match="unknown way to match ids 'fuzzy'"):
        NodeIndex(pd.Index(["1"]), "fuzzy")


def test_join_frames_match_ids_applies_to_new_edges() -> None:
    nodes, edges = ring([f"0{i}" for i in range(5)])
    data = from_frames(nodes, edges, target="t")
    new = pd.DataFrame({"id": ["77"], "size": [3]})
    links = pd.DataFrame({"from": ["77"], "to": ["1"]})
    with pytest.raises(GraphError, match="--match-ids number"):
        join_frames(data, new, links)
    joined = join_frames(data, new, links, match_ids="number")
    assert ("77", "01") in neighbours(joined)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["km", "From", "TO"], ("From", "TO")),
        (["edge_id", "u", "v"], ("u", "v")),
        (["Origin", "Destination", "count"], ("Origin", "Destination")),
        (["a", "b"], None),
    ],
)
def test_known_ends_named_columns_found(columns: list[str], expected: Any) -> None:
    assert known_ends(columns) == expected


def test_find_column_prefers_order_of_names() -> None:
    assert find_column(["NODE", "x", "Node-ID"], ["id", "node_id", "node"]) == "Node-ID"
    assert find_column(["x"], ["id"]) is None


def test_end_columns_unnamed_takes_first_two_with_warning() -> None:
    nodes, edges = ring(range(20))
    plain = edges.rename(columns={"from": "a", "to": "b"})
    with pytest.warns(QpignnWarning, match="the first two, 'a', 'b', are taken as the ends"):
        data = from_frames(nodes, plain, target="t")
    assert data.edge_index.tolist() == from_frames(nodes, edges, target="t").edge_index.tolist()


@pytest.mark.parametrize("directed", [False, True])
def test_edge_table_with_edge_id_u_v_of_integers_joins_u_and_v(
    directed: bool, tmp_path: Path
) -> None:
    draw = np.random.default_rng(0)
    pairs = [(int(u), int(v)) for u, v in draw.integers(0, 200, (400, 2)) if u < v]
    pairs = sorted(set(pairs))[:200]
    nodes = pd.DataFrame({"id": range(200), "x": draw.random(200), "t": draw.random(200)})
    edges = pd.DataFrame(pairs, columns=["u", "v"])
    edges.insert(0, "edge_id", draw.permutation(len(pairs)))  # every one of them is a node id too
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    expected = set(pairs) if directed else {*pairs, *((v, u) for u, v in pairs)}
    files = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the edge table", QpignnWarning)
        in_memory = from_frames(nodes, edges, target="t", directed=directed)
        read = read_graph(*files, target="t", directed=directed)
        convert_graph(*files, tmp_path / "graph", target="t", directed=directed)
    for data in (in_memory, read, open_graph(tmp_path / "graph")):
        assert {tuple(edge) for edge in data.edge_index.t().tolist()} == expected


@pytest.mark.parametrize("later", [("b",), ("b", "km"), ("km",)], ids=",".join)
def test_end_columns_first_column_unique_raises(later: tuple[str, ...], tmp_path: Path) -> None:
    nodes, edges = ring(range(20))
    columns = {"nr": np.arange(20) ** 2 % 397, "a": [0] * 10 + [*edges["from"][10:]]}
    values = {"b": edges["to"], "km": [0.5] * 20}
    numbered = pd.DataFrame({**columns, **{name: values[name] for name in later}})
    message = "'nr' has a different value in every row, as a column of edge ids has: name"
    with pytest.raises(GraphError, match=message):
        from_frames(nodes, numbered, target="t")
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    numbered.to_csv(tmp_path / "edges.csv", index=False)
    with pytest.raises(GraphError, match=message):
        convert_graph(
            tmp_path / "nodes.csv", tmp_path / "edges.csv", tmp_path / "graph", target="t"
        )
    if "b" in later:
        data = from_frames(nodes, numbered, target="t", edge_ends=("a", "b"))
        assert (
            data.num_edges
            == from_frames(nodes, numbered[["a", "b"]], target="t", edge_ends=("a", "b")).num_edges
        )


def test_end_columns_second_column_unique_raises() -> None:
    nodes, _ = ring(range(20))
    hub = pd.DataFrame({"a": [0] * 19, "b": range(1, 20), "km": [0.5] * 19})
    with pytest.raises(GraphError, match="'b' has a different value in every row"):
        from_frames(nodes, hub, target="t")
    assert from_frames(nodes, hub, target="t", edge_ends=("a", "b")).num_edges == 38
    with pytest.warns(QpignnWarning, match="the first two, 'a', 'b', are taken"):
        assert from_frames(nodes, hub[["a", "b"]], target="t").num_edges == 38
