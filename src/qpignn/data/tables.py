"""Table files of every supported kind, opened by their suffix."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from qpignn.data.column_roles import DEFAULTS, ColumnRoles
from qpignn.data.columns import require_columns, several
from qpignn.data.excel_table import EXCEL, ExcelTable
from qpignn.data.ids import ID_NAMES, find_column, find_ids, known_ends
from qpignn.data.parquet_table import ParquetTable
from qpignn.data.table_file import check_file
from qpignn.data.text_table import TextTable
from qpignn.errors import GraphError, ReadError, quoted
from qpignn.io.files import check_path

PARQUET = (".parquet", ".pq")
NO_TABLES = {
    **dict.fromkeys((".xls", ".ods", ".numbers"), "save the sheet as .xlsx or CSV"),
    **dict.fromkeys((".zip", ".bz2", ".xz", ".zst", ".7z", ".tar"), "unpack it (gzip is read)"),
    **dict.fromkeys((".pkl", ".pickle", ".pt", ".feather", ".h5", ".npz"), "save it as Parquet"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson", ".html", ".xml"), "save it as CSV or Parquet"),
}
"""Suffixes of files that are not supported, and what to do about them."""

Table = TextTable | ParquetTable | ExcelTable


def open_table(path: str | Path, roles: ColumnRoles = DEFAULTS, kind: str = "table") -> Table:
    """Open a table and read its header.

    Args:
        path: ``.parquet``, ``.xlsx``, or text (``.csv``, ``.tsv``, ``.csv.gz`` and others).
        roles: the format of the file: ``encoding``, ``decimal`` and ``thousands`` of text, the
            sheet of a workbook.
        kind: which table it is (``node`` or ``edge``), to choose a sheet of that name.

    Returns:
        The table; its rows are not read yet, except those of a workbook.

    Raises:
        ReadError: if there is no such file or it is not a table.
    """
    path = check_path("file", path)
    check_file(path)
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        return ParquetTable.open(path)
    if suffix in EXCEL:
        return ExcelTable.open(path, vars(roles).get(f"{kind}_sheet"), kind)
    if suffix in NO_TABLES:
        raise ReadError(
            f"{path}: expected a table (.csv, .tsv, .parquet, .xlsx), got {suffix}; "
            f"{NO_TABLES[suffix]}"
        )
    return TextTable.open(path, roles)


def open_nodes(
    path: str | Path, roles: ColumnRoles, *, text: Sequence[str] = ()
) -> tuple[Table, str]:
    """Open a node table, its ids and some other columns kept as text.

    Args:
        path: the file.
        roles: its format and its id column, by default the one called id or the like.
        text: further columns to keep as text, such as codes.

    Returns:
        The table and the name of its id column.

    Raises:
        ReadError: if there is no such column.
    """
    table = open_table(path, roles, "node")
    name = find_column(table.columns, ID_NAMES) if roles.id is None else roles.id
    if name is None:
        try:
            find_ids(table.read().reset_index(drop=True), None)
        except GraphError as error:
            raise ReadError(f"{path}: {error}") from error
    if name not in table.columns:
        raise ReadError(
            f"{path}: expected an id column {name!r}, got {quoted(table.columns, 12)}; "
            f"name the right one with id=... (--id on the command line)"
        )
    return _keeping_text(table, [str(name), *text]), str(name)


def open_edges(path: str | Path, roles: ColumnRoles) -> Table:
    """Open an edge table, its two ends kept as text.

    Args:
        path: the file.
        roles: its format and its two id columns, by default those called from and to or the like,
            else the first two.

    Returns:
        The table.
    """
    table = open_table(path, roles, "edge")
    ends: Any = roles.edge_ends
    if ends is None:
        ends = known_ends(table.columns) or table.columns[:2]
    return _keeping_text(table, several("edge_ends", ends))


def in_pieces(table: Table) -> TextTable | ParquetTable:
    """Return a table that can be read by pieces.

    Args:
        table: an opened table.

    Raises:
        ReadError: if it is an Excel workbook.
    """
    if isinstance(table, ExcelTable):
        raise ReadError(
            f"{table.path}: expected a table to read by pieces (.csv, .tsv, .parquet), got an "
            f"Excel workbook; read it whole (read_graph, qpignn fit --nodes) or save it as CSV"
        )
    return table


def _keeping_text(table: Table, columns: Sequence[str]) -> Table:
    """Return a table with some columns kept as text; Parquet and Excel keep their own types."""
    return table.keeping_text(columns) if isinstance(table, TextTable) else table


def check_header(path: str | Path, columns: Sequence[str], ids: Container[Any]) -> None:
    """Raise where an edge table's first line holds node ids, not column names.

    Args:
        path: the edge file, for messages.
        columns: the names in its first line.
        ids: the ids of all nodes.

    Raises:
        ReadError: if the first two are node ids.
    """
    if all(name in ids for name in columns[:2]):
        raise ReadError(
            f"{path}: expected a header line with column names, got an edge "
            f"({quoted(columns[:2])} are node ids); add a line such as from,to"
        )


def check_columns(nodes: str | Path, edges: str | Path | None, roles: ColumnRoles) -> None:
    """Check that files can be opened and have the columns that roles name.

    Only headers are read, so that a mistake is reported before long work.

    Args:
        nodes: the node file.
        edges: the edge file; ``None`` without edges.
        roles: the roles of columns and the format of the files.

    Raises:
        ReadError: if a file cannot be opened.
        GraphError: naming the missing column and those there are.
    """
    table, _ = open_nodes(nodes, roles)
    named = [roles.target, roles.node_weight, roles.split, *roles.ignore, *roles.categorical]
    named += [*(roles.features or ()), *(roles.coordinates or ())]
    check_named("node", table, named)
    if edges is not None:
        table = open_edges(edges, roles)
        check_named("edge", table, [*(roles.edge_ends or ()), roles.edge_weight])


def check_named(kind: str, table: Table, named: Sequence[str | None]) -> None:
    """Check that a table has some columns.

    Args:
        kind: ``node`` or ``edge``, for messages.
        table: the table.
        named: names of columns; ``None`` for a role that no column has.
    """
    header = pd.DataFrame(columns=table.columns)
    require_columns(kind, header, [name for name in named if name is not None])
