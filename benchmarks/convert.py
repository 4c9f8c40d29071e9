"""Time and peak memory of ``qpignn convert`` on tables of text ids.

    python benchmarks/convert.py [--nodes 500000] [--edges 5000000] [--memory 1024]

One thread. The peak is that of the process, torch and the ids included.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from qpignn import convert_graph


def write_tables(folder: Path, nodes: int, edges: int) -> tuple[Path, Path]:
    """Write a node table with two features and an edge table, both CSV.

    Args:
        folder: where the tables are written.
        nodes: number of nodes.
        edges: number of rows of the edge table.

    Returns:
        The paths of the two tables.
    """
    rng = np.random.default_rng(0)
    ids = np.array([f"N{i:07d}" for i in rng.permutation(nodes)])
    x, noise = rng.normal(size=(2, nodes))
    table = pd.DataFrame({"id": ids, "x": x, "size": rng.integers(0, 9, nodes), "y": x + noise})
    table.to_csv(folder / "nodes.csv", index=False)
    ends = ids[rng.integers(0, nodes, (2, edges))]
    pd.DataFrame({"from": ends[0], "to": ends[1]}).to_csv(folder / "edges.csv", index=False)
    return folder / "nodes.csv", folder / "edges.csv"


def convert(tables: tuple[Path, Path], memory: int) -> tuple[float, float]:
    """Convert the tables.

    Args:
        tables: the node and the edge table.
        memory: bytes of memory to use.

    Returns:
        Seconds, and the peak memory of this process in GB.
    """
    torch.set_num_threads(1)
    start = time.perf_counter()
    convert_graph(*tables, tables[0].parent / "graph", target="y", memory=memory)
    seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    """Convert the tables in a fresh process and print seconds and peak memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=500_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--memory", type=int, default=1024, help="MiB")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, get_context("spawn").Pool(1) as pool:
        tables = write_tables(Path(name), asked.nodes, asked.edges)
        seconds, peak = pool.apply(convert, (tables, asked.memory << 20))
    print(f"{seconds:.1f} s, {peak:.2f} GB")


if __name__ == "__main__":
    main()
