"""Nodes of a fit in other graphs: by id, or by row and features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import check_graph
from qpignn.methods.known_nodes import KnownNodes, feature_hashes

X = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [2.0, -0.0, 3.0], [0.0, 0.0, 0.0]])
CHOSEN = torch.tensor([True, False, True, False])


def graph(x: torch.Tensor, ids: list[str] | None = None) -> Data:
    data = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]))
    if ids is not None:
        data.node_id = np.array(ids, dtype=object)
    return check_graph(data, need_target=False)


def test_nodes_with_ids_are_found_in_any_order() -> None:
    nodes = KnownNodes.of(graph(X, [*"abcd"]), CHOSEN)
    mask = nodes.found_in(graph(X[:3], ["c", "x", "a"]))
    assert mask.tolist() == [True, False, True]


def test_nodes_without_ids_are_found_by_row_and_features() -> None:
    nodes = KnownNodes.of(graph(X), CHOSEN)
    changed = X.clone()
    changed[0, 0] = 9
    assert nodes.found_in(graph(X)).tolist() == CHOSEN.tolist()
    assert nodes.found_in(graph(changed)).tolist() == [False, False, True, False]
    assert not nodes.found_in(graph(X.flip(0))).any()
    assert not nodes.found_in(graph(X, [*"abcd"])).any()


def test_places_in_returns_positions_among_the_stored_nodes() -> None:
    nodes = KnownNodes.of(graph(X, [*"dbca"]), CHOSEN)  # stored: d, c
    assert nodes.places_in(graph(X, [*"axcd"])).tolist() == [-1, -1, 1, 0]
    rows = KnownNodes.of(graph(X), CHOSEN)
    assert rows.places_in(graph(X)).tolist() == [0, -1, 1, -1]
    assert rows.places_in(graph(X[:3])).tolist() == [0, -1, 1]
    assert rows.places_in(graph(X, [*"abcd"])).tolist() == [-1] * 4
    assert KnownNodes(nodes.hashes[:0], True).places_in(graph(X, [*"abcd"])).tolist() == [-1] * 4


def test_places_in_many_nodes_in_random_order() -> None:
    draw = np.random.default_rng(0)
    ids, chosen = draw.permutation(1000), torch.from_numpy(draw.random(1000) < 0.5)
    x = torch.rand(1000, 1)
    nodes = KnownNodes.of(graph(x, [*map(str, ids)]), chosen)
    stored = ids[chosen.numpy()].tolist()
    other = draw.permutation(2000)[:1000]
    places = nodes.places_in(graph(x, [*map(str, other)])).tolist()
    assert places == [stored.index(one) if one in stored else -1 for one in other]


def test_feature_hashes_are_equal_for_dense_and_csr_and_differ_between_rows() -> None:
    hashes = feature_hashes(X)
    assert (feature_hashes(X.to_sparse_csr()) == hashes).all()
    assert len({*hashes.tolist()}) == 4
    assert hashes[3] == 0


def test_state_gives_the_same_nodes_and_others_are_refused() -> None:
    nodes = KnownNodes.of(graph(X, [*"abcd"]), CHOSEN)
    same = KnownNodes.from_state(nodes.state())
    assert (same.hashes == nodes.hashes).all()
    assert same.have_ids
    for wrong in (torch.zeros(3), torch.zeros(2, 2).long(), torch.zeros(1).long()):
        with pytest.raises(ValueError, match="expected 64-bit hashes"):
            KnownNodes.from_state(wrong)
