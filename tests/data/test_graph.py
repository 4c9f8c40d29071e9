"""Every rule of a graph: broken once, and kept by what must be allowed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from qpignn import check_graph
from qpignn.data.graph import given_nodes, labelled, simple_edges
from qpignn.data.graph import test_nodes as judged_nodes
from qpignn.errors import GraphError

NAN, INF = float("nan"), float("inf")


def changed(data: Data, **attributes: Any) -> Data:
    return Data(**{**data.to_dict(), **attributes})


def test_check_graph_pyg_data_canonical_form(path_graph: Data) -> None:
    brought = changed(
        path_graph,
        x=torch.ones(4, 2, dtype=torch.long),
        y=torch.tensor([[1], [2], [3], [4]]),
        edge_index=path_graph.edge_index.int(),
    )
    got = check_graph(brought)
    assert got.x.dtype == torch.float32
    assert got.y.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert got.edge_index.dtype == torch.long
    assert brought.y.shape == (4, 1)  # the input is left as it was


def test_check_graph_sparse_features_and_no_edges_accepted(path_graph: Data) -> None:
    got = check_graph(
        changed(
            path_graph,
            x=path_graph.x.to_sparse_csr(),
            edge_index=torch.empty((2, 0), dtype=torch.long),
        )
    )
    assert got.x.layout == torch.sparse_csr
    assert got.edge_index.shape == (2, 0)


def test_check_graph_single_label_accepted(path_graph: Data) -> None:
    got = check_graph(changed(path_graph, y=torch.tensor([1.0, NAN, NAN, NAN])))
    assert labelled(got).tolist() == [True, False, False, False]


MASK = torch.tensor([True, False, False, False])

BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"x": None}, "x: expected a .* got none"),
    ({"x": torch.zeros(4)}, r"x: expected \(nodes, columns\).*got shape \(4,\)"),
    ({"x": torch.zeros(4, 0)}, "at least one of each"),
    ({"x": torch.zeros(4, 2).to_sparse()}, "dense or sparse CSR"),
    ({"x": torch.zeros(4, 2, dtype=torch.complex64)}, "real numbers"),
    ({"x": torch.tensor([[0.0], [NAN], [0.0], [0.0]])}, "got nan in column 0 of node 1"),
    ({"x": torch.tensor([[0.0], [0.0], [INF], [0.0]])}, "got inf in column 0 of node 2"),
    (
        {"x": torch.tensor([[0.0], [INF], [0.0], [0.0]]).to_sparse_csr()},
        "1 NaN or infinite stored values",
    ),
    ({"edge_index": None}, "edge_index: expected .* got none"),
    ({"edge_index": torch.zeros(3, 1, dtype=torch.long)}, r"shape \(2, edges\), got \(3, 1\)"),
    ({"edge_index": torch.zeros(2, 1)}, "whole numbers, got torch.float32"),
    ({"edge_index": torch.tensor([[0], [4]])}, "positions 0 to 3, got 0 to 4"),
    ({"edge_index": torch.tensor([[-1], [0]])}, "got -1 to 0"),
    ({"y": [1.0, 2.0, 3.0, 4.0]}, "y: expected a tensor, got list"),
    ({"y": torch.zeros(3)}, r"one target per node \(4\), got shape \(3,\)"),
    ({"y": torch.zeros(4, 2)}, "one target per node"),
    ({"y": torch.tensor([1.0, INF, 2.0, 3.0])}, "1 infinite"),
    ({"y": torch.full((4,), NAN)}, "at least one labelled node, got none"),
    ({"y": None}, "at least one labelled node, got none"),
    (
        {"y": torch.tensor([7.0, 7.0, NAN, 7.0])},
        "targets that vary, got 3 labelled nodes .* have 7",
    ),
    ({"edge_weight": torch.ones(5)}, r"edge_weight: expected a tensor of 6 numbers, got \(5,\)"),
    ({"edge_weight": -torch.ones(6)}, "edge_weight: expected finite numbers from 0 up"),
    ({"node_weight": torch.tensor([1.0, NAN, 1.0, 1.0])}, "node_weight: expected finite"),
    ({"node_weight": torch.zeros(4)}, "node_weight: expected some weight above 0, got zeros"),
    ({"train_mask": MASK[:3]}, r"train_mask: expected length 4 \(one per node\), got \(3,\)"),
    ({"val_mask": torch.tensor([0, 1])}, "val_mask: expected a boolean tensor, got torch.int64"),
    (
        {"train_mask": MASK, "test_mask": MASK},
        "train_mask and test_mask share 1 nodes; .*split_nodes",
    ),
    ({"node_id": ["a", "b"]}, "node_id: expected 4 ids, one per node, got 2"),
    ({"node_id": ["a", "b", "a", "c"]}, "each node id once, got repeated: 'a'"),
    ({"feature_names": ["only one"]}, "expected 2 names, one per column of x, got 1"),
]


@pytest.mark.parametrize(("attributes", "message"), BROKEN, ids=[m[:40] for _, m in BROKEN])
def test_check_graph_invalid_graphs_raise(
    path_graph: Data, attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        check_graph(changed(path_graph, **attributes))


def test_check_graph_ids_in_any_container_accepted(path_graph: Data) -> None:
    for ids in (torch.arange(4), [(0, 0), (0, 1), (1, 0), (1, 1)], ["a", 0, "b", 1]):
        wanted = ids.tolist() if isinstance(ids, torch.Tensor) else ids
        assert list(check_graph(changed(path_graph, node_id=ids)).node_id) == wanted


def test_given_nodes_and_test_nodes_follow_masks(path_graph: Data) -> None:
    assert given_nodes(path_graph).tolist() == [True, True, True, False]  # the labelled ones
    only_test = changed(path_graph, test_mask=torch.tensor([True, False, False, True]))
    assert given_nodes(only_test).tolist() == [False, True, True, False]
    assert judged_nodes(only_test).tolist() == [True, False, False, False]
    masks = {"train_mask": MASK, "val_mask": torch.tensor([False, True, False, True])}
    assert given_nodes(changed(path_graph, **masks)).tolist() == [True, True, False, False]


def test_check_graph_other_type_raises() -> None:
    with pytest.raises(GraphError, match=r"expected a torch_geometric.data.Data, got dict"):
        check_graph({"x": 1})  # type: ignore[arg-type]


def test_check_graph_need_target_false_accepts_no_target(path_graph: Data) -> None:
    assert check_graph(changed(path_graph, y=None), need_target=False).get("y") is None


def test_simple_edges_drop_loops_merge_repeats_and_average_their_weights() -> None:
    ends = torch.tensor([[0, 1, 0, 2, 2], [1, 0, 1, 2, 1]])  # 0–1 three times, a loop, 2–1
    weight = torch.tensor([1.0, 2.0, 3.0, 9.0, 5.0])
    edges, merged = simple_edges(ends, 3, weight)
    assert edges.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert merged is not None
    assert merged.tolist() == [2.0, 2.0, 5.0, 5.0]
    directed, _ = simple_edges(ends, 3, directed=True)
    assert directed.tolist() == [[0, 1, 2], [1, 0, 1]]
