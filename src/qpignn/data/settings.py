"""Transductive, inductive and isolated evaluation: which part of the graph a method may see.

In every setting, the targets that a method receives are NaN outside the given nodes. The targets of
the test nodes are kept separately and used for metrics only, so that they cannot leak.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from qpignn.data.graph import check_graph, given_nodes, select_edges, select_nodes, test_nodes
from qpignn.errors import SplitError, check_choice

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class View:
    """A graph to fit on, a graph to predict on, and the test nodes' targets.

    Attributes:
        fit: graph for ``fit``; only given nodes have targets.
        predict: graph for ``predict_interval``; test targets are hidden here too.
        test_mask: the test nodes among those of ``predict``.
        y_test: their targets, in the order of the mask, (test nodes,).
    """

    fit: Data
    predict: Data
    test_mask: Tensor
    y_test: Tensor


def make_view(data: Data, kind: str = "transductive") -> View:
    """Return the graphs of a split graph that a method may see in one of three settings.

    Args:
        data: a graph from :func:`qpignn.split_nodes`.
        kind: ``transductive``: the whole graph is visible, only test targets are hidden.
            ``inductive``: fit on the subgraph of the given (train and validation) nodes, predict
            on the whole graph. ``isolated``: fit on that subgraph, predict on the separate
            subgraph of the test nodes.

    Raises:
        SplitError: if there is no ``test_mask``, or no labelled node on one side of the split.
    """
    check_choice("view", kind, VIEWS)
    data = check_graph(data, need_target=False)
    if data.get("test_mask") is None:
        raise SplitError(
            "expected a graph with a test_mask, got none; make one with split_nodes(...)"
        )
    given, test = given_nodes(data), test_nodes(data)
    if not bool(given.any()) or not bool(test.any()):
        raise SplitError(
            f"expected labelled nodes on both sides of the split, got {int(given.sum())} given and "
            f"{int(test.sum())} test nodes; make the split with split_nodes(...)"
        )
    hidden = hide_targets(data, given)
    hidden.test_mask = test
    fit, predict = VIEWS[kind](hidden, given, test)
    return View(fit, predict, predict.test_mask, data.y[test])


def hide_targets(data: Data, keep: Tensor) -> Data:
    """Return a copy of the graph with targets on some nodes only, NaN elsewhere.

    Args:
        data: the graph.
        keep: boolean, (nodes,), whose targets are kept.
    """
    out = copy.copy(data)
    out.y = data.y.masked_fill(~keep, float("nan"))
    return out


def induced_subgraph(data: Data, keep: Tensor) -> Data:
    """Return the subgraph of some nodes, in their order; ``x`` may be sparse.

    Args:
        data: the graph.
        keep: boolean, (nodes,).
    """
    out = select_nodes(select_edges(data, keep[data.edge_index].all(dim=0)), keep)
    out.edge_index = (keep.cumsum(0) - 1)[out.edge_index]
    return out


VIEWS: dict[str, Callable[[Data, Tensor, Tensor], tuple[Data, Data]]] = {
    "transductive": lambda data, given, test: (data, data),
    "inductive": lambda data, given, test: (induced_subgraph(data, given), data),
    "isolated": lambda data, given, test: (
        induced_subgraph(data, given),
        induced_subgraph(data, test),
    ),
}
