"""Graphs with labels missing at random, and graphs in which they are not, for false_alarms.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx

from qpignn import load_dataset
from qpignn.data.matrix import from_scipy
from qpignn.data.structure import adjacency, degrees

Rng = np.random.Generator
Mask = npt.NDArray[np.bool_]
NODES, COLUMNS = 600, 5
SIDE, BLOCKS = 24, 6


def edges(graph: nx.Graph) -> torch.Tensor:
    return from_networkx(nx.convert_node_labels_to_integers(graph)).edge_index


def made(ends: torch.Tensor, x: npt.NDArray[np.float64], **more: object) -> Data:
    return Data(x=torch.from_numpy(x).float(), edge_index=ends, **more)


def er(rng: Rng, nodes: int = NODES, columns: int = COLUMNS, degree: float = 8) -> Data:
    graph = nx.fast_gnp_random_graph(nodes, degree / nodes, seed=int(rng.integers(2**31)))
    return made(edges(graph), rng.normal(size=(nodes, columns)))


def ba(rng: Rng) -> Data:
    graph = nx.barabasi_albert_graph(NODES, 4, seed=int(rng.integers(2**31)))
    return made(edges(graph), rng.normal(size=(NODES, COLUMNS)))


def grid(rng: Rng) -> Data:
    """A grid with coordinates; features are smooth along the edges."""
    places = np.stack(np.divmod(np.arange(SIDE**2), SIDE), axis=1).astype(np.float64)
    data = made(
        edges(nx.grid_2d_graph(SIDE, SIDE)),
        rng.normal(size=(SIDE**2, COLUMNS)),
        pos=torch.from_numpy(places),
    )
    data.x = smoothed(data, 5)
    return data


def smoothed(data: Data, times: int) -> torch.Tensor:
    """Return features averaged over neighbours several times, divided by their deviation."""
    links, x = adjacency(data), data.x.double().numpy()
    links = links + sp.eye(links.shape[0])
    for _ in range(times):
        x = (links @ x) / np.asarray(links.sum(axis=1))
    return torch.from_numpy(x / x.std()).float()


def communities(rng: Rng) -> Data:
    """Six communities of 100 nodes whose features have means of their own."""
    chances = np.full((BLOCKS, BLOCKS), 0.005) + np.eye(BLOCKS) * 0.075
    sizes = [NODES // BLOCKS] * BLOCKS
    graph = nx.stochastic_block_model(sizes, chances, seed=int(rng.integers(2**31)))
    means = 2 * rng.normal(size=(BLOCKS, COLUMNS))
    x = np.repeat(means, NODES // BLOCKS, axis=0) + rng.normal(size=(NODES, COLUMNS))
    return made(edges(graph), x)


def vocabulary(rng: Rng, size: int = 1500) -> Data:
    """Sparse 0/1 features with Zipf's frequencies, 20 words per node on average."""
    share = 1 / np.arange(1, size + 1)
    chance = np.minimum(20 * share / share.sum(), 0.5)
    data = er(rng)
    data.x = from_scipy(sp.csr_matrix((rng.random((NODES, size)) < chance).astype(np.float32)))
    return data


def tied(rng: Rng) -> Data:
    """Two categories as zeros and ones, and two small counts."""
    data = er(rng)
    kinds = [np.eye(size)[rng.integers(size, size=NODES)] for size in (3, 8)]
    counts = rng.poisson((0.3, 2.0), size=(NODES, 2))
    data.x = torch.from_numpy(np.column_stack([*kinds, counts])).float()
    return data


@cache
def real(name: str) -> Data:
    return load_dataset(name)


def unlabel(data: Data, missing: Mask) -> Data:
    out = Data(**data.to_dict())
    out.y = torch.from_numpy(np.where(missing, np.nan, 0.0))
    return out


def at_random(data: Data, rng: Rng, share: float = 0.5) -> Mask:
    nodes = data.x.shape[0]
    return rng.permutation(nodes) < round(share * nodes)


def random_labels(make: Callable[[Rng], Data], share: float = 0.5) -> Callable[[Rng], Data]:
    """Return a maker of graphs in which a share of the labels is missing at random."""

    def draw(rng: Rng) -> Data:
        data = make(rng)
        return unlabel(data, at_random(data, rng, share))

    return draw


RANDOM = {
    "Erdős–Rényi, 600 nodes, 5 columns": random_labels(er),
    "Barabási–Albert": random_labels(ba),
    "grid with coordinates, smooth features": random_labels(grid),
    "6 communities with features of their own": random_labels(communities),
    "300 columns of noise": random_labels(lambda rng: er(rng, columns=300)),
    "2,000 columns of noise": random_labels(lambda rng: er(rng, columns=2000)),
    "sparse vocabulary, 1,500 words": random_labels(vocabulary),
    "categories and small counts": random_labels(tied),
    "60 nodes": random_labels(lambda rng: er(rng, 60)),
    "10 % labelled": random_labels(er, 0.9),
    "90 % labelled": random_labels(er, 0.1),
    "20 of 600 labelled, vocabulary": random_labels(vocabulary, 580 / 600),
    "20 of 600 labelled, communities": random_labels(communities, 580 / 600),
    "education (3,234 counties)": random_labels(lambda _: real("education")),
    "chameleon (2,277 pages, 3,132 words)": random_labels(lambda _: real("chameleon")),
}


def moved(make: Callable[[Rng], Data], by: float, columns: int = 1, share: float = 0.5):
    """Labels missing at random, then columns of unlabelled nodes moved by so many deviations."""

    def draw(rng: Rng) -> Data:
        data = random_labels(make, share)(rng)
        data.x = data.x.clone()
        data.x[torch.isnan(data.y), :columns] += by
        return data

    return draw


def scaled(rng: Rng) -> Data:
    data = random_labels(er)(rng)
    data.x = data.x.clone()
    data.x[torch.isnan(data.y), 0] *= 1.6
    return data


def by_chance(data: Data, chance: npt.NDArray[np.float64], rng: Rng) -> Data:
    return unlabel(data, rng.random(len(chance)) < chance)


def hubs(data: Data, rng: Rng) -> Data:
    degree = degrees(data)
    return by_chance(data, np.where(degree > np.quantile(degree, 2 / 3), 0.75, 0.4), rng)


def community(rng: Rng) -> Data:
    data = communities(rng)
    data.x = torch.from_numpy(rng.normal(size=(NODES, COLUMNS))).float()
    inside = np.arange(NODES) // (NODES // BLOCKS) == rng.integers(BLOCKS)
    return by_chance(data, np.where(inside, 0.9, 0.4), rng)


def corner(rng: Rng) -> Data:
    """A disc of a quarter of the grid without coordinates."""
    data = grid(rng)
    away = np.linalg.norm(data.pos.numpy() - rng.uniform(0, SIDE, 2), axis=1)
    data.pos = None
    return by_chance(data, np.where(away < np.quantile(away, 0.25), 0.8, 0.4), rng)


def patches(rng: Rng) -> Data:
    """Twenty balls of radius 2, of thirteen nodes each, anywhere on the grid."""
    data = grid(rng)
    data.pos = None
    inside = np.zeros(SIDE**2, dtype=bool)
    inside[rng.choice(SIDE**2, 20, replace=False)] = True
    for _ in range(2):
        inside |= adjacency(data) @ inside.astype(float) > 0
    return by_chance(data, np.where(inside, 0.8, 0.2), rng)


def neighbourhood(rng: Rng) -> Data:
    """Labels depend on the neighbours' mean of a column, not on the node's own."""
    data = er(rng)
    links, value = adjacency(data), data.x[:, 0].double().numpy()
    mean = (links @ value) / np.maximum(degrees(data), 1)
    return by_chance(data, np.where(mean > np.quantile(mean, 2 / 3), 0.75, 0.4), rng)


def interaction(rng: Rng) -> Data:
    data = er(rng, 2000)
    alike = (data.x[:, 0] * data.x[:, 1]).numpy() > 0
    return by_chance(data, np.where(alike, 0.7, 0.3), rng)


def word(rng: Rng) -> Data:
    """A word of 12 % of the labelled nodes that unlabelled ones lack."""
    data = random_labels(vocabulary)(rng)
    dense = data.x.to_dense()
    dense[:, 700] = torch.from_numpy(rng.random(NODES) < 0.12) & ~torch.isnan(data.y)
    data.x = dense.to_sparse_csr()
    return data


def category(rng: Rng) -> Data:
    data = random_labels(tied)(rng)
    missing = torch.isnan(data.y).numpy()
    rare = rng.random(NODES) < np.where(missing, 0.3, 0.12)
    data.x = data.x.clone()
    data.x[:, 3:11] = torch.from_numpy(np.eye(8)[np.where(rare, 0, rng.integers(1, 8, NODES))])
    return data


def low_feature(name: str, column: int) -> Callable[[Rng], Data]:
    def draw(rng: Rng) -> Data:
        data = real(name)
        value = data.x[:, column].numpy()
        return by_chance(data, np.where(value < np.quantile(value, 1 / 3), 0.6, 0.45), rng)

    return draw


PLANTED = {
    "one of 5 columns, mean 0.5 deviations higher": moved(er, 0.5),
    "one of 5 columns, deviation 1.6 times as large": scaled,
    "one of 300 columns, mean 0.6 higher": moved(lambda rng: er(rng, columns=300), 0.6),
    "one of 2,000 columns, mean 0.6 higher": moved(lambda rng: er(rng, columns=2000), 0.6),
    "each of 30 columns, mean 0.15 higher": moved(lambda rng: er(rng, columns=30), 0.15, 30),
    "60 nodes, mean 1.5 higher": moved(lambda rng: er(rng, 60), 1.5),
    "10 % labelled, mean 0.8 higher": moved(er, 0.8, share=0.9),
    "category, share 12 % and 30 %": category,
    "word, share 12 % and 0 %": word,
    "sign of a product of two columns, 2,000 nodes: 30 % and 70 % unlabelled": interaction,
    "third with the highest neighbours' mean: 75 % unlabelled, others 40 %": neighbourhood,
    "third with the highest degree: 75 % unlabelled, others 40 %": lambda rng: hubs(ba(rng), rng),
    "one of 6 communities: 90 % unlabelled, others 40 %": community,
    "quarter of a grid: 80 % unlabelled, others 40 %": corner,
    "patches of 13 nodes of a grid: 80 % unlabelled, others 20 %": patches,
    "chameleon, third with the highest degree: 75 % unlabelled, others 40 %": lambda rng: hubs(
        real("chameleon"), rng
    ),
    "education, third with the lowest first feature: 60 % unlabelled, others 45 %": low_feature(
        "education", 0
    ),
}


def two(make: Callable[[Rng], Data], by: float = 0.0) -> Callable[[Rng], tuple[Data, Data]]:
    """Return a maker of two graphs of one kind, columns of the second moved."""

    def draw(rng: Rng) -> tuple[Data, Data]:
        first, second = make(rng), make(rng)
        first.y = torch.zeros(first.x.shape[0])
        second.x[:, 0] += by
        return first, second

    return draw


def two_words(rng: Rng) -> tuple[Data, Data]:
    first, second = vocabulary(rng), vocabulary(rng)
    first.y = torch.zeros(NODES)
    return first, second


def smooth_er(rng: Rng) -> Data:
    data = er(rng)
    data.x = smoothed(data, 1)
    return data


TWO_GRAPHS = {
    "Erdős–Rényi, independent features": two(er),
    "Barabási–Albert, independent features": two(ba),
    "sparse vocabulary": two_words,
    "Erdős–Rényi, features averaged over neighbours once": two(smooth_er),
    "grid, smooth features": two(grid),
}
TWO_SHIFTED = {
    "one of 5 columns, mean 0.5 higher": two(er, 0.5),
    "degree 4 instead of 8": lambda rng: (two(er)(rng)[0], er(rng, degree=4)),
}
