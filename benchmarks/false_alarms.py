"""How often a diagnosis warns where nothing is wrong, and how often it finds what is.

    python benchmarks/false_alarms.py [--graphs 200] [--shifts 50] [--parts random,planted,…]

Parts: random (labels missing at random), planted (shifts of stated strength), strength (of a shift
of one column, rising), graphs (two graphs), intervals (calibrated intervals), widths (width against
error), time. Rates carry 95 % intervals (Wilson).
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import torch
from scipy.stats import binomtest, norm
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

from alarm_graphs import (
    PLANTED,
    RANDOM,
    TWO_GRAPHS,
    TWO_SHIFTED,
    ba,
    communities,
    er,
    grid,
    moved,
    real,
)
from qpignn import Intervals, diagnose, split_nodes
from qpignn.data.structure import adjacency
from qpignn.diagnostics.findings import width_findings
from qpignn.diagnostics.shift import graph_shift, label_shift
from qpignn.diagnostics.two_sample import Shift
from qpignn.diagnostics.width_error import distinct_widths, rank_correlation

LEVELS = (0.5, 0.8, 0.9)
STRENGTHS = (0.2, 0.3, 0.4, 0.5, 0.7, 1.0)


def share(count: int, of: int) -> str:
    bar = binomtest(count, of).proportion_ci(0.95, "wilson")
    return f"{count} of {of} ({100 * bar.low:.1f} to {100 * bar.high:.1f} %)"


def table(*rows: Iterable[object]) -> None:
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |", flush=True)


def judge(draw: Callable[[np.random.Generator], Shift | None], runs: int) -> tuple[str, str, str]:
    """Return how often there is a warning, how often p < 0.02, and the median AUC."""
    shifts = [draw(np.random.default_rng([run, 16])) for run in range(runs)]
    present = [shift for shift in shifts if shift is not None]
    warned, rare = sum(one.notable for one in present), sum(one.significant for one in present)
    auc = np.median([one.auc for one in present])
    return share(warned, len(present)), share(rare, len(present)), f"{auc:.2f}"


def shifts(kinds: dict[str, Callable[[np.random.Generator], Data]], runs: int) -> None:
    table(("graphs", "warnings", "p < 0.02", "median AUC"), ("---",) * 4)
    for name, draw in kinds.items():
        table((name, *judge(lambda rng, draw=draw: label_shift(draw(rng)), runs)))


def strength(runs: int) -> None:
    table(("mean of one column higher by", *(f"{by:g}" for by in STRENGTHS)))
    table(("---",) * (1 + len(STRENGTHS)))
    for nodes, columns in ((60, 5), (600, 5), (600, 300), (600, 2000), (4000, 5)):
        counts = []
        for by in STRENGTHS:
            draw = moved(partial(er, nodes=nodes, columns=columns), by)
            shifts = [label_shift(draw(np.random.default_rng([run, 19]))) for run in range(runs)]
            counts.append(sum(one is not None and one.notable for one in shifts))
        cells = (f"{count} of {runs}" for count in counts)
        table((f"{nodes:,} nodes, {columns:,} columns", *cells))


def two_graphs(alike: int, shifted: int) -> None:
    table(("two graphs", "warnings", "p < 0.02", "median AUC"), ("---",) * 4)
    kinds = [(TWO_GRAPHS, alike), (TWO_SHIFTED, shifted)]
    for name, draw, runs in ((*pair, runs) for kind, runs in kinds for pair in kind.items()):
        table((name, *judge(lambda rng, draw=draw: graph_shift(*draw(rng)), runs)))


def calibrated(data: Data, rng: np.random.Generator, alike: float = 0.0) -> list[Intervals]:
    """Return intervals that cover every node with exactly their level, and set the targets.

    A node's target lies at the rank u of its own distribution, u uniform; with ``alike`` above 0
    the ranks of neighbours go together.
    """
    nodes = data.x.shape[0]
    z = rng.normal(size=nodes)
    if alike:
        links = adjacency(data)
        mean = links @ rng.normal(size=nodes) / np.sqrt(np.maximum(links.sum(axis=1).A1, 1))
        z = np.sqrt(1 - alike) * z + np.sqrt(alike) * mean
    middle = data.x.to_dense()[:, 0].double().numpy() if data.x.is_sparse_csr else data.x[:, 0]
    middle = np.asarray(middle, dtype=np.float64) + rng.normal(size=nodes)
    spread = np.exp(0.5 * rng.normal(size=nodes))
    data.y = torch.from_numpy(middle + spread * z)
    half = {level: norm.ppf((1 + level) / 2) * spread for level in LEVELS}
    return [Intervals(middle, middle - half[level], middle + half[level], level) for level in half]


GRAPHS = {
    "Erdős–Rényi": er,
    "Barabási–Albert": ba,
    "grid": grid,
    "6 communities": communities,
    "60 nodes": lambda rng: er(rng, 60),
    "education": lambda _: Data(**real("education").to_dict()),
    "errors of neighbours go together, 6 communities": communities,
}


def intervals(runs: int) -> None:
    columns = ("coverage (5 %)", "a group (5 %)", "a level (5 %)", "misses on one side (1 %)")
    table(("calibrated intervals on", *columns), ("---",) * 5)
    for name, make in GRAPHS.items():
        seen: Counter[str] = Counter()
        for run in range(runs):
            rng = np.random.default_rng([run, 17])
            data = make(rng)
            predicted = calibrated(data, rng, 0.9 if "together" in name else 0.0)
            data = split_nodes(data, test=0.5, seed=run)
            diagnosis = diagnose(data, predicted[-1], predicted[:-1])
            kinds = {one.kind for one in diagnosis.warnings}
            seen["coverage"] += "coverage" in kinds
            seen["group"] += bool(kinds - {"coverage"})
            notes = [one.text for one in diagnosis.findings if one.severity == "note"]
            seen["level"] += any("at level" in text for text in notes)
            seen["misses"] += any("mostly" in text for text in notes)
        cells = (share(seen[name], runs) for name in ("coverage", "group", "level", "misses"))
        table((name, *cells))


WIDTHS = {
    "noise": lambda rng, n: np.exp(0.5 * rng.normal(size=n)),
    "noise, two values": lambda rng, n: np.where(rng.random(n) < 0.2, 2.0, 1.0),
    "equal up to rounding": lambda _, n: np.ones(n),
    "the deviation of the error": None,
}


def widths(runs: int) -> None:
    columns = ("held-out nodes", "good: go with (5 %)", "say little", "too few", "equally wide")
    table(("widths", *columns), ("---",) * 6)
    for name, make in WIDTHS.items():
        for nodes in (5, 30, 120, 600):
            seen: Counter[str] = Counter()
            for run in range(runs):
                rng = np.random.default_rng([run, nodes, 18])
                middle, half = 10 * rng.normal(size=nodes), np.exp(0.5 * rng.normal(size=nodes))
                error = np.abs(rng.normal(size=nodes)) * (half if make is None else 1.0)
                half = half if make is None else make(rng, nodes)
                intervals = Intervals(middle, middle - half, middle + half, 0.9)
                rank = rank_correlation(distinct_widths(intervals), error)
                (finding,) = width_findings(rank)
                seen[finding.severity] += finding.severity == "good"
                for phrase in ("say little", "too few", "equally"):
                    seen[phrase] += phrase in finding.text
            cells = (
                share(seen[kind], runs) for kind in ("good", "say little", "too few", "equally")
            )
            table((name, nodes, *cells))


def seconds() -> None:
    table(("label_shift on 2,000 + 2,000 nodes", "seconds, one thread"), ("---",) * 2)
    for columns in (50, 300, 2000):
        data = er(np.random.default_rng(0), 4000, columns)
        data.y = torch.from_numpy(np.where(np.arange(4000) % 2, np.nan, 0.0))
        taken = []
        for _ in range(4):
            started = time.process_time()
            with threadpool_limits(1):
                label_shift(data)
            taken.append(time.process_time() - started)
        table((f"{columns:,} columns", f"{min(taken[1:]):.2f} to {max(taken[1:]):.2f}"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--shifts", type=int, default=50)
    parser.add_argument("--parts", default="random,planted,strength,graphs,intervals,widths,time")
    options = parser.parse_args()
    parts = {
        "random": lambda: shifts(RANDOM, options.graphs),
        "planted": lambda: shifts(PLANTED, options.shifts),
        "strength": lambda: strength(options.shifts),
        "graphs": lambda: two_graphs(options.graphs, options.shifts),
        "intervals": lambda: intervals(options.graphs),
        "widths": lambda: widths(10 * options.graphs),
        "time": seconds,
    }
    for part in options.parts.split(","):
        print(f"\n{part}\n")
        parts[part]()


if __name__ == "__main__":
    main()
