"""Splits of the labelled nodes into train, validation and test nodes."""

from __future__ import annotations

import copy
from collections.abc import Callable

import networkx as nx
import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data
from torch_geometric.utils import degree

from qpignn.data.graph import check_graph, labelled
from qpignn.errors import SplitError, check_choice, check_number
from qpignn.runtime.randomness import numpy_rng

Order = npt.NDArray[np.int64]


def split_nodes(
    data: Data,
    *,
    test: float = 0.2,
    validation: float = 0.0,
    by: str = "random",
    seed: int = 0,
) -> Data:
    """Return the graph with ``train_mask``, ``val_mask`` and ``test_mask`` over its labelled nodes.

    Args:
        data: the graph.
        test, validation: shares of the labelled nodes; the rest is train.
        by: ``random``; ``degree`` (test nodes are those with most neighbours, then validation);
            ``community`` (test nodes are whole Louvain communities, in random order; only the last
            one is divided, so that the share is exact).
        seed: of the random numbers for order and ties.

    Raises:
        SplitError: if the shares are invalid or leave one of the sets empty.
    """
    check_choice("split", by, SPLIT_ORDERS)
    data = check_graph(data, need_target=False)
    shares = {"test": test, "validation": validation}
    for name, share in shares.items():
        if not 0 <= check_number(name, share) < 1:
            raise SplitError(f"{name}: expected a share from 0 to below 1, got {share!r}; use 0.2")
    if test + validation >= 1:
        raise SplitError(
            f"expected test + validation below 1 so that train nodes remain, "
            f"got {test} + {validation}; make one of them smaller"
        )
    has_label = labelled(data).numpy()
    total = int(has_label.sum())
    sizes = [int(share * total + 1e-9) for share in shares.values()]
    rest = total - sum(sizes)
    if rest < 1 or any(share and not n for share, n in zip(shares.values(), sizes, strict=True)):
        raise SplitError(
            f"expected enough labelled nodes for test={test:g} and validation={validation:g}, "
            f"got {total}, which gives {sizes[0]} test, {sizes[1]} validation and {rest} train "
            f"nodes; label more nodes or take other shares"
        )
    order = SPLIT_ORDERS[by](data, numpy_rng(seed, f"split by {by}"))
    order = order[has_label[order]]
    parts = np.split(order, np.cumsum(sizes))
    out = Data(**data.to_dict())
    none = torch.zeros(len(has_label), dtype=torch.bool)
    for name, nodes in zip(("test_mask", "val_mask", "train_mask"), parts, strict=True):
        out[name] = none.index_fill(0, torch.from_numpy(nodes), True)
    return out


def _random_order(data: Data, rng: np.random.Generator) -> Order:
    return rng.permutation(data.x.shape[0])


def _degree_order(data: Data, rng: np.random.Generator) -> Order:
    shuffled = _random_order(data, rng)  # random order of ties
    degrees = degree(data.edge_index[1], data.x.shape[0]).numpy()
    return shuffled[np.argsort(-degrees[shuffled], kind="stable")]


def _community_order(data: Data, rng: np.random.Generator) -> Order:
    graph = nx.Graph()
    graph.add_nodes_from(range(data.x.shape[0]))
    graph.add_edges_from(data.edge_index.t().tolist())
    groups = nx.community.louvain_communities(graph, seed=int(rng.integers(2**31)))
    shuffled = [rng.permutation(sorted(groups[i])) for i in rng.permutation(len(groups))]
    return np.concatenate(shuffled)


def keep_labels(data: Data, share: float, seed: int = 0) -> Data:
    """Return a split graph with fewer train nodes.

    Test nodes stay as they are; the train nodes that are left out are in no mask, so that methods
    see them without their targets.

    Args:
        data: a graph from :func:`split_nodes`.
        share: share of all labelled nodes that remain train nodes.
        seed: of the random choice.

    Raises:
        SplitError: if there are fewer train nodes than that, or none would be left.
    """
    train = data.train_mask.nonzero().flatten().numpy()
    total = int(labelled(data).sum())
    count = round(check_number("label_fraction", share) * total)
    if not 0 < count <= len(train):
        raise SplitError(
            f"label_fraction: expected a share that leaves 1 to {len(train):,} of the {total:,} "
            f"labelled nodes for training, since the others are test nodes, got {share:g}; choose "
            f"another share"
        )
    kept = numpy_rng(seed, "labels").choice(train, count, replace=False)
    out = copy.copy(data)
    out.train_mask = torch.zeros_like(data.train_mask).index_fill(0, torch.from_numpy(kept), True)
    return out


SPLIT_ORDERS: dict[str, Callable[[Data, np.random.Generator], Order]] = {
    "random": _random_order,
    "degree": _degree_order,
    "community": _community_order,
}
