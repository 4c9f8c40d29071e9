"""Seconds and peak memory of one fit of every method, relative to sqr.

    python benchmarks/methods.py [--dataset education] [--methods sqr,rqr]

Each fit runs on one thread in a process of its own; memory is the peak above what the process held
with the graph loaded and every import done. Where the data set's files are not on this machine, the
drawn ``basic`` stands in.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import torch

from peak import peak_so_far
from qpignn import load_dataset, make_method, make_view, split_nodes
from qpignn.errors import DataFileError
from qpignn.methods.catalog import ALL


def fit_once(name: str, dataset: str) -> None:
    torch.set_num_threads(1)
    make_method(name, epochs=1).fit(load_dataset("basic", nodes=60))  # lazy imports are not its own
    view = make_view(split_nodes(load_dataset(dataset)))
    before = peak_so_far()
    started = time.perf_counter()
    make_method(name).fit(view.fit)
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "megabytes": peak_so_far() - before}))


def at_hand(dataset: str) -> str:
    """Return the data set's name, or that of one that needs no file."""
    try:
        load_dataset(dataset)
    except DataFileError:
        print(f"{dataset} is not on this machine")
        return "basic"
    return dataset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="education")
    parser.add_argument("--methods", default=",".join(("sqr", *(m for m in ALL if m != "sqr"))))
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        fit_once(options.only, options.dataset)
        return
    dataset = at_hand(options.dataset)
    print(f"one fit on {dataset}, one thread")
    print(f"{'method':14} {'seconds':>8} {'MB':>7} {'× sqr time':>11} {'× sqr memory':>13}")
    first: dict[str, float] = {}
    for name in options.methods.split(","):
        command = [sys.executable, __file__, "--dataset", dataset, "--only", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        first = first or found
        print(
            f"{name:14} {found['seconds']:8.2f} {found['megabytes']:7.1f} "
            f"{found['seconds'] / first['seconds']:10.2f}× "
            f"{found['megabytes'] / max(first['megabytes'], 1e-9):12.2f}×",
            flush=True,
        )


if __name__ == "__main__":
    main()
