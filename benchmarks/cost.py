"""What novelty and the known targets of neighbours cost: fits and predictions with and without.

    python benchmarks/cost.py novelty [--nodes 1000000] [--epochs 1,3] [--repeats 3]
    python benchmarks/cost.py neighbours [--nodes 1000000] [--epochs 1,3] [--repeats 3]

Default fits on education, each in a process of its own, interleaved: medians of seconds and of the
process's peak memory. With ``--nodes``, one fit each on a random graph as well, in minibatches of
8,192 nodes, for some numbers of epochs (a default fit takes up to 500): 32 features, ten edges per
node in both directions, half of the nodes given. All nodes are then predicted by the same fit with
the part and without it, each in a process of its own; the peak is that of the prediction.
"""

from __future__ import annotations

import argparse
import copy
import math
import statistics
import time
import warnings
from typing import Any

import torch
from torch_geometric.data import Data

from child import in_a_child
from peak import peak_so_far
from qpignn import check_graph, load_dataset, make_method, split_nodes
from qpignn.errors import QpignnWarning
from qpignn.methods.base import IntervalMethod

ON = {"novelty": "widen", "neighbours": "auto"}
LEARNT = {"novelty": "novelty_", "neighbours": "known_neighbours_"}


def random_graph(nodes: int) -> tuple[Data, Any]:
    """Return a graph with 20 stored edges per node, and which nodes are given.

    Targets are the first feature plus the mean of a hidden number over neighbours and the node.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(nodes, 32, generator=generator)
    ends = torch.randint(0, nodes, (2, 10 * nodes), generator=generator)
    hidden = torch.randn(nodes, generator=generator)
    around = hidden.index_add(0, ends[0], hidden[ends[1]]).index_add(0, ends[1], hidden[ends[0]])
    y = x[:, 0] + around / math.sqrt(21)
    data = Data(x=x, y=y, edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    return check_graph(data), torch.arange(nodes) % 2 == 0


def fit_once(data: Data, given: Any, settings: dict[str, Any], part: str) -> list[float]:
    """Return seconds and peak megabytes of a fit, then of predictions with a part and without."""
    start = time.perf_counter()
    model = make_method("qpignn", **settings).fit(data, given)
    figures = [time.perf_counter() - start, peak_so_far()]
    plain = copy.copy(model)
    setattr(plain, LEARNT[part], None)
    for one in (model, plain):
        figures += in_a_child(predict_once, one, data)
    return [*figures, float(getattr(model, LEARNT[part]) is not None)]


def predict_once(model: IntervalMethod, data: Data) -> list[float]:
    """Return seconds and peak megabytes of a prediction of all nodes."""
    start = time.perf_counter()
    model.predict_interval(data)
    return [time.perf_counter() - start, peak_so_far()]


def print_cost(
    label: str, part: str, data: Data, given: Any, repeats: int, **settings: Any
) -> None:
    """Print the row of a fit."""
    runs: dict[str, list[list[float]]] = {ON[part]: [], "off": []}
    for seed in range(repeats):
        for choice, done in runs.items():
            one = {part: choice, "seed": seed, **settings}
            done.append(in_a_child(fit_once, data, given, one, part))
    on, off = (
        [statistics.median(one) for one in zip(*done, strict=True)] for done in runs.values()
    )
    pairs = [(on[0], off[0]), (on[1], off[1]), (on[2], on[4]), (on[3], on[5])]
    cells = " | ".join(f"{a:,.1f} / {b:,.1f} | {a / b:.2f}" for a, b in pairs)
    used = sum(int(run[-1]) for run in runs[ON[part]])
    print(f"| {label} | {cells} | {used} of {repeats} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=ON)
    parser.add_argument("--nodes", type=int, default=0, help="of the random graph")
    parser.add_argument("--epochs", default="1,3", help="on the random graph")
    parser.add_argument("--repeats", type=int, default=3, help="fits on education")
    options = parser.parse_args()
    warnings.simplefilter("ignore", QpignnWarning)
    torch.set_num_threads(1)
    columns = ("fit, s", "fit, MB", "prediction, s", "prediction, MB")
    print(
        f"| {options.part}: with / without | " + " | ".join(f"{one} | ×" for one in columns), end=""
    )
    print(" | used |\n|---" + "|---:" * 8 + "|---|")
    data = split_nodes(load_dataset("education"), test=0.2, seed=0)
    print_cost("education", options.part, data, data.train_mask, options.repeats)
    if options.nodes:
        data, given = random_graph(options.nodes)
        for count in map(int, options.epochs.split(",")):
            label = f"{options.nodes:,} nodes, {data.edge_index.shape[1]:,} edges, epochs={count}"
            settings = {"epochs": count, "batch_size": 8192}
            print_cost(label, options.part, data, given, 1, **settings)


if __name__ == "__main__":
    main()
