"""One training step of the default net against plain PyG, side by side.

    python benchmarks/epoch.py [--shapes small,chameleon,large,crocodile]

Each shape is a random graph; half of its nodes carry loss. Variants run interleaved in one process
on one thread, and medians are compared. ``PyG`` is ``SAGEConv`` on ``edge_index`` with dense ``x``
and default Adam, ``PyG CSR`` the same with a CSR adjacency. Peak memory is that of a process of its
own that makes one variant and runs three steps, above what the imports take.

A step is forward, loss, backward and Adam, for both nets of one size. What whole fits cost, one
net at a fixed λ and the self-calibrating default, stands below the table.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from qpignn import load_dataset, split_nodes
from qpignn.errors import DataFileError
from qpignn.methods.net import Seen
from qpignn.methods.qpignn import QpiGNN
from qpignn.nn.propagate import prepare
from qpignn.training.weights import FlatWeights

warnings.filterwarnings("ignore", message="Sparse")
Step = Callable[[], None]


@dataclass(frozen=True)
class Shape:
    nodes: int
    edges: int
    features: int
    ones: int | None  # stored ones a node, for sparse features
    rival: str
    faster: float  # what we set out to reach
    repeats: int


SHAPES = {
    "small": Shape(1_000, 6_000, 5, None, "PyG", 2.3, 300),
    "counties": Shape(3_234, 25_000, 6, None, "PyG", 2.3, 150),
    "chameleon": Shape(2_277, 72_000, 3_132, 21, "PyG", 100, 9),
    "large": Shape(100_000, 2_000_000, 32, None, "PyG", 10, 7),
    "crocodile": Shape(11_631, 360_000, 13_183, 60, "PyG CSR", 40, 5),
}


LIKE_PLAIN = {"lambda_width": 0.05, "hidden": 64, "activation": "relu", "dropout": 0.0}


class Plain(nn.Module):
    """What one writes with PyG's own layers."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(features, 64), SAGEConv(64, 64)
        self.value, self.half_width = nn.Linear(64, 1), nn.Linear(64, 1)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.second(self.first(x, edges).relu(), edges).relu()
        value = self.value(hidden).squeeze(1)
        return value, nn.functional.softplus(self.half_width(hidden)).squeeze(1)


def make_graph(shape: Shape) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(0, shape.nodes, (2, shape.edges), generator=draw)
    y = torch.randn(shape.nodes, generator=draw)
    carry_loss = torch.rand(shape.nodes, generator=draw) < 0.5
    if shape.ones is None:
        return torch.randn(shape.nodes, shape.features, generator=draw), edges, y, carry_loss
    size = (shape.nodes, shape.ones)
    columns = torch.randint(0, shape.features, size, generator=draw).sort(dim=1).values
    starts = torch.arange(0, shape.nodes * shape.ones + 1, shape.ones)
    ones = torch.ones(columns.numel())
    x = torch.sparse_csr_tensor(starts, columns.flatten(), ones, (shape.nodes, shape.features))
    return x, edges, y, carry_loss


def plain_step(shape: Shape, *, csr: bool) -> Step:
    x, edges, y, carry_loss = make_graph(shape)
    x = x if shape.ones is None else x.to_dense()
    if csr:
        size = (shape.nodes, shape.nodes)
        edges = torch.sparse_coo_tensor(
            edges.flip(0), torch.ones(shape.edges), size
        ).to_sparse_csr()
    net = Plain(shape.features)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    y = y[carry_loss]

    def step() -> None:
        adam.zero_grad()
        value, half_width = (column[carry_loss] for column in net(x, edges))
        lower, upper = value - half_width, value + half_width
        coverage = ((lower <= y) & (y <= upper)).float().mean()
        violation = (torch.relu(lower - y) + torch.relu(y - upper)).mean()
        loss = (coverage - 0.9) ** 2 + violation + 0.05 * (upper - lower).mean()
        loss.backward()
        adam.step()

    return step


def our_step(shape: Shape) -> Step:
    x, edges, y, carry_loss = make_graph(shape)
    method = QpiGNN(**LIKE_PLAIN)
    method.lambda_width_ = LIKE_PLAIN["lambda_width"]
    net = method._new_net(shape.features)
    graph = prepare(x, edges, first=carry_loss.nonzero().flatten())
    del x, edges
    weights = FlatWeights(net.parameters(), lr=1e-3, weight_decay=0.0)
    y = y[carry_loss]
    method.net_ = net.train()
    none = torch.zeros(1, len(y), dtype=torch.bool)
    measure = method._by_hand(Seen(graph, y, torch.ones_like(y), none), None)

    def step() -> None:
        measure().backward()
        weights.step()

    return step


def make_step(variant: str, shape: Shape) -> Step:
    return our_step(shape) if variant == "ours" else plain_step(shape, csr=variant == "PyG CSR")


def medians(steps: dict[str, Step], repeats: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        step()
    for _ in range(repeats):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_megabytes(variant: str, shape_name: str) -> float:
    command = [sys.executable, __file__, "--peak-of", variant, "--shapes", shape_name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def print_peak(variant: str, shape: Shape) -> None:
    make_step(variant, Shape(50, 100, 3, None, "", 0, 0))()  # lazy imports are not the graph's
    before = peak_so_far()
    step = make_step(variant, shape)
    for _ in range(3):
        step()
    print(peak_so_far() - before)


def peak_so_far() -> float:
    """Peak resident megabytes; not getrusage's, which a process inherits from its parent."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if "VmHWM" in line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = options.shapes.split(",")
    if options.peak_of:
        print_peak(options.peak_of, SHAPES[names[0]])
        return
    print("one training step, one thread, medians of interleaved runs")
    head = f"{'shape':10} {'rival':8} {'rival ms':>10} {'ours ms':>9} {'faster':>8} {'aim':>6}"
    print(head, f"{'rival MB':>9} {'ours MB':>8} {'memory':>7}")
    for name in names:
        shape = SHAPES[name]
        memory = {variant: peak_megabytes(variant, name) for variant in (shape.rival, "ours")}
        steps = {variant: make_step(variant, shape) for variant in (shape.rival, "ours")}
        took = medians(steps, shape.repeats)
        del steps
        ratio = took[shape.rival] / took["ours"]
        print(
            f"{name:10} {shape.rival:8} {1e3 * took[shape.rival]:10.2f} {1e3 * took['ours']:9.2f} "
            f"{ratio:7.1f}× {shape.faster:5g}× {memory[shape.rival]:9.0f} {memory['ours']:8.0f} "
            f"{memory['ours'] / memory[shape.rival]:6.1%}",
            flush=True,
        )
    if "counties" in names:
        print_fits()


def print_fits() -> None:
    """Say what a whole fit costs: one net of 500 epochs at a fixed λ, and the default."""
    try:
        data, where = split_nodes(load_dataset("education")), "education"
    except DataFileError:
        x, edges, y, carry_loss = make_graph(SHAPES["counties"])
        data, where = Data(x=x, edge_index=edges, y=y, train_mask=carry_loss), "a random graph"
    fits = {
        "one net, λ = 0.05, 500 epochs": {"lambda_width": 0.05, "patience": None},
        "the default": {},
    }
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    for seed in range(3):
        for name, settings in fits.items():
            method = QpiGNN(seed=seed, **settings)
            started = time.perf_counter()
            method.fit(data)
            seconds[name].append(time.perf_counter() - started)
    first, default = (statistics.median(values) for values in seconds.values())
    print(f"whole fits on {where}, medians of three interleaved seeds:")
    for name, values in seconds.items():
        print(f"  {name}: {statistics.median(values):.2f} s")
    print(f"  the default takes {default / first:.1f} times as long (aim: at most 4)")


if __name__ == "__main__":
    main()
