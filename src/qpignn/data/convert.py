"""Out-of-core conversion of node and edge tables into a folder of memory-mapped arrays.

The graph equals the one that :func:`qpignn.read_graph` makes of the same files, except that its
edges are sorted by target. The ids and one column at a time must fit into memory: the median and
the kind of a column depend on all of its values. Features and edges need not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qpignn.data.column_roles import ColumnRoles
from qpignn.data.columns import several
from qpignn.data.convert_edges import convert_edges, edge_table
from qpignn.data.convert_nodes import by_columns, convert_nodes, node_table, read_ids
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
    """Convert node and edge tables into a folder for :func:`qpignn.data.mapped.open_graph`.

    An older graph in the folder stays until the new one is complete, so the disk must have space
    for both. What an interrupted conversion left is removed. Edges are sorted by DuckDB
    (``pip install "qpignn[large]"``).

    Args:
        nodes, edges: ``.csv``, ``.tsv`` (plain or gzipped) or ``.parquet`` files; without edges
            ``None``.
        folder: the folder to write.
        target, id, features, categorical, ignore, missing: roles of node columns, as in
            :func:`qpignn.from_frames`.
        node_weight, split, coordinates: further roles of node columns.
        edge_ends, edge_weight, directed, match_ids: roles and meaning of edge columns.
        encoding, decimal, thousands: format of text files, as in :func:`qpignn.read_graph`.
        memory: bytes of memory to use, in addition to the ids and one column. Reading a table
            takes at least 64 MiB, sorting edges at least 128 MiB.
        verbose: whether to show progress.

    Returns:
        The description of the folder.

    Raises:
        ReadError, GraphError: as :func:`qpignn.read_graph`. Of several faulty edges, those that
            come first in the file are reported.
        SettingError: if DuckDB is not installed, ``memory`` is not a number or too small to sort
            the edges, or the folder belongs to something else.
        WriteError: if the folder cannot be written, for instance because the disk is full.
    """
    check_integer("memory", memory)
    folder = check_path("folder", folder)
    roles = ColumnRoles(
        target=target,
        id=id,
        features=_names("features", features),
        categorical=_names("categorical", categorical),
        ignore=_names("ignore", ignore),
        missing=missing,
        edge_ends=_names("edge_ends", edge_ends),
        edge_weight=edge_weight,
        node_weight=node_weight,
        split=split,
        coordinates=_names("coordinates", coordinates),
        directed=directed,
        match_ids=match_ids,
        encoding=encoding,
        decimal=decimal,
        thousands=thousands,
    )
    for file in (nodes, edges):
        if file is not None and ".graphml" in check_path("file", file).name.lower():
            raise ReadError(
                f"{file}: expected tables (.csv, .tsv, .parquet), got GraphML, which cannot be "
                f"read in pieces; read it whole (read_graph, qpignn fit --nodes) or save it as "
                f"tables"
            )
    node_file = node_table(nodes, roles)
    edge_file = None if edges is None else edge_table(edges, roles)
    limits: dict[str, Any] = {"memory": memory, "verbose": verbose}
    with unfinished(folder) as staging:
        table = by_columns(node_file, staging, **limits)
        ids = read_ids(node_file, table)
        if edge_file is not None:
            check_header(edge_file.path, edge_file.columns, ids)
        graph = convert_nodes(node_file, table, ids, staging, **limits)
        if table is not node_file.table:
            table.path.unlink()  # edges need the space
        if edge_file is not None:
            convert_edges(edge_file, roles, NodeIndex(ids, match_ids), staging, **limits)
        return finish(folder, staging, graph, directed=directed, roles=node_file.roles.to_dict())


def _names(option: str, columns: Any) -> Any:
    return None if columns is None else tuple(several(option, columns))
