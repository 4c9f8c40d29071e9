"""How long a mapped graph takes to open: the first time, when every byte is read, and later.

python benchmarks/open_graph.py --gigabytes 1
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch_geometric.data import Data

from qpignn import open_graph
from qpignn.data.mapped import write_graph

COLUMNS = 128


def seconds(folder: Path) -> float:
    start = time.perf_counter()
    open_graph(folder)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=1)
    nodes = int(parser.parse_args().gigabytes * 1e9) // (4 * COLUMNS)
    with tempfile.TemporaryDirectory() as base:
        os.environ["QPIGNN_CACHE_DIR"] = str(Path(base, "cache"))
        folder = Path(base, "graph")
        edges = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
        write_graph(folder, Data(x=torch.randn(nodes, COLUMNS), edge_index=edges))
        size = sum(path.stat().st_size for path in folder.iterdir())
        first = seconds(folder)
        later = statistics.median(seconds(folder) for _ in range(5))
    print(f"{size / 1e9:.2f} GB, just written, so in the page cache")
    print(f"first opening: {first:.2f} s ({size / first / 1e9:.2f} GB/s)")
    print(f"later openings: {later:.4f} s (median of 5)")


if __name__ == "__main__":
    main()
