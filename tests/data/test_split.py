from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx

from qpignn import split_nodes
from qpignn.errors import GraphError, SplitError, UnknownNameError


def graph_of(graph: nx.Graph, unlabelled: int = 0) -> Data:
    data = from_networkx(graph)
    nodes = graph.number_of_nodes()
    y = torch.arange(nodes, dtype=torch.float)
    y[:unlabelled] = float("nan")
    return Data(x=torch.ones(nodes, 1), edge_index=data.edge_index, y=y)


@given(
    nodes=st.integers(20, 200),
    test=st.sampled_from([0.1, 0.2, 0.3]),
    validation=st.sampled_from([0.0, 0.1, 0.5]),
    by=st.sampled_from(["random", "degree", "community"]),
    seed=st.integers(0, 1000),
)
def test_split_nodes_exact_disjoint_and_labelled(
    nodes: int, test: float, validation: float, by: str, seed: int
) -> None:
    data = graph_of(nx.cycle_graph(nodes), unlabelled=5)
    got = split_nodes(data, test=test, validation=validation, by=by, seed=seed)
    masks = torch.stack([got.train_mask, got.val_mask, got.test_mask]).int()
    assert masks.sum(dim=0).tolist() == [0] * 5 + [1] * (nodes - 5)
    assert int(got.test_mask.sum()) == int(round((nodes - 5) * test * 1000) // 1000)
    again = split_nodes(data, test=test, validation=validation, by=by, seed=seed)
    assert torch.equal(got.test_mask, again.test_mask)


def test_split_nodes_other_seed_differs() -> None:
    data = graph_of(nx.cycle_graph(100))
    assert not torch.equal(split_nodes(data, seed=0).test_mask, split_nodes(data, seed=1).test_mask)


def test_split_nodes_by_degree_takes_highest() -> None:
    data = graph_of(nx.star_graph(9))  # node 0 has nine neighbours
    got = split_nodes(data, test=0.1, by="degree")
    assert got.test_mask.nonzero().flatten().tolist() == [0]


def test_split_nodes_by_degree_ties_depend_on_seed() -> None:
    data = graph_of(nx.cycle_graph(50))
    masks = {tuple(split_nodes(data, by="degree", seed=s).test_mask.tolist()) for s in range(3)}
    assert len(masks) == 3


def test_split_nodes_by_community_keeps_communities_whole() -> None:
    data = graph_of(nx.connected_caveman_graph(5, 10))
    for seed in range(5):
        chosen = split_nodes(data, test=0.4, by="community", seed=seed).test_mask.numpy()
        caves = np.array([chosen[10 * i : 10 * i + 10].sum() for i in range(5)])
        assert sorted(caves) == [0, 0, 0, 10, 10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": 1.0}, "test: expected a share from 0 to below 1, got 1.0"),
        ({"validation": -0.1}, "validation: expected a share"),
        ({"test": 0.6, "validation": 0.4}, r"below 1 .* got 0.6 \+ 0.4"),
        ({"test": 0.2}, r"got 3, which gives 0 test, 0 validation and 3 train nodes; label more"),
    ],
)
def test_split_nodes_invalid_shares_raise(options: dict[str, float], message: str) -> None:
    with pytest.raises(SplitError, match=message):
        split_nodes(graph_of(nx.path_graph(5), unlabelled=2), **options)  # type: ignore[arg-type]


def test_split_nodes_invalid_graph_raises() -> None:
    data = graph_of(nx.path_graph(20))
    data.y = data.y.unsqueeze(1)  # as PyG users often have it
    assert int(split_nodes(data).test_mask.sum()) == 4
    data.val_mask = torch.ones(3, dtype=torch.bool)
    with pytest.raises(GraphError, match="val_mask: expected length 20"):
        split_nodes(data)


def test_split_nodes_unknown_kind_raises() -> None:
    with pytest.raises(UnknownNameError, match="unknown split 'degre': did you mean degree"):
        split_nodes(graph_of(nx.path_graph(9)), by="degre")
