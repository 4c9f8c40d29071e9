"""Intervals beyond what was learnt, against those of the same fit with novelty off.

    python benchmarks/novelty.py in-range [--seeds 10]   # the 18 data sets, random splits
    python benchmarks/novelty.py shift [--seeds 5]       # regions and degrees that were not learnt
    python benchmarks/novelty.py named                   # sentinels, wrong units, swapped columns

``in-range`` prints the ratio of Winkler scores (mean over seeds, worst seed) and the share of test
nodes that are flagged. ``shift`` withholds one census region of the counties at a time
(unemployment), or the fifth of the nodes with the most neighbours (anaheim, ba). ``named`` damages
the features of test nodes or of a whole graph and prints what is flagged, the width over the usual
one, and the findings of ``predict`` for another graph. What it costs: ``cost.py``.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import warnings
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from qpignn import check_graph, load_dataset, make_method, split_nodes
from qpignn.data.catalog import BENCHMARK, missing_message
from qpignn.diagnostics.findings import graph_shift_findings, novelty_findings
from qpignn.diagnostics.shift import graph_shift
from qpignn.diagnostics.two_sample import FEWEST
from qpignn.errors import QpignnWarning
from qpignn.intervals import Intervals
from qpignn.metrics import picp, winkler_score

LEVEL = 0.9
REGIONS = {
    "Northeast": "09 23 25 33 34 36 42 44 50",
    "Midwest": "17 18 19 20 26 27 29 31 38 39 46 55",
    "South": "01 05 10 11 12 13 21 22 24 28 37 40 45 47 48 51 54",
    "West": "02 04 06 08 15 16 30 32 35 41 49 53 56",
}
"""Census regions by the first two digits of a county's code."""


def both(data: Data, given: Any, seed: int, method: str = "qpignn") -> tuple[Intervals, Intervals]:
    """Return the intervals of one fit, with novelty and without."""
    model = make_method(method, confidence_level=LEVEL, seed=seed)
    model.fit(data, torch.as_tensor(given))
    off = copy.copy(model)
    off.novelty_ = None
    return model.predict_interval(data), off.predict_interval(data)


def figures(intervals: Intervals, data: Data, test: Any) -> tuple[float, float, float]:
    """Return coverage, mean width and Winkler score of some nodes."""
    y, part = data.y.double().numpy()[test], intervals.select(test)
    score = winkler_score(y, part.lower, part.upper, confidence_level=LEVEL)
    return picp(y, part.lower, part.upper), float(part.width.mean()), float(score)


def in_range(seeds: int) -> None:
    """Print what novelty costs where nothing is novel."""
    print("| data set | Winkler on / off | worst seed | PICP off | PICP on | flagged |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, entry in BENCHMARK.items():
        if missing_message(entry) is not None:
            continue
        ratios, covered, flagged = [], [], []
        for seed in range(seeds):
            data = split_nodes(load_dataset(name), test=0.2, seed=seed)
            test = data.test_mask.numpy()
            on, off = both(data, ~test, seed)
            a, b = figures(on, data, test), figures(off, data, test)
            ratios.append(a[2] / b[2])
            covered.append((b[0], a[0]))
            flagged.append(float((on.novelty[test] > 1).mean()))
        before, after = np.mean(covered, axis=0)
        worst = max(ratios)
        print(
            f"| {name} | {statistics.fmean(ratios):.4f} | {worst:.4f} | {before:.3f} | "
            f"{after:.3f} | {100 * statistics.fmean(flagged):.1f} % |",
            flush=True,
        )


def shifts() -> list[tuple[str, str, Data, Any]]:
    """Return data sets with nodes to withhold: names, graph and mask."""
    counties = load_dataset("unemployment")
    codes = np.array([code[:2] for code in counties.node_id])
    parts = [
        ("unemployment", region, counties, np.isin(codes, states.split()))
        for region, states in REGIONS.items()
    ]
    for name in ("anaheim", "ba"):
        data = split_nodes(load_dataset(name), test=0.2, by="degree")
        parts.append((name, "by degree", data, data.test_mask.numpy()))
    return parts


def shift(seeds: int) -> None:
    """Print coverage, width and score on nodes unlike the given ones."""
    print("| data set | withheld | nodes | PICP off → on | width | Winkler | flagged |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, what, data, test in shifts():
        rows = []
        for seed in range(seeds):
            on, off = both(data, ~test, seed)
            a, b = figures(on, data, test), figures(off, data, test)
            rows.append((b[0], a[0], a[1] / b[1], a[2] / b[2], (on.novelty[test] > 1).mean()))
        off_share, share, width, score, flagged = np.mean(rows, axis=0)
        print(
            f"| {name} | {what} | {test.sum():,} | {off_share:.3f} → {share:.3f} | × {width:.2f} | "
            f"× {score:.3f} | {100 * flagged:.0f} % |",
            flush=True,
        )


def named() -> None:
    """Print what ``predict`` reports of features that cannot be right."""
    data = split_nodes(load_dataset("unemployment"), test=0.2, seed=0)
    model = make_method("qpignn", confidence_level=LEVEL).fit(data)
    test = data.test_mask.numpy()
    given = copy.copy(data)  # as a fit stores it
    given.y = data.y.masked_fill(data.test_mask, torch.nan)
    usual = model.predict_interval(data).select(~test).width.mean()
    few = np.zeros(len(test), dtype=bool)
    few[np.flatnonzero(test)[:5]] = True

    def report(what: str, changed: Data, nodes: Any, y: Any = None) -> None:
        part = model.predict_interval(changed).select(nodes)
        covered = "" if y is None else f", {part.covers(y).mean():.2f} covered"
        print(f"\n{what}: {100 * (part.novelty > 1).mean():.0f} % flagged", end="")
        print(f", mean width × {part.width.mean() / usual:.2f}{covered}")
        shift = graph_shift(given, changed, nodes) if nodes.sum() >= FEWEST else None
        findings = [*novelty_findings(part), *graph_shift_findings(shift)]
        print(*(f"  {one.severity}: {one.text}" for one in findings), sep="\n")

    def with_features(change: Any) -> Data:
        changed = copy.copy(data)
        changed.x = change(data.x.clone())
        return changed

    def sentinel(x: torch.Tensor) -> torch.Tensor:
        x[torch.from_numpy(few), 2] = 9999
        return x

    report("five nodes with 9999 in one column", with_features(sentinel), few)
    thousand = torch.tensor([1, 1000, 1, 1, 1, 1.0])
    report("a column × 1000", with_features(lambda x: x * thousand), test)
    names, y = data.feature_names, data.y[data.test_mask].numpy()
    for one, other in ((0, 5), (2, 3)):
        order = list(range(len(names)))
        order[one], order[other] = other, one
        swapped = with_features(lambda x, order=order: x[:, order].contiguous())
        report(f"columns {names[one]} and {names[other]} swapped", swapped, test, y)
    roads = _roads(data)
    report("another domain", roads, np.ones(roads.x.shape[0], dtype=bool))


def _roads(data: Data) -> Data:
    """Return a road network with as many columns as a graph, under the same names."""
    roads = load_dataset("chicago")
    x = torch.cat([roads.x, roads.x[:, :2].square()], dim=1)
    return check_graph(
        Data(x=x, edge_index=roads.edge_index, feature_names=data.feature_names), need_target=False
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("in-range", "shift", "named"))
    parser.add_argument("--seeds", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore", QpignnWarning)
    torch.set_num_threads(1)
    if options.kind == "in-range":
        in_range(options.seeds or 10)
    elif options.kind == "shift":
        shift(options.seeds or 5)
    else:
        named()


if __name__ == "__main__":
    main()
