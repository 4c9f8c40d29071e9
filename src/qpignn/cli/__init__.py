"""The command line: each command parses its options, calls the library and prints."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextvars import copy_context
from typing import Annotated, Any

import typer

from qpignn import __version__
from qpignn.cli import compare, convert, curve, datasets, demo, evaluate, fit, predict, report
from qpignn.cli.errors import MISTAKE, debugging, guarded
from qpignn.cli.options import described, setting_hint
from qpignn.cli.output import is_main_process, paragraphs, printable
from qpignn.cli.paper import app as paper_app
from qpignn.errors import QpignnWarning

UsageError: Any = typer.BadParameter.__base__
"""What typer raises for wrong arguments; the class has no public name there."""

app = typer.Typer(
    name="qpignn",
    help="Calibrated prediction intervals for graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
WORKFLOW = (demo.demo, convert.convert, fit.fit, evaluate.evaluate, predict.predict, report.report)
STUDIES = (compare.compare, curve.curve, datasets.datasets)
for command in (*WORKFLOW, *STUDIES):
    app.command()(command)
app.add_typer(paper_app)
for commands in (app, paper_app):
    for registered in commands.registered_commands:
        assert registered.callback is not None
        registered.help = paragraphs(registered.callback.__doc__ or "")
        registered.callback = guarded(described(registered.callback))


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
        bool, typer.Option("--debug", help="Show the traceback of an error; allowed anywhere.")
    ] = False,
) -> None:
    """Calibrated prediction intervals for graphs."""
    debugging.set(debug)


def _warning_printer() -> Callable[..., None]:
    """Return a function that prints qpignn's warnings once, in one line, and ignores others."""
    printed = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = str(message)
        if issubclass(category, QpignnWarning) and is_main_process() and text not in printed:
            printed.add(text)
            typer.secho(f"warning: {printable(text)}", fg="yellow", err=True)

    return show


def _advice(error: Any, arguments: list[str]) -> str:
    """Return what to do about wrong arguments."""
    if error.ctx is None:
        return ""
    option = getattr(error, "option_name", None)  # where the mistake is an option
    takes_settings = any("--set" in one.opts for one in error.ctx.command.params)
    hint = setting_hint(option, arguments) if option and takes_settings else ""
    return f"{hint}; see '{error.ctx.command_path} --help'"


def main() -> None:
    """Run the command line; :mod:`qpignn.cli.errors` lists the exit codes."""
    arguments = sys.argv[1:]
    if "--debug" in arguments:  # an option of all commands, also allowed after their names
        arguments = ["--debug", *(argument for argument in arguments if argument != "--debug")]
    with warnings.catch_warnings():
        warnings.simplefilter("always", QpignnWarning)  # whatever PYTHONWARNINGS is
        warnings.showwarning = _warning_printer()
        try:
            code = copy_context().run(app, args=arguments, standalone_mode=False)
        except UsageError as error:
            code, message = MISTAKE, error.format_message()
            if message:  # otherwise no command was named, and typer has printed the help
                line = f"error: {printable(message.rstrip('.') + _advice(error, arguments))}"
                typer.secho(line, fg="red", err=True)
    sys.exit(code or 0)
