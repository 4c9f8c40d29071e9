from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qpignn import from_frames, from_networkx
from qpignn.errors import GraphError, QpignnError, UnknownNameError


@pytest.fixture
def nodes() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": ["x", "y", "z"],
            "speed": [1.0, 2.0, 3.0],
            "lanes": [1, 2, 2],
            "flow": [10.0, None, 30.0],
        }
    )


@pytest.fixture
def edges() -> pd.DataFrame:
    return pd.DataFrame({"from": ["x", "z"], "to": ["y", "y"], "length": [2.0, 4.0]})


def test_from_frames_columns_get_their_roles(nodes: pd.DataFrame, edges: pd.DataFrame) -> None:
    data = from_frames(nodes, edges, target="flow", edge_weight="length")
    assert data.feature_names == ["speed", "lanes"]
    assert data.x.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 2.0]]
    assert data.node_id.tolist() == ["x", "y", "z"]
    assert data.y[0] == 10
    assert data.y.isnan().tolist() == [False, True, False]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight.tolist() == [2.0, 2.0, 4.0, 4.0]


def test_from_frames_directed_keeps_direction(nodes: pd.DataFrame, edges: pd.DataFrame) -> None:
    data = from_frames(nodes, edges, target="flow", directed=True)
    assert data.edge_index.tolist() == [[0, 2], [1, 1]]


def test_from_frames_split_and_node_weight_set(nodes: pd.DataFrame, edges: pd.DataFrame) -> None:
    nodes = nodes.assign(part=["train", " Validation", None], w=[1, 2, 3])
    data = from_frames(nodes, edges, target="flow", split="part", node_weight="w")
    assert data.train_mask.tolist() == [True, False, False]
    assert data.val_mask.tolist() == [False, True, False]
    assert data.test_mask.tolist() == [False, False, False]
    assert data.node_weight.tolist() == [1.0, 2.0, 3.0]
    assert data.feature_names == ["speed", "lanes"]


@pytest.mark.parametrize("edges", [None, pd.DataFrame({"a": [], "b": []})])
def test_from_frames_without_edges_empty_edge_index(
    nodes: pd.DataFrame, edges: pd.DataFrame | None
) -> None:
    assert from_frames(nodes, edges, target="flow").edge_index.shape == (2, 0)


def test_from_frames_named_index_gives_ids() -> None:
    nodes = pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}, index=["p", "q"])
    data = from_frames(nodes, pd.DataFrame({"s": ["p"], "t": ["q"]}), target="y")
    assert data.node_id.tolist() == ["p", "q"]
    assert data.num_edges == 2


BIG = 2**80
IDS = st.one_of(
    st.lists(st.text(min_size=1), min_size=2, max_size=6, unique=True),
    st.lists(st.integers(-BIG, BIG), min_size=2, max_size=6, unique=True),
    st.lists(st.tuples(st.integers(), st.integers()), min_size=2, max_size=6, unique=True),
)


@given(IDS)
def test_from_frames_ids_of_any_type_kept(ids: list[object]) -> None:
    column = pd.Series(ids, dtype=object)
    nodes = pd.DataFrame({"id": column, "x": np.arange(len(ids)), "t": np.arange(len(ids))})
    edges = pd.DataFrame({"a": column[:1], "b": column[1:2].to_list()})
    data = from_frames(nodes, edges, target="t")
    assert list(data.node_id) == ids
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


def test_from_frames_large_features_float64() -> None:
    ages = [1_700_000_001, 1_700_000_002, 1_700_000_004]
    nodes = pd.DataFrame({"id": [1, 2, 3], "seen": ages, "t": [1, 2, 3]})
    assert from_frames(nodes, None, target="t").x.flatten().tolist() == ages
    huge = nodes.assign(seen=[0.0, 1e39, 2e39])
    assert from_frames(huge, None, target="t").x.flatten().tolist() == [0.0, 1e39, 2e39]
    plain = from_frames(nodes.assign(seen=[0.1, 0.2, 0.3]), None, target="t")
    assert plain.x.dtype == torch.float32


def test_from_frames_blank_target_is_nan() -> None:
    nodes = pd.DataFrame({"id": [1, 2, 3, 4], "x": 1.0, "t": ["1.5", "", "  ", "2"]})
    assert from_frames(nodes, None, target="t").y.isnan().tolist() == [False, True, True, False]


def test_from_frames_need_target_false_accepts_unlabelled() -> None:
    nodes = pd.DataFrame({"id": [1, 2], "x": [1.0, 2.0], "t": [None, None]})
    assert from_frames(nodes, None, target="t", need_target=False).y.isnan().all()


def test_from_frames_large_targets_keep_digits() -> None:
    nodes = pd.DataFrame({"id": [1, 2], "x": [0, 1], "t": [1_700_000_001, 1_700_000_002]})
    assert from_frames(nodes, None, target="t").y.diff().item() == 1


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"id": ["x", "y", "x"]}, {}, "each node id once, got repeated: 'x'"),
        ({"id": ["x", None, "z"]}, {}, "an id for every node, got blank ids in rows"),
        ({"speed": [1.0, np.nan, 3.0]}, {}, "column 'speed': .*blank at node 'y'"),
        ({"speed": [1.0, np.inf, 3.0]}, {}, "got inf in column 'speed' of node 'y'"),
        ({"speed": [1.0, "fast", 3.0]}, {}, "'speed': expected numbers, got 'fast' at node 'y'"),
        ({"speed": [[1], [2], [3]]}, {}, "'speed': expected numbers"),
        ({"speed": pd.to_datetime(["2020-01-01"] * 3)}, {}, "got dates; turn them into"),
        (
            {"flow": ["1", "much", ""]},
            {},
            "target column 'flow': expected numbers, got 'much' .*leave unknown targets blank",
        ),
        ({"flow": [None, None, None]}, {}, "at least one labelled node, got none"),
        ({"flow": [5, 5, None]}, {}, "targets that vary, got 2 labelled nodes"),
        ({}, {"target": "volume"}, "node table lacks the column 'volume'; it has 'id', 'speed'"),
        ({}, {"id": "code"}, "node table lacks the column 'code'"),
        ({}, {"features": ["speed", "hue"]}, "node table lacks the column 'hue'"),
        ({}, {"features": []}, "at least one feature column"),
        ({}, {"features": ["speed", "flow"]}, "none that has another role, got 'flow'"),
        ({}, {"features": ["speed", "speed"]}, "each column once"),
        ({}, {"edge_weight": "w"}, "edge table lacks the column 'w'"),
        ({}, {"edge_ends": ("a",)}, "edge_ends: expected two columns, got 'a'"),
        ({}, {"edge_ends": ("from", "c")}, "edge table lacks the column 'c'"),
        ({"part": ["train", "holdout", ""]}, {"split": "part"}, "got 'holdout' at node 'y'"),
        ({"w": [1, -1, 1]}, {"node_weight": "w"}, "node_weight: expected finite numbers from 0 up"),
        (
            {"w": [1, None, 1]},
            {"node_weight": "w"},
            "1 blank.; fill them or leave the column out$",
        ),
        ({}, {"ignore": ["hue"]}, "node table lacks the column 'hue'"),
        ({}, {"ignore": ["flow"]}, "ignore: expected columns without another role, got 'flow'"),
        ({}, {"ignore": ["speed"], "features": ["speed"]}, "ignore: .*got 'speed'"),
        ({}, {"ignore": ["speed", "lanes"]}, "at least one feature column"),
        (
            {},
            {"ignore": "speed"},
            r"expected a list of columns, got 'speed'; write ignore=\['speed",
        ),
        ({}, {"categorical": ["hue"]}, "node table lacks the column 'hue'"),
        ({}, {"categorical": ["flow"]}, "categorical: expected feature columns, got 'flow'"),
        ({}, {"categorical": ["lanes"], "ignore": ["lanes"]}, "categorical: .*got 'lanes'"),
        ({}, {"coding": {"columns": []}}, "coding: expected the coding of an earlier graph"),
    ],
)
def test_from_frames_invalid_tables_raise(
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    change: dict[str, object],
    options: dict[str, object],
    message: str,
) -> None:
    with pytest.raises(GraphError, match=message):
        from_frames(nodes.assign(**change), edges, **{"target": "flow", **options})


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (
            {"a": ["x", "q"], "b": ["y", "y"]},
            "'a' names nodes that the node table lacks: 'q', .*row 2",
        ),
        ({"a": ["x", None], "b": ["y", "y"]}, "edge column 'a': got blank ids in edge rows 2"),
        ({"a": [1, 2], "b": [2, 3]}, "different types: int64 and str"),
        ({"a": ["x"]}, "two columns of node ids, got 'a'"),
    ],
)
def test_from_frames_invalid_edges_raise(
    nodes: pd.DataFrame, ends: dict[str, list[object]], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        from_frames(nodes, pd.DataFrame(ends), target="flow")


def test_from_frames_ends_found_by_name_in_any_position(nodes: pd.DataFrame) -> None:
    edges = pd.DataFrame({"length": [1.0, 2.0], "from": ["x", "y"], "to": ["y", "z"]})
    data = from_frames(nodes, edges, target="flow")
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_from_frames_only_self_loops_raises(nodes: pd.DataFrame) -> None:
    edges = pd.DataFrame({"a": ["x", "y"], "b": ["x", "y"]})
    with pytest.raises(GraphError, match="2 that all join a node to itself; are 'a', 'b' the"):
        from_frames(nodes, edges, target="flow")


def test_from_frames_column_in_two_roles_raises(nodes: pd.DataFrame) -> None:
    with pytest.raises(GraphError, match="a column of its own for every role"):
        from_frames(nodes, None, target="flow", node_weight="flow")


def test_from_frames_repeated_column_raises(nodes: pd.DataFrame) -> None:
    twice = pd.concat([nodes, nodes[["speed"]]], axis=1)
    with pytest.raises(GraphError, match="each column once, got repeated: 'speed'"):
        from_frames(twice, None, target="flow")


def test_from_networkx_tuple_names_become_ids() -> None:
    graph = nx.grid_2d_graph(2, 2)
    for i, name in enumerate(graph):
        graph.nodes[name].update(height=float(i), id=7)
        if i:
            graph.nodes[name]["rain"] = float(i)
    for *_, attributes in graph.edges(data=True):
        attributes["km"] = 2.0
    data = from_networkx(graph, target="rain", features=["height"], edge_weight="km")
    assert list(data.node_id) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert data.y.isnan().tolist() == [True, False, False, False]
    assert data.num_edges == 8
    assert data.edge_weight.unique().tolist() == [2.0]


@pytest.mark.parametrize("name", ["source", "target", "from", "weight"])
def test_from_networkx_weights_of_any_name_used(name: str) -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 1.0, 1: 2.0, 2: 3.0}, "x")
    nx.set_node_attributes(graph, {0: 1.0, 1: 2.0, 2: 3.0}, "y")
    nx.set_edge_attributes(graph, 2.0, name)
    data = from_networkx(graph, target="y", edge_weight=name)
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight.tolist() == [2.0] * 4


def test_from_networkx_direction_kept_and_empty_graph_raises() -> None:
    graph = nx.DiGraph([("a", "b")])
    nx.set_node_attributes(graph, {"a": 1.0, "b": 2.0}, "x")
    nx.set_node_attributes(graph, {"a": 1.0, "b": 2.0}, "y")
    assert from_networkx(graph, target="y").edge_index.tolist() == [[0], [1]]
    graph.remove_edge("a", "b")
    assert from_networkx(graph, target="y").num_edges == 0


def test_from_frames_text_and_codes_become_categories(
    nodes: pd.DataFrame, edges: pd.DataFrame
) -> None:
    table = nodes.assign(road=["main", "side", "main"], name=["p", "q", "r"])
    data = from_frames(table, edges, target="flow", categorical=["lanes"], ignore=["name"])
    assert data.feature_names == ["speed", "lanes=1", "lanes=2", "road=main", "road=side"]
    assert data.x.tolist() == [[1, 1, 0, 1, 0], [2, 0, 1, 0, 1], [3, 0, 1, 1, 0]]
    assert data.coding.feature_names == data.feature_names


def test_from_frames_missing_impute_fills_blanks(nodes: pd.DataFrame) -> None:
    data = from_frames(nodes.assign(speed=[1.0, None, 5.0]), None, target="flow", missing="impute")
    assert data.feature_names == ["speed", "speed is blank", "lanes"]
    assert data.x.tolist() == [[1, 0, 1], [3, 1, 2], [5, 0, 2]]
    with pytest.raises(UnknownNameError, match=r"'fill': .*known are error, impute"):
        from_frames(nodes, None, target="flow", missing="fill")


def test_from_frames_coding_of_other_graph_encodes_alike(nodes: pd.DataFrame) -> None:
    first = from_frames(nodes.assign(road=["main", "side", "main"]), None, target="flow")
    other = pd.DataFrame({"road": ["side"], "hue": [7], "lanes": ["3"], "speed": [9], "id": ["v"]})
    data = from_frames(other, None, target=None, coding=first.coding)
    assert data.x.tolist() == [[9, 3, 0, 1]]
    assert data.feature_names == ["speed", "lanes", "road=main", "road=side"]
    assert data.coding == first.coding
    with pytest.raises(
        GraphError, match="lacks the column 'speed' of the fit; it has 'hue', which"
    ):
        from_frames(other.drop(columns="speed"), None, target=None, coding=first.coding)


@pytest.mark.parametrize(
    "option",
    [
        {"features": ["speed"]},
        {"categorical": ["lanes"]},
        {"ignore": ["lanes"]},
        {"missing": "impute"},
    ],
)
def test_from_frames_coding_with_other_feature_arguments_raises(
    nodes: pd.DataFrame, option: dict[str, Any]
) -> None:
    coding = from_frames(nodes, None, target="flow").coding
    with pytest.raises(
        GraphError, match=f"coding: expected no other argument .* got also '{next(iter(option))}'"
    ):
        from_frames(nodes, None, target="flow", coding=coding, **option)


def test_from_networkx_attributes_encoded_like_columns() -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "p", 1: "q", 2: "p"}, "kind")
    nx.set_node_attributes(graph, {0: 1.0, 2: 3.0}, "x")
    nx.set_node_attributes(graph, "text", "note")
    data = from_networkx(graph, target=None, need_target=False, missing="impute", ignore=["note"])
    assert data.feature_names == ["kind=p", "kind=q", "x", "x is blank"]
    assert data.x.tolist() == [[1, 0, 1, 0], [0, 1, 2, 1], [1, 0, 3, 0]]
    again = from_networkx(graph, target=None, coding=data.coding)
    assert again.x.tolist() == data.x.tolist()
    codes = from_networkx(graph, target=None, features=["kind"], categorical=["kind"])
    assert codes.feature_names == ["kind=p", "kind=q"]


def test_from_networkx_missing_attributes_raise() -> None:
    with pytest.raises(GraphError, match="at least one feature column"):
        from_networkx(nx.path_graph(3), target=None)
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 1.0, 1: 2.0, 2: 3.0}, "x")
    graph.edges[0, 1]["km"] = 1.0
    with pytest.raises(GraphError, match=r"edge weight column 'km': .*got a blank"):
        from_networkx(graph, target=None, edge_weight="km")


CELLS = st.one_of(
    st.floats(), st.integers(), st.none(), st.sampled_from(["north", "south", "4", ""])
)


@given(
    st.lists(st.lists(CELLS, min_size=4, max_size=4), min_size=1, max_size=3),
    st.sampled_from(["error", "impute"]),
)
def test_from_frames_any_table_raises_or_finite(columns: list[list[Any]], missing: str) -> None:
    nodes = pd.DataFrame({f"c{i}": values for i, values in enumerate(columns)})
    try:
        data = from_frames(nodes, None, target=None, missing=missing)
    except QpignnError:
        return
    assert data.x.shape == (4, len(data.feature_names))
    assert data.x.isfinite().all()


def test_from_frames_coordinates_kept_with_names() -> None:
    frame = pd.DataFrame({"id": [1, 2], "Lon": [7.5, 9.0], "Lat": [60.0, 61.0], "y": [1.0, 2.0]})
    data = from_frames(frame, None, target="y")
    assert data.pos.tolist() == [[7.5, 60.0], [9.0, 61.0]]  # degrees, as they stand in the table
    assert data.pos_names == ["Lon", "Lat"]
    plain = from_frames(frame, None, target="y", coordinates=["Lat", "Lon"])
    assert plain.pos.tolist() == [[60.0, 7.5], [61.0, 9.0]]
    assert plain.pos_names == ["Lat", "Lon"]
    assert from_frames(frame[["id", "Lon", "y"]], None, target="y").get("pos") is None
