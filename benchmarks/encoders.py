"""Encoders: a training step against PyG, and how good their intervals are.

    python benchmarks/encoders.py step [--rounds 40]
    python benchmarks/encoders.py study [--datasets er,education,chameleon,anaheim] [--seeds 5]

``step`` compares one training step of sage, gcn and gin with PyG's layers (``SAGEConv``,
``GCNConv``, ``GINConv`` on ``edge_index``, default Adam) at 1,000 nodes, 6,000 edges and 5
features: medians of interleaved runs on one thread (``steps.py`` says what a step is).

``study`` fits a method with every encoder and prints coverage (PICP), mean width (MPIW) and Winkler
score on test nodes, and the seconds of a fit, as means over seeds, as a Markdown table. Finished
cells are kept in a store, so that an interrupted study continues.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import torch

from qpignn.encoders.catalog import ENCODERS
from qpignn.experiments.cell import Cell
from qpignn.experiments.run import run_cells
from qpignn.experiments.store import Store
from shapes import SHAPES
from steps import LAYERS, our_epoch, plain_epoch
from timing import interleaved

AIM = 3  # times faster than PyG
FIGURES = ("picp", "mpiw", "winkler", "fit_seconds")


def step_table(rounds: int) -> None:
    """Print the milliseconds of a step of PyG and of ours, and their ratio."""
    torch.set_num_threads(1)
    shape = SHAPES["small"]
    runs = {}
    for name in LAYERS:
        runs[f"{name}, PyG"] = plain_epoch(shape, csr=False, encoder=name).run
        runs[f"{name}, ours"] = our_epoch(shape, encoder=name).run
    took = {name: statistics.median(s) for name, s in interleaved(runs, rounds).items()}
    print(f"one training step, {shape.nodes:,} nodes, {shape.edges:,} edges, one thread")
    print("| encoder | PyG, ms | ours, ms | faster | aim |\n|---|---:|---:|---:|---:|")
    for name in LAYERS:
        plain, ours = took[f"{name}, PyG"], took[f"{name}, ours"]
        ratio = f"{1e3 * plain:.2f} | {1e3 * ours:.2f} | {plain / ours:.1f}×"
        print(f"| {name} | {ratio} | {AIM}× |")


def study_table(datasets: list[str], method: str, seeds: int, store: Path, jobs: int) -> None:
    """Print how good the intervals of every encoder are."""
    cells = [
        Cell(dataset, method, seed, settings={"encoder": encoder})
        for dataset in datasets
        for encoder in ENCODERS
        for seed in range(seeds)
    ]
    outcome = run_cells(cells, Store(store), jobs=jobs)
    failed = [cell for cell, _ in outcome.failures]
    for cell, error in outcome.failures:
        print(f"{cell.dataset}, {cell.settings['encoder']}, seed {cell.seed} failed: {error}")
    finished = [cell for cell in cells if cell not in failed]
    rows = [*zip(finished, outcome.rows, strict=True)]
    print(f"{method}, means over {seeds} seeds")
    print("| data set | encoder | PICP | MPIW | Winkler | seconds |\n|---|---|---:|---:|---:|---:|")
    for dataset in datasets:
        for encoder in ENCODERS:
            wanted = (dataset, encoder)
            own = [r for cell, r in rows if (cell.dataset, cell.settings["encoder"]) == wanted]
            if own:
                means = [statistics.fmean(row[figure] for row in own) for figure in FIGURES]
                shown = " | ".join(f"{mean:.3f}" for mean in means[:-1])
                print(f"| {dataset} | {encoder} | {shown} | {means[-1]:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    step = kinds.add_parser("step", help="time of a training step against PyG")
    step.add_argument("--rounds", type=int, default=40)
    study = kinds.add_parser("study", help="quality of intervals")
    study.add_argument("--datasets", default="er,education,chameleon,anaheim")
    study.add_argument("--method", default="qpignn")
    study.add_argument("--seeds", type=int, default=5)
    study.add_argument("--jobs", type=int, default=1)
    study.add_argument("--store", type=Path, default=Path("encoders.sqlite"))
    options = parser.parse_args()
    if options.kind == "step":
        step_table(options.rounds)
    else:
        names = options.datasets.split(",")
        study_table(names, options.method, options.seeds, options.store, options.jobs)


if __name__ == "__main__":
    main()
