"""One fit in one process and in two, by torchrun: figures, and seconds per epoch.

    python benchmarks/several_ranks.py [--dataset education] [--batch-size 1024] [--seeds 3]

Every process has one thread. On a machine of two cores two ranks can be at most twice as fast.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def fit_and_evaluate(
    ranks: int, options: argparse.Namespace, seed: int
) -> tuple[float, float, float]:
    """Return coverage, width and seconds per epoch of one fit."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["-m", "qpignn", "fit", "--dataset", options.dataset, "--out", folder, "--json"]
        arguments += ["--set", f"batch_size={options.batch_size}", "--seed", str(seed)]
        several = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
        seconds = []
        for more in (["--epochs", "1"], []):  # the difference leaves out what is once
            started = time.perf_counter()
            done = run([*(several if ranks > 1 else []), *arguments, *more])
            seconds.append(time.perf_counter() - started)
        epochs = json.loads(done)["epochs"]
        figures = json.loads(run(["-m", "qpignn", "evaluate", folder, "--json"]))
        figures = figures.get("metrics", figures)
        return figures["picp"], figures["mpiw"], (seconds[1] - seconds[0]) / (epochs - 1)


def run(arguments: list[str]) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="education")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(f"{options.dataset}, batches of {options.batch_size}, means of {options.seeds} seeds")
    print(f"{'ranks':>5} {'PICP':>7} {'MPIW':>7} {'ms/epoch':>9}")
    for ranks in (1, 2):
        rows = [fit_and_evaluate(ranks, options, seed) for seed in range(options.seeds)]
        picp, mpiw, epoch = (statistics.mean(column) for column in zip(*rows, strict=True))
        print(f"{ranks:5} {picp:7.4f} {mpiw:7.4f} {1000 * epoch:9.1f}", flush=True)


if __name__ == "__main__":
    main()
