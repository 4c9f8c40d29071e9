"""The command line: thin. Each command parses, calls the library, prints."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextvars import copy_context
from typing import Annotated, Any

import typer

from qpignn import __version__
from qpignn.cli import (
    compare,
    convert,
    curve,
    datasets,
    demo,
    evaluate,
    fit,
    paper,
    predict,
    report,
)
from qpignn.cli.errors import MISTAKE, debugging, guarded
from qpignn.cli.output import paragraphs, printable, speaks
from qpignn.errors import QpignnWarning

UsageError: Any = typer.BadParameter.__base__
"""What typer raises over wrong words of a command; the class has no public name there."""

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
    evaluate.evaluate,
    predict.predict,
    report.report,
    compare.compare,
    curve.curve,
    datasets.datasets,
):
    app.command()(command)
app.add_typer(paper.app)
for commands in (app, paper.app):
    for known in commands.registered_commands:
        assert known.callback is not None
        known.help = paragraphs(known.callback.__doc__ or "")
        known.callback = guarded(known.callback)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"qpignn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")
    ] = False,
) -> None:
    """Calibrated prediction intervals for graphs."""
    debugging.set(debug)


def _warning_printer() -> Callable[..., None]:
    """Return a printer of our own warnings, each once and in one line; it ignores libraries'."""
    printed = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = str(message)
        if issubclass(category, QpignnWarning) and speaks() and text not in printed:
            printed.add(text)
            typer.secho(f"warning: {printable(text)}", fg="yellow", err=True)

    return show


def main() -> None:
    """Run the command line; :mod:`qpignn.cli.errors` says how it ends."""
    words = sys.argv[1:]
    if "--debug" in words:  # an option of all commands: it may stand behind their names too
        words = ["--debug", *(word for word in words if word != "--debug")]
    with warnings.catch_warnings():
        warnings.simplefilter("always", QpignnWarning)  # whatever PYTHONWARNINGS asks for
        warnings.showwarning = _warning_printer()
        try:
            code = copy_context().run(app, args=words, standalone_mode=False)
        except UsageError as error:
            code = _refuse(error)
    sys.exit(code or 0)


def _refuse(error: Any) -> int:
    """Say in one line what is wrong with a command's words; without any, show the help."""
    message = error.format_message()
    if not message:  # no command was named: typer has printed the help
        return MISTAKE
    where = f"; see '{error.ctx.command_path} --help'" if error.ctx is not None else ""
    typer.secho(f"error: {printable(message.rstrip('.'))}{where}", fg="red", err=True)
    return MISTAKE
