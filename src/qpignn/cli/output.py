"""Output of commands: results on stdout, everything else on stderr; parsing of option values."""

from __future__ import annotations

import inspect
import json
import os
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from qpignn.errors import SettingError
from qpignn.io.files import json_safe

DEEPEST = 20  # levels of lists and objects in a setting
OWN_OPTIONS = {
    "confidence_level": "--confidence",
    "seed": "--seed or --seeds",
    "epochs": "--epochs",
    "lambda_width": "--lambda-width",
}
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method, as name=value; may be repeated."),
]


def is_main_process() -> bool:
    """Return whether this is the process of rank 0, the only one that prints under ``torchrun``."""
    return os.environ.get("RANK", "0") == "0"


def say(message: str) -> None:
    """Print a message that is not a result, on stderr.

    Args:
        message: the text.
    """
    if is_main_process():
        typer.echo(printable(message), err=True)


def printable(text: str) -> str:
    """Return text with control characters escaped, so that it cannot command the terminal.

    Args:
        text: text that may contain values from users' files.
    """
    return "".join(
        char
        if char.isprintable() or char in "\n\t" or unicodedata.category(char) == "Zs"
        else char.encode("unicode_escape").decode()
        for char in text
    )


def paragraphs(docstring: str) -> str:
    """Return a docstring with one line per paragraph, which the terminal wraps.

    Args:
        docstring: the docstring of a command. What follows "Raises:" is left out.
    """
    docstring = docstring.partition("Raises:")[0]
    parts = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)


def names(text: str) -> list[str]:
    """Return the names in a list separated by commas.

    Args:
        text: the list.
    """
    return [name.strip() for name in text.split(",") if name.strip()]


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
    for assignment in assignments or ():
        name, equals, value = assignment.partition("=")
        if name in OWN_OPTIONS:
            raise SettingError(f"--set: {name} has its own option, {OWN_OPTIONS[name]}")
        if name in settings:
            raise SettingError(f"--set: {name} is given twice")
        if not equals or not name:
            raise SettingError(
                f"--set: expected name=value, such as side=lower, got {assignment!r}"
            )
        settings[name] = _value(name, value)
    return settings


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
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, list | dict)]:
        depth += 1
        level = [
            inner for one in level for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return depth


def print_json(document: Any) -> None:
    """Print one JSON document on stdout.

    Args:
        document: what to print; numbers that are not finite become null.
    """
    typer.echo(json.dumps(json_safe(document), indent=2, ensure_ascii=False, allow_nan=False))


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout; columns of numbers are aligned right.

    Args:
        title: title of the table.
        headings: one per column.
        rows: cells of every row, as text.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for i, heading in enumerate(headings):
        text = i == 0 or not all(row[i][:1].isdigit() or row[i][:1] in "+-−–∞" for row in rows)
        longest = max((len(row[i]) for row in rows), default=0)
        table.add_column(heading, justify="left" if text else "right", no_wrap=longest <= 20)
    for row in rows:
        table.add_row(*row)
    console = Console(file=sys.stdout)
    if not console.is_terminal:  # do not wrap lines in a file
        console.width = max(console.width, 160)
    with console.capture() as captured:  # rich would exit on a closed pipe
        console.print(table)
    typer.echo(captured.get(), nl=False)


def check_output(path: Path, *, folder: bool) -> None:
    """Check that results can be written, before any work is done for them.

    Args:
        path: where results will be written.
        folder: whether that is a folder, not a file.

    Raises:
        SettingError: if the path is of the other kind, or cannot be written.
    """
    if (folder and path.is_file()) or (not folder and path.is_dir()):
        raise SettingError(f"{path}: expected a {'folder' if folder else 'file'}, got the other")
    existing = path.absolute()
    while not existing.exists():
        existing = existing.parent
    if existing != path.absolute() and not existing.is_dir():
        raise SettingError(f"{path}: cannot be written: {existing} is a file, not a folder")
    if not os.access(existing, os.W_OK):
        raise SettingError(f"{path}: cannot be written: {existing} is read-only")


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]

METRICS = {
    "picp": "coverage (PICP)",
    "mpiw": "mean width (MPIW), in train ranges",
    "mpiw_raw": "mean width, in the target's unit",
    "nmpiw": "mean width / test range (NMPIW)",
    "mpe": "mean error of the midpoint (MPE)",
    "sharpness": "sharpness",
    "winkler": "Winkler score",
    "cwc": "coverage width criterion (CWC)",
    "mean_bound": "mean bound, in the target's unit",
    "miss_rate": "miss rate: targets beyond their bound",
    "pinball": "pinball loss of the bound, in the target's unit",
    "mae": "mean absolute error (MAE), in the target's unit",
    "rmse": "root mean squared error (RMSE), in the target's unit",
}


def print_metrics(title: str, figures: dict[str, float | None]) -> None:
    """Print the metrics of a result: those of widths, or those of a one-sided bound.

    Args:
        title: title of the table.
        figures: from :func:`qpignn.metrics.summary`; those that are None are left out.
    """
    values = {name: figures.get(name) for name in METRICS}
    rows = [(METRICS[name], f"{value:.4g}") for name, value in values.items() if value is not None]
    print_table(title, ("metric", "value"), rows)
