"""The data sets as the authors' code stored them, mistakes included.

Edges keep their self-loops and have one direction or two, as each loader left them; the tree has
511 nodes; the line graphs of the road networks join the wrong links.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.catalog import find_dataset
from qpignn.data.sources.dataset import Size
from qpignn.data.sources.synthetic import SEED, with_centralities
from qpignn.data.sources.transport import links_beside, links_through, read_network
from qpignn.errors import SettingError
from qpignn.runtime.randomness import LegacyStreams

COUNTY = ("education", "election", "income", "unemployment", "migration", "birth", "death")
BASIC = ("basic", "gaussian", "uniform", "outlier")
SIZES = {
    **dict.fromkeys(BASIC, Size(1000, 2000, 3, 5)),
    "edge": Size(1000, 2000, 1, 5),
    "ba": Size(1000, 5982, 0, 5),
    "er": Size(1000, 9788, 0, 5),
    "grid": Size(900, 3480, 0, 5),
    "tree": Size(511, 1020, 0, 5),
    **dict.fromkeys(COUNTY, Size(3234, 12717, 3234, 6)),
    "twitch": Size(1912, 31299, 0, 3169),
    "chameleon": Size(2277, 36101, 50, 3132),
    "crocodile": Size(11631, 180020, 145, 13183),
    "squirrel": Size(5201, 217073, 140, 3148),
    "anaheim": Size(914, 3638, 0, 4),
    "chicago": Size(2176, 14961, 0, 4),
}
"""Counts with edges as stored."""
ONE_DIRECTION = ("county", "twitch")
"""Origins whose edges were stored once each."""


def load_published(name: str, **options: Any) -> Data:
    """Load a data set as the authors' code stored it.

    Args:
        name: its name in the catalog.
        **options: options of the data set.

    Returns:
        The graph.

    Raises:
        UnknownNameError: for an unknown data set.
        SettingError: for an option it does not have, or a data set that the authors did not use.
    """
    entry = find_dataset(name)
    entry.check_options(options)
    if name not in SIZES:
        raise SettingError(
            f"data set {name!r}: expected one that the authors' code loads under the protocol "
            f"published, got another; those are {', '.join(SIZES)}"
        )
    if name == "tree":
        data = _tree(**options)
    elif entry.origin == "transport":
        data, roads = read_network(name)
        data.edge_index = _joined_links(roads)
    else:
        data = entry.loader(**options)
    if entry.origin in ONE_DIRECTION:
        data.edge_index = each_once(data.edge_index)
    data.name, data.protocol = name, "published"
    return data


def each_once(edge_index: Tensor) -> Tensor:
    """Return each pair of nodes once, the smaller position first, self-loops kept.

    Args:
        edge_index: (2, edges) positions of nodes.

    Returns:
        (2, pairs) positions in sorted order.
    """
    pairs: Tensor = torch.unique(edge_index.sort(dim=0).values, dim=1)
    return pairs


def _tree(draw: int = SEED, nodes: int | None = None, streams: LegacyStreams | None = None) -> Data:
    if nodes is not None:
        raise SettingError(
            f"nodes: expected none for tree (published), which has a fixed size, got {nodes}"
        )
    return with_centralities(nx.balanced_tree(2, 8), streams or LegacyStreams(draw))


def _joined_links(roads: nx.DiGraph) -> Tensor:
    """Return the edges between links of a road network.

    The authors' loader numbers links in sorted order, though features and targets stand in another,
    and adds two adjacency matrices whose rows follow the order in which each graph happened to meet
    its links. So wrong links are joined; the counts in the paper (3,638 and 14,961) are those of
    this sum.
    """
    number = {link: i for i, link in enumerate(sorted(roads.edges))}
    joined = []
    for pairs in (links_through, links_beside):
        graph = nx.Graph()
        for crossing in roads:
            graph.add_edges_from((number[a], number[b]) for a, b in pairs(roads, crossing))
        row = {node: position for position, node in enumerate(graph)}
        joined += [(row[a], row[b]) for a, b in graph.edges]
    return each_once(torch.tensor(joined).T)
