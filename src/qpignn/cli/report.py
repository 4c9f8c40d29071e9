"""``qpignn report``: one HTML page about a fitted model."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli import options
from qpignn.cli.output import check_output, print_findings, print_json, say
from qpignn.errors import SettingError, quoted

if TYPE_CHECKING:
    from qpignn.methods.bundle import Fit


def report(
    folder: options.Folder,
    out: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    by: str = "",
    confidence: options.Level = None,
    title: str | None = None,
    show: Annotated[bool, typer.Option("--open")] = False,
    method: options.SavedMethod = None,
    without_graph: bool = False,
    as_json: options.Json = False,
) -> None:
    """Write one HTML page that shows how far to trust a fitted model, and all its nodes.

    The page is a single file and works without a network connection.

    Example: qpignn report model --by region --open

    Args:
        out: File to write; default: DIR/report.html.
        by: Columns of the node table to group coverage by, separated by commas.
        title: Title of the page.
        show: Open it in the browser.
        without_graph: Compare with a fit of the same method without edges.

    Raises:
        SettingError: if --out is no .html file, or --by names columns that cannot be used.
    """
    from qpignn.methods.bundle import PAGE, load_fit
    from qpignn.methods.catalog import saved_class
    from qpignn.reports.content import write_report

    path = folder / PAGE if out is None else out
    if path.suffix.lower() not in (".html", ".htm"):
        raise SettingError(f"--out: expected a file ending in .html, got {path}")
    check_output(path, folder=False)
    with saved_class(method):
        fit = load_fit(folder)
    diagnosis = write_report(
        fit.model,
        fit.data,
        path,
        confidence_level=confidence,
        by=_columns(fit, options.names(by)),
        columns=fit.table,
        target=fit.origin.target,
        title=title,
        without_graph=without_graph,
    )
    if as_json:
        print_json({"file": str(path), **diagnosis.to_dict()})
    else:
        print_findings(diagnosis.findings)
        typer.echo(f"wrote {path}")
    if show and not webbrowser.open(path.absolute().as_uri()):
        say(f"no browser could be started; open {path} manually")


def _columns(fit: Fit, wanted: list[str]) -> dict[str, Any] | list[str]:
    """Return columns of the user's table, or names of features if there is no table."""
    if fit.table is None:
        return wanted
    if fit.origin.target in wanted:
        raise SettingError(
            f"--by: expected columns other than the target, got {fit.origin.target!r}; the report "
            f"shows coverage by prediction in any case"
        )
    missing = [name for name in wanted if name not in fit.table]
    if missing:
        raise SettingError(
            f"--by: expected columns of the node table, got {quoted(missing)}; it has "
            f"{quoted(fit.table.columns, 12)}"
        )
    return {name: fit.table[name].to_numpy() for name in wanted}
