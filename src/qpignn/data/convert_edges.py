"""An edge table larger than memory becomes sorted arrays: ids to positions, piece by piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from qpignn.data.column_roles import ColumnRoles
from qpignn.data.columns import require_columns
from qpignn.data.edge_sort import Block, heaped_edges, sorted_edges, write_edges
from qpignn.data.edge_table import (
    edge_weights,
    end_columns,
    end_positions,
    refuse_loops,
    warn_of_counts,
)
from qpignn.data.ids import NodeIndex
from qpignn.data.parquet_table import ParquetTable
from qpignn.data.table_file import piece_rows
from qpignn.data.tables import in_pieces, open_edges
from qpignn.data.text_table import TextTable
from qpignn.runtime.progress import progress_bar

FIRST_ROWS = 1000  # looked at to tell which columns are the ends


class EdgeTable(NamedTuple):
    """A table of edges, and the roles of its columns."""

    table: TextTable | ParquetTable
    roles: ColumnRoles


def edge_table(path: str | Path, roles: ColumnRoles) -> EdgeTable:
    """Look at an edge table's header and first rows; columns that are not there raise."""
    form = {name: getattr(roles, name) for name in ("encoding", "decimal", "thousands")}
    table = in_pieces(open_edges(path, roles.edge_ends, **form))
    header = pd.DataFrame(columns=table.columns)
    require_columns("edge", header, [] if roles.edge_weight is None else [roles.edge_weight])
    if roles.edge_ends is not None or len(table.columns) < 2:
        end_columns(header, roles.edge_ends)
    return EdgeTable(table, roles)


def convert_edges(
    edges: EdgeTable, ids: NodeIndex, room: Path, *, memory: int, verbose: bool
) -> None:
    """Write ``edge_index.npy`` and, for edges with weights, ``edge_weight.npy``.

    Raises:
        GraphError: as for tables in memory, of the first piece of the file with a fault.
    """
    most = edges.table.most_rows()
    weighted, directed = edges.roles.edge_weight is not None, edges.roles.directed
    first = next(edges.table.pieces(FIRST_ROWS, edges.table.columns, memory=memory), None)
    first = pd.DataFrame(columns=edges.table.columns) if first is None else first
    ends = end_columns(first, edges.roles.edge_ends)
    seen = Counter[str]()
    with progress_bar("reading edges", most, shown=verbose) as show:
        heaps = heaped_edges(
            _blocks(edges, ends, ids, memory=memory, seen=seen, done=lambda rows: show(rows, "")),
            len(ids.ids),
            room,
            weighted=weighted,
            expected=most if directed else 2 * most,
            memory=memory,
        )
    with progress_bar("sorting edges", sum(heap.size for heap in heaps), shown=verbose) as show:
        found = sorted_edges(heaps, len(ids.ids), room, memory=memory)
        kept = write_edges(room, found, weighted=weighted, told=lambda done: show(done, ""))
    # undirected edges may be listed both ways: once sorted, that looks like a repetition
    again = seen["edges"] - seen["loops"] - kept if directed else 0
    warn_of_counts(seen["loops"], again, weighted=weighted)


def _blocks(
    edges: EdgeTable,
    ends: tuple[str, str],
    ids: NodeIndex,
    *,
    memory: int,
    seen: Counter[str],
    done: Callable[[int], None],
) -> Iterator[Block]:
    """Read edges as positions among the ids, both ways unless they are directed.

    ``seen`` counts ``edges``, and ``loops`` among them.
    """
    weight = edges.roles.edge_weight
    columns = [*ends, *([] if weight is None else [weight])]
    rows = piece_rows(memory, len(edges.table.columns))
    for piece in edges.table.pieces(rows, columns, memory=memory):
        before = seen["edges"]
        source, target = (end_positions(piece[end], ids, before=before) for end in ends)
        weights = None
        if weight is not None:
            weights = edge_weights(piece[weight], before=before)
        seen["loops"] += int((source == target).sum())
        seen["edges"] += len(piece)
        done(seen["edges"])
        yield Block(source, target, weights)
        if not edges.roles.directed:
            yield Block(target, source, weights)
    if seen["loops"] == seen["edges"]:
        refuse_loops(seen["edges"], ends)
