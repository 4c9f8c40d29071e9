"""Conversion of a node table larger than memory into arrays.

Features are written in pieces of rows, everything else column by column. The rules are those of
tables in memory: :func:`qpignn.from_frames` and :class:`FeatureEncoder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pandas as pd

from qpignn.data.column_roles import ColumnRoles
from qpignn.data.encoding import NUMBER, FeatureEncoder
from qpignn.data.frames import COORDINATES, compact, from_frames, id_index, warn_of_zeros
from qpignn.data.graph import MASKS
from qpignn.data.ids import check_ids
from qpignn.data.mapped import write_ids
from qpignn.data.mapped_arrays import array_file
from qpignn.data.parquet_table import ParquetTable
from qpignn.data.table_file import piece_rows
from qpignn.data.tables import in_pieces, open_nodes
from qpignn.data.text_table import TextTable
from qpignn.errors import GraphError
from qpignn.runtime.progress import progress_bar

if TYPE_CHECKING:
    from torch_geometric.data import Data

ARRAYS_OF: dict[str, dict[str, str]] = {
    "target": {"y": "<f8"},
    "node_weight": {"node_weight": "<f4"},
    "split": dict.fromkeys(MASKS, "|b1"),
    "coordinates": {"pos": "<f8"},
}
"""Arrays of each role, and their types."""
FILLER = "\0"
"""Placeholder feature of tables that are read for another column."""


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
        self._table = table
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
    opened, id = open_nodes(path, roles.id, text=roles.categorical, **roles.text_format())
    table, roles = in_pieces(opened), roles.with_(id=id)
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
    needed = {*nodes.features, *_coordinate_columns(nodes)}
    needed |= {getattr(nodes.roles, role) for role in ("id", "target", "node_weight", "split")}
    columns = [name for name in table.columns if name in needed]
    rows = piece_rows(memory, len(table.columns))
    with progress_bar("reading nodes", 2 * table.most_rows(), shown=verbose) as show:
        return table.as_parquet(
            staging / "nodes", rows, columns, lambda done: show(done, ""), memory=memory
        )


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
    id = str(nodes.roles.id)
    ids = id_index(pd.DataFrame({id: table.column(id)}), id)
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
) -> tuple[FeatureEncoder, list[str] | None]:
    """Write the arrays of the nodes: features, targets, weights, masks, coordinates and ids.

    Args:
        nodes: the node table.
        table: the same table, by columns.
        ids: the nodes' ids.
        staging: folder for the arrays.
        memory: bytes of memory to use.
        verbose: whether to show progress.

    Returns:
        How columns became features, and the names of the coordinates, if any.

    Raises:
        GraphError: as for tables in memory.
    """
    source = _OneByOne(table)
    coding = FeatureEncoder.learn(
        cast(pd.DataFrame, source),
        nodes.features,
        ids,
        missing=nodes.roles.missing,
        categorical=nodes.roles.categorical,
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
    written = {role: _write_role(role, nodes, table, ids, staging) for role in ARRAYS_OF}
    write_ids(staging, ids)
    located = written["coordinates"]
    return coding, None if located is None else located.get("pos_names")


def _needs_float64(source: _OneByOne, coding: FeatureEncoder, ids: pd.Index) -> bool:
    """Return whether float32 would make different values of some column equal."""
    for column in coding.columns:
        if column.kind == NUMBER:
            alone = FeatureEncoder((column,), coding.missing)
            x = alone.encode(pd.DataFrame({column.name: source[column.name]}), ids)
            if compact(x).element_size() == 8:
                return True
    return False


def _write_role(
    role: str, nodes: NodeTable, table: ParquetTable, ids: pd.Index, staging: Path
) -> Data | None:
    """Write the arrays of one role, by the rules of tables in memory, and return them."""
    column, id = getattr(nodes.roles, role), nodes.roles.id
    names: Sequence[str] = [column] if column is not None else []
    if role == "coordinates":
        names = _coordinate_columns(nodes)
    if not names:
        return None
    roles = {"target": None, role: column, "id": id, "features": [FILLER]}

    def read(named: pd.Index) -> Data:
        frame = pd.DataFrame({id: named, FILLER: 0.0})
        for name in names:
            frame[name] = table.column(name)
        return from_frames(frame, None, **roles)

    try:
        graph = read(pd.RangeIndex(len(ids)))  # copies of ids would take more than the column
    except GraphError:
        graph = read(ids)  # the same error, which names nodes by their ids
    for array, kind in ARRAYS_OF[role].items():
        if graph.get(array) is not None:
            values = graph[array].numpy().astype(kind)
            with array_file(staging / f"{array}.npy", kind, values.shape) as file:
                file.write(values.tobytes())
    return graph


def _coordinate_columns(nodes: NodeTable) -> Sequence[str]:
    """Return the columns that may contain coordinates."""
    if nodes.roles.coordinates is not None:
        return list(nodes.roles.coordinates)
    usual = {name for pair in COORDINATES for name in pair}
    return [name for name in nodes.table.columns if name.lower() in usual]
