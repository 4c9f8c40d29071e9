"""What a whole fit costs: one net of 500 epochs at a fixed λ, and the self-calibrating default.

    python benchmarks/fit_times.py

On education, or where that is not on this machine on a random graph of about its shape; one thread,
medians of three interleaved seeds.
"""

from __future__ import annotations

import statistics
import time

import torch
from torch_geometric.data import Data

from qpignn import load_dataset, split_nodes
from qpignn.errors import DataFileError
from qpignn.methods.qpignn import QpiGNN
from shapes import SHAPES, make_graph

ONE_NET = "one net, λ = 0.05, 500 epochs"
FITS = {ONE_NET: {"lambda_width": 0.05, "patience": None}, "the default": {}}
LONGER = 4  # times, at most


def graph() -> tuple[Data, str]:
    try:
        return split_nodes(load_dataset("education")), "education"
    except DataFileError:
        x, edges, y, carry_loss = make_graph(SHAPES["counties"])
        return Data(x=x, edge_index=edges, y=y, train_mask=carry_loss), "a random graph"


def main() -> None:
    torch.set_num_threads(1)
    data, where = graph()
    seconds: dict[str, list[float]] = {name: [] for name in FITS}
    for seed in range(3):
        for name, settings in FITS.items():
            method = QpiGNN(seed=seed, **settings)
            started = time.perf_counter()
            method.fit(data)
            seconds[name].append(time.perf_counter() - started)
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"whole fits on {where}, one thread, medians of three interleaved seeds")
    for name, value in middle.items():
        print(f"{name}: {value:.2f} s, {value / middle[ONE_NET]:.1f} times the first")
    print(f"aim for the default: at most {LONGER} times")


if __name__ == "__main__":
    main()
