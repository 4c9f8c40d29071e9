"""Validation of graphs (PyG's ``Data``), and masks and ids of their nodes.

A graph has ``x`` (nodes, columns), ``edge_index`` (2, edges) and, where targets are known, ``y``
(nodes,) with NaN on the unlabelled nodes. Optional are ``edge_weight``, ``node_weight``, the masks
``train_mask``, ``val_mask`` and ``test_mask``, ``node_id``, ``feature_names``, ``pos`` (nodes, 2)
and ``pos_names``, the names of the two coordinates (lon and lat are degrees). Messages run from row
0 of ``edge_index`` to row 1; an undirected edge is stored both ways.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from qpignn.data.columns import LARGEST_WEIGHT, valid_unicode
from qpignn.data.ids import check_ids
from qpignn.data.matrix import all_finite, integers_as_floats, is_sparse, select_rows, stored_values
from qpignn.errors import ArrayError, GraphError, brief, plural
from qpignn.intervals import as_ids

if TYPE_CHECKING:
    from torch_geometric.data import Data

MASKS = ("train_mask", "val_mask", "test_mask")


def check_graph(data: Data, *, need_target: bool = True) -> Data:
    """Return a graph in canonical form.

    The result is a shallow copy: dense or CSR float ``x``, long ``edge_index``, one-dimensional
    float ``y``, boolean masks, text in ``feature_names``. The input is never changed.

    Args:
        data: the graph.
        need_target: whether labelled nodes are required (yes to fit, no to predict).

    Raises:
        GraphError: naming the rule that the graph breaks.
    """
    from torch_geometric.data import Data  # slow to import

    if not isinstance(data, Data):
        raise GraphError(
            f"expected a torch_geometric.data.Data, got {type(data).__name__}; "
            f"make one with from_frames or from_networkx"
        )
    data = Data(**{name: _normal(value) for name, value in data.to_dict().items()})
    data.x = _checked_features(data)
    nodes = data.x.shape[0]
    if data.get("node_id") is not None:
        data.node_id = _checked_ids(data.node_id, nodes)
    if data.get("feature_names") is not None:
        data.feature_names = _checked_feature_names(data.feature_names, data.x.shape[1])
    if not all_finite(data.x):
        raise GraphError(f"x: expected finite numbers, got {_first_bad_feature(data.x, data)}")
    data.edge_index = _checked_edges(data, nodes)
    if data.get("y") is not None:
        data.y = _checked_target(data.y, nodes)
    if need_target:
        check_labels(data.get("y"))
    for name, length in (("edge_weight", data.edge_index.shape[1]), ("node_weight", nodes)):
        if data.get(name) is not None:
            data[name] = check_weights(name, data[name], length)
    if data.get("node_weight") is not None and not bool((data.node_weight > 0).any()):
        raise GraphError("node_weight: expected some weight above 0, got zeros only; leave it out")
    for name in MASKS:
        if data.get(name) is not None:
            data[name] = _checked_mask(name, data[name], nodes)
    _check_disjoint(data)
    return data


def _normal(value: Any) -> Any:
    """Copy a tensor that was made in inference mode: no gradient can be computed with it."""
    return value.clone() if isinstance(value, Tensor) and value.is_inference() else value


def _checked_feature_names(names: Any, columns: int) -> list[str]:
    """Return the names of the columns as text, as files store them."""
    several = hasattr(names, "__len__") and not isinstance(names, str)
    if not (several and len(names) == columns):
        got = len(names) if several else brief(names)
        raise GraphError(
            f"feature_names: expected {columns} names, one per column of x, got {got}; "
            f"give a list of names, or leave it out"
        )
    return [str(name) for name in (names.tolist() if hasattr(names, "tolist") else names)]


def _checked_features(data: Data) -> Tensor:
    x = data.get("x")
    if not isinstance(x, Tensor):
        raise GraphError(
            f"x: expected a (nodes, columns) tensor, got {_kind(x)}; for a graph without features "
            f"use a constant column or each node's degree"
        )
    if x.layout not in (torch.strided, torch.sparse_csr):
        raise GraphError(
            f"x: expected a dense or sparse CSR tensor, got {x.layout}; use .to_sparse_csr()"
        )
    if x.dim() != 2 or 0 in x.shape:
        raise GraphError(
            f"x: expected (nodes, columns) with at least one of each, got shape {tuple(x.shape)}; "
            f"reshape it"
        )
    return _as_floats("x", x, integers_as_floats)


def _as_floats(name: str, values: Tensor, convert: Callable[[Tensor], Tensor]) -> Tensor:
    """Return real numbers as floats, without their gradient: embeddings are not trained further."""
    if values.is_complex():
        raise GraphError(f"{name}: expected real numbers, got {values.dtype}; use .real or .abs()")
    values = values if values.is_floating_point() else convert(values)
    return values.detach() if values.requires_grad else values


def _kind(value: Any) -> str:
    return "none" if value is None else type(value).__name__


def _first_bad_feature(x: Tensor, data: Data) -> str:
    bad = ~torch.isfinite(stored_values(x))
    if is_sparse(x):
        return f"{int(bad.sum())} NaN or infinite stored values; fill or drop them"
    row, column = (int(i) for i in bad.nonzero()[0])
    node = data.node_id[row] if data.get("node_id") is not None else row
    names = data.get("feature_names")
    name = repr(names[column]) if names is not None else str(column)
    return (
        f"{float(x[row, column])} in column {name} of node {node!r} "
        f"({plural(int(bad.sum()), 'such value')}); fill or drop them"
    )


def _checked_edges(data: Data, nodes: int) -> Tensor:
    edges = data.get("edge_index")
    if not isinstance(edges, Tensor):
        raise GraphError(
            f"edge_index: expected a (2, edges) tensor, got {_kind(edges)}; (2, 0) is allowed"
        )
    if edges.dim() != 2 or edges.shape[0] != 2:
        transposed = edges.dim() == 2 and edges.shape[1] == 2
        raise GraphError(
            f"edge_index: expected shape (2, edges), got {tuple(edges.shape)}; "
            f"{'transpose it with .t()' if transposed else 'reshape it'}"
        )
    if edges.is_floating_point() or edges.is_complex() or edges.dtype == torch.bool:
        raise GraphError(f"edge_index: expected whole numbers, got {edges.dtype}; use .long()")
    edges = edges.long()
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= nodes):
        raise GraphError(
            f"edge_index: expected node positions 0 to {nodes - 1}, got {int(edges.min())} to "
            f"{int(edges.max())}; count nodes from 0, or give from_frames the tables with ids"
        )
    return edges


def _checked_target(y: Any, nodes: int) -> Tensor:
    if not isinstance(y, Tensor):
        raise GraphError(f"y: expected a tensor, got {_kind(y)}; use torch.as_tensor(...)")
    target: Tensor = y.squeeze(1) if y.dim() == 2 and y.shape[1] == 1 else y
    if target.shape != (nodes,):
        raise GraphError(
            f"y: expected one target per node ({nodes}), got shape {tuple(y.shape)}; give NaN to "
            f"nodes without one, and choose one column of several"
        )
    target = _as_floats("y", target, Tensor.double)
    if torch.isinf(target).any():
        raise GraphError(
            f"y: expected finite targets (NaN = unlabelled), "
            f"got {int(torch.isinf(target).sum())} infinite ones; set them to NaN or correct them"
        )
    return target


def check_labels(y: Tensor | None) -> None:
    """Raise unless some nodes are labelled, with targets that vary.

    Args:
        y: (nodes,), NaN where unlabelled.

    Raises:
        GraphError: if there is no label, or all are the same.
    """
    if y is None or bool(torch.isnan(y).all()):
        raise GraphError(
            "expected at least one labelled node, got none: every target is blank or missing; "
            "is the target column the right one?"
        )
    labels = y[~torch.isnan(y)]
    if len(labels) > 1 and bool((labels == labels[0]).all()):
        raise GraphError(
            f"expected targets that vary, got {len(labels)} labelled nodes that all have "
            f"{float(labels[0]):g}: there is nothing to predict; choose another target"
        )


def check_weights(name: str, weight: Any, length: int) -> Tensor:
    """Return weights as floats, (length,).

    Args:
        name: of the weights, for messages.
        weight: the weights.
        length: how many there must be.

    Raises:
        GraphError: if one is negative or not finite, or their sums would not fit into float32.
    """
    if not isinstance(weight, Tensor) or weight.numel() != length:
        got = tuple(weight.shape) if isinstance(weight, Tensor) else type(weight).__name__
        raise GraphError(f"{name}: expected a tensor of {length} numbers, got {got}; reshape it")
    values = _as_floats(name, weight.detach().reshape(length), Tensor.float)
    if bad := int((~torch.isfinite(values) | (values < 0)).sum()):
        raise GraphError(
            f"{name}: expected finite numbers from 0 up, got negative, NaN or infinite for {bad:,} "
            f"of {length:,}; correct them, or leave the weights out"
        )
    largest = float(values.max()) if length else 0.0
    if largest > LARGEST_WEIGHT or 0 < largest < 1 / LARGEST_WEIGHT:
        raise GraphError(
            f"{name}: expected weights whose largest is between {1 / LARGEST_WEIGHT:g} and "
            f"{LARGEST_WEIGHT:g}, since their sums must fit into float32, got {largest:g}; only "
            f"their ratios matter: divide all weights by the largest"
        )
    return values


def _checked_mask(name: str, mask: Any, nodes: int) -> Tensor:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise GraphError(
            f"{name}: expected a boolean tensor, got {got}; make one of positions with "
            f"torch.zeros({nodes}, dtype=torch.bool).index_fill(0, positions, True)"
        )
    if mask.shape != (nodes,):
        raise GraphError(
            f"{name}: expected length {nodes} (one per node), got {tuple(mask.shape)}; make masks "
            f"with split_nodes(...)"
        )
    return mask


def _check_disjoint(data: Data) -> None:
    for first, second in combinations((name for name in MASKS if name in data), 2):
        if shared := int((data[first] & data[second]).sum()):
            raise GraphError(
                f"{first} and {second} share {shared} nodes; make them with split_nodes(...)"
            )


@valid_unicode()
def _checked_ids(ids: Any, nodes: int) -> Any:
    try:
        values = as_ids(ids)
    except ArrayError as error:
        raise GraphError(str(error)) from error
    check_ids(pd.Index(values, tupleize_cols=False), nodes)
    return values


def pair_of_names(names: object) -> list[str]:
    """Return the names of two coordinates from an untrusted file.

    Args:
        names: what the file holds.

    Raises:
        TypeError: if they are something else.
    """
    if not (isinstance(names, list) and [type(name) for name in names] == [str, str]):
        raise TypeError("pos_names: expected two names")
    return names


def labelled(data: Data) -> Tensor:
    """Return the boolean mask of the labelled nodes, (nodes,).

    Args:
        data: a checked graph.
    """
    if data.get("y") is None:
        return torch.zeros(data.x.shape[0], dtype=torch.bool)
    return ~torch.isnan(data.y)


def node_ids(data: Data) -> npt.NDArray[Any]:
    """Return the nodes' ids, or row numbers where the graph has none, (nodes,).

    Args:
        data: a checked graph.
    """
    ids = data.get("node_id")
    return np.arange(data.x.shape[0]) if ids is None else as_ids(ids)


def select_nodes(data: Data, nodes: Tensor) -> Data:
    """Return a graph with some of its nodes, in a given order; its edges stay as they are.

    Args:
        data: a checked graph; ``x`` may be sparse.
        nodes: a boolean mask, or positions.
    """
    from torch_geometric.data import Data  # slow to import

    out = Data(**{name: value for name, value in data.to_dict().items() if name != "num_nodes"})
    out.x, out.node_id = select_rows(data.x, nodes), node_ids(data)[nodes.numpy()]
    for name in ("y", "node_weight", "pos", *MASKS):
        if data.get(name) is not None:
            out[name] = data[name][nodes]
    return out


def select_edges(data: Data, edges: Tensor) -> Data:
    """Return a graph with some of its edges.

    Args:
        data: a checked graph.
        edges: a boolean mask, or positions.
    """
    out = copy.copy(data)
    out.edge_index = data.edge_index[:, edges]
    for name in ("edge_weight", "edge_attr"):
        if data.get(name) is not None:
            out[name] = data[name][edges]
    return out


def given_nodes(data: Data) -> Tensor:
    """Return the boolean mask of the labelled nodes whose targets a method may use, (nodes,).

    Those of ``train_mask`` and ``val_mask``; where the graph has neither, all outside its
    ``test_mask``.

    Args:
        data: a checked graph.
    """
    masks = [data[name] for name in ("train_mask", "val_mask") if data.get(name) is not None]
    if masks:
        return torch.stack(masks).any(dim=0) & labelled(data)
    return labelled(data) & ~test_nodes(data)


def test_nodes(data: Data) -> Tensor:
    """Return the boolean mask of the labelled nodes in ``test_mask``, (nodes,).

    Args:
        data: a checked graph.
    """
    mask = data.get("test_mask")
    return torch.zeros_like(labelled(data)) if mask is None else mask & labelled(data)


def simple_edges(
    edge_index: Tensor,
    nodes: int,
    weight: Tensor | None = None,
    *,
    directed: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return each edge once (undirected: once each way), without self-loops, in sorted order.

    Weights of repeated edges are averaged, so that a file that lists both directions of some edges
    gives the same graph as one that lists each edge once.

    Args:
        edge_index: (2, edges).
        nodes: number of nodes.
        weight: (edges,), if edges have weights.
        directed: whether edges are directed.
    """
    from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

    edge_index, weight = remove_self_loops(edge_index, weight)
    merge = coalesce if directed else to_undirected
    edge_index, weight = merge(edge_index, weight, num_nodes=nodes, reduce="mean")
    return edge_index, weight
