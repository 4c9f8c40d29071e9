"""Seconds and peak memory of one fit of every method, relative to the first (sqr).

    python benchmarks/methods.py [--dataset education] [--methods sqr,rqr]

Each fit runs on one thread in a process of its own; memory is the peak above what that process held
with the graph loaded and every import done. Where the data set's files are not on this machine, the
drawn ``basic`` stands in.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch_geometric.data import Data

from child import in_a_child
from peak import peak_so_far
from qpignn import load_dataset, make_method, make_view, split_nodes
from qpignn.errors import DataFileError
from qpignn.methods.catalog import ALL


def fit_once(name: str, data: Data) -> tuple[float, float]:
    """Return the seconds of a fit, and the megabytes it adds to this process."""
    warm_up(name)
    before = peak_so_far()
    started = time.perf_counter()
    make_method(name).fit(data)
    return time.perf_counter() - started, peak_so_far() - before


def warm_up(name: str) -> None:
    make_method(name, epochs=1).fit(load_dataset("basic", nodes=60))


def at_hand(dataset: str) -> tuple[Data, str]:
    """Load a data set, or where its files are not here one that needs none."""
    try:
        return load_dataset(dataset), dataset
    except DataFileError:
        print(f"{dataset} is not on this machine")
        return load_dataset("basic"), "basic"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="education")
    parser.add_argument("--methods", default=",".join(("sqr", *(m for m in ALL if m != "sqr"))))
    options = parser.parse_args()
    torch.set_num_threads(1)
    data, dataset = at_hand(options.dataset)
    view = make_view(split_nodes(data))
    names = options.methods.split(",")
    for name in names:
        warm_up(name)  # loads for all children what is loaded late
    print(f"one fit on {dataset}, one thread")
    print(f"{'method':14} {'seconds':>8} {'MB':>7} {'× ' + names[0]:>9} {'memory':>8}")
    first: tuple[float, float] | None = None
    for name in names:
        seconds, megabytes = in_a_child(fit_once, name, view.fit)
        first = first or (seconds, megabytes)
        print(
            f"{name:14} {seconds:8.2f} {megabytes:7.1f} {seconds / first[0]:8.2f}× "
            f"{megabytes / max(first[1], 1e-9):7.2f}×",
            flush=True,
        )


if __name__ == "__main__":
    main()
