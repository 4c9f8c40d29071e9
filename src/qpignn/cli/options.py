"""Options that several commands share, and what their values mean.

A command is a plain function. :func:`described` makes its parameters options: their help is what
the docstring says under ``Args:``, or that of a type below, which several commands use. A type
holds the help alone, or a typer option where more than the help is special.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from qpignn.data.column_roles import ColumnRoles
from qpignn.errors import QpignnError, SettingError, check_choice
from qpignn.names import METHOD_GROUP, METHODS, PROTOCOLS, without_prefixes
from qpignn.runtime.entry_points import installed
from qpignn.runtime.plugins import is_object_path

Text = str | None
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder written by 'qpignn fit'.")]
Level = Annotated[float | None, "One of the fitted levels; default: the highest."]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method, as name=value; may be repeated."),
]
Jobs = Annotated[int, "Processes, of one thread each."]
Engine = Annotated[str, "processes, or ray (RAY_ADDRESS names a cluster)."]
Protocol = Annotated[str, f"How cells load, split and fit: {' or '.join(PROTOCOLS)}."]
LambdaWidth = Annotated[Text, "Width penalty: auto, tuned or a number."]
Results = Annotated[Path | None, "Results file (SQLite); finished cells in it are not run again."]
SavedMethod = Annotated[Text, "Class of a model of your own, as in 'fit': mine.py:Class."]
DEEPEST = 20  # levels of lists and objects in a setting
OWN_OPTIONS = {
    "confidence_level": "--confidence",
    "seed": "--seed or --seeds",
    "epochs": "--epochs",
    "lambda_width": "--lambda-width",
}
ROLE_HELP = {
    "target": "Column to predict; blank = unlabelled.",
    "id": "Id column of the node table; default id, node_id or node.",
    "features": "Feature columns, separated by commas; default: all others.",
    "ignore": "Columns to ignore, separated by commas.",
    "categorical": "Feature columns to treat as categories, such as codes.",
    "missing": "Missing feature values: error, or impute (median and an indicator).",
    "edge_ends": "The edge table's two id columns, such as from,to.",
    "edge_weight": "Weight column of the edge table.",
    "node_weight": "Weight column of the node table.",
    "split": "Column with train, validation or test.",
    "coordinates": "Two columns for the map of the report (lon,lat).",
    "directed": "Edges are directed: from the first id to the second.",
    "match_ids": "How to match ids of edges to nodes: exact, number (007 = 7) or caseless.",
    "encoding": "Encoding of text files.",
    "decimal": "Decimal separator of text files: . or , (auto: detected per file).",
    "thousands": "Thousands separator of text files.",
    "node_sheet": "Sheet with the nodes in an Excel workbook.",
    "edge_sheet": "Sheet with the edges in an Excel workbook.",
}
"""Help of the option of each field of ColumnRoles."""
FIELDS = {field.name: field for field in fields(ColumnRoles)}
Command = Callable[..., None]


def described(command: Command) -> Command:
    """Return a command whose options have the descriptions of its docstring as help.

    A parameter is an option unless its type says otherwise, and a boolean one a flag. A parameter
    ``roles`` becomes one option per field of :class:`qpignn.data.column_roles.ColumnRoles` that is
    not a parameter itself.

    Args:
        command: the command.
    """
    own = inspect.signature(command, eval_str=True).parameters
    helps = descriptions(command.__doc__ or "")
    roles = [role for role in ROLE_HELP if "roles" in own and role not in own]
    shown: list[inspect.Parameter] = []
    for name, parameter in own.items():
        option = _annotated(name, parameter.annotation, helps.get(name))
        keyword = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=option)
        shown += map(_role_option, roles) if name == "roles" else [keyword]

    @wraps(command)
    def run(**given: Any) -> None:
        if roles:
            given["roles"] = _roles({role: given.pop(role) for role in roles})
        command(**given)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


def descriptions(docstring: str) -> dict[str, str]:
    """Return what a docstring says about each name under ``Args:``.

    Args:
        docstring: the docstring.
    """
    entry = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)
    entries = entry.findall(inspect.cleandoc(docstring))
    return {name: " ".join(text.split()) for name, text in entries}


def _annotated(name: str, annotation: Any, help: str | None) -> Any:
    """Return the type of a parameter with its option, as typer takes it."""
    kind, *given = get_args(annotation) if get_origin(annotation) is Annotated else [annotation]
    flag = [f"--{name.replace('_', '-')}"] if kind is bool else []
    special = [copy(one) for one in given if not isinstance(one, str)]
    option = special[0] if special else typer.Option(*flag, help=given[0] if given else None)
    option.help = option.help or help
    return Annotated[kind, option]


def _role_option(role: str) -> inspect.Parameter:
    """Return the parameter of a role: text without a value by default, unless its field has one."""
    default: Any = FIELDS[role].default
    kind: Any = type(default)
    if kind not in (bool, str):
        kind, default = Text, None
    annotation = _annotated(role, kind, ROLE_HELP[role])
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(role, keyword, default=default, annotation=annotation)


def _roles(given: dict[str, Any]) -> ColumnRoles:
    """Return the options as roles; text with commas becomes several names."""
    values: dict[str, Any] = {
        name: tuple(names(value)) if str(FIELDS[name].type).startswith("tuple") else value
        for name, value in given.items()
        if value is not None
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


def names(text: str) -> list[str]:
    """Return the names in a list separated by commas.

    Args:
        text: the list.
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers(text: str) -> list[float | str]:
    """Return the numbers in a list separated by commas; what is no number stays text.

    Args:
        text: the list.
    """
    return [parse_number(part) for part in names(text)]


def parse_number(text: str) -> float | str:
    """Return a number if the text is one, else the text.

    Args:
        text: the value of an option.
    """
    try:
        return float(text)
    except ValueError:
        return text


def settings_of(
    assignments: Sequence[str] | None, *, lambda_width: str | None = None, **options: Any
) -> dict[str, Any]:
    """Return the settings of a method from the options of a command.

    Args:
        assignments: values of ``--set``, each ``name=value``; a value that is JSON is parsed.
        lambda_width: value of ``--lambda-width``: a number, or the name of a rule.
        options: settings with an option of their own; those that are None are left out.

    Raises:
        SettingError: if an assignment is malformed, repeated, or of a setting with its own option.
    """
    settings = {name: value for name, value in options.items() if value is not None}
    if lambda_width is not None:
        settings["lambda_width"] = parse_number(lambda_width)
    for setting in assignments or ():
        name, equals, value = setting.partition("=")
        if name in OWN_OPTIONS:
            raise SettingError(f"--set: {name} has its own option, {OWN_OPTIONS[name]}")
        if name in settings:
            raise SettingError(f"--set: {name} is given twice")
        if not equals or not name:
            raise SettingError(f"--set: expected name=value, such as side=lower, got {setting!r}")
        settings[name] = _value(name, value)
    return settings


def setting_hint(option: str, arguments: Sequence[str]) -> str:
    """Return how to give a setting of the method that was given as an option of its own.

    Args:
        option: an unknown option, such as ``--encoder``.
        arguments: arguments of the command, which name the method.

    Returns:
        What to add to the error; the empty string if the method has no such setting.
    """
    from qpignn.methods.catalog import setting_names

    name, line = option.lstrip("-").replace("-", "_"), " ".join(arguments)
    methods = re.findall(r"--methods?[ =](\S+)", line) or ["qpignn"]
    with suppress(QpignnError):  # an unknown method, or all of them
        if name not in OWN_OPTIONS and any(name in setting_names(m) for m in names(methods[-1])):
            value = re.search(rf"{re.escape(option)}[ =]([^-\s]\S*)", line)
            shown = value[1] if value else "VALUE"
            return f"; settings of the method are given as --set {name}={shown}"
    return ""


def _value(name: str, text: str) -> Any:
    """Return a setting's value: JSON where the text is JSON, else the text itself."""
    try:
        value = json.loads(text)
        deep = _depth(value) > DEEPEST
    except json.JSONDecodeError:
        return text
    except RecursionError:
        deep = True
    except ValueError as error:  # an integer of more digits than Python converts
        raise SettingError(f"--set: {name}: {error}") from error
    if deep:
        raise SettingError(
            f"--set: expected a value of {name} nested at most {DEEPEST} levels deep, got more"
        )
    return value


def _depth(value: Any) -> int:
    """Return how many lists and objects are nested in a value."""
    if not isinstance(value, list | dict):
        return 0
    inside = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inside), default=0)
