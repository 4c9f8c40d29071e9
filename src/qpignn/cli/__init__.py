"""The command line: thin. Each command parses, calls the library, prints."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import typer

from qpignn import __version__
from qpignn.cli import compare, convert, curve, datasets, demo, fit, model, paper
from qpignn.errors import QpignnError, QpignnWarning, RankError

app = typer.Typer(
    name="qpignn",
    help="Calibrated prediction intervals for graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo.demo,
    convert.convert,
    fit.fit,
    model.evaluate,
    model.predict,
    model.report,
    compare.compare,
    curve.curve,
    datasets.datasets,
):
    app.command()(command)
app.add_typer(paper.app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"qpignn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Calibrated prediction intervals for graphs."""


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Tell warnings of ours in one line; those of libraries are not the user's business."""
    if issubclass(category, QpignnWarning):
        typer.secho(f"warning: {message}", fg="yellow", err=True)


def main() -> None:
    """Run the command line. Exit code 2: the input is at fault; 1: we are."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            app()
    except (QpignnError, OSError) as error:  # a full disk, a read-only folder: not a bug either
        if os.environ.get("QPIGNN_DEBUG"):
            raise
        typer.secho(f"error: {error}", fg="red", err=True)
        sys.exit(1 if isinstance(error, RankError) else 2)
