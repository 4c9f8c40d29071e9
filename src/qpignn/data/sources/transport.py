"""Road networks: every directed link is a node of the graph, its traffic flow the target.

Two links are joined when they share an intersection: one leads into the other, both lead into it,
or both lead out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from qpignn.data.sources.dataset import Dataset, Size
from qpignn.data.sources.files import SourceFile, fetch
from qpignn.errors import ReadError

BASE = (
    "https://raw.githubusercontent.com/000Justin000/gnn-residual-correlation/"
    "03608b39b0da2c64293ba685213585de4ff8291f/datasets/transportation/"
)
SHA256 = {
    "Anaheim_flow.tntp": "fd7a9bc0770298f3b8b3a1585ccf77cc77c8a7acc97a0b4be52a04ce22df84d9",
    "Anaheim_net.tntp": "f681e01a58ee7c708b5a585a58acf4d32f91852a3a39af484ce226d424691b5f",
    "ChicagoSketch_flow.tntp": "068ee541d0e4d06e1e829bebc629ecf18c0f1eaf3b8239aff82de7ac3631370b",
    "ChicagoSketch_net.tntp": "61874898efd10e5e6cb0d25e793ac1244e19ef0908824ad7808201b77640b9de",
}
FEATURES = {"capacity": 0, "length": 1, "free_flow_time": 2, "speed": 5}  # after tail and head

Link = tuple[int, int]


@dataclass(frozen=True)
class City:
    """One network: its folder, the intersections that count, and the flow file's column.

    Attributes:
        folder: folder and first part of the names of its files.
        first: first intersection that counts.
        last: last intersection that counts.
    """

    folder: str
    first: int
    last: int

    @property
    def files(self) -> dict[str, SourceFile]:
        """The network and the flow file."""
        names = {kind: f"{self.folder}/{self.folder}_{kind}.tntp" for kind in ("net", "flow")}
        return {
            kind: SourceFile(f"transportation/{name}", (BASE + name,), SHA256[Path(name).name])
            for kind, name in names.items()
        }


CITIES = {"anaheim": City("Anaheim", 1, 416), "chicago": City("ChicagoSketch", 388, 933)}


def load_transport(name: str) -> Data:
    """Load ``anaheim`` or ``chicago``; flow, capacity, length, time and speed are standardised.

    Args:
        name: the city.

    Returns:
        The graph of links that share an intersection.

    Raises:
        ReadError: if the flow file lacks a link.
    """
    data, roads = read_network(name)
    position = {link: i for i, link in enumerate(roads.edges)}
    pairs = [
        (position[a], position[b])
        for crossing in roads
        for a, b in (*links_through(roads, crossing), *links_beside(roads, crossing))
    ]
    data.edge_index = torch.tensor(pairs).T
    return data


def read_network(name: str) -> tuple[Data, nx.DiGraph]:
    """Read the links of a city.

    Args:
        name: the city.

    Returns:
        Their features and targets without edges, and the roads, whose edges are the links in the
        same order.

    Raises:
        ReadError: if the flow file lacks a link.
    """
    city = CITIES[name]
    net, flow = (_links(fetch(city.files[kind]), city) for kind in ("net", "flow"))
    roads = nx.DiGraph()
    roads.add_nodes_from(range(city.first, city.last + 1))
    roads.add_edges_from(net)
    links: list[Link] = list(roads.edges)  # ONE order for features, targets and joins
    if missing := [link for link in links if link not in flow]:
        raise ReadError(f"{name}: expected a flow for every link, got none for {missing[:5]}")
    x = _standardised(np.array([[net[link][i] for i in FEATURES.values()] for link in links]))
    y = _standardised(np.array([flow[link][:1] for link in links]))
    data = Data(
        x=torch.from_numpy(x).float(),
        y=torch.from_numpy(y).float().squeeze(1),
        node_id=np.array([f"{tail}-{head}" for tail, head in links], dtype=object),
        feature_names=list(FEATURES),
    )
    return data, roads


def _links(path: Path, city: City) -> dict[Link, list[float]]:
    """Read the lines that begin with two intersections in range; the rest is header and comment."""
    links: dict[Link, list[float]] = {}
    for line in path.read_text().splitlines():
        columns = line.replace(":", " ").replace(";", " ").split()
        if len(columns) > 2 and columns[0].isdigit() and columns[1].isdigit():
            tail, head = int(columns[0]), int(columns[1])
            if all(city.first <= end <= city.last for end in (tail, head)):
                links[tail, head] = [float(word) for word in columns[2:]]
    return links


def _standardised(columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    spread = columns.std(axis=0)
    spread[spread == 0] = 1
    return np.asarray((columns - columns.mean(axis=0)) / spread)


def links_through(roads: nx.DiGraph, crossing: int) -> Iterator[tuple[Link, Link]]:
    """Yield the pairs of links of which one leads into an intersection and the other out of it.

    Args:
        roads: graph of intersections, whose edges are the links.
        crossing: the intersection.
    """
    for tail, head in product(roads.predecessors(crossing), roads.successors(crossing)):
        yield (tail, crossing), (crossing, head)


def links_beside(roads: nx.DiGraph, crossing: int) -> Iterator[tuple[Link, Link]]:
    """Yield the pairs of links that both lead into an intersection, or both out of it.

    Args:
        roads: graph of intersections, whose edges are the links.
        crossing: the intersection.
    """
    into = product(roads.predecessors(crossing), repeat=2)
    out_of = product(roads.successors(crossing), repeat=2)
    yield from (((a, crossing), (b, crossing)) for a, b in into if a < b)
    yield from (((crossing, a), (crossing, b)) for a, b in out_of if a < b)


SIZES = {"anaheim": Size(914, 3881, 0, 4), "chicago": Size(2176, 15104, 0, 4)}
DATASETS = tuple(
    Dataset(
        *(name, "transport", "road links; shared crossings; flow", partial(load_transport, name)),
        *(tuple(CITIES[name].files.values()), size),
    )
    for name, size in SIZES.items()
)
