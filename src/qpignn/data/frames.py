"""Graphs from tables and from ``networkx``: ids of any type in, PyG ``Data`` out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.graph import MASKS, check_graph, check_ids, simple_edges
from qpignn.errors import GraphError, listed

SPLIT_WORDS = {
    "train": "train_mask",
    "validation": "val_mask",
    "valid": "val_mask",
    "val": "val_mask",
    "test": "test_mask",
}


END_NAMES = (("from", "to"), ("source", "target"), ("src", "dst"))
"""Columns of an edge table that are taken as its ends wherever they stand."""


def from_frames(
    nodes: pd.DataFrame,
    edges: pd.DataFrame | None,
    *,
    target: str | None,
    id: str | None = None,
    features: Sequence[str] | None = None,
    edge_ends: tuple[str, str] | None = None,
    edge_weight: str | None = None,
    node_weight: str | None = None,
    split: str | None = None,
    directed: bool = False,
    need_target: bool = True,
) -> Data:
    """Make a graph from a table of nodes and a table of edges.

    Args:
        nodes: one row a node. Every column without another role is a numeric feature.
        edges: one row an edge, naming nodes by id; ``None`` or no rows for a graph without edges.
        target: column to predict; blank or NaN = unlabelled. ``None``: a graph to predict on.
        id: column of node ids, of any type; by default ``id`` if there is one, else the index.
        features: the feature columns; by default all without another role.
        edge_ends: the edge table's two id columns; by default those called from and to, source
            and target, or src and dst, else its first two.
        edge_weight: column of the edge table; finite, from 0 up.
        node_weight: column of the node table that weighs its targets in training.
        split: column saying ``train``, ``validation`` or ``test``; blank = none of them.
        directed: keep edges one way (from the first end to the second). By default an edge joins
            both ways. Self-loops are dropped and repeated edges merged either way.
        need_target: whether labelled nodes are required (yes to fit, no to predict).

    Features are float32, or float64 where float32 would lose digits that tell nodes apart.

    Raises:
        GraphError: naming the column, the node and what to do.
    """
    ids = _id_index(nodes, id)
    check_ids(ids, len(nodes))
    taken = [column for column in (id or "id", target, node_weight, split) if column is not None]
    _need_columns("node", nodes, [c for c in (id, target, node_weight, split) if c is not None])
    others = [column for column in nodes.columns if column not in taken]
    columns = list(features) if features is not None else others
    _need_columns("node", nodes, columns)
    if len(set(taken)) < len(taken):
        raise GraphError(f"expected a column of its own for every role, got {listed(taken)}")
    other_roles = [column for column in columns if column in taken]
    if other_roles or len(set(columns)) < len(columns):
        raise GraphError(
            f"features: expected each column once and none that has another role, got "
            f"{listed(other_roles or columns)}"
        )
    if not columns:
        raise GraphError(
            f"expected at least one feature column besides {listed(taken)}, got none; add one, "
            f"for instance each node's degree"
        )
    table = [_numbers(nodes[column], ids, f"feature column {column!r}") for column in columns]
    out = Data(x=_compact(np.column_stack(table)))
    out.node_id, out.feature_names = ids.to_numpy(), [str(column) for column in columns]
    if target is not None:
        out.y = torch.from_numpy(_numbers(nodes[target], ids, f"target column {target!r}", True))
    if node_weight is not None:
        weight = _numbers(nodes[node_weight], ids, f"node weight column {node_weight!r}")
        out.node_weight = torch.from_numpy(weight.astype(np.float32))
    if split is not None:
        for name, mask in _split_masks(nodes[split], ids).items():
            out[name] = mask
    ends, weight_values = _edge_table(edges, ids, edge_ends, edge_weight)
    out.edge_index, merged = simple_edges(ends, len(nodes), weight_values, directed=directed)
    if merged is not None:
        out.edge_weight = merged
    return check_graph(out, need_target=need_target and target is not None)


def _compact(x: npt.NDArray[np.float64]) -> Tensor:
    with np.errstate(over="ignore", invalid="ignore"):
        small = x.astype(np.float32)
        lost = ~(np.abs(small - x).max(axis=0) <= 1e-4 * x.std(axis=0))
    varies = (x != x[:1]).any(axis=0)
    return torch.from_numpy(x if bool((lost & varies).any()) else small)


def _id_index(nodes: pd.DataFrame, id: str | None) -> pd.Index:
    if id is not None:
        _need_columns("node", nodes, [id])
    name = id if id is not None else ("id" if "id" in nodes else None)
    values = nodes.index if name is None else nodes[name]
    ids: pd.Index = pd.Index(values, tupleize_cols=False)
    return ids


def _need_columns(kind: str, frame: pd.DataFrame, wanted: Sequence[str]) -> None:
    if not frame.columns.is_unique:
        again = frame.columns[frame.columns.duplicated()].unique()
        raise GraphError(
            f"the {kind} table: expected each column once, got repeated: {listed(again)}"
        )
    missing = [column for column in wanted if column not in frame]
    if missing:
        raise GraphError(
            f"the {kind} table lacks the column{'s' * (len(missing) > 1)} {listed(missing)}; "
            f"it has {listed(frame.columns, most=12)}"
        )


def _numbers(
    column: pd.Series[Any], ids: pd.Index, what: str, blanks: bool = False
) -> npt.NDArray[np.float64]:
    """Return a column as float64; text, dates and (unless ``blanks``) missing values raise."""
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise GraphError(
            f"{what}: expected numbers, got dates; turn them into a number that matters, such as "
            f"days since an event or the month"
        )
    values = column
    if not pd.api.types.is_numeric_dtype(column):
        values = _parsed(column, ids, what, blanks)
    if not blanks and values.isna().any():
        row = int(np.flatnonzero(values.isna())[0])
        raise GraphError(
            f"{what}: expected a number for every node, got a blank at node {ids[row]!r} "
            f"({int(values.isna().sum())} blanks); fill them or leave the column out"
        )
    return values.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)


def _parsed(column: pd.Series[Any], ids: pd.Index, what: str, blanks: bool) -> pd.Series[Any]:
    """Return text as numbers and blank text as missing; other text raises."""
    column = column.astype(object)
    column = column.mask(column.map(lambda value: isinstance(value, str) and not value.strip()))
    try:
        values = pd.to_numeric(column, errors="coerce")
    except TypeError as error:  # lists, dictionaries and other things that are no number at all
        raise GraphError(f"{what}: expected numbers, got {error}") from error
    text = (values.isna() & column.notna()).to_numpy()
    if text.any():
        row = int(np.flatnonzero(text)[0])
        advice = "encode the column as numbers or leave it out with features=[...]"
        raise GraphError(
            f"{what}: expected numbers, got {column.iloc[row]!r} at node {ids[row]!r} "
            f"({int(text.sum())} such values); "
            f"{'leave unknown targets blank' if blanks else advice}"
        )
    return values


def _split_masks(column: pd.Series[Any], ids: pd.Index) -> dict[str, Tensor]:
    words = column.astype("string").str.strip().str.lower().fillna("").to_numpy(dtype=object)
    unknown = [i for i, word in enumerate(words) if word and word not in SPLIT_WORDS]
    if unknown:
        raise GraphError(
            f"split column {column.name!r}: expected train, validation, test or blank, "
            f"got {listed([column.iloc[unknown[0]]])} at node {ids[unknown[0]]!r}"
        )
    parts = np.array([SPLIT_WORDS.get(word, "") for word in words], dtype=object)
    return {name: torch.from_numpy((parts == name).astype(bool)) for name in MASKS}


def _edge_table(
    edges: pd.DataFrame | None,
    ids: pd.Index,
    ends: tuple[str, str] | None,
    weight: str | None,
) -> tuple[Tensor, Tensor | None]:
    if edges is None:
        return torch.empty((2, 0), dtype=torch.long), None
    if ends is None:
        if edges.shape[1] < 2:
            raise GraphError(
                f"the edge table: expected two columns of node ids, got "
                f"{listed(edges.columns) or 'no column'}"
            )
        known = [pair for pair in END_NAMES if set(pair) <= set(edges.columns)]
        ends = known[0] if known else (edges.columns[0], edges.columns[1])
    if len(ends) != 2:
        raise GraphError(f"edge_ends: expected two columns, got {listed(ends)}")
    _need_columns("edge", edges, [*ends, *([weight] if weight is not None else [])])
    positions = np.stack([_positions(edges[end], ids) for end in ends])
    if len(edges) and bool((positions[0] == positions[1]).all()):
        raise GraphError(
            f"expected edges between different nodes, got {len(edges)} that all join a node to "
            f"itself; are {listed(ends)} the columns of the two ends (edge_ends=...)?"
        )
    values = None
    if weight is not None:
        rows = pd.RangeIndex(1, len(edges) + 1)
        numbers = _numbers(edges[weight], rows, f"edge weight column {weight!r}")
        values = torch.from_numpy(numbers.astype(np.float32))
    return torch.from_numpy(positions), values


def _positions(end: pd.Series[Any], ids: pd.Index) -> npt.NDArray[np.int64]:
    if not len(end):
        return np.empty(0, dtype=np.int64)
    named = pd.Index(end, tupleize_cols=False)
    if named.hasnans:
        rows = np.flatnonzero(named.isna()) + 1
        raise GraphError(f"edge column {end.name!r}: got blank ids in edge rows {listed(rows)}")
    positions: npt.NDArray[np.int64] = ids.get_indexer(named).astype(np.int64)
    unknown = np.flatnonzero(positions < 0)
    if len(unknown):
        kinds = {type(ids[0]).__name__, type(named[int(unknown[0])]).__name__}
        hint = f" (ids are of different types: {' and '.join(sorted(kinds))})" * (len(kinds) > 1)
        raise GraphError(
            f"edge column {end.name!r} names nodes that the node table lacks: "
            f"{listed(named[unknown].unique())}, first in edge row {int(unknown[0]) + 1}{hint}; "
            f"add those nodes or drop those edges"
        )
    return positions


def from_networkx(
    graph: nx.Graph,
    *,
    target: str | None,
    features: Sequence[str] | None = None,
    edge_weight: str | None = None,
    node_weight: str | None = None,
    split: str | None = None,
) -> Data:
    """Make a graph from a ``networkx`` graph whose nodes carry attributes.

    Node names become ``node_id``; a directed graph stays directed. A node without the target
    attribute is unlabelled. Other arguments are those of :func:`from_frames`.
    """
    names = pd.Index(list(graph.nodes), tupleize_cols=False)
    nodes = pd.DataFrame.from_records([graph.nodes[name] for name in graph.nodes])
    nodes.index = names
    if "id" in nodes:  # an attribute called id is not the node's name
        nodes = nodes.rename(columns={"id": "id_attribute"})
    links = list(graph.edges(data=edge_weight) if edge_weight else graph.edges())
    edges = None
    if links:
        parts = [pd.Series(list(part)) for part in zip(*links, strict=True)]
        edges = pd.concat(parts, axis=1, keys=["from", "to", "weight"][: len(parts)])
    return from_frames(
        nodes,
        edges,
        target=target,
        features=features,
        edge_weight="weight" if links and edge_weight else None,
        node_weight=node_weight,
        split=split,
        directed=graph.is_directed(),
    )
