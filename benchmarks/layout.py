"""Time, memory and quality of the report's graph layout and of scikit-network's layouts.

    python benchmarks/layout.py [--limit 30]

Every layout runs in a process of its own, on the largest component of a random geometric graph
(like a road network) and of a graph with ten communities. ``limit`` is in seconds of CPU time;
after a layout has exceeded it, larger graphs are skipped. Quality is the rank correlation between
distances along edges and distances in the plane, from 20 nodes to all others; 1 is best.
``distinct`` is the share of nodes with a position of their own, to a thousandth of the picture.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree
from scipy.stats import spearmanr
from sknetwork import embedding

from qpignn.reports.layout import lay_out

LAYOUTS = {
    "lay_out": lay_out,
    "Spectral": lambda links: embedding.Spectral(2, normalized=False).fit_transform(links),
    "Spring": lambda links: embedding.Spring(2).fit_transform(links),
    "ForceAtlas": lambda links: embedding.ForceAtlas(2).fit_transform(links),
}
SIZES = (1_000, 10_000, 100_000)


def geometric(nodes: int, rng: np.random.Generator) -> np.ndarray:
    places = rng.random((nodes, 2))
    radius = np.sqrt(6 / (np.pi * nodes))  # six neighbours on average
    return cKDTree(places).query_pairs(radius, output_type="ndarray")


def communities(nodes: int, rng: np.random.Generator) -> np.ndarray:
    source, target = rng.integers(nodes, size=(2, 3 * nodes))
    inside = rng.random(3 * nodes) < 0.93  # community: the remainder modulo ten
    target = np.where(inside, (target // 10 * 10 + source % 10) % nodes, target)
    return np.column_stack([source, target])


GRAPHS = {"geometric": geometric, "communities": communities}


def links_of(graph: str, nodes: int) -> Any:
    """Return the adjacency matrix of a graph's largest component."""
    ends = GRAPHS[graph](nodes, np.random.default_rng(0))
    links = sp.csr_matrix((np.ones(len(ends)), ends.T), shape=(nodes, nodes))
    links = (links.maximum(links.T) > 0).astype(float)
    label = connected_components(links)[1]
    largest = np.flatnonzero(label == np.bincount(label).argmax())
    return links[largest][:, largest].tocsr()


def quality(links: Any, places: np.ndarray) -> float:
    nodes = np.random.default_rng(1).choice(links.shape[0], 20, replace=False)
    steps = dijkstra(links, indices=nodes, unweighted=True)
    plane = np.linalg.norm(places[nodes][:, None] - places, axis=2)
    return float(spearmanr(steps.ravel(), plane.ravel()).statistic)


def run(graph: str, nodes: int, layout: str, limit: int) -> None:
    links = links_of(graph, nodes)
    np.random.seed(0)  # noqa: NPY002 - scikit-network draws from the global generator
    before = resource.getrusage(resource.RUSAGE_SELF)
    used = before.ru_utime + before.ru_stime
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + limit, resource.RLIM_INFINITY))
    start = time.process_time()
    places = LAYOUTS[layout](links)
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    megabytes = (after.ru_maxrss - before.ru_maxrss) / 1024
    grid = np.round((places - places.min(axis=0)) / np.ptp(places, axis=0).max(), 3)
    distinct = len(np.unique(grid, axis=0)) / len(grid)
    print(f"{seconds:.1f} | {megabytes:.0f} | {quality(links, places):.2f} | {distinct:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=30)
    parser.add_argument("--one", nargs=3, metavar=("GRAPH", "NODES", "LAYOUT"))
    asked = parser.parse_args()
    if asked.one:
        run(asked.one[0], int(asked.one[1]), asked.one[2], asked.limit)
        return
    print("| graph | nodes | layout | CPU seconds | MB | quality | distinct |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for graph in GRAPHS:
        slow: set[str] = set()
        for nodes in SIZES:
            for layout in (name for name in LAYOUTS if name not in slow):
                command = [sys.executable, __file__, "--limit", str(asked.limit), "--one"]
                command += [graph, str(nodes), layout]
                done = subprocess.run(command, check=False, capture_output=True, text=True)
                if done.returncode:
                    slow.add(layout)
                cells = done.stdout.strip() or f"> {asked.limit} | – | – | –"
                print(f"| {graph} | {nodes:,} | {layout} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
