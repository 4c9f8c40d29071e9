"""Time and memory against the number of edges, printed and drawn.

    python benchmarks/scaling.py [--edges 10000,…,20000000] [--epochs 3] [--out bench-output]

One net of 64 on graphs of ``large.py``, on all nodes at once and in minibatches; each fit in a
process of its own on one thread. Writes ``scaling.png`` and ``scaling.svg``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from large import measured, table_head, table_row
from qpignn.plotting import INSIDE, MISSED

SIZES = (10_000, 100_000, 1_000_000, 2_000_000, 10_000_000, 20_000_000)
FITS = {
    "one net": ("all nodes at once", INSIDE, "o"),
    "minibatch": ("minibatches", MISSED, "s"),
}
LARGE, HUGE = 2_000_000, 20_000_000  # edges of 100,000 and 1,000,000 nodes
DEARER, GIBIBYTES = 1.5, 3.0  # what the huge graph may take at most: an edge's time, and memory

Found = dict[str, dict[int, dict[str, float]]]
"""What each fit took, by edges."""


def draw(results: Found) -> Figure:
    """Draw time and memory against edges, side by side."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2)
    for axes, column, label in zip(
        panels,
        ("epoch", "gibibytes"),
        ("seconds per epoch", "peak memory of the process, GiB"),
        strict=True,
    ):
        for fit, by_edges in results.items():
            name, color, marker = FITS[fit]
            values = [took[column] for took in by_edges.values()]
            axes.loglog([*by_edges], values, color=color, marker=marker, label=name)
        axes.set_xlabel("edges")
        axes.set_ylabel(label)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if column == "gibibytes" else (1,)))
        axes.yaxis.set_major_formatter("{x:g}")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
        axes.spines[["top", "right"]].set_visible(False)
    _draw_proportional(panels[0], results)
    panels[0].legend(loc="upper left", frameon=False)
    return figure


def _draw_proportional(axes: Any, results: Found) -> None:
    """Draw what the largest graph's cost per edge would mean for all sizes."""
    by_edges = next(iter(results.values()))
    largest = max(by_edges)
    each = by_edges[largest]["epoch"] / largest
    line = {"color": "0.6", "linestyle": ":", "zorder": 0}
    sizes = [min(by_edges), largest]
    axes.loglog(sizes, [each * size for size in sizes], label="in proportion", **line)


def verdicts(results: Found) -> Iterator[str]:
    """Say how the huge graph compares with what it may take."""
    for fit, by_edges in results.items():
        if not {LARGE, HUGE} <= by_edges.keys():
            continue
        dearer = by_edges[HUGE]["epoch"] / by_edges[LARGE]["epoch"] * LARGE / HUGE
        yield (
            f"{FITS[fit][0]}: an edge of {HUGE:,} costs {dearer:.2f} times one of {LARGE:,} "
            f"(aim: at most {DEARER:g}); peak memory {by_edges[HUGE]['gibibytes']:.2f} GiB "
            f"(aim: at most {GIBIBYTES:g})"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", default=",".join(map(str, SIZES)))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    options = parser.parse_args()
    results: Found = {fit: {} for fit in FITS}
    print(table_head())
    for edges in sorted(int(word) for word in options.edges.split(",")):
        for fit, by_edges in results.items():
            by_edges[edges] = measured(fit, edges, features=32, epochs=options.epochs)
            print(table_row(fit, edges, by_edges[edges]), flush=True)
    for line in verdicts(results):
        print(line)
    options.out.mkdir(parents=True, exist_ok=True)
    figure = draw(results)
    for end in ("png", "svg"):
        path = options.out / f"scaling.{end}"
        figure.savefig(path, dpi=150)
        print(path)


if __name__ == "__main__":
    main()
