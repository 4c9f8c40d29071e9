"""Mean coverage of the default with few labels, by Monte Carlo.

    python benchmarks/few_labels.py [--draws 100] [--labels 20 30 50 100 150 200 300]

Each draw makes a graph, labels some of its nodes at random, fits ``QpiGNN`` and measures coverage
and width on all other nodes. The same nets are calibrated in two ways: as the default does, and
with forms of intervals that compete however few nodes there are, and with the step from two nets to
ten (``calibration.FEW = 0``), which the default does from 200 labels on only.

A cell passes if mean coverage is at least the level − 0.01 − 2 standard errors of the mean.
"""

from __future__ import annotations

import argparse
import copy
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from qpignn import QpiGNN
from qpignn.calibration import cross_fit
from qpignn.errors import QpignnWarning
from qpignn.methods import qpignn

Floats = npt.NDArray[np.float64]
Edges = npt.NDArray[np.int64]
LEVEL = 0.9
LABELS = (20, 30, 50, 100, 150, 200, 300)
NODES = 500
SLACK = 0.01


def random_edges(rng: np.random.Generator, nodes: int, degree: int = 6) -> Edges:
    """Edges of a random graph (Erdős–Rényi) with so many edges per node on average."""
    ends = rng.integers(0, nodes, (2, nodes * degree // 2))
    ends = ends[:, ends[0] != ends[1]]
    return np.unique(np.concatenate([ends, ends[::-1]], axis=1), axis=1)


def grid_edges(side: int) -> Edges:
    """Edges of a square grid."""
    place = np.arange(side * side).reshape(side, side)
    across = np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()])
    down = np.stack([place[:-1].ravel(), place[1:].ravel()])
    ends = np.concatenate([across, down], axis=1)
    return np.concatenate([ends, ends[::-1]], axis=1)


def neighbour_means(x: Floats, edges: Edges) -> Floats:
    """Mean features of each node's neighbours, 0 without any."""
    count = np.bincount(edges[1], minlength=len(x)).clip(1)
    sums = [np.bincount(edges[1], column[edges[0]], minlength=len(x)) for column in x.T]
    return np.stack(sums, axis=1) / count[:, None]


def linear(
    rng: np.random.Generator, target: Callable[[np.random.Generator, Floats, Floats], Floats]
) -> Data:
    """A random graph whose targets are linear in a node's and its neighbours' features."""
    edges, x = random_edges(rng, NODES), rng.normal(size=(NODES, 4))
    mean = x @ rng.normal(size=4) + neighbour_means(x, edges) @ rng.normal(size=4)
    return as_graph(x, edges, target(rng, x, mean))


def smooth_grid(rng: np.random.Generator) -> Data:
    """A grid with a target that is smooth in its two coordinates."""
    side = round(math.sqrt(NODES))
    place = np.stack(np.divmod(np.arange(side * side), side), axis=1) / side
    a, b, c, d = rng.uniform(1, 3, 4)
    mean = np.sin(3 * a * place[:, 0] + b) + np.cos(3 * c * place[:, 1] + d)
    x = np.column_stack([place, rng.normal(size=side * side)])
    return as_graph(x, grid_edges(side), mean + 0.3 * rng.normal(size=side * side))


def as_graph(x: Floats, edges: Edges, y: Floats) -> Data:
    """Return arrays as a graph."""
    return Data(
        x=torch.tensor(x, dtype=torch.float32), edge_index=torch.tensor(edges), y=torch.tensor(y)
    )


WORLDS: dict[str, Callable[[np.random.Generator], Data]] = {
    "linear, normal noise": lambda rng: linear(
        rng, lambda rng, x, mean: mean + 0.5 * rng.normal(size=len(x))
    ),
    "noise varies": lambda rng: linear(
        rng, lambda rng, x, mean: mean + (0.2 + 0.8 * np.abs(x[:, 0])) * rng.normal(size=len(x))
    ),
    "heavy-tailed noise": lambda rng: linear(
        rng, lambda rng, x, mean: mean + 0.4 * rng.standard_t(2.5, size=len(x))
    ),
    "smooth on a grid": smooth_grid,
    "skewed targets": lambda rng: linear(
        rng, lambda rng, x, mean: np.exp(0.5 * mean + 0.5 * rng.normal(size=len(x)))
    ),
}


def two_fits(data: Data, given: torch.Tensor, seed: int) -> tuple[QpiGNN, QpiGNN]:
    """Return the same nets calibrated with competing forms, and as the default does."""
    original, competing = cross_fit.CrossFit.fit, []

    def recorded(*args: object, **settings: object) -> object:
        with patch.object(cross_fit, "FEW", 0):
            competing.append(original(*args, **settings)[0])
        return original(*args, **settings)

    with patch.object(cross_fit.CrossFit, "fit", recorded):
        model = QpiGNN(LEVEL, seed=seed).fit(data, given)
    if model.y_scaler_.name != "none":  # transforms of the target compete, too: fit again
        with patch.object(cross_fit, "FEW", 0), patch.object(qpignn, "FEW", 0):
            return QpiGNN(LEVEL, seed=seed).fit(data, given), model
    before = copy.copy(model)
    before.scalings_ = {LEVEL: competing[0]}
    return before, model


def draw(world: str, labels: int, seed: int) -> list[tuple[float, float]]:
    """Return coverage and mean width on the unlabelled nodes, for both calibrations."""
    rng = np.random.default_rng(seed)
    data = WORLDS[world](rng)
    nodes = data.num_nodes
    given = np.isin(np.arange(nodes), rng.permutation(nodes)[:labels])
    measured = []
    for model in two_fits(data, torch.from_numpy(given), seed):
        intervals = model.predict_interval(data, ~given)
        y = data.y.numpy()[~given]
        hits = (intervals.lower <= y) & (y <= intervals.upper)
        measured.append((float(hits.mean()), float(intervals.width.mean())))
    return measured


def row(world: str, labels: int, draws: int, first: int) -> str:
    """Measure one world with one number of labels."""
    measured = np.array([draw(world, labels, first + i) for i in range(draws)])
    coverage, width = measured[:, :, 0], measured[:, :, 1]
    error = coverage.std(axis=0, ddof=1) / math.sqrt(draws)
    passed = coverage[:, 1].mean() >= LEVEL - SLACK - 2 * error[1]
    before, now = (
        f"{mean:.3f} ± {2 * spread:.3f}"
        for mean, spread in zip(coverage.mean(axis=0), error, strict=True)
    )
    wider = (width[:, 1].mean() / width[:, 0].mean() - 1) * 100
    return (
        f"| {world} | {labels} | {before} | {now} | {wider:+.1f} % | {'yes' if passed else 'no'} |"
    )


def main() -> None:
    """Print the table, and write it to a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100, help="draws per cell")
    parser.add_argument("--labels", type=int, nargs="+", default=LABELS)
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--seed", type=int, default=0, help="of the first draw")
    parser.add_argument("--out", type=Path, help="also write the table here")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", QpignnWarning)
    torch.set_num_threads(1)
    lines = [
        "| world | labels | coverage, forms compete | coverage, default | mean width | passes |",
        "|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n", flush=True)
    for world in asked.worlds:
        for labels in asked.labels:
            lines.append(row(world, labels, asked.draws, asked.seed))
            print(lines[-1], flush=True)
            if asked.out is not None:
                asked.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
