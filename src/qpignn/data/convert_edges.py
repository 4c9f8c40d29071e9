"""An edge table larger than memory becomes sorted arrays: ids to positions, piece by piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from qpignn.data.edge_sort import Block, heaped_edges, sorted_edges, write_edges
from qpignn.data.edge_table import (
    END_NAMES,
    edge_weights,
    end_columns,
    end_positions,
    refuse_loops,
    tell_counts,
)
from qpignn.data.tables import ParquetTable, TextTable, open_table, piece_rows
from qpignn.data.values import need_columns, several
from qpignn.progress import progress


class EdgeTable(NamedTuple):
    """A table of edges, and the roles of its columns."""

    table: TextTable | ParquetTable
    ends: tuple[str, str]
    weight: str | None
    directed: bool


def open_edges(
    path: str | Path,
    ends: tuple[str, str] | None,
    weight: str | None,
    *,
    directed: bool,
    encoding: str,
    decimal: str,
) -> EdgeTable:
    """Look at an edge table's header; columns that are not there raise."""
    usual = (0, 1, *(name for pair in END_NAMES for name in pair))
    text = usual if ends is None else several("edge_ends", ends)
    table = open_table(path, text=text, encoding=encoding, decimal=decimal)
    header = pd.DataFrame(columns=table.columns)
    ends = end_columns(header, ends)
    need_columns("edge", header, [weight] if weight is not None else [])
    return EdgeTable(table, ends, weight, directed)


def convert_edges(
    edges: EdgeTable, ids: pd.Index, room: Path, *, memory: int, verbose: bool
) -> None:
    """Write ``edge_index.npy`` and, for edges with weights, ``edge_weight.npy``.

    Raises:
        GraphError: as for tables in memory, of the first piece of the file with a fault.
    """
    most = edges.table.most_rows()
    weighted = edges.weight is not None
    seen = Counter[str]()
    with progress("reading edges", most, shown=verbose) as show:
        heaps = heaped_edges(
            _blocks(edges, ids, memory, seen, lambda done: show(done, "")),
            len(ids),
            room,
            weighted=weighted,
            expected=most if edges.directed else 2 * most,
            memory=memory,
        )
    with progress("sorting edges", sum(heap.size for heap in heaps), shown=verbose) as show:
        found = sorted_edges(heaps, len(ids), room, memory=memory)
        kept = write_edges(room, found, weighted=weighted, told=lambda done: show(done, ""))
    # undirected edges may be listed both ways: once sorted, that looks like a repetition
    again = seen["edges"] - seen["loops"] - kept if edges.directed else 0
    tell_counts(seen["loops"], again, weighted=weighted)


def _blocks(
    edges: EdgeTable,
    ids: pd.Index,
    memory: int,
    seen: Counter[str],
    told: Callable[[int], None],
) -> Iterator[Block]:
    """Read edges as positions among the ids, both ways unless they are directed.

    ``seen`` counts ``edges``, and ``loops`` among them.
    """
    columns = [*edges.ends, *([] if edges.weight is None else [edges.weight])]
    for piece in edges.table.pieces(piece_rows(memory, len(edges.table.columns)), columns):
        before = seen["edges"]
        source, target = (end_positions(piece[end], ids, before=before) for end in edges.ends)
        weights = None
        if edges.weight is not None:
            weights = edge_weights(piece[edges.weight], before=before)
        seen["loops"] += int((source == target).sum())
        seen["edges"] += len(piece)
        told(seen["edges"])
        yield Block(source, target, weights)
        if not edges.directed:
            yield Block(target, source, weights)
    if seen["loops"] == seen["edges"]:
        refuse_loops(seen["edges"], edges.ends)
