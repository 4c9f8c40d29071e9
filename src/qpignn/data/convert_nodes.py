"""Conversion of a node table larger than memory into arrays.

Features are written in pieces of rows, everything else column by column. The rules are those of
tables in memory: :func:`qpignn.from_frames` and :class:`FeatureEncoder`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch_geometric.data import Data

from qpignn.data.column_roles import ColumnRoles
from qpignn.data.encoding import NUMBER, FeatureEncoder
from qpignn.data.frames import compact, coordinate_columns, from_frames, node_values, warn_of_zeros
from qpignn.data.graph import check_graph
from qpignn.data.ids import check_ids
from qpignn.data.mapped import write_arrays, write_ids
from qpignn.data.mapped_arrays import KINDS, array_file
from qpignn.data.parquet_table import ParquetTable
from qpignn.data.table_file import piece_rows
from qpignn.data.tables import in_pieces, open_nodes
from qpignn.data.text_table import TextTable
from qpignn.errors import GraphError
from qpignn.runtime.progress import progress_bar

VALUES = ("target", "node_weight", "split", "coordinates")
"""Roles of columns that are neither ids nor features."""


class NodeTable(NamedTuple):
    """A table of nodes to convert.

    Attributes:
        table: the file.
        roles: the roles of its columns.
        features: names of the feature columns.
    """

    table: TextTable | ParquetTable
    roles: ColumnRoles
    features: list[str]


class _OneByOne:
    """A table whose columns are read when they are asked for, as if it were a data frame."""

    def __init__(self, table: ParquetTable) -> None:
        self._table, self.columns = table, table.columns
        self.types: dict[str, Any] = {}

    def __getitem__(self, name: str) -> pd.Series[Any]:
        column = self._table.column(name)
        self.types[name] = column.dtype
        return column


def node_table(path: str | Path, roles: ColumnRoles) -> NodeTable:
    """Open a node table and check that its columns fit the roles.

    Args:
        path: the file.
        roles: the roles of its columns.

    Returns:
        The table, its roles with the id column filled in, and its feature columns.
    """
    opened, id = open_nodes(path, roles, text=roles.categorical)
    table, roles = in_pieces(opened), replace(roles, id=id)
    # from_frames decides on two artificial nodes which columns are features
    made_up = pd.DataFrame({name: [0.0, 1.0] for name in table.columns})
    for name in made_up.columns.intersection(list(roles.categorical)):
        made_up[name] = ["\0", "\1"]
    if roles.split in made_up:
        made_up[roles.split] = None
    graph = from_frames(made_up, None, **roles.columns(), need_target=False)
    return NodeTable(table, roles, [column.name for column in graph.coding.columns])


def by_columns(nodes: NodeTable, staging: Path, *, memory: int, verbose: bool) -> ParquetTable:
    """Return a node table whose columns can be read one by one; text is rewritten as Parquet.

    Args:
        nodes: the node table.
        staging: folder for the Parquet file.
        memory: bytes of memory to use.
        verbose: whether to show progress.
    """
    table = nodes.table
    if isinstance(table, ParquetTable):
        return table
    roles = nodes.roles
    needed = {roles.id, roles.target, roles.node_weight, roles.split, *nodes.features}
    needed |= {*coordinate_columns(table.columns, roles.coordinates)}
    columns = [name for name in table.columns if name in needed]
    rows = piece_rows(memory, len(table.columns))
    with progress_bar("reading nodes", 2 * table.most_rows(), shown=verbose) as show:
        return table.as_parquet(staging / "nodes", rows, columns, show, memory=memory)


def read_ids(nodes: NodeTable, table: ParquetTable) -> pd.Index:
    """Return the nodes' ids, none blank and each once.

    Args:
        nodes: the node table.
        table: the same table, by columns.

    Raises:
        GraphError: if there are no nodes, or an id is blank or repeated.
    """
    if not table.rows:
        raise GraphError(f"{nodes.table.path}: expected at least one node, got none")
    ids: pd.Index = pd.Index(table.column(str(nodes.roles.id)), tupleize_cols=False)
    check_ids(ids, table.rows)
    return ids


def convert_nodes(
    nodes: NodeTable,
    table: ParquetTable,
    ids: pd.Index,
    staging: Path,
    *,
    memory: int,
    verbose: bool,
) -> Data:
    """Write the arrays of the nodes: features, targets, weights, masks, coordinates and ids.

    Args:
        nodes: the node table.
        table: the same table, by columns.
        ids: the nodes' ids.
        staging: folder for the arrays.
        memory: bytes of memory to use.
        verbose: whether to show progress.

    Returns:
        What the arrays do not hold: ``coding``, ``feature_names`` and ``pos_names``.

    Raises:
        GraphError: as for tables in memory.
    """
    source: Any = _OneByOne(table)
    roles = nodes.roles
    coding = FeatureEncoder.learn(
        source, nodes.features, ids, missing=roles.missing, categorical=roles.categorical
    )
    if isinstance(nodes.table, TextTable):
        warn_of_zeros(nodes.table.layout.zeros, coding)
    kind = "<f8" if _needs_float64(source, coding, ids) else "<f4"
    width = len(coding.feature_names)
    rows = piece_rows(memory, len(nodes.features) + width)
    done = 0
    with (
        array_file(staging / "x.npy", kind, (len(ids), width)) as file,
        progress_bar("writing features", len(ids), shown=verbose) as show,
    ):
        for piece in table.pieces(rows, nodes.features, memory=memory):
            for name in nodes.features:  # integers are floats where another piece has blanks
                if pd.api.types.is_float_dtype(source.types[name]):
                    piece[name] = piece[name].astype(source.types[name])
            x = coding.encode(piece, ids[done : done + len(piece)])
            file.write(x.astype(kind).tobytes())
            done += len(piece)
            show(done, "")
    values = node_values(source, ids, **{role: getattr(roles, role) for role in VALUES})
    no_edges = torch.empty((2, 0), dtype=torch.long)
    graph = Data(x=torch.zeros(len(ids), 1), edge_index=no_edges, **values)
    graph = check_graph(graph, need_target=roles.target is not None)
    write_arrays(staging, graph, [name for name in KINDS if name != "x"])
    write_ids(staging, ids)
    names = coding.feature_names
    return Data(coding=coding, feature_names=names, pos_names=values.get("pos_names"))


def _needs_float64(source: _OneByOne, coding: FeatureEncoder, ids: pd.Index) -> bool:
    """Return whether float32 would make different values of some column equal."""
    for column in coding.columns:
        if column.kind == NUMBER:
            alone = FeatureEncoder((column,), coding.missing)
            x = alone.encode(pd.DataFrame({column.name: source[column.name]}), ids)
            if compact(x).element_size() == 8:
                return True
    return False
