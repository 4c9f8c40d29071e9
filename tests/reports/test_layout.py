from __future__ import annotations

import tracemalloc

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from qpignn.reports import layout
from qpignn.reports.layout import _steps, lay_out


def links_of(graph: nx.Graph) -> sp.csr_matrix:
    return sp.csr_matrix(nx.to_scipy_sparse_array(graph, nodelist=sorted(graph), dtype=float))


def test_lay_out_grid_keeps_its_shape() -> None:
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 12), ordering="sorted")
    places = lay_out(links_of(graph))
    true = np.array([(i // 12, i % 12) for i in range(144)], dtype=float)
    assert np.corrcoef(pdist(places), pdist(true))[0, 1] > 0.95


def test_lay_out_places_neighbours_close_together() -> None:
    graph = nx.random_geometric_graph(300, 0.1, seed=1)
    places = lay_out(links_of(graph))
    joined = np.array([np.linalg.norm(places[a] - places[b]) for a, b in graph.edges])
    assert np.median(joined) < 0.2 * np.median(pdist(places))


def test_lay_out_large_grid_keeps_its_shape_in_little_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The distances to pivots are worked on in place, in float32."""
    monkeypatch.setattr(layout, "MANY_NODES", 10_000)
    side = 200
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side), ordering="sorted")
    links = links_of(graph)
    tracemalloc.start()
    places = lay_out(links)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    few = np.random.default_rng(0).choice(side**2, 400, replace=False)
    true = np.column_stack(np.divmod(few, side)).astype(float)
    assert np.corrcoef(pdist(places[few]), pdist(true))[0, 1] > 0.95
    assert peak < 800 * side**2  # three float64 arrays of 50 pivots would take 1,200


def test_lay_out_components_do_not_overlap() -> None:
    graph = nx.disjoint_union_all([nx.cycle_graph(30), nx.path_graph(20), nx.empty_graph(5)])
    places = lay_out(links_of(graph))
    boxes = [places[a:b] for a, b in ((0, 30), (30, 50), *((i, i + 1) for i in range(50, 55)))]
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            apart = (one.min(axis=0) > other.max(axis=0)) | (other.min(axis=0) > one.max(axis=0))
            assert apart.any()


def test_steps_equal_those_of_networkx() -> None:
    graph = nx.connected_watts_strogatz_graph(80, 4, 0.2, seed=0)
    expected = nx.single_source_shortest_path_length(graph, 7)
    assert list(_steps(links_of(graph), 7)) == [expected[i] for i in range(80)]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.floats(0, 0.4), st.integers(0, 99))
def test_lay_out_any_graph_is_finite_distinct_and_deterministic(
    nodes: int, share: float, seed: int
) -> None:
    links = links_of(nx.gnp_random_graph(nodes, share, seed=seed))
    places = lay_out(links)
    assert places.shape == (nodes, 2)
    assert np.isfinite(places).all()
    np.testing.assert_array_equal(places, lay_out(links))
    assert len(np.unique(places.round(9), axis=0)) == nodes  # no two nodes coincide
