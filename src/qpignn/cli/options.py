"""Options that several commands share: what the columns of a user's tables are, and model settings.

A command that reads tables has one parameter, ``roles``; :func:`takes_tables` gives it an option
for every field of :class:`qpignn.data.column_roles.ColumnRoles` in that place.
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
        Text, typer.Option(help="Feature columns, by commas; default all that are left.")
    ],
    "ignore": Annotated[Text, typer.Option(help="Columns that are no features, by commas.")],
    "categorical": Annotated[
        Text, typer.Option(help="Feature columns of codes: categories, not numbers.")
    ],
    "missing": Annotated[
        str, typer.Option(help="Blank features: error, or impute (median and an indicator).")
    ],
    "edge_ends": Annotated[
        Text, typer.Option(help="The edge table's two id columns, such as from,to.")
    ],
    "edge_weight": Annotated[Text, typer.Option(help="Weight column of the edge table.")],
    "node_weight": Annotated[Text, typer.Option(help="Weight column of the node table.")],
    "split": Annotated[Text, typer.Option(help="Column saying train, validation, test.")],
    "coordinates": Annotated[
        Text, typer.Option(help="Two columns to draw the report's map by (lon,lat).")
    ],
    "directed": Annotated[bool, typer.Option("--directed", help="Edges count one way only.")],
    "match_ids": Annotated[
        str,
        typer.Option(help="How edges' ids find nodes: exact, number (007 = 7) or caseless."),
    ],
    "encoding": Annotated[str, typer.Option(help="Encoding of text files.")],
    "decimal": Annotated[
        str, typer.Option(help="Decimal sign of text files: . or , (auto looks at each file).")
    ],
    "thousands": Annotated[
        Text, typer.Option(help="Sign between groups of three digits in text files.")
    ],
    "node_sheet": Annotated[Text, typer.Option(help="Sheet of nodes in an Excel workbook.")],
    "edge_sheet": Annotated[Text, typer.Option(help="Sheet of edges in an Excel workbook.")],
}
"""The option of each field of TableRoles."""
DEFAULTS = {field.name: field.default for field in fields(ColumnRoles)}


Command = Callable[..., None]


def takes_tables(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Give a command the options of its parameter ``roles``, in its place.

    Args:
        without: roles it has no options for.
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
    """Return the options as roles: words with commas become several names."""
    kinds = {field.name: str(field.type) for field in fields(ColumnRoles)}
    found: dict[str, Any] = {
        name: (DEFAULTS[name] if value is None else tuple(names(value)))
        if kinds[name].startswith("tuple")
        else value
        for name, value in given.items()
    }
    return ColumnRoles(**found)


def check_tables(nodes: Path, edges: Path | None, roles: ColumnRoles) -> None:
    """Raise for files and columns that are not there, before anything slow is imported.

    Args:
        nodes, edges: the files; a GraphML file is looked at only when it is read.
        roles: the roles of their columns.
    """
    from qpignn.data.tables import check_columns

    if roles.target is None:
        raise SettingError("expected --target COLUMN: which column of the node table to predict")
    if nodes.name.lower().endswith((".graphml", ".graphml.gz")):
        return
    if edges is None and (roles.edge_weight or roles.edge_ends):
        raise SettingError("--edge-weight and --edge-ends go with --edges")
    check_columns(nodes, edges, roles)


def check_method(name: str) -> str:
    """Return the name of a method, or raise, without importing any.

    An object path (``mine.py:StudentT``) is checked when it is loaded.
    """
    plain = without_prefixes(name)
    if not is_object_path(plain):
        check_choice("method", plain, [*METHODS, *installed(METHOD_GROUP)])
    return name
