"""Time and peak memory of a report beside those of a prediction, on a drawn graph.

    python benchmarks/report.py [--nodes 1000000] [--repeats 1]

A graph with local and random edges (mean degree 8), 8 features and 70 % labelled nodes is drawn,
fitted by a very small model (5 members of 4 hidden units, 1 epoch) and saved. Then ``load``,
``predict`` (intervals of all nodes) and ``report`` (``write_report``) each run in a process of
their own. Times are of the call alone, without loading; memory is the peak of the whole process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from peak import peak_so_far
from qpignn import QpiGNN, load_graph, load_method, save_graph, split_nodes, write_report

STEPS = ("load", "predict", "report")


def draw(nodes: int) -> Data:
    """Draw a graph in which 70 % of the edges join nodes with near numbers."""
    rng = np.random.default_rng(0)
    edges = rng.integers(0, nodes, (2, 4 * nodes))
    near = rng.random(4 * nodes) < 0.7
    edges[1, near] = np.minimum(nodes - 1, edges[0, near] + rng.integers(1, 50, near.sum()))
    both = np.concatenate([edges, edges[::-1]], axis=1)
    both = np.unique(both[:, both[0] != both[1]], axis=1)
    x = rng.normal(size=(nodes, 8)).astype(np.float32)
    y = x[:, 0] + 0.5 * rng.normal(size=nodes)
    y[rng.random(nodes) < 0.3] = np.nan
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(both), y=torch.from_numpy(y))
    data.feature_names = [f"feature {i}" for i in range(8)]
    return split_nodes(data)


def prepare(folder: Path, nodes: int) -> None:
    """Save a graph and a model fitted on it."""
    data = draw(nodes)
    model = QpiGNN(hidden=4, members=5, epochs=1).fit(data)
    save_graph(folder / "graph", data)
    model.save(folder / "model")


def measure(step: str, folder: Path) -> dict[str, float]:
    """Run one step in this process; return its seconds and the process's peak megabytes."""
    data, model = load_graph(folder / "graph"), load_method(folder / "model")
    start = time.monotonic()
    if step == "predict":
        model.predict_interval(data)
    elif step == "report":
        write_report(model, data, folder / "report.html")
    return {"seconds": time.monotonic() - start, "megabytes": peak_so_far()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--step", choices=("prepare", *STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.folder, options.nodes)
        return
    if options.step:
        print(json.dumps(measure(options.step, options.folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--nodes", str(options.nodes), "--folder", folder]
        subprocess.run([*command, "--step", "prepare"], check=True)
        print("| step | seconds | peak memory |\n|---|---|---|")
        results: dict[str, list[dict[str, float]]] = {step: [] for step in STEPS}
        for _ in range(options.repeats):
            for step, runs in results.items():
                done = subprocess.run(
                    [*command, "--step", step], check=True, stdout=subprocess.PIPE
                )
                runs.append(json.loads(done.stdout.splitlines()[-1]))
        for step, runs in results.items():
            seconds, memory = (np.median([r[k] for r in runs]) for k in ("seconds", "megabytes"))
            print(f"| {step} | {seconds:.1f} | {memory:,.0f} MB |")


if __name__ == "__main__":
    main()
