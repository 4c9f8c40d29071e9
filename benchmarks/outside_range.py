"""Coverage and width where a feature leaves the range that was learnt.

    python benchmarks/outside_range.py [--fits 8] [--figure docs/figures/outside-range.png]

1,000 nodes, 3,000 random edges, five features with mean 0 and variance 1, uniform, so that their
range ends at ±1.73 (``--normal`` draws them from a normal law, with tails). The target is

    f(x₁) + x₂/2 + 0.3·ε,   f linear (x₁), sine (sin 2x₁) or step (2 where x₁ > 1/2)

and 800 nodes are labelled. Feature x₁ of 50 others is then moved to a distance from its mean, on
either side, and their intervals at 90 % are compared with targets by the same law. Per fit, truth
and distance: coverage, mean width in units of the mean width of the labelled nodes, and mean width
over that of the narrowest intervals that cover as many around the same predictions. Printed are
means over fits as Markdown tables.

Compared with QpiGNN: itself without novelty, a deep ensemble and MC dropout without novelty (their
own behaviour), Conformal around a quantile regression without novelty, and scikit-learn's Gaussian
process (one length scale per feature, white noise) on the nodes' features and the means of their
neighbours' features, all scaled.
"""

from __future__ import annotations

import argparse
import copy
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from torch_geometric.data import Data

from qpignn import check_graph, make_method
from qpignn.errors import QpignnWarning

NODES, COLUMNS, MOVED, LEVEL = 1000, 5, 50, 0.9
DISTANCES = (0, 1, 2, 3, 5, 10)
TRUTHS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda x: x,
    "sine": lambda x: np.sin(2 * x),
    "step": lambda x: 2.0 * (x > 0.5),
}
METHODS: dict[str, dict[str, Any]] = {
    "qpignn": {},
    "qpignn, off": {"novelty": "off"},
    "deep_ensemble": {"novelty": "off"},
    "mc_dropout": {"novelty": "off"},
    "conformal:sqr": {"novelty": "off"},
}
Bounds = tuple[Any, Any, Any]


def graph(truth: str, seed: int, *, normal: bool) -> tuple[Data, Any]:
    """Return a graph and which nodes are labelled."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(NODES, COLUMNS))
    if not normal:
        x = np.sqrt(12) * (norm.cdf(x) - 0.5)
    ends = draw.integers(0, NODES, (2, 3 * NODES))
    y = TRUTHS[truth](x[:, 0]) + x[:, 1] / 2 + 0.3 * draw.normal(size=NODES)
    labelled = draw.permutation(NODES) >= NODES // 5
    both = torch.from_numpy(np.hstack([ends, ends[::-1]]))
    return check_graph(
        Data(x=torch.from_numpy(x).float(), y=torch.from_numpy(y), edge_index=both)
    ), labelled


def of_method(name: str, data: Data, labelled: Any, seed: int) -> Callable[[Data], Bounds]:
    """Return a function from a graph to prediction, lower and upper bounds of a method."""
    settings = METHODS[name]
    model = make_method(name.partition(",")[0], confidence_level=LEVEL, seed=seed, **settings)
    model.fit(data, torch.from_numpy(labelled))

    def bounds(moved: Data) -> Bounds:
        intervals = model.predict_interval(moved)
        return intervals.prediction, intervals.lower, intervals.upper

    return bounds


def of_gaussian_process(data: Data, labelled: Any) -> Callable[[Data], Bounds]:
    """Return a function from a graph to prediction and bounds of a Gaussian process."""
    source, target = data.edge_index.numpy()
    links = sparse.csr_matrix((np.ones(len(source)), (target, source)), shape=(NODES, NODES))
    mean = sparse.diags(1 / np.maximum(links.sum(axis=1).A1, 1)) @ links

    def features(graph: Data) -> Any:
        own = graph.x.double().numpy()
        return np.hstack([own, mean @ own])

    x = features(data)[labelled]
    centre, scale = x.mean(axis=0), x.std(axis=0)
    kernel = ConstantKernel() * RBF(np.ones(x.shape[1]), (1e-1, 1e3)) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True)
    process.fit((x - centre) / scale, data.y.numpy()[labelled])

    def bounds(moved: Data) -> Bounds:
        value, deviation = process.predict((features(moved) - centre) / scale, return_std=True)
        half = norm.ppf((1 + LEVEL) / 2) * deviation
        return value, value - half, value + half

    return bounds


def measure(truth: str, seed: int, *, normal: bool) -> dict[tuple[str, str, int], list[float]]:
    """Return coverage, width over the usual one, and width over the narrowest, of one graph."""
    data, labelled = graph(truth, seed, normal=normal)
    x, y = data.x.double().numpy(), data.y.numpy()
    noise = y - TRUTHS[truth](x[:, 0])
    nodes = np.flatnonzero(~labelled)[:MOVED]
    centre, scale = x[labelled, 0].mean(), x[labelled, 0].std()
    makers = {name: of_method(name, data, labelled, seed) for name in METHODS}
    makers["Gaussian process"] = of_gaussian_process(data, labelled)
    figures = {}
    for name, bounds in makers.items():
        _, low, high = bounds(data)
        usual = (high - low)[labelled].mean()
        for distance in DISTANCES:
            columns = defaultdict(list)
            for sign in (-1, 1):
                moved = copy.copy(data)
                moved.x = data.x.clone()
                if distance:
                    moved.x[nodes, 0] = float(centre + sign * distance * scale)
                target = TRUTHS[truth](moved.x[nodes, 0].double().numpy()) + noise[nodes]
                value, low, high = (part[nodes] for part in bounds(moved))
                columns["hits"].append((low <= target) & (target <= high))
                columns["width"].append(high - low)
                columns["errors"].append(np.abs(target - value))
            hits, width, errors = (np.concatenate(one) for one in columns.values())
            narrowest = 2 * float(np.quantile(errors, hits.mean())) if hits.any() else np.nan
            ratio = width.mean() / narrowest if narrowest else np.nan
            figures[truth, name, distance] = [hits.mean(), width.mean() / usual, ratio]
    return figures


def draw(means: dict[tuple[str, str, int], Any], path: Path) -> None:
    """Draw coverage and width against the distance."""
    from matplotlib.figure import Figure

    names = [*METHODS, "Gaussian process"]
    figure = Figure(figsize=(10, 5.5), layout="constrained")
    axes = figure.subplots(2, len(TRUTHS), sharex=True, sharey="row")
    for column, truth in enumerate(TRUTHS):
        for row in range(2):
            for name in names:
                values = [means[truth, name, distance][row] for distance in DISTANCES]
                strong = {"linewidth": 2.5, "color": "black"} if name == "qpignn" else {}
                axes[row, column].plot(DISTANCES, values, marker=".", label=name, **strong)
            axes[row, column].spines[["top", "right"]].set_visible(False)
        axes[0, column].set(title=f"{truth} truth", ylim=(0, 1.02))
        axes[0, column].axhline(LEVEL, color="grey", linewidth=0.8, linestyle="--")
        axes[1, column].set(yscale="log", xlabel="distance, standard deviations")
    axes[0, 0].set_ylabel("coverage")
    axes[1, 0].set_ylabel("width / usual width")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=8)
    parser.add_argument("--normal", action="store_true", help="features by a normal law")
    parser.add_argument("--truths", default=",".join(TRUTHS))
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", QpignnWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)  # a feature without effect: as intended
    truths = options.truths.split(",")
    rows = defaultdict(list)
    for truth in truths:
        for seed in range(options.fits):
            for key, values in measure(truth, seed, normal=options.normal).items():
                rows[key].append(values)
    means = {key: np.mean(values, axis=0) for key, values in rows.items()}
    print(f"coverage (width / usual width), means over {options.fits} fits, both sides")
    for truth in truths:
        print(f"\n| {truth} | " + " | ".join(f"{d} sd" for d in DISTANCES) + " | × narrowest |")
        print("|---" + "|---:" * (len(DISTANCES) + 1) + "|")
        for name in (*METHODS, "Gaussian process"):
            cells = [means[truth, name, d] for d in DISTANCES]
            shown = " | ".join(f"{cover:.2f} ({width:.2f})" for cover, width, _ in cells)
            ratios = " / ".join(f"{means[truth, name, d][2]:.1f}" for d in (3, 5, 10))
            print(f"| {name} | {shown} | {ratios} |")
    if options.figure:
        draw(means, options.figure)


if __name__ == "__main__":
    main()
