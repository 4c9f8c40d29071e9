"""Do minibatches cost accuracy? The default on all given nodes at once, and in batches.

python benchmarks/batches.py [--datasets education,er] [--batch-size 512] [--seeds 5]
"""

from __future__ import annotations

import argparse
import statistics

import torch

from qpignn import QpiGNN, load_dataset, make_view, split_nodes
from qpignn.metrics import summary


def coverage_and_width(dataset: str, batch_size: int | None, seed: int) -> tuple[float, float]:
    view = make_view(split_nodes(load_dataset(dataset), seed=seed))
    method = QpiGNN(seed=seed, batch_size=batch_size).fit(view.fit)
    intervals = method.predict_interval(view.predict, view.test_mask)
    given = view.fit.y[~view.fit.y.isnan()]
    figures = summary(intervals, view.y_test, y_given=given)
    return float(figures["picp"]), float(figures["mpiw"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="education,er")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"means over {options.seeds} seeds, widths in train ranges")
    print(f"{'data set':12} {'batch':>6} {'PICP':>7} {'MPIW':>7} {'Δ PICP':>8} {'Δ MPIW':>8}")
    for dataset in options.datasets.split(","):
        first: tuple[float, float] | None = None
        for size in (None, options.batch_size):
            rows = [coverage_and_width(dataset, size, seed) for seed in range(options.seeds)]
            picp, mpiw = (statistics.mean(column) for column in zip(*rows, strict=True))
            first = first or (picp, mpiw)
            print(
                f"{dataset:12} {size or 'all':>6} {picp:7.4f} {mpiw:7.4f} {picp - first[0]:+8.4f} "
                f"{mpiw / first[1] - 1:+8.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
