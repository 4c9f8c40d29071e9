"""The authors' draw, re-made here through the seeded global generators they used."""

from __future__ import annotations

import random
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import optimize, stats
from torch_geometric.data import Data

from qpignn import load_dataset
from qpignn.data.sources import synthetic
from qpignn.errors import SettingError
from qpignn.runtime.randomness import LegacyStreams

# ruff: noqa: NPY002


@pytest.fixture
def seeded() -> Iterator[None]:
    before = (random.getstate(), np.random.get_state(), torch.get_rng_state())
    random.seed(1127)
    np.random.seed(1127)
    torch.manual_seed(1127)
    yield
    random.setstate(before[0])
    np.random.set_state(before[1])
    torch.set_rng_state(before[2])


@pytest.mark.parametrize("name", ["basic", "gaussian", "uniform", "outlier", "edge"])
def test_basic_family_bit_for_bit(seeded: None, name: str) -> None:
    x = np.random.rand(1000, 5)
    y = np.sin(3 * x[:, 0]) + 0.1 * np.random.rand(1000)
    if name == "gaussian":
        y = y + np.random.normal(0, 0.3, 1000)
    if name == "uniform":
        y = y + np.random.uniform(-0.3, 0.3, 1000)
    if name == "outlier":
        who = np.random.choice(1000, 50, replace=False)
        y[who] += np.random.normal(3, 1, 50)
    edges = torch.randint(0, 1000, (2, 2000))
    if name == "edge":
        moved = np.random.choice(2000, 600, replace=False)
        edges[:, moved] = torch.randint(0, 1000, (2, 600))
    streams = LegacyStreams(1127)
    data = load_dataset(name, "published", streams=streams)
    assert torch.equal(data.x, torch.tensor(x, dtype=torch.float32))
    assert torch.equal(data.y, torch.tensor(y, dtype=torch.float32))
    assert torch.equal(data.edge_index, edges)
    # what is drawn next goes on where the data stopped
    assert torch.equal(torch.randperm(9), torch.randperm(9, generator=streams.torch))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("ba", lambda: nx.barabasi_albert_graph(1000, 3)),
        ("er", lambda: nx.erdos_renyi_graph(1000, 0.01)),
        ("grid", lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30))),
        ("tree", lambda: nx.balanced_tree(2, 8)),
    ],
)
def test_centrality_family_bit_for_bit(seeded: None, name: str, make: object) -> None:
    graph = make()  # type: ignore[operator]
    degrees = torch.tensor([float(d) for _, d in graph.degree()]).unsqueeze(1)
    y = torch.sin(degrees * 0.5) + 0.1 * torch.randn_like(degrees)
    data = load_dataset(name, "published")
    assert torch.equal(data.y, y.squeeze(1))
    both_ways = {pair for a, b in graph.edges for pair in ((a, b), (b, a))}
    assert {tuple(pair) for pair in data.edge_index.t().tolist()} == both_ways
    assert data.edge_index.shape[1] == len(both_ways)
    closeness = nx.closeness_centrality(graph)
    torch.testing.assert_close(data.x[:, 3], torch.tensor([closeness[i] for i in graph]))
    assert torch.equal(data.x[:, 0], degrees.squeeze(1))


def narrowest(distribution: object) -> float:
    """Width of the shortest interval that holds 90 % of a distribution."""
    result = optimize.minimize_scalar(
        lambda p: distribution.ppf(p + 0.9) - distribution.ppf(p),  # type: ignore[attr-defined]
        bounds=(1e-9, 0.1 - 1e-9),
        method="bounded",
    )
    return float(result.fun)


class Convolved:
    """Quantiles of the sum of two independent variables, from a large equal-probability sample."""

    def __init__(self, first: object, second: object) -> None:
        p = (np.arange(2000) + 0.5) / 2000
        sums = np.add.outer(first.ppf(p), second.ppf(p))  # type: ignore[attr-defined]
        self.sorted = np.sort(sums.ravel())

    def ppf(self, p: float) -> float:
        return float(np.quantile(self.sorted, p))


BASE = stats.uniform(0, 0.1)
LIMITS = {  # narrowest 90 % width over the target's range, known beforehand to three digits
    "basic": (BASE, 0.084),
    "edge": (BASE, 0.084),
    "gaussian": (Convolved(BASE, stats.norm(0, 0.3)), 0.403),
    "uniform": (Convolved(BASE, stats.uniform(-0.3, 0.6)), 0.330),
    "ba": (stats.norm(0, 0.1), 0.136),
    "er": (stats.norm(0, 0.1), 0.134),
    "grid": (stats.norm(0, 0.1), 0.565),
    "tree": (stats.norm(0, 0.1), 0.303),
}


@pytest.mark.parametrize("name", LIMITS)
def test_ranges_of_the_published_draw(name: str) -> None:
    law, limit = LIMITS[name]
    y = load_dataset(name, "published").y
    assert narrowest(law) / float(y.max() - y.min()) == pytest.approx(limit, abs=0.0011)


def simple(data: Data) -> bool:
    pairs = {tuple(pair) for pair in data.edge_index.t().tolist()}
    return (
        len(pairs) == data.edge_index.shape[1]
        and all(a != b for a, b in pairs)
        and all((b, a) in pairs for a, b in pairs)
    )


@pytest.mark.parametrize("name", ["basic", "edge", "er", "tree"])
def test_corrected_is_undirected_and_simple(name: str) -> None:
    data = load_dataset(name)
    assert simple(data)
    if name != "tree":
        published = load_dataset(name, "published")
        assert torch.equal(data.x, published.x)
        assert torch.equal(data.y, published.y)


def test_tree_corrected_has_1000_nodes() -> None:
    data = load_dataset("tree")
    assert data.x.shape == (1000, 5)
    assert data.edge_index.shape[1] == 2 * 999


def test_synthetic_options_draw_and_nodes() -> None:
    assert not torch.equal(load_dataset("basic", draw=1).y, load_dataset("basic").y)
    assert load_dataset("basic", nodes=50).x.shape == (50, 5)
    for nodes in (30, 100, 300):  # small draws have lonely nodes and several pieces
        assert load_dataset("er", nodes=nodes, draw=4).x.shape == (nodes, 5)


@pytest.mark.parametrize(
    ("name", "protocol", "nodes", "message"),
    [
        ("basic", "corrected", 0, "nodes: expected a whole number from 10 up, got 0"),
        ("ba", "corrected", 3, "nodes: expected a whole number from 10 up, got 3"),
        (
            "grid",
            "corrected",
            100,
            "grid, which has a fixed size of 30 × 30, got 100",
        ),
        (
            "tree",
            "published",
            100,
            r"tree \(published\), which has a fixed size, got 100",
        ),
    ],
)
def test_synthetic_invalid_number_of_nodes_is_refused(
    name: str, protocol: str, nodes: int, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        load_dataset(name, protocol, nodes=nodes)


def test_eigenvector_centrality_without_convergence_uses_another_solver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = nx.lollipop_graph(5, 3)
    wanted = nx.eigenvector_centrality(graph, tol=1e-12, max_iter=10_000)

    def unsettled(*_: object, **__: object) -> None:
        raise nx.PowerIterationFailedConvergence(1000)

    monkeypatch.setattr(nx, "eigenvector_centrality", unsettled)
    assert synthetic._eigenvector(graph) == pytest.approx(wanted, abs=1e-6)
