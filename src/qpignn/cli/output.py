"""Output of commands: results on stdout, everything else on stderr."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from qpignn.errors import SettingError
from qpignn.io.files import json_safe

if TYPE_CHECKING:
    from qpignn.diagnostics.findings import Finding


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
        docstring: the docstring of a command. What follows "Args:" or "Raises:" is left out.
    """
    text = re.split(r"^(?:Args|Raises):$", inspect.cleandoc(docstring), flags=re.MULTILINE)[0]
    parts = text.strip().split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)


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


def print_findings(findings: list[Finding], *, err: bool = False) -> None:
    """Print findings, one per line.

    Args:
        findings: what to print.
        err: whether to print on stderr instead of stdout.
    """
    for finding in findings:
        typer.secho(
            f"{finding.severity}: {printable(finding.text)}",
            fg={"warning": "yellow", "good": "green"}.get(finding.severity),
            err=err,
        )


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


def print_metrics(title: str, figures: dict[str, float | None]) -> None:
    """Print the metrics of a result: those of widths, or those of a one-sided bound.

    Args:
        title: title of the table.
        figures: from :func:`qpignn.metrics.summary`; those that are None are left out.
    """
    from qpignn.reports.metric_texts import metric_texts

    values = [(label, figures.get(name)) for name, label in metric_texts("label").items()]
    rows = [(label, f"{value:.4g}") for label, value in values if value is not None]
    print_table(title, ("metric", "value"), rows)
