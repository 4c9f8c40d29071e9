"""Adding new nodes to the graph of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from qpignn.data.columns import require_columns, valid_unicode
from qpignn.data.edge_table import edge_ends_and_weights, end_columns
from qpignn.data.encoding import FeatureEncoder
from qpignn.data.frames import compact, target_values
from qpignn.data.graph import MASKS, check_graph, node_ids, simple_edges
from qpignn.data.ids import NodeIndex, check_ids, find_ids
from qpignn.data.matrix import is_sparse, stack_rows
from qpignn.errors import GraphError, quoted


@valid_unicode()
def join_frames(
    data: Data,
    nodes: pd.DataFrame,
    edges: pd.DataFrame | None,
    *,
    id: str | None = None,
    edge_ends: tuple[str, str] | None = None,
    edge_weight: str | None = None,
    directed: bool = False,
    match_ids: str = "exact",
    target: str | None = None,
) -> Data:
    """Return a copy of a graph with new nodes added to it.

    Old nodes come first and keep their features, targets and masks. New ones are in no mask but
    ``new_mask``, which is true on exactly these; their ``node_weight`` is the old nodes' mean. Ids
    are compared as text where the graph's are text. Attributes that no method reads, such as
    ``pos``, are left out.

    Args:
        data: a graph made by :func:`qpignn.from_frames`, with its ``coding``.
        nodes: one row per new node, with the feature columns of the graph's table.
        edges: one row per edge, between new nodes, old nodes or one of each; ``None`` for none. An
            edge that the graph already has is merged with it, weights averaged.
        id: the node table's id column; by default as in :func:`qpignn.from_frames`.
        edge_ends: the edge table's two id columns, as in :func:`qpignn.from_frames`.
        edge_weight: column of the edge table; needed if the graph's edges have weights.
        directed: keep the direction of new edges; needed if the graph's edges are directed.
        match_ids: how ids of the edge table are matched, as in :func:`qpignn.from_frames`.
        target: column with targets of new nodes; by default they are unlabelled.

    Returns:
        The larger graph.

    Raises:
        GraphError: naming the column, the node and what to do.
    """
    data = check_graph(data, need_target=False)
    coding = _checked_coding(data)
    require_columns("node", nodes, [column for column in (id, target) if column is not None])
    id, new = find_ids(nodes, id)
    taken = [column for column in (id, target) if column is not None]
    new, ids = _joined_ids(data, new)
    out = Data(x=_joined_features(data.x, coding.encode(nodes.drop(columns=taken), new)))
    out.node_id, out.coding, out.feature_names = ids.to_numpy(), coding, coding.feature_names
    out.id_name = data.get("id_name", "id")
    if data.get("y") is not None or target is not None:
        out.y = _joined_targets(data, nodes, new, target)
    if data.get("node_weight") is not None:
        mean = data.node_weight.mean()
        out.node_weight = torch.cat([data.node_weight, mean.repeat(len(new))])
    for name in (name for name in MASKS if data.get(name) is not None):
        out[name] = torch.cat([data[name], torch.zeros(len(new), dtype=torch.bool)])
    out.new_mask = torch.arange(len(ids)) >= len(ids) - len(new)
    index = NodeIndex(ids, match_ids)
    out.edge_index, out.edge_weight = data.edge_index, data.get("edge_weight")
    if edges is not None and len(edges):
        _check_new_edges(data, edge_weight, directed)
        names = end_columns(edges, edge_ends)
        named = edges.copy(deep=False)
        for end in names:
            named[end] = pd.Series(_like(ids, edges[end]), index=edges.index)
        ends, weight = edge_ends_and_weights(
            named, index, names, edge_weight, among="the joined graph"
        )
        added, weight = simple_edges(ends, len(ids), weight, directed=directed)
        both = torch.cat([data.edge_index, added], dim=1)
        weights = None
        if weight is not None:
            weights = torch.cat([data.edge_weight, weight.to(data.edge_weight.dtype)])
        out.edge_index, out.edge_weight = simple_edges(both, len(ids), weights, directed=True)
    return check_graph(out, need_target=False)


def _joined_features(old: Tensor, added: npt.NDArray[np.float64]) -> Tensor:
    """Return the old rows and the new ones below them, in the old rows' layout."""
    if old.dtype == torch.float64:
        return stack_rows(old, torch.from_numpy(added))
    if is_sparse(old):
        return stack_rows(old, torch.from_numpy(added).to(old.dtype))
    return compact(np.concatenate([old.numpy().astype(np.float64), added]))


def _checked_coding(data: Data) -> FeatureEncoder:
    coding = data.get("coding")
    if not isinstance(coding, FeatureEncoder):
        raise GraphError(
            "expected a graph with the encoder of its features (coding), got one without; "
            "make it with from_frames, from_networkx or read_graph"
        )
    if data.x.shape[1] != len(coding.feature_names):
        raise GraphError(
            f"expected the {len(coding.feature_names)} features that the graph's coding gives, "
            f"got x of shape {tuple(data.x.shape)}; do not change x of the graph of a fit"
        )
    return coding


def _joined_ids(data: Data, new: pd.Index) -> tuple[pd.Index, pd.Index]:
    """Return the new nodes' ids, and all ids, old ones first."""
    old: pd.Index = pd.Index(node_ids(data), tupleize_cols=False)
    if not len(new):
        raise GraphError("the node table: expected at least one new node, got none; add rows")
    check_ids(new, len(new))
    new = _like(old, new)
    check_ids(new, len(new))
    if len(repeated := new[new.isin(old)]):
        raise GraphError(
            f"expected ids of new nodes, got ids that the graph already has: {quoted(repeated)}; "
            f"leave those rows out of the node table (edges may refer to them)"
        )
    return new, pd.Index([*old, *new], tupleize_cols=False)


def _like(old: pd.Index, ids: Any) -> Any:
    """Return ids as text where the old ids are text, blanks as they are."""
    old_ids = set(old)
    if not all(isinstance(value, str) for value in old_ids):
        return ids
    return pd.Index([_text(value, old_ids) for value in ids], dtype=object, tupleize_cols=False)


def _text(value: Any, old: set[str]) -> Any:
    """Return an id as text; 3.0 becomes 3 unless the graph has the id 3.0."""
    if isinstance(value, str) or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return value
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole and str(value) not in old else str(value)


def _joined_targets(data: Data, nodes: pd.DataFrame, new: pd.Index, target: str | None) -> Tensor:
    nothing = torch.full((data.x.shape[0] + len(new),), torch.nan, dtype=torch.float64)
    old = nothing[: data.x.shape[0]] if data.get("y") is None else data.y
    added = nothing[: len(new)] if target is None else target_values(nodes[target], new)
    return torch.cat([old, added.to(old.dtype)])


def _check_new_edges(data: Data, edge_weight: str | None, directed: bool) -> None:
    """Raise where new edges do not fit those of the graph."""
    old = data.get("edge_weight")
    if (old is None) != (edge_weight is None):
        raise GraphError(
            f"edge_weight: expected {'none' if old is None else 'a column'}, since the graph's "
            f"edges have {'no ' if old is None else ''}weights, got {edge_weight!r}; "
            f"{'leave it out' if old is None else 'name the column'}"
        )
    if not directed and not is_undirected(data.edge_index, num_nodes=data.x.shape[0]):
        raise GraphError(
            "directed: expected true, since the graph has directed edges, got false; pass "
            "directed=True, and list a new edge twice where it goes both ways"
        )
