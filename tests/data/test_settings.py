from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from qpignn import make_view
from qpignn.data.settings import induced_subgraph
from qpignn.errors import GraphError, SplitError, UnknownNameError


@pytest.fixture
def split_graph(path_graph: Data) -> Data:
    path_graph.y = torch.tensor([1.0, 2.0, 3.0, 4.0])
    path_graph.train_mask = torch.tensor([True, True, False, False])
    path_graph.test_mask = torch.tensor([False, False, True, True])
    path_graph.edge_weight = torch.tensor([1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    path_graph.node_id = ["a", "b", "c", "d"]
    return path_graph


@pytest.mark.parametrize("kind", ["transductive", "inductive", "isolated"])
def test_make_view_hides_test_targets(split_graph: Data, kind: str) -> None:
    view = make_view(split_graph, kind)
    shown = torch.cat([view.fit.y, view.predict.y])
    assert not torch.isin(torch.tensor([3.0, 4.0]), shown).any()
    assert view.y_test.tolist() == [3.0, 4.0]
    assert int(view.test_mask.sum()) == 2
    assert split_graph.y.tolist() == [1.0, 2.0, 3.0, 4.0]  # the graph itself is untouched


def test_make_view_visible_nodes_per_kind(split_graph: Data) -> None:
    whole = split_graph.edge_index.tolist()
    view = make_view(split_graph)
    assert view.fit.edge_index.tolist() == view.predict.edge_index.tolist() == whole

    view = make_view(split_graph, "inductive")
    assert view.fit.edge_index.tolist() == [[0, 1], [1, 0]]
    assert view.fit.edge_weight.tolist() == [1.0, 1.0]
    assert view.predict.edge_index.tolist() == whole

    view = make_view(split_graph, "isolated")
    assert view.fit.y.tolist() == [1.0, 2.0]
    assert view.predict.edge_index.tolist() == [[0, 1], [1, 0]]
    assert view.predict.edge_weight.tolist() == [3.0, 3.0]
    assert list(view.predict.node_id) == ["c", "d"]


def test_make_view_validation_nodes_are_given(split_graph: Data) -> None:
    split_graph.train_mask = torch.tensor([True, False, False, False])
    split_graph.val_mask = torch.tensor([False, True, False, False])
    view = make_view(split_graph, "inductive")
    assert view.fit.y.tolist() == [1.0, 2.0]
    assert view.fit.val_mask.tolist() == [False, True]


def test_make_view_unlabelled_test_nodes_left_out(split_graph: Data) -> None:
    split_graph.y[3] = float("nan")
    view = make_view(split_graph)
    assert view.y_test.tolist() == [3.0]
    assert view.test_mask.tolist() == [False, False, True, False]


def test_induced_subgraph_sparse_features_stay_sparse(split_graph: Data) -> None:
    dense = split_graph.x[2:]
    split_graph.x = split_graph.x.to_sparse_csr()
    x = make_view(split_graph, "isolated").predict.x
    assert x.layout == torch.sparse_csr
    assert torch.equal(x.to_dense(), dense)


def test_induced_subgraph_keeps_node_columns(split_graph: Data) -> None:
    split_graph.node_weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    split_graph.num_nodes = 4
    split_graph.pos = torch.arange(8.0).reshape(4, 2)
    part = induced_subgraph(split_graph, torch.tensor([True, False, False, True]))
    assert part.node_weight.tolist() == [1.0, 4.0]
    assert part.pos.tolist() == [[0.0, 1.0], [6.0, 7.0]]
    assert part.num_nodes == 2
    assert part.edge_index.shape == (2, 0)
    assert part.test_mask.tolist() == [False, True]


def test_make_view_without_split_raises(path_graph: Data) -> None:
    with pytest.raises(SplitError, match=r"split_nodes\(...\)"):
        make_view(path_graph)
    overlapping = Data(**path_graph.to_dict())
    overlapping.train_mask = overlapping.test_mask = torch.ones(4, dtype=torch.bool)
    with pytest.raises(GraphError, match="train_mask and test_mask share 4 nodes"):
        make_view(overlapping)
    path_graph.train_mask = torch.tensor([True, True, True, False])
    path_graph.test_mask = ~path_graph.train_mask  # node 3 has no target
    with pytest.raises(SplitError, match="got 3 given and 0 test nodes"):
        make_view(path_graph)


def test_make_view_unknown_kind_raises(split_graph: Data) -> None:
    with pytest.raises(UnknownNameError, match="did you mean inductive"):
        make_view(split_graph, "inductiv")
