"""Fits on large random graphs: seconds per epoch, and peak memory.

    python benchmarks/large.py [--edges 200000,2000000,20000000] [--fits "one net,default"]
    python benchmarks/large.py --edges 200000000 --features 16 --fits "one net of 32" --epochs 2

A graph has a twentieth as many nodes as edges (stored both ways), and half of its nodes carry
targets. Every fit runs in a process of its own on one thread; memory is that of the whole process,
graph and libraries included. Columns: the median epoch but the first; how many steps it has (one is
on all nodes at once); nanoseconds per edge; what a fit takes beside those epochs (scaling the
features, sorting the edges, the first hop); and predicting every node.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import torch
from torch_geometric.data import Data

from peak import peak_so_far
from qpignn.methods.qpignn import QpiGNN
from qpignn.tasks.base import FitInputs
from qpignn.training.fused_steps import FusedResult
from qpignn.training.history import History
from qpignn.training.loop import train

ONE_NET = {"lambda_width": 0.05, "hidden": 64, "activation": "relu", "dropout": 0.0}
FITS: dict[str, dict[str, Any]] = {
    "one net": ONE_NET,
    "minibatch": {**ONE_NET, "batch_size": 8192, "fan_out": 10},
    "one net of 32": {**ONE_NET, "hidden": 32},
    "default": {},
}
MOST = 50  # times as many epochs on small graphs, whose epochs are quick
SIZE = 20_000_000  # edges from which there are as many epochs as said


class Clocked(QpiGNN):
    """QpiGNN that notes when its steps begin, and when training ends."""

    ticks: list[float]

    def _fit(self, inputs: FitInputs) -> int | None:
        self.ticks = []
        with patch("qpignn.methods.net_training.train", self._timed_training):
            return super()._fit(inputs)

    def _timed_training(self, *args: Any) -> History:
        history = train(*args)
        self.ticks.append(time.perf_counter())
        return history

    def fused_step(self, *args: Any) -> Callable[[], FusedResult] | None:
        step = super().fused_step(*args)
        assert step is not None

        def noting() -> FusedResult:
            self.ticks.append(time.perf_counter())
            return step()

        return noting


def make_graph(edges: int, features: int) -> Data:
    nodes = edges // 20
    draw = torch.Generator().manual_seed(0)
    half = torch.randint(0, nodes, (2, edges // 2), generator=draw)
    x = torch.randn(nodes, features, generator=draw)
    y = x[:, 0] + 0.5 * torch.randn(nodes, generator=draw)
    y[torch.rand(nodes, generator=draw) < 0.5] = torch.nan
    return Data(x=x, edge_index=torch.cat([half, half.flip(0)], dim=1), y=y)


def fit_once(fit: str, edges: int, features: int, epochs: int) -> dict[str, float]:
    """Fit and predict in this process; return what it took."""
    epochs *= max(1, min(MOST, SIZE // edges))
    QpiGNN(epochs=1).fit(make_graph(2_000, features))  # what is loaded late is not the fit's
    data = make_graph(edges, features)
    method = Clocked(**{**FITS[fit], "epochs": 1 + epochs, "patience": None, "device": "cpu"})
    started = time.perf_counter()
    method.fit(data)
    fitted = time.perf_counter() - started
    steps = (len(method.ticks) - 1) // (1 + epochs)
    starts = method.ticks[::steps]
    took = [later - start for start, later in pairwise(starts[1:])]
    epoch = statistics.median_low(took)
    started = time.perf_counter()
    method.predict_interval(data)
    predicted = time.perf_counter() - started
    return {
        "epoch": epoch,
        "steps": steps,
        "once": fitted - (1 + epochs) * epoch,
        "predict": predicted,
        "gibibytes": peak_so_far() / 1024,
    }


def measured(fit: str, edges: int, features: int, epochs: int) -> dict[str, float]:
    """Fit and predict in a process of its own; return what it took."""
    command = [sys.executable, __file__, "--one", fit, "--edges", str(edges)]
    command += ["--features", str(features), "--epochs", str(epochs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def table_head() -> str:
    return (
        f"{'fit':13} {'edges':>12} {'s/epoch':>9} {'steps':>5} {'ns/edge':>8} {'once s':>7} "
        f"{'predict s':>9} {'GiB':>5}"
    )


def table_row(fit: str, edges: int, figures: dict[str, float]) -> str:
    return (
        f"{fit:13} {edges:12,} {figures['epoch']:9.4f} {figures['steps']:5,} "
        f"{1e9 * figures['epoch'] / edges:8.1f} {figures['once']:7.2f} {figures['predict']:9.2f} "
        f"{figures['gibibytes']:5.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", default="200000,2000000,20000000")
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--fits", default="one net,default", help=f"of: {', '.join(FITS)}")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(word) for word in options.edges.split(",")]
    if options.one:
        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
        print(json.dumps(fit_once(options.one, sizes[0], options.features, options.epochs)))
        return
    print(table_head())
    for fit in options.fits.split(","):
        for edges in sizes:
            figures = measured(fit, edges, options.features, options.epochs)
            print(table_row(fit, edges, figures), flush=True)


if __name__ == "__main__":
    main()
