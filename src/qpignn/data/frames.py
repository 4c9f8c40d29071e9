"""Graphs from tables and from ``networkx``: ids of any type in, PyG ``Data`` out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.columns import numbers, require_columns, several, whole_characters
from qpignn.data.edge_table import edge_ends_and_weights, warn_of_merged
from qpignn.data.encoding import MISSING, NUMBER, FeatureEncoder
from qpignn.data.graph import MASKS, check_graph, simple_edges
from qpignn.data.ids import NodeIndex, check_ids, id_column
from qpignn.data.matrix import best_layout
from qpignn.errors import GraphError, QpignnWarning, check_choice, quoted

if TYPE_CHECKING:
    import networkx as nx

SPLIT_WORDS = {
    "train": "train_mask",
    "validation": "val_mask",
    "valid": "val_mask",
    "val": "val_mask",
    "test": "test_mask",
}

COORDINATES = (("lon", "lat"), ("lng", "lat"), ("longitude", "latitude"))
"""Columns of a node table that are taken as places on the earth."""


@whole_characters()
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
        nodes: one row a node. Every column without another role is a feature: numbers as they
            are, text as categories, one column of zeros and ones for each.
        edges: one row an edge, naming nodes by id; ``None`` or no rows for a graph without edges.
        target: column to predict; blank or NaN = unlabelled. ``None``: a graph to predict on.
        id: column of node ids, of any type; by default the one called id, node_id or node (in
            upper or lower case), else the index, unless that is unnamed and of integers.
        features: the feature columns; by default all without another role.
        categorical: feature columns that are categories whatever they hold, such as integer codes.
        ignore: columns that are no features.
        missing: blanks among the features are an ``error``, or ``impute``: numbers become the
            column's median, and a column of its own says where a blank was.
        coding: how an earlier graph's columns became features (its ``coding``), for a table to be
            coded the same way; instead of the four arguments above.
        edge_ends: the edge table's two id columns; by default those called from and to, source
            and target, src and dst, u and v or the like, else its first two, with a warning.
        edge_weight: column of the edge table; finite, from 0 up.
        node_weight: column of the node table that weighs its targets in training.
        split: column saying ``train``, ``validation`` or ``test``; blank = none of them.
        coordinates: two columns that say where nodes are, for maps; by default those called lon
            and lat, lng and lat, or longitude and latitude. The graph carries them as ``pos`` and
            their names as ``pos_names``. They are features too, unless ignored.
        directed: keep edges one way (from the first end to the second). By default an edge joins
            both ways. Self-loops are dropped and repeated edges merged either way.
        match_ids: how ids of the edge table are found in the node table. ``exact``: equal, or an
            integer and its decimal text. ``number``: as numbers, so that 007, 7 and 7.0 are one.
            ``caseless``: as text without case and surrounding spaces.
        need_target: whether labelled nodes are required (yes to fit, no to predict).

    Features are float32, or float64 where float32 would lose digits that tell nodes apart. Wide
    ones that are mostly zeros (at least 64 columns, at most a quarter of the cells filled) become a
    sparse CSR tensor, with which everything gives the same results in less time. The graph carries
    ``node_id``, ``id_name``, ``feature_names`` and ``coding``.

    Raises:
        GraphError: naming the column, the node and what to do.
        UnknownNameError: for a word that ``missing`` does not know.
    """
    check_choice("way to treat missing values", missing, MISSING)
    require_columns("node", nodes, [] if id is None else [id])
    id = id_column(nodes, id, _some_ends(edges))
    ids = id_index(nodes, id)
    if not len(nodes):
        raise GraphError(
            "the node table: expected at least one node, got none; are its rows there?"
        )
    check_ids(ids, len(nodes))
    taken = [column for column in (id, target, node_weight, split) if column is not None]
    require_columns("node", nodes, taken)
    if coding is None:
        columns = _feature_columns(nodes, taken, features, ignore)
        forced = _categorical(nodes, columns, categorical)
        _check_roles(taken, columns)
        coding = FeatureEncoder.learn(nodes, columns, ids, missing=missing, categorical=forced)
        warn_of_zeros(nodes.attrs.get("zeros", {}), coding)
    else:
        _check_roles(taken, [])
        _check_coding(coding, features, categorical, ignore, missing)
    out = Data(x=best_layout(compact(coding.encode(without(nodes, taken), ids))))
    out.node_id, out.feature_names, out.coding = ids.to_numpy(), coding.feature_names, coding
    out.id_name = str(nodes.index.name or "id") if id is None else str(id)
    if target is not None:
        out.y = target_values(nodes[target], ids)
    if node_weight is not None:
        weight = numbers(nodes[node_weight], ids, f"node weight column {node_weight!r}")
        out.node_weight = torch.from_numpy(weight.astype(np.float32))
    if split is not None:
        for name, mask in _split_masks(nodes[split], ids).items():
            out[name] = mask
    _add_coordinates(out, nodes, ids, coordinates)
    index = NodeIndex(ids, match_ids)
    ends, weight_values = edge_ends_and_weights(edges, index, edge_ends, edge_weight)
    out.edge_index, merged = simple_edges(ends, len(nodes), weight_values, directed=directed)
    if merged is not None:
        out.edge_weight = merged
    found = check_graph(out, need_target=need_target and target is not None)
    kept = out.edge_index.shape[1]
    warn_of_merged(ends, kept, directed=directed, weighted=merged is not None)
    return found


def _feature_columns(
    nodes: pd.DataFrame,
    taken: list[str],
    features: Sequence[str] | None,
    ignore: Sequence[str],
) -> list[str]:
    ignored = several("ignore", ignore)
    named = None if features is None else several("features", features)
    for wanted in (ignored, named or []):
        require_columns("node", nodes, wanted)
    used = {*taken, *(named or ())}
    clash = [column for column in ignored if column in used]
    if clash:
        raise GraphError(f"ignore: expected columns without another role, got {quoted(clash)}")
    left_out = {*taken, *ignored}
    columns = (
        [column for column in nodes.columns if column not in left_out] if named is None else named
    )
    if not columns:
        raise GraphError(
            f"expected at least one feature column besides {quoted([*taken, *ignored])}, got none; "
            f"add one, for instance each node's degree"
        )
    return columns


def _categorical(nodes: pd.DataFrame, columns: list[str], categorical: Sequence[str]) -> list[str]:
    forced = several("categorical", categorical)
    require_columns("node", nodes, forced)
    known = {*columns}
    others = [column for column in forced if column not in known]
    if others:
        raise GraphError(f"categorical: expected feature columns, got {quoted(others)}")
    return forced


def _check_roles(taken: list[str], columns: list[str]) -> None:
    if len(set(taken)) < len(taken):
        raise GraphError(f"expected a column of its own for every role, got {quoted(taken)}")
    other_roles = [column for column in columns if column in taken]
    if other_roles or len(set(columns)) < len(columns):
        raise GraphError(
            f"features: expected each column once and none that has another role, got "
            f"{quoted(other_roles or columns)}"
        )


def _check_coding(
    coding: Any,
    features: Sequence[str] | None,
    categorical: Sequence[str],
    ignore: Sequence[str],
    missing: str,
) -> None:
    if not isinstance(coding, FeatureEncoder):
        raise GraphError(
            f"coding: expected the coding of an earlier graph (graph.coding), "
            f"got {type(coding).__name__}"
        )
    given = {
        "features": features is not None,
        "categorical": len(categorical) > 0,
        "ignore": len(ignore) > 0,
        "missing": missing != "error",
    }
    if any(given.values()):
        raise GraphError(
            f"coding: expected it alone, since it says what becomes of each column, got also "
            f"{quoted([name for name, there in given.items() if there])}"
        )


def target_values(column: pd.Series[Any], ids: pd.Index) -> Tensor:
    """Return targets as float64, NaN where they are blank."""
    what = f"target column {column.name!r}"
    advice = "leave unknown targets blank, or choose another column"
    return torch.from_numpy(numbers(column, ids, what, blanks=True, correct=advice))


def without(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return a table without columns that have a role of their own, where it has them."""
    return frame[[column for column in frame.columns if column not in columns]]


def compact(x: npt.NDArray[np.float64]) -> Tensor:
    """Return features as float32, or float64 where float32 would merge nodes."""
    with np.errstate(over="ignore", invalid="ignore"):
        small = x.astype(np.float32)
        lost = ~(np.abs(small - x).max(axis=0) <= 1e-4 * x.std(axis=0))
    varies = (x != x[:1]).any(axis=0)
    return torch.from_numpy(x if bool((lost & varies).any()) else small)


def id_index(nodes: pd.DataFrame, id: str | None) -> pd.Index:
    """Return a node table's ids: those of a column, or the index where no column is named."""
    values = nodes.index if id is None else nodes[id]
    ids: pd.Index = pd.Index(values, tupleize_cols=False)
    return ids


def _some_ends(edges: pd.DataFrame | None) -> list[Any]:
    """Return what the first rows of an edge table hold, to tell which column names nodes."""
    if not isinstance(edges, pd.DataFrame):
        return []
    return [value for column in edges.columns for value in edges[column].iloc[:20]]


def warn_of_zeros(zeros: dict[str, str], coding: FeatureEncoder) -> None:
    """Warn of feature columns that are read as numbers although some begin with a zero.

    Args:
        zeros: columns of a text file whose digits begin with a zero, each with an example.
        coding: what becomes of the columns.
    """
    found = [column.name for column in coding.columns if column.kind == NUMBER]
    for name in (name for name in found if name in zeros):
        warnings.warn(
            f"feature column {name!r} holds numbers with leading zeros, such as {zeros[name]}, "
            f"which look like codes and are read as numbers; take them as categories with "
            f"categorical=[{name!r}] (--categorical) or leave them out with ignore=[{name!r}] "
            f"(--ignore)",
            QpignnWarning,
            stacklevel=4,
        )


def _add_coordinates(
    out: Data, nodes: pd.DataFrame, ids: pd.Index, wanted: Sequence[str] | None
) -> None:
    """Set ``pos`` (nodes, 2), in the unit of the table, and ``pos_names``, where there are any."""
    named = {str(column).lower(): column for column in nodes.columns}
    if wanted is None:
        found = [pair for pair in COORDINATES if set(pair) <= set(named)]
        if not found:
            return
        columns = [named[name] for name in found[0]]
    else:
        columns = several("coordinates", wanted)
    if len(columns) != 2:
        raise GraphError(f"coordinates: expected two columns, got {quoted(columns)}")
    require_columns("node", nodes, columns)
    try:
        both = [numbers(nodes[name], ids, f"coordinate column {name!r}") for name in columns]
    except GraphError:
        if wanted is None:  # columns that happen to bear the name
            return
        raise
    out.pos, out.pos_names = torch.from_numpy(np.column_stack(both)), [str(c) for c in columns]


def _split_masks(column: pd.Series[Any], ids: pd.Index) -> dict[str, Tensor]:
    words = column.astype("string").str.strip().str.lower().fillna("").to_numpy(dtype=object)
    unknown = [i for i, word in enumerate(words) if word and word not in SPLIT_WORDS]
    if unknown:
        raise GraphError(
            f"split column {column.name!r}: expected train, validation, test or blank, "
            f"got {quoted([column.iloc[unknown[0]]])} at node {ids[unknown[0]]!r}"
        )
    parts = np.array([SPLIT_WORDS.get(word, "") for word in words], dtype=object)
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

    Node names become ``node_id``; a directed graph stays directed. A node without the target
    attribute is unlabelled. Other arguments are those of :func:`from_frames`.
    """
    import networkx as nx

    if not isinstance(graph, nx.Graph):
        raise GraphError(
            f"expected a networkx graph, got {type(graph).__name__}; tables become a graph by "
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


@whole_characters()
def network_frames(
    graph: nx.Graph, edge_attributes: Sequence[str] | None = None, *, id: str = "id"
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the tables of a ``networkx`` graph: nodes by their names, and edges from and to.

    Args:
        graph: the graph; its attributes become columns.
        edge_attributes: those of its edges to keep, all by default. One called from or to gets
            ``_attribute`` behind its name.
        id: name of the column that holds the nodes' names; an attribute of that name gets
            ``_attribute`` behind it.

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
        edge_attributes = list(dict.fromkeys(name for *_, found in links for name in found))
    columns = {"from": [link[0] for link in links], "to": [link[1] for link in links]}
    for name in edge_attributes:
        free = f"{name}_attribute" if name in ("from", "to") else name
        columns[free] = [found.get(name) for *_, found in links]
    return nodes, pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})
