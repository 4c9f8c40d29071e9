"""How commands speak: results on stdout, everything else on stderr."""

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


def speaks() -> bool:
    """Whether this process speaks for all that ``torchrun`` started."""
    return os.environ.get("RANK", "0") == "0"


def say(message: str) -> None:
    """Tell the user something that is not a result."""
    if speaks():
        typer.echo(printable(message), err=True)


def printable(text: str) -> str:
    """Return text that may name what stands in users' files, without commands to the terminal."""
    return "".join(
        sign
        if sign.isprintable() or sign in "\n\t" or unicodedata.category(sign) == "Zs"
        else sign.encode("unicode_escape").decode()
        for sign in text
    )


def paragraphs(docstring: str) -> str:
    """Return a docstring as paragraphs of one line each, which the terminal wraps."""
    parts = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)


def names(words: str) -> list[str]:
    """Return the words of a list written with commas."""
    return [word.strip() for word in words.split(",") if word.strip()]


def number(word: str) -> float | str:
    """Return a number where a word is one, else the word."""
    try:
        return float(word)
    except ValueError:
        return word


def settings_of(
    words: Sequence[str] | None, *, lambda_width: str | None = None, **options: Any
) -> dict[str, Any]:
    """Turn options into settings; values of ``name=value`` words are read as JSON where they are.

    Options that were not given (None) are left to the method.
    """
    found = {name: value for name, value in options.items() if value is not None}
    if lambda_width is not None:
        found["lambda_width"] = number(lambda_width)
    for word in words or ():
        name, equals, value = word.partition("=")
        if name in OWN_OPTIONS:
            raise SettingError(f"--set: {name} has its own option, {OWN_OPTIONS[name]}")
        if name in found:
            raise SettingError(f"--set: {name} is given twice")
        if not equals or not name:
            raise SettingError(f"--set: expected name=value, such as side=lower, got {word!r}")
        found[name] = _value(name, value)
    return found


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
    """Print one JSON document."""
    typer.echo(json.dumps(json_safe(document), indent=2, ensure_ascii=False, allow_nan=False))


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout; columns that hold numbers stand to the right."""
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
    if not console.is_terminal:  # a file has no edge to wrap at
        console.width = max(console.width, 160)
    with console.capture() as captured:  # rich itself would end the program if the reader is gone
        console.print(table)
    typer.echo(captured.get(), nl=False)


def check_output(path: Path, *, folder: bool) -> None:
    """Raise if results could not be written there, before any work is done for them."""
    if (folder and path.is_file()) or (not folder and path.is_dir()):
        raise SettingError(f"{path}: expected a {'folder' if folder else 'file'}, got the other")
    there = path.absolute()
    while not there.exists():
        there = there.parent
    if there != path.absolute() and not there.is_dir():
        raise SettingError(f"{path}: cannot be written: {there} is a file, not a folder")
    if not os.access(there, os.W_OK):
        raise SettingError(f"{path}: cannot be written: {there} is read-only")


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]

METRICS = {
    "picp": "coverage (PICP)",
    "mpiw": "mean width (MPIW), in train ranges",
    "mpiw_raw": "mean width, in the target's unit",
    "nmpiw": "mean width / test range (NMPIW)",
    "mpe": "mean error of the middle (MPE)",
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
    """Print the metrics that a result has: those of widths, or those of a one-sided bound.

    Args:
        title: of the table.
        figures: from :func:`qpignn.metrics.summary`; those that are None are left out.
    """
    found = {name: figures.get(name) for name in METRICS}
    rows = [(METRICS[name], f"{value:.4g}") for name, value in found.items() if value is not None]
    print_table(title, ("metric", "value"), rows)
