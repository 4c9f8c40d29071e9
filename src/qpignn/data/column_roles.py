"""Roles of the columns of a user's tables and the format of their files, as one record."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

FILES = ("encoding", "decimal", "thousands", "node_sheet", "edge_sheet")
"""Fields that describe the format of files; the others are roles of columns."""


@dataclass(frozen=True, kw_only=True)
class ColumnRoles:
    """The roles of node and edge columns, and the format of their files.

    The fields are the arguments of :func:`qpignn.from_frames` and :func:`qpignn.read_graph`, with
    tuples in place of lists.

    Attributes:
        target: column to predict.
        id: column of node ids.
        features: the feature columns; ``None`` for all columns without another role.
        ignore: columns that are not features.
        categorical: feature columns that are categories whatever they hold.
        missing: ``error`` or ``impute``.
        edge_ends: the edge table's two id columns.
        edge_weight: column of the edge table.
        node_weight: column of the node table.
        split: column that holds train, validation or test.
        coordinates: two columns with the nodes' positions.
        directed: whether edges have a direction.
        match_ids: ``exact``, ``number`` or ``caseless``.
        encoding: of text files.
        decimal: decimal sign of text files.
        thousands: separator of digit groups in text files.
        node_sheet: sheet of an Excel workbook with the nodes.
        edge_sheet: sheet of an Excel workbook with the edges.
    """

    target: str | None = None
    id: str | None = None
    features: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    missing: str = "error"
    edge_ends: tuple[str, ...] | None = None
    edge_weight: str | None = None
    node_weight: str | None = None
    split: str | None = None
    coordinates: tuple[str, ...] | None = None
    directed: bool = False
    match_ids: str = "exact"
    encoding: str = "utf-8"
    decimal: str = "auto"
    thousands: str | None = None
    node_sheet: str | None = None
    edge_sheet: str | None = None

    def columns(self) -> dict[str, Any]:
        """Return the roles of columns, as keyword arguments of :func:`qpignn.from_frames`."""
        return {name: value for name, value in vars(self).items() if name not in FILES}

    def given(self) -> list[str]:
        """Return the names of the fields that differ from their defaults."""
        return [field.name for field in fields(self) if vars(self)[field.name] != field.default]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: lists in place of tuples."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Return the record that :meth:`to_dict` described.

        Args:
            values: the parsed JSON; fields that are missing have their defaults.

        Raises:
            TypeError: if a field is unknown or of another type.
        """
        if not isinstance(values, dict):
            raise TypeError(f"expected roles by name, got {type(values).__name__}")
        types = {field.name: str(field.type) for field in fields(cls)}
        for name, value in values.items():
            if name not in types or not _is_a(value, types[name]):
                raise TypeError(f"{name!r}: expected a role of type {types.get(name)}")
        roles: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**roles)


DEFAULTS = ColumnRoles()


def _is_a(value: Any, kind: str) -> bool:
    if value is None:
        return "None" in kind
    if kind.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return isinstance(value, bool if kind == "bool" else str)
