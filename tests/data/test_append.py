from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from qpignn import from_frames
from qpignn.data.append import join_frames
from qpignn.errors import GraphError


@pytest.fixture
def nodes() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": ["1", "2", "3"],
            "speed": [1.0, 2.0, 6.0],
            "kind": ["main", "side", "main"],
            "flow": [10.0, None, 30.0],
            "part": ["train", "validation", "test"],
            "weight": [1.0, 2.0, 6.0],
        }
    )


@pytest.fixture
def edges() -> pd.DataFrame:
    return pd.DataFrame({"from": ["1", "2"], "to": ["2", "3"], "km": [2.0, 4.0]})


@pytest.fixture
def data(nodes: pd.DataFrame, edges: pd.DataFrame) -> Data:
    return from_frames(nodes, edges, target="flow", split="part", node_weight="weight")


@pytest.fixture
def new() -> pd.DataFrame:
    return pd.DataFrame({"kind": ["side", "main"], "id": ["8", "9"], "speed": [4.0, 5.0]})


LINKS = pd.DataFrame({"from": ["8", "9"], "to": ["1", "8"]})


def test_join_frames_new_nodes_come_after_old_ones(data: Data, new: pd.DataFrame) -> None:
    out = join_frames(data, new, LINKS)
    assert out.node_id.tolist() == ["1", "2", "3", "8", "9"]
    assert out.feature_names == ["speed", "kind=main", "kind=side"]
    assert out.x.tolist() == [[1, 1, 0], [2, 0, 1], [6, 1, 0], [4, 0, 1], [5, 1, 0]]
    assert out.x.dtype == torch.float32
    assert out.new_mask.tolist() == [False, False, False, True, True]
    assert out.y.nan_to_num(-1).tolist() == [10, -1, 30, -1, -1]
    assert out.train_mask.tolist() == [True, False, False, False, False]
    assert out.val_mask.tolist() == [False, True, False, False, False]
    assert out.test_mask.tolist() == [False, False, True, False, False]
    assert out.node_weight.tolist() == [1, 2, 6, 3, 3]
    pairs = {tuple(pair) for pair in out.edge_index.T.tolist()}
    both = {(0, 1), (1, 2), (0, 3), (3, 4)}
    assert pairs == both | {(end, start) for start, end in both}
    assert out.num_edges == 8


def test_join_frames_input_graph_unchanged(data: Data, new: pd.DataFrame) -> None:
    before = data.clone()
    tables = new.copy(), LINKS.copy()
    join_frames(data, new, LINKS)
    assert data.keys() == before.keys()
    for name in ("x", "edge_index", "node_weight", "train_mask"):
        assert torch.equal(data[name], before[name])
    pd.testing.assert_frame_equal(new, tables[0])
    pd.testing.assert_frame_equal(LINKS, tables[1])


def test_join_frames_equals_from_frames_of_concatenated_tables(
    nodes: pd.DataFrame, edges: pd.DataFrame, new: pd.DataFrame
) -> None:
    data = from_frames(nodes[["id", "speed", "kind", "flow"]], edges[["from", "to"]], target="flow")
    labelled = new.assign(flow=[5.0, None])
    whole = from_frames(
        pd.concat([nodes[["id", "speed", "kind", "flow"]], labelled]),
        pd.concat([edges[["from", "to"]], LINKS]),
        target="flow",
    )
    out = join_frames(data, labelled, LINKS, target="flow")
    assert torch.equal(out.x, whole.x)
    assert torch.equal(out.edge_index, whole.edge_index)
    assert out.y.nan_to_num(-1).tolist() == whole.y.nan_to_num(-1).tolist()
    assert join_frames(data, labelled, LINKS).y.isnan().tolist() == [False, True, False, True, True]


def test_join_frames_repeated_edges_average_weights(
    nodes: pd.DataFrame, edges: pd.DataFrame, new: pd.DataFrame
) -> None:
    data = from_frames(
        nodes, edges, target="flow", features=["speed", "kind"], edge_weight="km", directed=True
    )
    links = pd.DataFrame({"a": ["8", "1"], "b": ["1", "2"], "d": [7.0, 4.0]})
    out = join_frames(data, new, links, edge_ends=("a", "b"), edge_weight="d", directed=True)
    assert out.edge_index.tolist() == [[0, 1, 3], [1, 2, 0]]
    assert out.edge_weight.tolist() == [3, 4, 7]
    alone = join_frames(data, new, None)
    assert alone.edge_weight.tolist() == [2, 4]
    with pytest.raises(GraphError, match=r"edge_weight: expected a column.*got None"):
        join_frames(data, new, links, directed=True)
    with pytest.raises(
        GraphError, match="the graph has directed edges, got false; pass directed=True"
    ):
        join_frames(data, new, links, edge_weight="d")


def test_join_frames_integer_ids_match_text_ids(data: Data, new: pd.DataFrame) -> None:
    links = pd.DataFrame({"from": [8.0, 9.0], "to": [1, 8]})
    out = join_frames(data, new.assign(id=[8, 9]), links)
    assert out.node_id.tolist() == ["1", "2", "3", "8", "9"]
    assert torch.equal(out.edge_index, join_frames(data, new, LINKS).edge_index)
    with pytest.raises(GraphError, match="already has: '3'"):
        join_frames(data, new.assign(id=[8, 3]), None)


def test_join_frames_integer_ids_twice_joined(nodes: pd.DataFrame, new: pd.DataFrame) -> None:
    table = nodes.assign(id=[(0, 0), (0, 1), (0, 2)])
    data = from_frames(table, None, target="flow", features=["speed", "kind"])
    first = join_frames(data, new.assign(id=[(1, 0), (1, 1)]), None)
    links = pd.DataFrame({"from": [(2, 0)], "to": [(1, 1)]})
    out = join_frames(first, new[:1].assign(id=[(2, 0)]), links)
    assert list(out.node_id) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)]
    assert out.new_mask.tolist() == [False] * 5 + [True]
    assert out.edge_index.tolist() == [[4, 5], [5, 4]]
    whole = nodes.assign(id=[1, 2, 3])
    numbered = from_frames(whole, None, target="flow", features=["speed", "kind"])
    assert join_frames(numbered, new.assign(id=[8, 9]), None).node_id.tolist() == [1, 2, 3, 8, 9]


def test_join_frames_large_features_become_float64(nodes: pd.DataFrame, new: pd.DataFrame) -> None:
    data = from_frames(nodes, None, target="flow", features=["speed"])
    out = join_frames(data, new.assign(speed=[4.0, 1e39]), None)
    assert out.x.flatten().tolist() == [1, 2, 6, 4, 1e39]


def test_join_frames_unknown_categories_and_blanks_encoded(
    nodes: pd.DataFrame, new: pd.DataFrame
) -> None:
    data = from_frames(nodes, None, target="flow", features=["speed", "kind"], missing="impute")
    with pytest.warns(UserWarning, match="'kind': 'path'"):
        out = join_frames(data, new.assign(kind=["path", None], speed=[np.nan, 5]), None)
    assert out.x[3:].tolist() == [[2, 0, 0], [5, 0, 0]]


@pytest.mark.parametrize(
    ("change", "links", "options", "message"),
    [
        ({"id": ["8", "2"]}, None, {}, "ids that the graph already has: '2'; leave those rows out"),
        ({"id": ["8", "8"]}, None, {}, "each node id once, got repeated: '8'"),
        ({"id": ["8", None]}, None, {}, "an id for every node"),
        ({}, {"a": ["8"], "b": ["77"]}, {}, "'b' names nodes that the joined graph lacks: '77'"),
        ({}, {"a": ["8"], "b": [None]}, {}, "'b': got blank ids in edge rows 1"),
        ({}, {"a": ["8"]}, {}, "two columns of node ids"),
        ({}, {"a": ["8"], "b": ["1"]}, {"edge_weight": "a"}, "edge_weight: expected none"),
        ({}, None, {"target": "flow"}, "lacks the column 'flow'"),
        ({}, None, {"id": "code"}, "lacks the column 'code'"),
        ({"speed": [1.0, None]}, None, {}, "'speed': .*blank at node '9'"),
        ({"speed": ["1", "much"]}, None, {}, "'speed': expected numbers, got 'much' at node '9'"),
    ],
)
def test_join_frames_invalid_tables_raise(
    data: Data,
    new: pd.DataFrame,
    change: dict[str, Any],
    links: dict[str, Any] | None,
    options: dict[str, Any],
    message: str,
) -> None:
    edges = None if links is None else pd.DataFrame(links)
    with pytest.raises(GraphError, match=message):
        join_frames(data, new.assign(**change), edges, **options)


def test_join_frames_graph_without_coding_raises(data: Data, new: pd.DataFrame) -> None:
    with pytest.raises(GraphError, match="lacks the column 'kind' of the fit"):
        join_frames(data, new.drop(columns="kind"), None)
    with pytest.raises(GraphError, match="at least one new node, got none"):
        join_frames(data, new[:0], None)
    bare = Data(x=data.x, edge_index=data.edge_index)
    with pytest.raises(GraphError, match="got one without; make it with from_frames"):
        join_frames(bare, new, None)
    bare.coding, bare.x = data.coding, data.x[:, :2]
    with pytest.raises(GraphError, match="the 3 features"):
        join_frames(bare, new, None)


def test_join_frames_keeps_csr_features_csr(data: Data, new: pd.DataFrame) -> None:
    wanted = join_frames(data, new, LINKS)
    data.x = data.x.to_sparse_csr()
    joined = join_frames(data, new, LINKS)
    assert joined.x.layout == torch.sparse_csr
    assert joined.x.dtype == wanted.x.dtype
    assert torch.equal(joined.x.to_dense(), wanted.x)
    data.x = data.x.double()
    assert join_frames(data, new, LINKS).x.dtype == torch.float64


def test_join_frames_float_ids_match_text_ids() -> None:
    nodes = pd.DataFrame({"id": ["0.0", "1.0"], "size": [1.0, 2.0], "y": [1.0, 2.0]})
    data = from_frames(nodes, None, target="y")
    new = pd.DataFrame({"id": [7.0], "size": [3.0]})
    joined = join_frames(data, new, pd.DataFrame({"from": [7.0], "to": [1.0]}))
    assert joined.edge_index.T.tolist() == [[1, 2], [2, 1]]
