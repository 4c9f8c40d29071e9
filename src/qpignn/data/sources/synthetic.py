"""The nine synthetic graphs, drawn with seed 1127 by default.

Two families. *Basic* and its noisy variants: uniform features, random edges, a target that follows
the node's own first feature. *Centrality* graphs (``ba er grid tree``): features are centralities,
and the target follows the degree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import networkx as nx
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx, to_networkx

from qpignn.data.sources.dataset import Dataset, Size
from qpignn.errors import SettingError, check_integer
from qpignn.runtime.randomness import LegacyStreams

SEED = 1127
NOISE_LEVEL = 0.3  # of gaussian, uniform and edge
OUTLIER_SHARE = 0.05
CENTRALITIES = ["degree", "clustering", "betweenness", "closeness", "eigenvector"]


def load_basic(
    name: str,
    *,
    draw: int = SEED,
    nodes: int = 1000,
    streams: LegacyStreams | None = None,
) -> Data:
    """Draw ``basic gaussian uniform outlier edge``: y = sin(3·x₀) + 0.1·U(0,1) and more noise.

    Args:
        name: which of them; the name says what noise is added.
        draw: seed of the draw.
        nodes: number of nodes.
        streams: random streams to draw from in place of new ones, for a caller that goes on
            drawing where the data stopped.

    Returns:
        The graph, with its edges as drawn: one direction each, repeats and self-loops included.

    Raises:
        SettingError: for fewer than ten nodes.
    """
    check_integer("nodes", nodes, 10)
    streams = streams or LegacyStreams(draw)
    streams.restart_arrays()  # as the data set is defined
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
        edge_index=edges,
        feature_names=[f"x{i}" for i in range(5)],
    )


def _outlier(y: npt.NDArray[np.float64], rng: np.random.RandomState) -> npt.NDArray[np.float64]:
    count = int(len(y) * OUTLIER_SHARE)
    y[rng.choice(len(y), count, replace=False)] += rng.normal(3, 1, size=count)
    return y


EXTRA_NOISE: dict[str, Callable[..., npt.NDArray[np.float64]]] = {
    "gaussian": lambda y, rng: y + rng.normal(0, NOISE_LEVEL, size=len(y)),
    "uniform": lambda y, rng: y + rng.uniform(-NOISE_LEVEL, NOISE_LEVEL, size=len(y)),
    "outlier": _outlier,
}


def load_centrality(
    name: str,
    *,
    draw: int = SEED,
    nodes: int | None = None,
    streams: LegacyStreams | None = None,
) -> Data:
    """Draw ``ba er grid tree``: y = sin(degree / 2) + 0.1·N(0,1); features are centralities.

    Args:
        name: which of them.
        draw: seed of the draw.
        nodes: number of nodes, by default 1,000; the grid is 30 × 30.
        streams: random streams to draw from in place of new ones.

    Returns:
        The graph.

    Raises:
        SettingError: for fewer than ten nodes, or a number of nodes for the grid.
    """
    if nodes is not None and name == "grid":
        raise SettingError(
            f"nodes: expected none for grid, which has a fixed size of 30 × 30, got {nodes}"
        )
    size = 1000 if nodes is None else check_integer("nodes", nodes, 10)
    streams = streams or LegacyStreams(draw)
    return with_centralities(TOPOLOGIES[name](size, streams), streams)


def with_centralities(graph: nx.Graph, streams: LegacyStreams) -> Data:
    """Return a graph with centralities as features and a target that follows the degree.

    Args:
        graph: the nodes and edges.
        streams: random streams that the target's noise is drawn from.
    """
    # through PyG and back, because the centralities' last bits follow the order of the neighbours
    edge_index = from_networkx(graph).edge_index
    x = _centralities(tuple(edge_index.flatten().tolist()), graph.number_of_nodes()).clone()
    y = torch.sin(x[:, :1] * 0.5) + 0.1 * torch.randn((len(x), 1), generator=streams.torch)
    return Data(x=x, y=y.squeeze(1), edge_index=edge_index, feature_names=list(CENTRALITIES))


TOPOLOGIES: dict[str, Callable[[int, LegacyStreams], nx.Graph]] = {
    "ba": lambda nodes, streams: nx.barabasi_albert_graph(nodes, 3, seed=streams.python),
    "er": lambda nodes, streams: nx.erdos_renyi_graph(nodes, 0.01, seed=streams.python),
    "grid": lambda *_: nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30)),
    "tree": lambda nodes, _: nx.full_rary_tree(2, nodes),
}


@lru_cache(maxsize=8)  # seconds to compute, and asked for again by every seed of a comparison
def _centralities(flat_edges: tuple[int, ...], nodes: int) -> Tensor:
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


_WAVE = "random pairs; sin of the first feature"
_DEGREE = "sin of the degree, centralities as features"
BASIC = {  # what it is, undirected edges without self-loops
    "basic": (_WAVE, 1988),
    "gaussian": (f"{_WAVE} + N(0, 0.3²)", 1988),
    "uniform": (f"{_WAVE} + U(−0.3, 0.3)", 1988),
    "outlier": (f"{_WAVE}; 5 % of nodes + N(3, 1)", 1988),
    "edge": (f"{_WAVE}; 30 % of edges rewired", 1994),
}
CENTRALITY = {  # what it is, nodes, edges
    "ba": ("Barabási–Albert", 1000, 2991),
    "er": ("Erdős–Rényi", 1000, 4894),
    "grid": ("30 × 30", 900, 1740),
    "tree": ("binary tree", 1000, 999),
}
DATASETS = (
    *(
        Dataset(name, "synthetic", about, partial(load_basic, name), size=Size(1000, edges, 0, 5))
        for name, (about, edges) in BASIC.items()
    ),
    *(
        Dataset(
            *(name, "synthetic", f"{about}; {_DEGREE}", partial(load_centrality, name)),
            size=Size(nodes, edges, 0, 5),
        )
        for name, (about, nodes, edges) in CENTRALITY.items()
    ),
)
