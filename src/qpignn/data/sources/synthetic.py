"""The nine synthetic graphs, drawn as the authors drew them (seed 1127 unless told otherwise).

Two families. *Basic* and its noisy variants: uniform features, random edges, a target that follows
the node's own first feature. *Centrality* graphs (``ba er grid tree``): features are centralities,
and the target follows the degree. ``published`` keeps the authors' edges bit for bit; ``corrected``
makes them undirected and simple, and gives ``tree`` the thousand nodes the paper speaks of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import networkx as nx
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx, to_networkx

from qpignn.data.graph import simple_edges
from qpignn.errors import SettingError, check_integer
from qpignn.runtime.randomness import LegacyStreams

PUBLISHED_SEED = 1127
NOISE_LEVEL = 0.3  # of gaussian, uniform and edge
OUTLIER_SHARE = 0.05
CENTRALITIES = ["degree", "clustering", "betweenness", "closeness", "eigenvector"]


def load_basic(
    name: str,
    *,
    protocol: str = "corrected",
    draw: int = PUBLISHED_SEED,
    nodes: int = 1000,
    streams: LegacyStreams | None = None,
) -> Data:
    """``basic gaussian uniform outlier edge``: y = sin(3·x₀) + 0.1·U(0,1), plus the named noise.

    ``streams`` lets a caller go on drawing where the data stopped, as the published runs do.
    """
    check_integer("nodes", nodes, 10)
    streams = streams or LegacyStreams(draw)
    streams.restart_arrays()  # the authors seed again inside this generator
    x = streams.numpy.rand(nodes, 5)
    y = np.sin(3 * x[:, 0]) + 0.1 * streams.numpy.rand(nodes)
    if name in EXTRA_NOISE:
        y = EXTRA_NOISE[name](y, streams.numpy)
    edges = torch.randint(0, nodes, (2, 2 * nodes), generator=streams.torch)
    if name == "edge":
        rewired = int(edges.shape[1] * NOISE_LEVEL)
        chosen = streams.numpy.choice(edges.shape[1], rewired, replace=False)
        edges[:, chosen] = torch.randint(0, nodes, (2, rewired), generator=streams.torch)
    return Data(
        x=torch.from_numpy(x).float(),
        y=torch.from_numpy(y).float(),
        edge_index=_edges(edges, nodes, protocol),
        feature_names=[f"x{i}" for i in range(5)],
    )


def _gaussian(y: npt.NDArray[np.float64], rng: np.random.RandomState) -> npt.NDArray[np.float64]:
    return y + rng.normal(0, NOISE_LEVEL, size=len(y))


def _uniform(y: npt.NDArray[np.float64], rng: np.random.RandomState) -> npt.NDArray[np.float64]:
    return y + rng.uniform(-NOISE_LEVEL, NOISE_LEVEL, size=len(y))


def _outlier(y: npt.NDArray[np.float64], rng: np.random.RandomState) -> npt.NDArray[np.float64]:
    count = int(len(y) * OUTLIER_SHARE)
    y[rng.choice(len(y), count, replace=False)] += rng.normal(3, 1, size=count)
    return y


EXTRA_NOISE: dict[str, Callable[..., npt.NDArray[np.float64]]] = {
    "gaussian": _gaussian,
    "uniform": _uniform,
    "outlier": _outlier,
}


def load_centrality(
    name: str,
    *,
    protocol: str = "corrected",
    draw: int = PUBLISHED_SEED,
    nodes: int | None = None,
    streams: LegacyStreams | None = None,
) -> Data:
    """``ba er grid tree``: y = sin(degree / 2) + 0.1·N(0,1); features are centralities.

    ``nodes`` (1,000 by default) is for ``ba``, ``er`` and the corrected ``tree``; the grid is
    30 × 30, and the published tree has 511 nodes.
    """
    if nodes is not None and (name == "grid" or (name, protocol) == ("tree", "published")):
        raise SettingError(f"nodes: {name} ({protocol}) has a fixed size, got {nodes}")
    size = 1000 if nodes is None else check_integer("nodes", nodes, 10)
    streams = streams or LegacyStreams(draw)
    graph = TOPOLOGIES[name](size, protocol, streams)
    # through PyG and back, because the centralities' last bits follow the order of the neighbours
    edge_index = from_networkx(graph).edge_index
    x = _centralities(edge_index, graph.number_of_nodes())
    y = torch.sin(x[:, :1] * 0.5) + 0.1 * torch.randn((len(x), 1), generator=streams.torch)
    return Data(
        x=x,
        y=y.squeeze(1),
        edge_index=_edges(edge_index, len(x), protocol),
        feature_names=list(CENTRALITIES),
    )


def _barabasi_albert(nodes: int, protocol: str, streams: LegacyStreams) -> nx.Graph:
    return nx.barabasi_albert_graph(nodes, 3, seed=streams.python)


def _erdos_renyi(nodes: int, protocol: str, streams: LegacyStreams) -> nx.Graph:
    return nx.erdos_renyi_graph(nodes, 0.01, seed=streams.python)


def _grid(nodes: int, protocol: str, streams: LegacyStreams) -> nx.Graph:
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30))


def _tree(nodes: int, protocol: str, streams: LegacyStreams) -> nx.Graph:
    return nx.balanced_tree(2, 8) if protocol == "published" else nx.full_rary_tree(2, nodes)


TOPOLOGIES: dict[str, Callable[[int, str, LegacyStreams], nx.Graph]] = {
    "ba": _barabasi_albert,
    "er": _erdos_renyi,
    "grid": _grid,
    "tree": _tree,
}


def _edges(edge_index: Tensor, nodes: int, protocol: str) -> Tensor:
    return edge_index if protocol == "published" else simple_edges(edge_index, nodes)[0]


def _centralities(edge_index: Tensor, nodes: int) -> Tensor:
    return _centralities_of(tuple(edge_index.flatten().tolist()), nodes).clone()


@lru_cache(maxsize=8)  # seconds to compute, and asked for again by every seed of a comparison
def _centralities_of(flat_edges: tuple[int, ...], nodes: int) -> Tensor:
    edge_index = torch.tensor(flat_edges, dtype=torch.long).reshape(2, -1)
    graph = to_networkx(Data(edge_index=edge_index, num_nodes=nodes), to_undirected=True)
    columns = (
        dict(graph.degree()),
        nx.clustering(graph),
        nx.betweenness_centrality(graph),
        nx.closeness_centrality(graph),
        _eigenvector(graph),
    )
    return torch.tensor([[column[node] for column in columns] for node in graph]).float()


def _eigenvector(graph: nx.Graph) -> dict[int, float]:
    try:
        return dict(nx.eigenvector_centrality(graph, max_iter=1000))
    except nx.PowerIterationFailedConvergence:  # a small draw in several pieces of equal weight
        values, vectors = np.linalg.eigh(nx.to_numpy_array(graph))
        return dict(zip(graph, np.abs(vectors[:, values.argmax()]), strict=True))
