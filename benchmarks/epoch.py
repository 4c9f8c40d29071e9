"""One training epoch against PyG, side by side: shape × variant, time and peak memory as ratios.

    python benchmarks/epoch.py [--shapes small,counties,chameleon,crocodile,large,huge] [--rounds 5]

``shapes.py`` says which graphs, ``steps.py`` which variants. On each shape the variants run
interleaved in one process on one thread, and medians are compared with those of the first variant;
peak memory is that of a process of its own, above what it began with. Ten nets that are trained
together share their time and memory.

Everything is measured twice: with the allocator as it is, and with one that keeps its memory and
takes huge pages, because part of PyG's time is that of pages taken anew in every step. The second
table says how much of the machine's own speed, measured between the steps, an epoch reaches
(``roofline.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shapes import MINIBATCH, PYG, SHAPES, Shape

TUNED = {
    "MALLOC_MMAP_THRESHOLD_": str(2**36),  # bytes: nothing is given back
    "MALLOC_TRIM_THRESHOLD_": str(2**36),
    "MALLOC_TOP_PAD_": str(2**26),
    "THP_MEM_ALLOC_ENABLE": "1",
}
KINDS = ("product", "gather", "lookup", "stream")
Found = dict[str, Any]
"""What ``measure.py`` says."""


def measured(name: str, rounds: int | None, settings: dict[str, str]) -> Found | None:
    """Measure a shape in a process of its own; None if that did not live to tell."""
    command = [sys.executable, str(Path(__file__).with_name("measure.py")), name]
    command += ["--rounds", str(rounds)] if rounds else []
    environment = {**os.environ, **settings}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        last = (done.stderr.splitlines() or ["no word"])[-1]
        print(f"{name}: not measured, exit code {done.returncode}: {last}", flush=True)
        return None
    figures: Found = json.loads(done.stdout)
    return figures


def table_head() -> str:
    columns = f"{'ms/epoch':>9} {'faster':>8} {'MB':>6} {'memory':>7}"
    return (
        f"{'':26} {'the allocator as it is':^40} {'tuned for both':^33}\n"
        f"{'shape':10} {'variant':15} {columns[:18]} {'aim':>6} {columns[19:]} {columns}"
    )


def table_rows(name: str, shape: Shape, as_it_is: Found, tuned: Found) -> Iterator[str]:
    for variant in shape.variants:
        aim = shape.aims.get(variant)
        took, faster, *memory = _columns(as_it_is, shape, variant)
        wanted = f"{aim:5g}×" if aim else f"{'':6}"
        yield " ".join(
            [
                f"{name:10} {variant:15} {took} {faster} {wanted}",
                *memory,
                *_columns(tuned, shape, variant),
            ]
        )


def _columns(figures: Found, shape: Shape, variant: str) -> list[str]:
    took, memory = figures["seconds"], figures["megabytes"]
    least = shape.variants[0]
    return [
        f"{_milliseconds(took[variant]):>9}",
        f"{took[least] / took[variant]:7.1f}×",
        f"{memory[variant]:6.0f}",
        f"{memory[variant] / memory[least]:7.1%}",
    ]


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.{2 if seconds < 0.1 else 0}f}"


def notes(name: str, shape: Shape, as_it_is: Found, tuned: Found) -> Iterator[str]:
    """Say what the table has no column for."""
    if PYG not in shape.variants:
        yield (
            f"{name}: {PYG} on edge_index is not run: a step would copy {shape.features:,} "
            f"features to {shape.edges:,} edges, {shape.messages / 2**30:.0f} GiB; "
            f"{shape.variants[0]} is the rival"
        )
    for variant in shape.variants:
        faster = as_it_is["seconds"][shape.variants[0]] / as_it_is["seconds"][variant]
        if faster < shape.aims.get(variant, 0):
            yield f"{name}, {variant}: {faster:.1f}× is below the aim of {shape.aims[variant]:g}×"
        if variant == MINIBATCH:
            given = as_it_is["given"][variant]
            rates = [given / figures["seconds"][variant] for figures in (as_it_is, tuned)]
            aim = f" (aim: {shape.seeds_aim:,.0f})" if shape.seeds_aim else ""
            yield (
                f"{name}, {variant}: {rates[0]:,.0f} seed nodes a second{aim}, "
                f"{rates[1]:,.0f} with the allocator tuned"
            )


def roofline_head() -> str:
    return (
        "share of the roofline: least time at the kernels' rates by measured time\n"
        f"{'shape':10} {'variant':15} {'product':>8} {'gather':>8} {'lookup':>8} {'stream':>8} "
        f"{'least ms':>9} {'share':>6} {'tuned':>6}\n"
        f"{'':26} {'GF/s':>8} {'GB/s':>8} {'GB/s':>8} {'GB/s':>8}"
    )


def roofline_rows(name: str, as_it_is: Found, tuned: Found) -> Iterator[str]:
    for variant, rates in as_it_is["rates"].items():
        shown = [f"{rates[kind] / 1e9:8.1f}" if kind in rates else f"{'–':>8}" for kind in KINDS]
        shares = [
            f"{figures['least'][variant] / figures['seconds'][variant]:6.0%}"
            for figures in (as_it_is, tuned)
        ]
        least = f"{_milliseconds(as_it_is['least'][variant]):>9}"
        yield " ".join([f"{name:10} {variant:15}", *shown, least, *shares])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=",".join(SHAPES), help="by commas; default: all")
    parser.add_argument("--rounds", type=int, help="fewer are quicker; default: by shape")
    options = parser.parse_args()
    names = options.shapes.split(",")
    if unknown := [name for name in names if name not in SHAPES]:
        parser.error(f"--shapes: expected some of {', '.join(SHAPES)}, got {', '.join(unknown)}")
    print("one training epoch, one thread, medians of interleaved runs")
    print(table_head(), flush=True)
    results: dict[str, tuple[Found, Found]] = {}
    for name in names:
        as_it_is, tuned = (measured(name, options.rounds, settings) for settings in ({}, TUNED))
        if as_it_is and tuned:
            results[name] = as_it_is, tuned
            print(*table_rows(name, SHAPES[name], *results[name]), sep="\n", flush=True)
    for name, both in results.items():
        for line in notes(name, SHAPES[name], *both):
            print(line)
    print()
    print(roofline_head())
    for name, both in results.items():
        print(*roofline_rows(name, *both), sep="\n")


if __name__ == "__main__":
    main()
