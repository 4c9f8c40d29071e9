"""Graphs from tables and from ``networkx``: ids of any type in, PyG ``Data`` out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.column_roles import ColumnRoles
from qpignn.data.columns import numbers, require_columns, several, valid_unicode
from qpignn.data.edge_table import edge_ends_and_weights, warn_of_merged
from qpignn.data.encoding import NUMBER, FeatureEncoder
from qpignn.data.graph import MASKS, check_graph, simple_edges
from qpignn.data.ids import NodeIndex, check_ids, find_ids
from qpignn.data.matrix import best_layout
from qpignn.errors import GraphError, QpignnWarning, quoted

if TYPE_CHECKING:
    import networkx as nx

SPLIT_NAMES = {
    "train": "train_mask",
    **dict.fromkeys(("validation", "valid", "val"), "val_mask"),
    "test": "test_mask",
}

COORDINATES = (("lon", "lat"), ("lng", "lat"), ("longitude", "latitude"))
"""Columns of a node table that are taken as geographic coordinates."""


@valid_unicode()
def from_frames(
    nodes: pd.DataFrame,
    edges: pd.DataFrame | None,
    *,
    target: str | None,
    id: str | None = None,
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    missing: str = "error",
    coding: FeatureEncoder | None = None,
    edge_ends: Sequence[str] | None = None,
    edge_weight: str | None = None,
    node_weight: str | None = None,
    split: str | None = None,
    coordinates: Sequence[str] | None = None,
    directed: bool = False,
    match_ids: str = "exact",
    need_target: bool = True,
) -> Data:
    """Make a graph from a table of nodes and a table of edges.

    Args:
        nodes: one row per node. Every column without another role is a feature: numbers as they
            are, text as categories, one-hot encoded.
        edges: one row per edge, naming nodes by id; ``None`` or no rows for a graph without edges.
        target: column to predict; blank or NaN = unlabelled. ``None``: a graph to predict on.
        id: column of node ids, of any type; by default the one called id, node_id or node (in
            upper or lower case), else the index, unless that is unnamed and of integers.
        features: the feature columns; by default all without another role.
        categorical: feature columns that are categories whatever they hold, such as integer codes.
        ignore: columns that are not features.
        missing: blanks among the features are an ``error``, or ``impute``: numbers become the
            column's median, and an indicator column marks the blanks.
        coding: the encoder of an earlier graph (its ``coding``), for a table to be encoded the
            same way; instead of the four arguments above.
        edge_ends: the edge table's two id columns; by default those called from and to, source
            and target, src and dst, u and v or the like, else its first two, with a warning.
        edge_weight: column of the edge table; finite, from 0 up.
        node_weight: column of the node table with the weight of each target in training.
        split: column that holds ``train``, ``validation`` or ``test``; blank = none of them.
        coordinates: two columns with the nodes' positions, for maps; by default those called lon
            and lat, lng and lat, or longitude and latitude. The graph carries them as ``pos`` and
            their names as ``pos_names``. They are features too, unless ignored.
        directed: keep the direction of edges (from the first end to the second). By default an
            edge goes both ways. Self-loops are dropped and repeated edges merged in either case.
        match_ids: how ids of the edge table are matched with those of the node table. ``exact``:
            equal, or an integer and its decimal text. ``number``: as numbers, so that 007, 7 and
            7.0 are equal. ``caseless``: as text without case and surrounding spaces.
        need_target: whether labelled nodes are required (yes to fit, no to predict).

    Features are float32, or float64 where float32 would lose digits that tell nodes apart. Wide
    ones that are mostly zeros (at least 64 columns, at most a quarter of the cells filled) become a
    sparse CSR tensor, with which everything gives the same results in less time. The graph carries
    ``node_id``, ``id_name``, ``feature_names`` and ``coding``.

    Returns:
        The graph.

    Raises:
        GraphError: naming the column, the node and what to do.
        UnknownNameError: if ``missing`` or ``match_ids`` is not one of its choices.
    """
    require_columns("node", nodes, [] if id is None else [id])
    id, ids = find_ids(nodes, id, _some_ends(edges))
    if not len(nodes):
        raise GraphError(
            "the node table: expected at least one node, got none; add rows to the table"
        )
    check_ids(ids, len(nodes))
    taken = [column for column in (id, target, node_weight, split) if column is not None]
    require_columns("node", nodes, [*taken, *coordinate_columns(nodes.columns, coordinates)])
    if len(set(taken)) < len(taken):
        raise GraphError(
            f"expected a column of its own for every role, got {quoted(taken)}; name other columns"
        )
    if coding is None:
        columns, forced = _feature_columns(nodes, taken, features, categorical, ignore)
        coding = FeatureEncoder.learn(nodes, columns, ids, missing=missing, categorical=forced)
        warn_of_zeros(nodes.attrs.get("zeros", {}), coding)
    else:
        own: Any = {"features": features, "categorical": (*categorical,), "ignore": (*ignore,)}
        _check_coding(coding, ColumnRoles(**own, missing=missing).given())
    out = Data(x=best_layout(compact(coding.encode(nodes.drop(columns=taken), ids))))
    out.node_id, out.feature_names, out.coding = ids.to_numpy(), coding.feature_names, coding
    out.id_name = str(nodes.index.name or "id") if id is None else str(id)
    roles: Any = {"target": target, "node_weight": node_weight, "split": split}
    out.update(node_values(nodes, ids, **roles, coordinates=coordinates))
    index = NodeIndex(ids, match_ids)
    ends, weight = edge_ends_and_weights(edges, index, edge_ends, edge_weight)
    out.edge_index, out.edge_weight = simple_edges(ends, len(nodes), weight, directed=directed)
    checked = check_graph(out, need_target=need_target and target is not None)
    warn_of_merged(ends, len(nodes), weighted=weight is not None)
    return checked


def _feature_columns(
    nodes: pd.DataFrame,
    taken: list[str],
    features: Sequence[str] | None,
    categorical: Sequence[str],
    ignore: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Return the feature columns, and those of them that are categories whatever they hold."""
    ignored, forced = several("ignore", ignore), several("categorical", categorical)
    require_columns("node", nodes, [*ignored, *forced])
    left_out = {*taken, *ignored}
    columns = [column for column in nodes.columns if column not in left_out]
    if features is not None:
        columns = several("features", features)
        require_columns("node", nodes, columns)
    used = set(columns)
    if clash := [column for column in ignored if column in taken or column in used]:
        raise GraphError(
            f"ignore: expected columns without another role, got {quoted(clash)}; leave them out"
        )
    if not columns:
        raise GraphError(
            f"expected at least one feature column besides {quoted([*taken, *ignored])}, got none; "
            f"add one, for instance each node's degree"
        )
    if others := [column for column in forced if column not in used]:
        raise GraphError(
            f"categorical: expected feature columns, got {quoted(others)}; leave them out"
        )
    other_roles = [column for column in columns if column in taken]
    if other_roles or len(used) < len(columns):
        raise GraphError(
            f"features: expected each column once and none that has another role, got "
            f"{quoted(other_roles or columns)}; leave those out"
        )
    return columns, forced


def _check_coding(coding: Any, given: list[str]) -> None:
    if not isinstance(coding, FeatureEncoder):
        raise GraphError(
            f"coding: expected the coding of an earlier graph, got {type(coding).__name__}; pass "
            f"graph.coding"
        )
    if given:
        raise GraphError(
            f"coding: expected no other argument for features, got also {quoted(given)}; leave it "
            f"out, since coding defines the encoding of every column"
        )


def target_values(column: pd.Series[Any], ids: pd.Index) -> Tensor:
    """Return targets as float64, (nodes,), NaN where they are blank.

    Args:
        column: the target column.
        ids: the nodes' ids, for messages.
    """
    what = f"target column {column.name!r}"
    advice = "leave unknown targets blank, or choose another column"
    return torch.from_numpy(numbers(column, ids, what, blanks=True, correct=advice))


def compact(x: npt.NDArray[np.float64]) -> Tensor:
    """Return features as float32, or float64 where float32 would make different nodes equal.

    Args:
        x: (nodes, features).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        small = x.astype(np.float32)
        lost = ~(np.abs(small - x).max(axis=0) <= 1e-4 * x.std(axis=0))
    varies = (x != x[:1]).any(axis=0)
    return torch.from_numpy(x if bool((lost & varies).any()) else small)


def _some_ends(edges: pd.DataFrame | None) -> list[Any]:
    """Return the values in the first rows of an edge table, to detect the id column of nodes."""
    if not isinstance(edges, pd.DataFrame):
        return []
    return [value for column in edges.columns for value in edges[column].iloc[:20]]


def warn_of_zeros(zeros: dict[str, str], coding: FeatureEncoder) -> None:
    """Warn of feature columns that are read as numbers although some begin with a zero.

    Args:
        zeros: columns of a text file whose digits begin with a zero, each with an example.
        coding: the encoder of the columns.
    """
    for name in (one.name for one in coding.columns if one.kind == NUMBER and one.name in zeros):
        warnings.warn(
            f"feature column {name!r} holds numbers with leading zeros, such as {zeros[name]}, "
            f"which look like codes and are read as numbers; treat them as categories with "
            f"categorical=[{name!r}] (--categorical) or leave them out with ignore=[{name!r}] "
            f"(--ignore)",
            QpignnWarning,
            stacklevel=4,
        )


def node_values(
    nodes: pd.DataFrame,
    ids: pd.Index,
    *,
    target: str | None,
    node_weight: str | None,
    split: str | None,
    coordinates: Sequence[str] | None,
) -> dict[str, Any]:
    """Return what a node table holds besides ids and features, as attributes of the graph.

    Args:
        nodes: the node table; only single columns are read.
        ids: the nodes' ids, for messages.
        target, node_weight, split, coordinates: roles of its columns, as in :func:`from_frames`.

    Returns:
        ``y``, ``node_weight``, masks, ``pos`` (nodes, 2), in the unit of the table, and
        ``pos_names``: those that the table has.

    Raises:
        GraphError: naming the column, the value and the node.
    """
    values: dict[str, Any] = {}
    if target is not None:
        values["y"] = target_values(nodes[target], ids)
    if node_weight is not None:
        weight = numbers(nodes[node_weight], ids, f"node weight column {node_weight!r}")
        values["node_weight"] = torch.from_numpy(weight.astype(np.float32))
    if split is not None:
        values |= _split_masks(nodes[split], ids)
    if located := coordinate_columns(nodes.columns, coordinates):
        try:
            both = [numbers(nodes[name], ids, f"coordinate column {name!r}") for name in located]
        except GraphError:
            if coordinates is not None:  # else other columns of that name
                raise
        else:
            values["pos"] = torch.from_numpy(np.column_stack(both))
            values["pos_names"] = [str(name) for name in located]
    return values


def coordinate_columns(columns: Iterable[Any], wanted: Sequence[str] | None) -> list[Any]:
    """Return the two columns with the nodes' positions; none where there are none.

    Args:
        columns: the columns of a node table.
        wanted: those that the user named; ``None`` for those of usual names.

    Raises:
        GraphError: if the user named more or fewer than two.
    """
    if wanted is None:
        named = {str(column).lower(): column for column in columns}
        usual = next((pair for pair in COORDINATES if set(pair) <= set(named)), ())
        return [named[name] for name in usual]
    located = several("coordinates", wanted)
    if len(located) != 2:
        raise GraphError(f"coordinates: expected two columns, got {quoted(located)}; name two")
    return located


def _split_masks(column: pd.Series[Any], ids: pd.Index) -> dict[str, Tensor]:
    names = column.astype("string").str.strip().str.lower().fillna("").to_numpy(dtype=object)
    if unknown := [i for i, name in enumerate(names) if name and name not in SPLIT_NAMES]:
        raise GraphError(
            f"split column {column.name!r}: expected train, validation, test or blank, got "
            f"{quoted([column.iloc[unknown[0]]])} at node {ids[unknown[0]]!r}; correct the value"
        )
    parts = np.array([SPLIT_NAMES.get(name, "") for name in names], dtype=object)
    return {name: torch.from_numpy((parts == name).astype(bool)) for name in MASKS}


def from_networkx(
    graph: nx.Graph,
    *,
    target: str | None,
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    missing: str = "error",
    coding: FeatureEncoder | None = None,
    edge_weight: str | None = None,
    node_weight: str | None = None,
    split: str | None = None,
    need_target: bool = True,
) -> Data:
    """Make a graph from a ``networkx`` graph whose nodes carry attributes.

    Node names become ``node_id``; a directed graph stays directed.

    Args:
        graph: the graph; attributes take the place of columns.
        target: node attribute to predict; a node without it is unlabelled.
        features, categorical, ignore, missing, coding: node attributes that are features and
            their encoding, as in :func:`from_frames`.
        edge_weight: edge attribute; finite, from 0 up.
        node_weight, split: node attributes, as in :func:`from_frames`.
        need_target: whether labelled nodes are required (yes to fit, no to predict).

    Returns:
        The graph, as :func:`from_frames` returns it.

    Raises:
        GraphError: naming the attribute, the node and what to do.
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph):
        raise GraphError(
            f"expected a networkx graph, got {type(graph).__name__}; make a graph of tables with "
            f"from_frames"
        )
    nodes, edges = network_frames(graph, [] if edge_weight is None else [edge_weight])
    return from_frames(
        nodes,
        edges,
        target=target,
        id="id",
        features=features,
        categorical=categorical,
        ignore=ignore,
        missing=missing,
        coding=coding,
        edge_weight=None if edge_weight is None or edges is None else edges.columns[2],
        node_weight=node_weight,
        split=split,
        directed=graph.is_directed(),
        need_target=need_target,
    )


@valid_unicode()
def network_frames(
    graph: nx.Graph, edge_attributes: Sequence[str] | None = None, *, id: str = "id"
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the node table and the edge table of a ``networkx`` graph.

    Args:
        graph: the graph; its attributes become columns.
        edge_attributes: those of its edges to keep, all by default. One called from or to gets
            the suffix ``_attribute``.
        id: name of the column that holds the nodes' names; an attribute of that name gets the
            suffix ``_attribute``.

    Returns:
        The node table and the edge table, or ``None`` without edges.
    """
    nodes = pd.DataFrame([graph.nodes[name] for name in graph.nodes], index=range(len(graph)))
    nodes = nodes.rename(columns={id: f"{id}_attribute"})
    nodes.insert(0, id, pd.Series(list(graph.nodes), dtype=object))
    links = list(graph.edges(data=True))
    if not links:
        return nodes, None
    if edge_attributes is None:
        edge_attributes = list(dict.fromkeys(name for *_, values in links for name in values))
    columns = {"from": [link[0] for link in links], "to": [link[1] for link in links]}
    for name in edge_attributes:
        free = f"{name}_attribute" if name in ("from", "to") else name
        columns[free] = [attributes.get(name) for *_, attributes in links]
    return nodes, pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})
