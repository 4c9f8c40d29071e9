"""Full-batch training and prediction on large random graphs: seconds an epoch, and peak memory.

    python benchmarks/large.py [--edges 200000,2000000,20000000] [--features 32] [--epochs 3]

A graph has a twentieth as many nodes as edges (stored both ways), and half of its nodes carry
targets. One net of 64 at a fixed λ, and the self-calibrating default. Every fit runs in a process
of its own on one thread; memory is that of the whole process, graph and libraries included.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings

import torch
from torch_geometric.data import Data

from qpignn.methods.qpignn import QpiGNN

FITS = {
    "one net": {"lambda_width": 0.05, "hidden": 64, "activation": "relu", "dropout": 0.0},
    "default": {},
}


def make_graph(edges: int, features: int) -> Data:
    nodes = edges // 20
    draw = torch.Generator().manual_seed(0)
    half = torch.randint(0, nodes, (2, edges // 2), generator=draw)
    x = torch.randn(nodes, features, generator=draw)
    y = x[:, 0] + 0.5 * torch.randn(nodes, generator=draw)
    y[torch.rand(nodes, generator=draw) < 0.5] = torch.nan
    return Data(x=x, edge_index=torch.cat([half, half.flip(0)], dim=1), y=y)


def run_one(fit: str, edges: int, features: int, epochs: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    data = make_graph(edges, features)
    epochs *= max(1, min(50, 20_000_000 // edges))
    times = []
    for count in (1, 1, 1 + epochs):  # the first warms up; the difference leaves out what is once
        started = time.perf_counter()
        method = QpiGNN(**{**FITS[fit], "epochs": count, "patience": None}).fit(data)
        times.append(time.perf_counter() - started)
    started = time.perf_counter()
    method.predict_interval(data)
    predicted = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print((times[2] - times[1]) / epochs, times[1], predicted, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", default="200000,2000000,20000000")
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--fits", default=",".join(FITS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(word) for word in options.edges.split(",")]
    if options.one:
        run_one(options.one, sizes[0], options.features, options.epochs)
        return
    print(
        f"{'fit':8} {'edges':>12} {'s/epoch':>8} {'ns/edge':>8} {'once s':>7} {'predict s':>9} GiB"
    )
    for fit in options.fits.split(","):
        for edges in sizes:
            command = [sys.executable, __file__, "--one", fit, "--edges", str(edges)]
            command += ["--features", str(options.features), "--epochs", str(options.epochs)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            epoch, once, predicted, peak = map(float, done.stdout.split())
            each = 1e9 * epoch / edges
            print(
                f"{fit:8} {edges:12,} {epoch:8.3f} {each:8.1f} {once:7.1f} {predicted:9.2f} "
                f"{peak:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
