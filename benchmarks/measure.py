"""One shape: seconds per epoch of every variant, the rates of kernels, and peak memory, as JSON.

    python benchmarks/measure.py SHAPE [--rounds 5]

``epoch.py`` asks for this twice, because how the allocator works is settled when a process begins.
Times are medians of interleaved runs in this process; a variant's memory is the peak of a process
of its own, above what it began with.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from typing import Any

import torch

from child import in_a_child
from peak import peak_so_far
from roofline import kernels, least_seconds, work
from shapes import SHAPES, TINY, Shape
from steps import make_epoch
from timing import interleaved


def times(shape: Shape, rounds: int) -> dict[str, Any]:
    """Return seconds per epoch and net, and for ours the nodes trained on and the roofline."""
    epochs = {variant: make_epoch(variant, shape) for variant in shape.variants}
    ours = {variant: epoch for variant, epoch in epochs.items() if epoch.seen is not None}
    pure = {variant: kernels(epoch, shape) for variant, epoch in ours.items()}
    runs = {variant: epoch.run for variant, epoch in epochs.items()}
    for variant, kernel in pure.items():
        runs |= {f"{variant}: {kind}": run for kind, (run, _) in kernel.items()}
    took = interleaved(runs, rounds)
    rates = {
        variant: {
            kind: amount / min(took[f"{variant}: {kind}"]) for kind, (_, amount) in kernel.items()
        }
        for variant, kernel in pure.items()
    }
    least = {
        variant: least_seconds(work(epoch, shape), rates[variant]) / epoch.nets
        for variant, epoch in ours.items()
    }
    seconds = {
        variant: statistics.median(took[variant]) / epoch.nets for variant, epoch in epochs.items()
    }
    given = {variant: len(epoch.seen.y) for variant, epoch in ours.items()}
    return {"seconds": seconds, "rates": rates, "least": least, "given": given}


def peak(variant: str, shape: Shape) -> float:
    """Return the megabytes per net that making and running a variant adds to this process."""
    make_epoch(variant, TINY).run()  # what is loaded late is not the graph's
    before = peak_so_far()
    epoch = make_epoch(variant, shape)
    for _ in range(shape.peak_epochs):
        epoch.run()
    return (peak_so_far() - before) / epoch.nets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Sparse")
    shape = SHAPES[options.shape]
    for variant in shape.variants:
        make_epoch(variant, TINY).run()  # loads for all children what is loaded late
    megabytes = {variant: in_a_child(peak, variant, shape) for variant in shape.variants}
    print(json.dumps({"megabytes": megabytes, **times(shape, options.rounds or shape.rounds)}))


if __name__ == "__main__":
    main()
