"""A default fit on wide features that are mostly zeros: stored dense against stored as CSR.

    python benchmarks/layouts.py [--nodes 7126] [--columns 2545] [--filled 0.008] [--runs 3]

Both fits are run in turn; the ratio is that of their median times. The layout must not change the
result: the script fails if any bound differs.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from qpignn import Intervals, QpiGNN, split_nodes
from qpignn.data.matrix import from_scipy


def drawn(nodes: int, columns: int, filled: float) -> Data:
    """A random graph of degree 10 whose target is the sum of a hundredth of the columns."""
    rng = np.random.default_rng(0)
    x = sp.random(nodes, columns, filled, format="csr", random_state=rng, data_rvs=np.ones)
    y = np.asarray(x[:, : columns // 100].sum(axis=1)).ravel() + 0.3 * rng.normal(size=nodes)
    torch.manual_seed(0)
    edges = erdos_renyi_graph(nodes, 10 / nodes)
    return split_nodes(Data(x=from_scipy(x), y=torch.from_numpy(y), edge_index=edges))


def timed(data: Data) -> tuple[float, Intervals]:
    started = time.perf_counter()
    model = QpiGNN(seed=0).fit(data)
    return time.perf_counter() - started, model.predict_interval(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=7126)
    parser.add_argument("--columns", type=int, default=2545)
    parser.add_argument("--filled", type=float, default=0.008)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    sparse = drawn(options.nodes, options.columns, options.filled)
    dense = Data(**{**sparse.to_dict(), "x": sparse.x.to_dense()})
    taken: dict[str, list[float]] = {"dense": [], "CSR": []}
    for _ in range(options.runs):
        results = {}
        for name, data in (("dense", dense), ("CSR", sparse)):
            seconds, results[name] = timed(data)
            taken[name].append(seconds)
        for end in ("lower", "upper"):
            if not np.array_equal(getattr(results["dense"], end), getattr(results["CSR"], end)):
                raise SystemExit(f"expected equal bounds in both layouts; {end} differs")
    middle = {name: statistics.median(times) for name, times in taken.items()}
    for name, times in taken.items():
        print(f"{name:5}  {middle[name]:7.2f} s  ({min(times):.2f} to {max(times):.2f})")
    print(f"dense / CSR  {middle['dense'] / middle['CSR']:.2f}")


if __name__ == "__main__":
    main()
