"""Node ids: which column holds them, and how ids of one table are matched with another's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from qpignn.errors import GraphError, check_choice, quoted

ID_NAMES = ("id", "node_id", "nodeid", "node")
"""Names of an id column, in order of preference, ignoring case."""
END_NAMES = (
    *(("from", "to"), ("source", "target"), ("src", "dst"), ("u", "v"), ("i", "j")),
    *(("origin", "destination"), ("head", "tail"), ("start", "end")),
    *(("from_id", "to_id"), ("source_id", "target_id"), ("from_node", "to_node")),
    *(("node1", "node2"), ("node_1", "node_2"), ("id1", "id2"), ("id_1", "id_2")),
)
"""Names of an edge table's two id columns, in order of preference, ignoring case."""
MATCHES = ("exact", "number", "caseless")
"""How ids of the edge table are compared with those of the node table."""
CAUSES = {
    "number": "they differ in leading zeros or in a decimal point; compare them as numbers",
    "caseless": "they differ in upper and lower case or in spaces; compare them without these",
}
INTEGER = re.compile(r"-?(?:0|[1-9]\d*)")
NUMBER = re.compile(r"\s*([+-]?)0*(\d+?)(?:\.(\d*?)0*)?\s*")
SHOWN_CANDIDATES = 6

Positions = npt.NDArray[np.int64]


def same_name(name: object) -> str:
    """Return a column name in lower case, with spaces and hyphens as underscores.

    Args:
        name: the name.
    """
    return re.sub(r"[\s\-]+", "_", str(name).strip().lower())


def find_column(columns: Sequence[Any], names: Sequence[str]) -> Any | None:
    """Return the first column that has one of some names, or None.

    A column that is spelled exactly like a name is preferred to one that differs in case.

    Args:
        columns: the columns of a table.
        names: the names, in order of preference.

    Raises:
        GraphError: if two columns differ in case only and neither is spelled exactly.
    """
    for name in names:
        if name in columns:
            return name
        alike = [column for column in columns if same_name(column) == name]
        if len(alike) > 1:
            raise GraphError(
                f"expected one column called {name!r}, got {quoted(alike)}; rename all but one"
            )
        if alike:
            return alike[0]
    return None


def known_ends(columns: Sequence[Any]) -> tuple[Any, Any] | None:
    """Return the columns whose names are those of an edge's two ends, or None.

    Args:
        columns: the columns of an edge table.
    """
    for first, second in END_NAMES:
        ends = find_column(columns, [first]), find_column(columns, [second])
        if ends[0] is not None and ends[1] is not None:
            return ends
    return None


def find_ids(
    nodes: pd.DataFrame, id: str | None, ends: Sequence[Any] = ()
) -> tuple[Any | None, pd.Index]:
    """Return the name of a node table's id column (None: its index), and the ids.

    Args:
        nodes: the node table.
        id: the column the user named, if any.
        ends: some ids from the edge table, to suggest columns that hold them.

    Raises:
        GraphError: if no column is named, none is called ``id`` or the like, and the index is
            unnamed and of integers: row numbers are not ids.
    """
    column = id if id is not None else find_column([*nodes.columns], ID_NAMES)
    ids = nodes.index if column is None else nodes[column]
    if column is None and ids.name is None and pd.api.types.is_integer_dtype(ids):
        raise GraphError(
            f"the node table: expected a column of node ids called {quoted(ID_NAMES)}, got "
            f"{quoted(nodes.columns, 12)}; {_candidates(nodes, ends)}"
        )
    return column, pd.Index(ids, tupleize_cols=False)


def _candidates(nodes: pd.DataFrame, ends: Sequence[Any]) -> str:
    """Return advice that lists columns with unique values, those with the edges' ids first."""
    unique = [name for name in nodes.columns if _may_be_ids(nodes[name])]
    likely = sorted(unique, key=lambda name: not nodes[name].isin(ends).any())
    if not likely:
        return "none of them has a different value in every row; add a column of ids"
    return (
        f"name it with id=... (--id on the command line); those with a different value in every "
        f"row are {quoted(likely, SHOWN_CANDIDATES)}"
    )


def _may_be_ids(column: pd.Series[Any]) -> bool:
    if pd.api.types.is_float_dtype(column) and not (column % 1 == 0).all():
        return False
    try:
        return bool(column.notna().all() and column.is_unique)
    except TypeError:  # lists, dictionaries
        return False


def check_ids(ids: pd.Index, nodes: int) -> None:
    """Raise unless there is one id per node, none blank and none repeated.

    Args:
        ids: the ids.
        nodes: number of nodes.

    Raises:
        GraphError: naming the ids or rows at fault.
    """
    if len(ids) != nodes:
        raise GraphError(f"node_id: expected {nodes} ids, one per node, got {len(ids)}; correct it")
    if ids.hasnans:
        rows = np.flatnonzero(ids.isna()) + 1
        raise GraphError(
            f"expected an id for every node, got blank ids in rows {quoted(rows)}; fill them"
        )
    try:
        set(ids if pd.api.types.is_object_dtype(ids) else ())
    except TypeError as error:  # lists, dictionaries
        raise GraphError(
            f"expected ids that can be compared (numbers, text, tuples), got {quoted(ids[:1])}; "
            f"turn them into text"
        ) from error
    if not ids.is_unique:
        again = ids[ids.duplicated()].unique()
        raise GraphError(
            f"expected each node id once, got repeated: {quoted(again)}; drop all but one of each"
        )


class NodeIndex:
    """Looks up the positions of node ids.

    Args:
        ids: the node table's ids, each once.
        match: ``exact`` finds equal ids, and an integer by its decimal text (7 by ``"7"``) or the
            reverse. ``number`` compares ids as numbers where possible (``"007"``, ``"7"`` and 7.0
            are one id). ``caseless`` compares them as text without case and surrounding spaces.

    Raises:
        GraphError: if two ids of the node table are equal when compared that way.
        UnknownNameError: if ``match`` is none of these.
    """

    def __init__(self, ids: pd.Index, match: str = "exact") -> None:
        check_choice("way to match ids", match, MATCHES)
        self.ids, self.match = ids, match
        self._keys = ids if match == "exact" else _keys(ids, match)
        if not self._keys.is_unique:
            twice = self._keys.duplicated(keep=False)
            raise GraphError(
                f"match_ids={match!r}: expected node ids that stay different, got "
                f"{quoted(ids[twice])}, which become equal; compare them exactly"
            )

    def positions(self, values: Any) -> Positions:
        """Return the positions of some ids among the nodes; −1 for those that are missing.

        Args:
            values: the ids.
        """
        wanted: pd.Index = pd.Index(values, tupleize_cols=False)
        if self.match != "exact":
            return self._keys.get_indexer(_keys(wanted, self.match)).astype(np.int64)
        positions: Positions = self.ids.get_indexer(wanted).astype(np.int64)
        missing = np.flatnonzero(positions < 0)
        if len(missing) and (other := _other_type(self.ids, wanted[missing])) is not None:
            positions[missing] = self.ids.get_indexer(other)
        return positions

    def explain(self, unknown: pd.Index) -> str:
        """Return why ids are missing and what to do, as the end of an error message.

        Args:
            unknown: ids that are not among the nodes, at least one.
        """
        some = unknown[:1000]
        for match, cause in CAUSES.items() if self.match == "exact" else ():
            key = KEYS[match]
            by_key = {key(value): value for value in reversed(self.ids)}
            if all(key(value) in by_key for value in some):
                similar = by_key[key(some[0])]
                return (
                    f"; {quoted(some[:1])} is there as {quoted([similar])}: {cause} with "
                    f"match_ids={match!r} (--match-ids {match})"
                )
        kinds = {type(self.ids[0]).__name__, type(unknown[0]).__name__}
        types = f" (ids are of different types: {' and '.join(sorted(kinds))})" * (len(kinds) > 1)
        return (
            f"{types}; node ids look like {quoted(self.ids[:2])}; add those nodes or drop those "
            f"edges, or name the right columns with id=... and edge_ends=... (--id, --edge-ends)"
        )


def _other_type(ids: pd.Index, wanted: pd.Index) -> pd.Index | None:
    """Return integers for decimal text, or text for integers, as the node ids are."""
    others: list[Any] = []
    if all(isinstance(one, int | np.integer) for one in ids[:1000]):
        texts = (isinstance(one, str) and INTEGER.fullmatch(one.strip()) for one in wanted)
        others = [int(one) if text else None for one, text in zip(wanted, texts, strict=True)]
    elif any(isinstance(one, str) for one in ids[:1000]):
        whole = (isinstance(one, int | np.integer) and not isinstance(one, bool) for one in wanted)
        others = [str(one) if number else None for one, number in zip(wanted, whole, strict=True)]
    return pd.Index(others, dtype=object) if any(one is not None for one in others) else None


def _as_number(value: Any) -> Any:
    """Return the canonical spelling of a number: 7 for 007, 7.0 and +7."""
    match = NUMBER.fullmatch(str(value))
    if match is None:
        return value
    sign, whole, rest = match.groups()
    text = f"{whole}.{rest}" if rest else whole
    return f"-{text}" if sign == "-" and text != "0" else text


KEYS: dict[str, Callable[[Any], Any]] = {
    "number": _as_number,
    "caseless": lambda value: str(value).strip().casefold(),
}


def _keys(ids: pd.Index, match: str) -> pd.Index:
    return pd.Index([KEYS[match](value) for value in ids], dtype=object, tupleize_cols=False)
