"""Options that several commands share: roles of table columns, and names of methods.

A command that reads tables has one parameter, ``roles``; :func:`takes_tables` replaces it by one
option per field of :class:`qpignn.data.column_roles.ColumnRoles`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from qpignn.cli.output import names
from qpignn.data.column_roles import ColumnRoles
from qpignn.errors import SettingError, check_choice
from qpignn.names import METHOD_GROUP, METHODS, without_prefixes
from qpignn.runtime.entry_points import installed
from qpignn.runtime.plugins import is_object_path

NODES_HELP = "Node table (.csv, .tsv, .parquet, .xlsx), or a .graphml file with nodes and edges."
EDGES_HELP = "Edge table."
Text = str | None
SavedMethod = Annotated[
    Text,
    typer.Option("--method", help="Class of a model of your own, as in 'fit': mine.py:Class."),
]
ROLE_OPTIONS: dict[str, Any] = {
    "target": Annotated[Text, typer.Option(help="Column to predict; blank = unlabelled.")],
    "id": Annotated[
        Text, typer.Option(help="Id column of the node table; default id, node_id or node.")
    ],
    "features": Annotated[
        Text, typer.Option(help="Feature columns, separated by commas; default: all others.")
    ],
    "ignore": Annotated[Text, typer.Option(help="Columns to ignore, separated by commas.")],
    "categorical": Annotated[
        Text, typer.Option(help="Feature columns to treat as categories, such as codes.")
    ],
    "missing": Annotated[
        str,
        typer.Option(help="Missing feature values: error, or impute (median and an indicator)."),
    ],
    "edge_ends": Annotated[
        Text, typer.Option(help="The edge table's two id columns, such as from,to.")
    ],
    "edge_weight": Annotated[Text, typer.Option(help="Weight column of the edge table.")],
    "node_weight": Annotated[Text, typer.Option(help="Weight column of the node table.")],
    "split": Annotated[Text, typer.Option(help="Column with train, validation or test.")],
    "coordinates": Annotated[
        Text, typer.Option(help="Two columns for the map of the report (lon,lat).")
    ],
    "directed": Annotated[
        bool,
        typer.Option("--directed", help="Edges are directed: from the first id to the second."),
    ],
    "match_ids": Annotated[
        str,
        typer.Option(
            help="How to match ids of edges to nodes: exact, number (007 = 7) or caseless."
        ),
    ],
    "encoding": Annotated[str, typer.Option(help="Encoding of text files.")],
    "decimal": Annotated[
        str, typer.Option(help="Decimal separator of text files: . or , (auto: detected per file).")
    ],
    "thousands": Annotated[Text, typer.Option(help="Thousands separator of text files.")],
    "node_sheet": Annotated[Text, typer.Option(help="Sheet with the nodes in an Excel workbook.")],
    "edge_sheet": Annotated[Text, typer.Option(help="Sheet with the edges in an Excel workbook.")],
}
"""The option of each field of ColumnRoles."""
DEFAULTS = {field.name: field.default for field in fields(ColumnRoles)}


Command = Callable[..., None]


def takes_tables(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Return a decorator that replaces a command's parameter ``roles`` by options.

    Args:
        without: roles that get no option.
    """
    options = {role: option for role, option in ROLE_OPTIONS.items() if role not in without}
    return lambda command: _with_options(command, options)


def _with_options(command: Command, options: dict[str, Any]) -> Command:
    own = inspect.signature(command, eval_str=True)
    shown: dict[str, inspect.Parameter] = {}
    for name, parameter in own.parameters.items():
        if name != "roles":
            shown[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            continue
        for role, annotation in options.items():
            default = DEFAULTS[role] or (None if "None" in str(annotation) else DEFAULTS[role])
            shown[role] = inspect.Parameter(
                role, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )

    @wraps(command)
    def run(**given: Any) -> None:
        roles = {role: given.pop(role) for role in options}
        command(**given, roles=_roles(roles))

    run.__signature__ = own.replace(parameters=[*shown.values()])  # type: ignore[attr-defined]
    run.__annotations__ = {name: one.annotation for name, one in shown.items()}
    return run


def _roles(given: dict[str, Any]) -> ColumnRoles:
    """Return the options as roles; text with commas becomes several names."""
    kinds = {field.name: str(field.type) for field in fields(ColumnRoles)}
    values: dict[str, Any] = {
        name: (DEFAULTS[name] if value is None else tuple(names(value)))
        if kinds[name].startswith("tuple")
        else value
        for name, value in given.items()
    }
    return ColumnRoles(**values)


def check_tables(nodes: Path, edges: Path | None, roles: ColumnRoles) -> None:
    """Check that files and columns exist, before anything slow is imported.

    Args:
        nodes: the node table; a GraphML file is checked only when it is read.
        edges: the edge table, if there is one.
        roles: the roles of their columns.

    Raises:
        SettingError: if there is no target, or edge columns are given without an edge table.
    """
    from qpignn.data.tables import check_columns

    if roles.target is None:
        raise SettingError("expected --target COLUMN: the column of the node table to predict")
    if nodes.name.lower().endswith((".graphml", ".graphml.gz")):
        return
    if edges is None and (roles.edge_weight or roles.edge_ends):
        raise SettingError("--edge-weight and --edge-ends need --edges")
    check_columns(nodes, edges, roles)


def check_method(name: str) -> str:
    """Return the name of a method after checking that it exists, without importing any.

    Args:
        name: the name, such as ``qpignn`` or ``conformal:sqr``; an object path
            (``mine.py:StudentT``) is checked when it is loaded.
    """
    plain = without_prefixes(name)
    if not is_object_path(plain):
        check_choice("method", plain, [*METHODS, *installed(METHOD_GROUP)])
    return name
