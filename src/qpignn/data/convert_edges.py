"""Conversion of an edge table larger than memory into sorted arrays.

The table is read in pieces by the package's own readers; DuckDB joins text ids with the nodes and
sorts the edges (:mod:`qpignn.data.edge_sort`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch

from qpignn.data.column_roles import ColumnRoles
from qpignn.data.edge_sort import open_database, sorted_edges
from qpignn.data.edge_table import (
    edge_weights,
    end_columns,
    end_positions,
    refuse_loops,
    warn_of_counts,
)
from qpignn.data.graph import check_weights
from qpignn.data.ids import NodeIndex
from qpignn.data.mapped_arrays import array_file
from qpignn.data.parquet_table import ParquetTable
from qpignn.data.table_file import piece_rows
from qpignn.data.tables import check_named, in_pieces, open_edges
from qpignn.data.text_table import TextTable
from qpignn.errors import import_optional
from qpignn.runtime.progress import ShowProgress, progress_bar

FIRST_ROWS = 1000  # read to choose the columns of the two ends
JOINED_PIECES = 4  # pieces of the table whose ids are looked up together
INSERT = "INSERT INTO edges SELECT source, target, weight FROM rows"
INSERT_NAMED = """
INSERT INTO edges SELECT source.position, target.position, rows.weight FROM rows
LEFT JOIN nodes AS source ON rows.source = source.id
LEFT JOIN nodes AS target ON rows.target = target.id
"""
COUNT = "SELECT count(*), count(*) FILTER (source = target) FROM edges"


def edge_table(path: str | Path, roles: ColumnRoles) -> TextTable | ParquetTable:
    """Open an edge table and check that the columns with a role exist.

    Args:
        path: the file.
        roles: the roles of its columns.

    Returns:
        The table.

    Raises:
        SettingError: if DuckDB is not installed.
    """
    import_optional("duckdb", "converting an edge table")
    table = in_pieces(open_edges(path, roles))
    check_named("edge", table, [roles.edge_weight])
    if roles.edge_ends is not None or len(table.columns) < 2:
        end_columns(pd.DataFrame(columns=table.columns), roles.edge_ends)
    return table


def convert_edges(
    table: TextTable | ParquetTable,
    roles: ColumnRoles,
    ids: NodeIndex,
    folder: Path,
    *,
    memory: int,
    verbose: bool,
) -> None:
    """Write ``edge_index.npy`` and, for edges with weights, ``edge_weight.npy``.

    Args:
        table: the edge table.
        roles: the roles of its columns.
        ids: the nodes' ids.
        folder: where the arrays and temporary files are written.
        memory: bytes of memory to use, half of them for reading and half for DuckDB.
        verbose: whether to show progress.

    Raises:
        GraphError: as for tables in memory, naming the first faulty rows of the file.
    """
    half = memory // 2
    none = pd.DataFrame(columns=table.columns)
    first = next(table.pieces(FIRST_ROWS, table.columns, memory=half), none)
    ends = end_columns(first, roles.edge_ends)
    with open_database(folder, half) as database:
        with progress_bar("reading edges", table.most_rows(), shown=verbose) as show:
            named = [ids.ids, *(first[end] for end in ends)]
            as_text = ids.match == "exact" and all(map(pd.api.types.is_string_dtype, named))
            if as_text:  # the database joins text ids, which pandas looks up slowly
                positions = np.arange(len(ids.ids))
                nodes = pa.table({"id": pa.array(ids.ids), "position": positions})
                database.register("nodes", nodes)
            columns = [*ends, *([] if roles.edge_weight is None else [roles.edge_weight])]
            size = piece_rows(half, len(table.columns))
            pieces = table.pieces(size, [*dict.fromkeys(columns)], memory=half)
            for done in _read_rows(database, pieces, ids, columns, as_text=as_text):
                show(done, "")
        rows, loops = database.execute(COUNT).fetchall()[0]
        refuse_loops(rows, loops, ends)
        most = (rows - loops) * (1 if roles.directed else 2)
        with progress_bar("sorting edges", most, shown=verbose) as show:
            listed = _write_sorted(database, len(ids.ids), folder, roles, show)
    warn_of_counts(loops, rows - loops - listed, weighted=roles.edge_weight is not None)


def _read_rows(
    database: Any,
    pieces: Iterator[pd.DataFrame],
    ids: NodeIndex,
    columns: list[str],
    *,
    as_text: bool,
) -> Iterator[int]:
    """Insert the rows of an edge table into the database; yield how many are done.

    The columns are those of the two ends and, where there is one, that of the weights. Text ids,
    which pandas looks up slowly, are joined with the nodes by DuckDB; all others are looked up in
    ``ids``.
    """
    duckdb = import_optional("duckdb", "converting an edge table")
    ends, weight, done = columns[:2], columns[2:], 0
    while several := list(islice(pieces, JOINED_PIECES)):
        piece = pd.concat(several, ignore_index=True)
        named: list[Any] = [piece[end] for end in ends]
        source, target = named if as_text else (end_positions(x, ids, before=done) for x in named)
        weights = np.ones(len(piece), np.float32)
        if weight:
            weights = edge_weights(piece[weight[0]], before=done)
        database.register("rows", pa.table({"source": source, "target": target, "weight": weights}))
        try:
            database.execute(INSERT_NAMED if as_text else INSERT)
        except duckdb.ConstraintException:  # a blank id, or one that is not a node's
            for end in named:
                end_positions(end, ids, before=done)
            raise
        done += len(piece)
        yield done


def _write_sorted(
    database: Any, nodes: int, folder: Path, roles: ColumnRoles, show: ShowProgress
) -> int:
    """Write the arrays; return how many edges the table lists in their own direction."""
    weighted = roles.edge_weight is not None
    parts = [folder / name for name in ("source", "target", *["weight"] * weighted)]
    edges, listed, largest = 0, 0, 0.0
    with ExitStack() as stack:
        files = [stack.enter_context(part.open("wb")) for part in parts]
        for block in sorted_edges(database, nodes, directed=roles.directed):
            for file, values in zip(files, block, strict=False):
                file.write(values.tobytes())
            edges += len(block[0])
            largest = block[2].max(initial=largest)
            listed += int(np.count_nonzero(block[3]))
            show(edges, "")
    _join(folder / "edge_index.npy", "<i8", (2, edges), parts[:2])
    if weighted:
        # the rule of all graphs for the largest weight; each weight by itself is valid
        check_weights("edge_weight", torch.tensor([largest]), 1)
        _join(folder / "edge_weight.npy", "<f4", (edges,), parts[2:])
    return listed


def _join(path: Path, kind: str, shape: tuple[int, ...], parts: list[Path]) -> None:
    """Write an array from the files of its rows, and remove these."""
    with array_file(path, kind, shape) as whole:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, whole, 1 << 20)
            part.unlink()
