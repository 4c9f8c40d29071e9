"""What the columns of a user's tables are, and how their files are written: one record of both."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

FILES = ("encoding", "decimal", "thousands", "node_sheet", "edge_sheet")
"""Fields that say how files are written; the others are roles of columns."""


@dataclass(frozen=True, kw_only=True)
class ColumnRoles:
    """The roles of node and edge columns, and the format of their files.

    The fields are the arguments of :func:`qpignn.from_frames` and :func:`qpignn.read_graph`, where
    they are described.
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

    def files(self) -> dict[str, Any]:
        """Return the format of the files, as keyword arguments of ``read_frames``."""
        return {name: value for name, value in vars(self).items() if name in FILES}

    def given(self) -> list[str]:
        """Return the names of the fields that differ from their defaults."""
        return [field.name for field in fields(self) if vars(self)[field.name] != field.default]

    def with_(self, **changes: Any) -> Self:
        """Return a copy with other values."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: lists in place of tuples."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Return what :meth:`to_dict` described; fields that are missing have their defaults.

        Raises:
            TypeError: if a field is unknown or of another type.
        """
        if not isinstance(values, dict):
            raise TypeError(f"expected roles by name, got {type(values).__name__}")
        known = {field.name: str(field.type) for field in fields(cls)}
        found: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known or not _is_a(value, known[name]):
                raise TypeError(f"{name!r}: expected a role of type {known.get(name)}")
            found[name] = tuple(value) if isinstance(value, list) else value
        return cls(**found)


def _is_a(value: Any, kind: str) -> bool:
    if value is None:
        return "None" in kind
    if kind.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return isinstance(value, bool if kind == "bool" else str)
