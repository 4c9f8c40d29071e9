"""Known targets of neighbours: one fit, predicted with its second stage and without.

    python benchmarks/neighbours.py [--datasets …] [--seeds 10] [--first 0] [--figure PATH]

Fits the default on random splits of data sets, a fifth of the nodes for testing, and
predicts test nodes twice: with the second stage, and with the same nets alone, which is what
``neighbours="off"`` gives bit for bit. Printed are, as Markdown: coverage (PICP), mean width (MPIW)
and Winkler score, off → on, means over seeds, the latter two in units of the given targets' range;
the change of the Winkler score in percent with the standard error of its mean over seeds; the
number of seeds on which the second stage is used; and coverage in the hard quarter.

The hard quarter are the test nodes around which the plain prediction is worst: the quarter with the
largest mean of |target − plain prediction| over given neighbours, among test nodes that have any.
The target of a test node does not take part. Errors of given nodes are those of the average of all
nets, most of which were trained on them.

Then coverage by number of known neighbours, pooled over seeds, with 95 % Wilson intervals. Test
nodes of different seeds overlap, so that these are somewhat too short. A second stage that is not
used counts as equal to the plain prediction. The figure leaves out groups of fewer than ten nodes.
"""

from __future__ import annotations

import argparse
import copy
import math
import statistics
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from qpignn import load_dataset, make_method, split_nodes
from qpignn.data.adjacency import symmetric_adjacency
from qpignn.diagnostics.coverage import count_coverage
from qpignn.diagnostics.grouping import FEWEST
from qpignn.errors import QpignnWarning
from qpignn.intervals import Intervals
from qpignn.metrics import picp, winkler_score

LEVEL = 0.9
DATASETS = ("unemployment", "election", "income", "education", "anaheim", "chicago")
BINS: dict[str, Callable[[Any], Any]] = {
    "0": lambda count: count == 0,
    "1": lambda count: count == 1,
    "2": lambda count: count == 2,
    "3–4": lambda count: (count >= 3) & (count <= 4),
    "5+": lambda count: count >= 5,
}
FORMS = ("off", "on")
Hits = dict[str, dict[str, list[Any]]]


@dataclass(frozen=True)
class Result:
    """One fit: figures of its test nodes, ``off`` and ``on``.

    Attributes:
        used: whether the fit has a second stage.
        figures: coverage, mean width, Winkler score and coverage in the hard quarter.
        hits: (test nodes,), which are covered.
        known_neighbours: (test nodes,), number of given neighbours.
    """

    used: bool
    figures: dict[str, tuple[float, ...]]
    hits: dict[str, Any]
    known_neighbours: Any


def measure(name: str, seed: int) -> Result:
    """Return the figures of one default fit."""
    data = split_nodes(load_dataset(name), test=0.2, seed=seed)
    model = make_method("qpignn", confidence_level=LEVEL, seed=seed).fit(data)
    plain = copy.copy(model)
    plain.known_neighbours_ = None
    intervals = dict(
        zip(FORMS, (one.predict_interval(data) for one in (plain, model)), strict=True)
    )
    y, given, test = data.y.double().numpy(), data.train_mask.numpy(), data.test_mask.numpy()
    counts, around = neighbour_errors(data, y, intervals["off"], given)
    hard = hard_quarter(around[test])
    unit = float(np.ptp(y[given]))
    figures, hits = {}, {}
    for form, one in intervals.items():
        some = one.select(test)
        hits[form] = some.covers(y[test])
        score = winkler_score(y[test], some.lower, some.upper, confidence_level=LEVEL)
        figures[form] = (
            picp(y[test], some.lower, some.upper),
            float(some.width.mean()) / unit,
            float(score) / unit,
            float(hits[form][hard].mean()),
        )
    return Result(model.known_neighbours_ is not None, figures, hits, counts[test])


def neighbour_errors(data: Data, y: Any, plain: Intervals, given: Any) -> tuple[Any, Any]:
    """Return number of given neighbours and their mean plain error, (nodes,) each; NaN of none."""
    links = symmetric_adjacency(data.edge_index, None, len(y))
    counts = links @ given.astype(np.float64)
    total = links @ np.where(given, np.abs(y - plain.prediction), 0)
    return counts, np.divide(total, counts, out=np.full(len(y), np.nan), where=counts > 0)


def hard_quarter(around: Any) -> Any:
    """Return which nodes have the largest mean error of neighbours: a quarter of those with any."""
    limit = np.nanquantile(around, 0.75)
    return np.nan_to_num(around, nan=-np.inf) >= limit


def arrow(values: list[dict[str, tuple[float, ...]]], place: int, digits: int) -> str:
    """Return means over seeds of one figure, off → on."""
    means = (statistics.fmean(one[form][place] for one in values) for form in FORMS)
    return " → ".join(f"{mean:.{digits}f}" for mean in means)


def row(name: str, results: list[Result]) -> str:
    """Return the row of a data set."""
    values = [one.figures for one in results]
    change = [100 * (one["on"][2] / one["off"][2] - 1) for one in values]
    error = f" ± {statistics.stdev(change) / math.sqrt(len(change)):.1f}" if change[1:] else ""
    used = sum(one.used for one in results)
    return (
        f"| {name} | {arrow(values, 0, 3)} | {arrow(values, 1, 4)} | {arrow(values, 2, 4)} | "
        f"{statistics.fmean(change):+.1f}{error} % | {used} of {len(results)} | "
        f"{arrow(values, 3, 3)} |"
    )


def by_known_neighbours(results: dict[str, list[Result]]) -> dict[str, Hits]:
    """Return hits by data set, number of known neighbours and form, pooled over seeds."""
    pooled: dict[str, Hits] = {}
    for name, fits in results.items():
        groups: Hits = {label: defaultdict(list) for label in BINS}
        for one in fits:
            for label, belongs in BINS.items():
                mask = belongs(one.known_neighbours)
                for form in FORMS:
                    groups[label][form].extend(one.hits[form][mask])
        pooled[name] = groups
    return pooled


def shown(hits: list[Any]) -> str:
    """Return a coverage with its error bar."""
    if not hits:
        return ""
    one = count_coverage(np.array(hits), LEVEL)
    return f"{one.share:.3f} ({one.low:.3f}–{one.high:.3f})"


def print_bins(pooled: dict[str, Hits]) -> None:
    """Print coverage by number of known neighbours."""
    print("\n| data set | known neighbours | test nodes | coverage off | coverage on |")
    print("|---|---|---:|---|---|")
    for name, groups in pooled.items():
        for label, forms in groups.items():
            cells = " | ".join(shown(forms[form]) for form in FORMS)
            print(f"| {name} | {label} | {len(forms['off']):,} | {cells} |")


def draw(pooled: dict[str, Hits], path: Path) -> None:
    """Draw coverage by number of known neighbours, one panel per data set."""
    from matplotlib.figure import Figure

    columns = min(3, len(pooled))
    rows = math.ceil(len(pooled) / columns)
    figure = Figure(figsize=(max(5.0, 3.4 * columns), 2.6 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for axes, (name, groups) in zip(panels, pooled.items(), strict=False):
        for form, shift, colour in zip(FORMS, (-0.12, 0.12), ("grey", "black"), strict=True):
            hits = {place: groups[label][form] for place, label in enumerate(BINS)}
            drawn = {place: one for place, one in hits.items() if len(one) >= FEWEST}
            counted = [count_coverage(np.array(one), LEVEL) for one in drawn.values()]
            share = [one.share for one in counted]
            ends = [
                [one.share - one.low for one in counted],
                [one.high - one.share for one in counted],
            ]
            axes.errorbar(
                [place + shift for place in drawn],
                share,
                yerr=ends,
                fmt="o",
                markersize=4,
                capsize=2,
                color=colour,
                label=f'neighbours="{"auto" if form == "on" else "off"}"',
            )
        axes.axhline(LEVEL, color="grey", linewidth=0.8, linestyle="--")
        axes.set(
            title=name, xticks=range(len(BINS)), xticklabels=BINS, xlim=(-0.5, len(BINS) - 0.5)
        )
        axes.set_xlabel("known neighbours")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in figure.axes[len(pooled) :]:
        axes.set_visible(False)
    figure.supylabel("coverage", fontsize=10)
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def compare(names: list[str], seeds: range) -> dict[str, list[Result]]:
    """Print the row of every data set, and return its results."""
    print(
        "| data set | PICP off → on | MPIW | Winkler | Winkler change | used | PICP, hard quarter |"
    )
    print("|---|---|---|---|---:|---|---|")
    results = {}
    for name in names:
        results[name] = [measure(name, seed) for seed in seeds]
        print(row(name, results[name]), flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", QpignnWarning)
    torch.set_num_threads(1)
    seeds = range(options.first, options.first + options.seeds)
    pooled = by_known_neighbours(compare(options.datasets.split(","), seeds))
    print_bins(pooled)
    if options.figure:
        draw(pooled, options.figure)


if __name__ == "__main__":
    main()
