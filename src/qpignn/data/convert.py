"""Node and edge files larger than memory become a graph that is mapped, piece by piece.

The graph is the one :func:`qpignn.read_graph` makes of the same files, by the same rules, only
that its edges are sorted by target. What must fit into memory is the ids and one column at a time:
a median, and what kind a column is, depend on all of its values. Features and edges need not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qpignn.data.column_roles import ColumnRoles
from qpignn.data.columns import several
from qpignn.data.convert_edges import convert_edges, edge_table
from qpignn.data.convert_nodes import by_columns, convert_nodes, node_table, read_ids
from qpignn.data.edge_sort import write_edges
from qpignn.data.ids import NodeIndex
from qpignn.data.mapped import GraphDescription, finish, unfinished
from qpignn.data.tables import check_header
from qpignn.errors import ReadError, check_integer
from qpignn.io.files import check_path


def convert_graph(
    nodes: str | Path,
    edges: str | Path | None,
    folder: str | Path,
    *,
    target: str | None,
    id: str | None = None,
    features: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    missing: str = "error",
    edge_ends: tuple[str, str] | None = None,
    edge_weight: str | None = None,
    node_weight: str | None = None,
    split: str | None = None,
    coordinates: Sequence[str] | None = None,
    directed: bool = False,
    match_ids: str = "exact",
    encoding: str = "utf-8",
    decimal: str = "auto",
    thousands: str | None = None,
    memory: int = 1 << 30,
    verbose: bool = False,
) -> GraphDescription:
    """Turn node and edge files into a folder for :func:`qpignn.data.mapped.open_graph`.

    An older graph in the folder stays until the new one is complete, and is then exchanged, so
    there must be room for both; what an interrupted conversion left is cleaned up.

    Args:
        nodes, edges: ``.csv``, ``.tsv`` (maybe gzipped) or ``.parquet``; ``edges=None`` for none.
        folder: where the graph goes.
        target, id, features, categorical, ignore, missing: roles of node columns, as in
            :func:`qpignn.from_frames`.
        node_weight, split, coordinates: likewise.
        edge_ends, edge_weight, directed, match_ids: of edge columns.
        encoding, decimal, thousands: of text files, as in :func:`qpignn.read_graph`.
        memory: about how many bytes may be used at once, beside the ids and one column.
        verbose: whether to show progress.

    Raises:
        ReadError, GraphError: as :func:`qpignn.read_graph`. Where edges are at fault, the first
            piece of the file with a fault is told of, by its rows in the file.
    """
    check_integer("memory", memory)
    folder = check_path("folder", folder)
    roles = ColumnRoles(
        target=target,
        id=id,
        features=None if features is None else _names("features", features),
        categorical=_names("categorical", categorical),
        ignore=_names("ignore", ignore),
        missing=missing,
        edge_ends=None if edge_ends is None else _names("edge_ends", edge_ends),
        edge_weight=edge_weight,
        node_weight=node_weight,
        split=split,
        coordinates=None if coordinates is None else _names("coordinates", coordinates),
        directed=directed,
        match_ids=match_ids,
        encoding=encoding,
        decimal=decimal,
        thousands=thousands,
    )
    for file in (nodes, edges):
        _refuse_graphml(file)
    table_of_nodes = node_table(nodes, roles)
    table_of_edges = None if edges is None else edge_table(edges, roles)
    limits: dict[str, Any] = {"memory": memory, "verbose": verbose}
    with unfinished(folder) as room:
        table = by_columns(table_of_nodes, room, **limits)
        ids = read_ids(table_of_nodes, table)
        if table_of_edges is not None:
            check_header(table_of_edges.table.path, table_of_edges.table.columns, ids)
        coding, pos_names = convert_nodes(table_of_nodes, table, ids, room, **limits)
        if table is not table_of_nodes.table:
            table.path.unlink()  # edges need the place
        if table_of_edges is None:
            write_edges(room, [], weighted=False)
        else:
            convert_edges(table_of_edges, NodeIndex(ids, match_ids), room, **limits)
        return finish(
            folder,
            room,
            directed=directed,
            feature_names=coding.feature_names,
            coding=coding,
            pos_names=pos_names,
            roles=table_of_nodes.roles.to_dict(),
        )


def _names(option: str, columns: Any) -> tuple[str, ...]:
    return tuple(several(option, columns))


def _refuse_graphml(file: str | Path | None) -> None:
    if file is not None and ".graphml" in check_path("file", file).name.lower():
        raise ReadError(
            f"{file}: expected tables (.csv, .tsv, .parquet), got GraphML, which cannot be read in "
            f"pieces; read it whole (read_graph, qpignn fit --nodes) or save it as tables"
        )
