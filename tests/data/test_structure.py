from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from torch_geometric.data import Data

from qpignn.data import structure
from qpignn.data.structure import (
    communities,
    components,
    degrees,
    distances,
    neighbour_gap,
    summarize_graph,
)


def graph_of(pairs: list[tuple[int, int]], nodes: int, *, directed: bool = False) -> Data:
    every = pairs if directed else pairs + [(b, a) for a, b in pairs]
    edges = torch.tensor(sorted({*every}), dtype=torch.long).reshape(-1, 2).T
    return Data(x=torch.zeros(nodes, 2), edge_index=edges, y=torch.zeros(nodes))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Data, nx.Graph]:
    nodes = draw(st.integers(1, 20))
    ends = st.integers(0, nodes - 1)
    pairs = [
        pair for pair in draw(st.lists(st.tuples(ends, ends), max_size=40)) if len({*pair}) == 2
    ]
    reference = nx.Graph()
    reference.add_nodes_from(range(nodes))
    reference.add_edges_from(pairs)
    return graph_of(pairs, nodes), reference


@given(graphs(), st.data())
def test_structure_equals_networkx(pair: tuple[Data, nx.Graph], draws: st.DataObject) -> None:
    data, reference = pair
    assert list(degrees(data)) == [reference.degree(i) for i in range(len(reference))]
    parts = {frozenset(np.flatnonzero(components(data) == i)) for i in set(components(data))}
    assert parts == {frozenset(part) for part in nx.connected_components(reference)}
    start = np.array(
        draws.draw(st.lists(st.booleans(), min_size=len(reference), max_size=len(reference)))
    )
    far = (
        nx.multi_source_dijkstra_path_length(reference, set(np.flatnonzero(start)))
        if start.any()
        else {}
    )
    assert list(distances(data, start)) == [far.get(i, -1) for i in range(len(reference))]
    counted = summarize_graph(data)
    assert (counted.nodes, counted.edges) == (len(reference), reference.number_of_edges())
    assert counted.isolated == nx.number_of_isolates(reference)
    assert counted.components == nx.number_connected_components(reference)
    assert not counted.directed


def test_communities_of_cliques_found_and_repeatable() -> None:
    cliques = [range(6), range(6, 14)]
    pairs = [(a, b) for clique in cliques for a in clique for b in clique if a < b]
    data = graph_of([*pairs, (0, 6)], 14)
    label = communities(data)
    assert len(set(label[:6])) == len(set(label[6:])) == 1
    assert label[0] != label[6]
    np.testing.assert_array_equal(label, communities(data))
    assert list(communities(graph_of([], 3))) == [0, 1, 2]


def test_communities_of_a_large_graph_keep_planted_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coarser search on large graphs still puts the members of a dense group together."""
    planted = nx.planted_partition_graph(20, 30, 0.5, 0.005, seed=0)
    data = graph_of(list(planted.edges), 600)
    monkeypatch.setattr(structure, "MANY_LINKS", 0)
    label = communities(data)
    assert adjusted_rand_score(np.arange(600) // 30, label) > 0.9


def test_neighbour_gap_hand_computed() -> None:
    data = graph_of([(0, 1), (0, 2), (2, 3)], 5)
    labels = np.array([np.nan, 4.0, 8.0, np.nan, np.nan])
    gap = neighbour_gap(data, np.array([5.0, 0.0, 0.0, 9.0, 1.0]), labels)
    np.testing.assert_array_equal(gap, [2.0, np.nan, np.nan, 1.0, np.nan])


def test_summarize_graph_directed_reported() -> None:
    counted = summarize_graph(graph_of([(0, 1), (1, 0), (1, 2)], 4, directed=True))
    assert counted.directed
    assert (counted.edges, counted.isolated, counted.components) == (3, 1, 2)
