"""Graph layout: positions of the nodes in the plane that approximate graph distances.

Pivot MDS (Brandes and Pich, 2007) projects the distances to a few dozen pivot nodes that are far
from each other onto their two principal directions, at the cost of one breadth-first search per
pivot. On components of up to 10,000 nodes a force-directed step then separates nodes that coincide.
Connected components are laid out one by one and packed in rows; isolated nodes, and those of
components beyond the 100 largest, form a grid.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.spatial import cKDTree
from torch_geometric.data import Data

from qpignn.data.structure import Floats, Integers, adjacency
from qpignn.reports.maps import map_of
from qpignn.reports.markup import rounded
from qpignn.runtime.memory import row_chunks
from qpignn.runtime.randomness import numpy_rng

Places = Floats
"""(nodes, 2)"""
DRAWN_NODES, DRAWN_EDGES = 4_000, 12_000
PIVOTS, FEW_PIVOTS = 50, 20
MANY_NODES = 100_000  # larger components use FEW_PIVOTS
COMPONENTS = 100  # components with a layout of their own, at most
SPRING_NODES = 10_000  # larger components skip the force-directed step
ROUNDS = 60  # iterations of the force-directed step
NEAR = 24  # nearest nodes in the plane that repel each other
GAP = 0.12  # between components, relative to the side of the smaller one


def graph_drawing(data: Data, place: Integers) -> dict[str, Any]:
    """Return positions of nodes and the edges to draw; of large graphs, a random sample.

    Args:
        data: the graph.
        place: (nodes,), row of each node in the page's table; −1 for nodes that are not listed,
            which are not drawn either.
    """
    links = adjacency(data)
    links = links.maximum(links.T)
    mapped = map_of(data)
    places = lay_out(links) if mapped is None else mapped.places
    rng = numpy_rng(0, "report graph")
    listed = np.flatnonzero(place >= 0)
    drawn = listed if len(listed) <= DRAWN_NODES else rng.choice(listed, DRAWN_NODES, False)
    source, target = links[drawn][:, drawn].nonzero()
    once = np.flatnonzero(source < target)
    kept = once if len(once) <= DRAWN_EDGES else rng.choice(once, DRAWN_EDGES, replace=False)
    corner, sides = places[drawn].min(axis=0), np.ptp(places[drawn], axis=0)
    spots = places[drawn] - corner
    width, height = (float(side or sides.max() or 1.0) for side in sides)
    note = "connected nodes are drawn close together"
    if mapped is not None:
        note = "nodes are drawn at their coordinates"
    return {
        "kind": "layout" if mapped is None else "map",
        "note": note,
        "axes": None if mapped is None else mapped.axes(corner, width, height),
        "node": place[drawn].tolist(),
        "x": rounded(spots[:, 0] / width, 6),
        "y": rounded(1 - spots[:, 1] / height, 6),
        "edges": np.stack([source[kept], target[kept]], axis=1).ravel().tolist(),
        "aspect": width / height,
        "shown": len(drawn),
        "of": len(place),
        "edges_shown": len(kept),
        "edges_of": (links.nnz + int((links.diagonal() != 0).sum())) // 2,
    }


def lay_out(links: Any, seed: int = 0) -> Places:
    """Return positions (nodes, 2) of the nodes of a graph; the same graph gives the same positions.

    Args:
        links: (nodes, nodes), symmetric adjacency matrix as SciPy CSR.
        seed: seed of the first pivot and of the jitter.
    """
    rng = numpy_rng(seed, "layout")
    count, label = connected_components(links, directed=False)
    sizes = np.bincount(label, minlength=count)
    order = np.lexsort((label, -sizes[label]))  # largest component first
    largest = np.sort(sizes)[::-1][:COMPONENTS]
    ends = np.cumsum([0, *largest[largest > 1]])
    inside = links[order][:, order]
    parts, boxes = [], []
    for start, end in pairwise(ends):
        component = inside[start:end, start:end]
        box = _pivot_mds(component, rng)
        box = _spread(component, box) if len(box) <= SPRING_NODES else box
        box -= box.min(axis=0)  # to the origin, with √nodes as the longer side
        parts.append(order[start:end])
        boxes.append(box / (np.ptp(box, axis=0).max() or 1.0) * np.sqrt(len(box)))
    rest = len(order) - ends[-1]
    if rest:  # on a square grid
        parts.append(order[ends[-1] :])
        width = math.isqrt(rest - 1) + 1
        boxes.append(np.column_stack(np.divmod(np.arange(rest), width)).astype(np.float64))
    places: Places = np.empty((links.shape[0], 2))
    for nodes, box, corner in zip(parts, boxes, _corners(boxes), strict=True):
        places[nodes] = box + corner
    return places


def _pivot_mds(links: Any, rng: np.random.Generator) -> Places:
    nodes = links.shape[0]
    pivot = int(rng.integers(nodes))
    nearest = np.full(nodes, np.inf)
    pivots = PIVOTS if nodes <= MANY_NODES else FEW_PIVOTS
    centred = np.empty((nodes, min(pivots, nodes)), dtype=np.float32)
    for i in range(centred.shape[1]):
        steps = _steps(links, pivot)
        centred[:, i] = steps**2
        nearest = np.minimum(nearest, steps)
        pivot = int(np.argmax(nearest))  # the node furthest from all pivots so far
    columns = centred.mean(axis=0, dtype=np.float64)
    for part in row_chunks(nodes):  # in place: this is the largest array of a report
        rows = centred[part].mean(axis=1, keepdims=True, dtype=np.float64)
        centred[part] -= columns + rows - columns.mean()
    squares = (centred[part].T.astype(np.float64) @ centred[part] for part in row_chunks(nodes))
    _, vectors = np.linalg.eigh(sum(squares))
    places: Places = centred @ vectors[:, -2:][:, ::-1]
    if places.shape[1] < 2:
        places = np.column_stack([places, np.zeros(nodes)])
    spread = np.ptp(places, axis=0).max() or 1.0
    jitter = rng.normal(scale=0.3 / np.sqrt(nodes), size=places.shape)
    return places / spread + 0.1 * jitter  # nodes with equal neighbours coincide


def _steps(links: Any, start: int) -> Floats:
    """Return the number of edges from a node to every other node of its component."""
    order, parent = breadth_first_order(links, start, directed=True)
    place = np.empty(links.shape[0], dtype=np.int64)
    place[order] = np.arange(len(order))
    parent_place = place[parent[order[1:]]]  # sorted: children follow the order of parents
    depth = np.zeros(len(order))
    begin, end, step = 0, 1, 0
    while end < len(order):
        step += 1
        begin, end = end, 1 + int(np.searchsorted(parent_place, end, side="left"))
        depth[begin:end] = step
    steps = np.empty(links.shape[0])
    steps[order] = depth
    return steps


def _spread(links: Any, places: Places) -> Places:
    """Apply attraction along edges and repulsion between nearby nodes, with decreasing steps."""
    nodes = len(places)
    source, target = links.nonzero()
    edge_length = 1 / np.sqrt(nodes)  # edge length if nodes filled a unit square
    places = places.copy()
    degree = np.maximum(np.bincount(source, minlength=nodes), 1)[:, None]
    for turn in range(ROUNDS):
        largest_step = 2 * edge_length * (1 - turn / ROUNDS) + 0.05 * edge_length
        gap = places[target] - places[source]
        length = np.linalg.norm(gap, axis=1, keepdims=True)
        pull = gap * length / edge_length
        move = np.column_stack(
            [np.bincount(source, weights=pull[:, axis], minlength=nodes) for axis in (0, 1)]
        ) / np.sqrt(degree)
        distance, near = cKDTree(places).query(places, min(NEAR, nodes))
        away = places[:, None] - places[near]
        push = edge_length / np.maximum(distance, 0.01 * edge_length)
        move += (away * push[..., None] ** 2).sum(axis=1)
        size = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-12)
        places += move / size * np.minimum(size, largest_step)
    return places


def _corners(boxes: list[Places]) -> list[Places]:
    """Return the lower left corner of every box: rows of boxes in an approximate square."""
    sides = [np.ptp(box, axis=0) + GAP * np.sqrt(len(box)) + 0.5 for box in boxes]
    area = sum(float(side[0] * side[1]) for side in sides)
    width = max(1.15 * np.sqrt(area), *(float(side[0]) for side in sides))
    corners, x, y, height = [], 0.0, 0.0, 0.0
    for side in sides:
        if x and x + side[0] > width:
            x, y, height = 0.0, y + height, 0.0
        corners.append(np.array([x, y]))
        x, height = x + float(side[0]), max(height, float(side[1]))
    return corners
