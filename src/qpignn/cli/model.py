"""``qpignn evaluate``, ``predict`` and ``report``: what a fitted model is worth, and says."""

from __future__ import annotations

import re
import warnings
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli.output import (
    Json,
    check_output,
    names,
    number,
    print_json,
    print_metrics,
    printable,
    say,
)
from qpignn.errors import ModelFileError, QpignnWarning, ReadError, SettingError, listed
from qpignn.files import replace_file

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from qpignn.diagnostics.findings import Finding
    from qpignn.methods.fits import Fit

SPREADSHEET_HELP = "Put a quote before ids that a spreadsheet would take for formulas."
FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""What a cell begins with that spreadsheets compute; the last four are the wide forms of East Asia.
The page's script (reports/assets/table.js) has the same rule."""

Level = Annotated[
    float | None, typer.Option(help="Which of the fitted levels; default the highest.")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder written by 'qpignn fit'.")]
By = Annotated[
    str, typer.Option(help="Columns of the node table to show coverage by, with commas.")
]


def evaluate(folder: Folder, confidence: Level = None, as_json: Json = False) -> None:
    """Judge a fitted model on the labelled nodes held out from its fit.

    Example: qpignn evaluate model --json
    """
    from qpignn.methods.fits import load_fit
    from qpignn.reports.results import held_out_figures

    fit = load_fit(folder)
    intervals = fit.model.predict_interval(fit.data, confidence_level=confidence)
    figures = held_out_figures(fit.data, intervals)
    if figures is None:
        raise ModelFileError(
            f"{folder}: expected held-out nodes to judge on, got none; fit with "
            f"--test-fraction 0.2 or mark test nodes in the split column"
        )
    if as_json:
        print_json(figures)
        return
    title = f"{figures['n_test']:,} held-out nodes, wanted coverage {intervals.confidence_level:g}"
    print_metrics(title, figures)
    _print_findings(fit.model.diagnose(fit.data, confidence_level=confidence).findings)


def report(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help="The page; default DIR/report.html.", metavar="FILE")
    ] = None,
    by: By = "",
    confidence: Level = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    as_json: Json = False,
) -> None:
    """Write one HTML page that tells how far a fitted model can be trusted, and shows its nodes.

    The page needs no network: mail it, or put it anywhere.

    Example: qpignn report model --by region --open
    """
    from qpignn.methods.fits import PAGE, load_fit
    from qpignn.reports.content import write_report

    path = folder / PAGE if out is None else out
    if path.suffix.lower() not in (".html", ".htm"):
        raise SettingError(f"--out: expected a file ending in .html, got {path}")
    check_output(path, folder=False)
    fit = load_fit(folder)
    found = write_report(
        fit.model,
        fit.data,
        path,
        confidence_level=confidence,
        by=_columns(fit, names(by)),
        columns=fit.table,
        target=fit.origin.target,
        title=title,
    )
    if as_json:
        print_json({"file": str(path), **found.to_dict()})
    else:
        _print_findings(found.findings)
        typer.echo(f"wrote {path}")
    if show and not webbrowser.open(path.absolute().as_uri()):
        say(f"no browser could be started; open {path} yourself")


def predict(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="Table to write (.csv or .parquet).", metavar="FILE")],
    nodes: Annotated[Path | None, typer.Option(help="Another node table to predict on.")] = None,
    edges: Annotated[Path | None, typer.Option(help="Its edge table.")] = None,
    join: Annotated[
        bool, typer.Option("--join", help="The new nodes join the graph of the fit.")
    ] = False,
    only: Annotated[
        str | None, typer.Option(help="unlabelled (default), new (default of --join) or all nodes.")
    ] = None,
    confidence: Level = None,
    parts: Annotated[
        bool,
        typer.Option("--parts", help="Also what part of the width is the model's own doubt."),
    ] = False,
    spreadsheet: Annotated[bool, typer.Option("--spreadsheet", help=SPREADSHEET_HELP)] = False,
    as_json: Json = False,
) -> None:
    """Write id, prediction, lower and upper for the unlabelled nodes, or for all.

    Without --nodes the graph of the fit is used; with --nodes (and --edges) another graph with the
    same columns; with --join new nodes whose edges may lead to nodes of the fit.

    Ids are written as they came. Some, such as =1+1, are formulas to a spreadsheet: use
    --spreadsheet where one is to open the table.

    Example: qpignn predict model --out intervals.csv
    """
    from qpignn.data.doubts import lonely_nodes
    from qpignn.methods.fits import load_fit

    wanted = only or ("new" if join else "unlabelled")
    if wanted not in ("unlabelled", "all", *(["new"] if join else [])):
        raise SettingError(f"--only: expected unlabelled or all, got {only!r}; new with --join")
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise SettingError(f"--out: expected a file ending in .csv or .parquet, got {out}")
    if spreadsheet and out.suffix.lower() != ".csv":
        raise SettingError(f"--spreadsheet goes with a .csv file, got {out}")
    if nodes is None and edges is not None:
        raise SettingError("--edges goes with --nodes: another graph needs both its tables")
    if nodes is None and join:
        raise SettingError("--join goes with --nodes: which nodes join the graph?")
    check_output(out, folder=False)
    fit = load_fit(folder)
    data = fit.data if nodes is None else _other_graph(fit, nodes, edges, join=join)
    asked = _asked(data, wanted)
    if edges is not None:  # of the graph of the fit it was told then
        for doubt in lonely_nodes(data, asked):
            warnings.warn(doubt, QpignnWarning, stacklevel=1)
    intervals = fit.model.predict_interval(data, confidence_level=confidence).select(asked)
    if not len(intervals):
        say("every node is labelled, so there is nothing to predict; use --only all")
    frame = intervals.to_frame(parts=parts)
    if out.suffix.lower() == ".csv":
        frame = _without_formulas(frame) if spreadsheet else _telling_formulas(frame)
    replace_file(out, _written(frame, out))
    say(f"wrote {len(frame):,} intervals to {out}")
    if as_json:
        level = intervals.confidence_level
        print_json({"file": str(out), "intervals": len(frame), "confidence_level": level})


def _print_findings(findings: list[Finding]) -> None:
    for finding in findings:
        typer.secho(
            f"{finding.severity}: {printable(finding.text)}",
            fg={"warning": "yellow", "good": "green"}.get(finding.severity),
        )


def _columns(fit: Fit, wanted: list[str]) -> dict[str, Any] | list[str]:
    """Return columns of the user's own table, or names of features where there is no table."""
    if fit.table is None:
        return wanted
    if fit.origin.target in wanted:
        raise SettingError(
            f"--by: expected columns known before the target, got the target "
            f"{fit.origin.target!r} itself; the report shows coverage by prediction anyway"
        )
    missing = [name for name in wanted if name not in fit.table]
    if missing:
        raise SettingError(
            f"--by: expected columns of the node table, got {listed(missing)}; it has "
            f"{listed(fit.table.columns, 12)}"
        )
    return {name: fit.table[name].to_numpy() for name in wanted}


def _asked(data: Data, wanted: str) -> Any:
    import numpy as np

    from qpignn.data.graph import labelled

    if wanted == "all":
        return np.ones(data.x.shape[0], dtype=bool)
    return (data.new_mask if wanted == "new" else ~labelled(data)).numpy()


def _is_formula(id: Any) -> bool:
    """Whether a spreadsheet would compute an id: -5 is a number, -5+2 is not."""
    return isinstance(id, str) and bool(FORMULA.match(id)) and isinstance(number(id), str)


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(id=[f"'{id}" if _is_formula(id) else id for id in frame["id"]])


def _telling_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    found = [id for id in frame["id"] if _is_formula(id)]
    if found:
        say(
            f"{len(found):,} ids look like formulas to a spreadsheet ({listed(found, 3)}); use "
            f"--spreadsheet if one is to open the table"
        )
    return frame


def _written(frame: pd.DataFrame, out: Path) -> bytes:
    if out.suffix.lower() == ".parquet":
        return bytes(frame.to_parquet())
    return frame.to_csv(index=False).encode()


def _other_graph(fit: Fit, nodes: Path, edges: Path | None, *, join: bool) -> Data:
    """Read another graph, or new nodes of the fit's own, with the fit's columns."""
    from qpignn.data.growth import join_frames
    from qpignn.data.readers import graph_of, read_frames

    roles = fit.origin.roles
    if roles is None:
        raise ReadError(
            f"--nodes: expected a model fitted on files, whose columns are known, got one that was "
            f"fitted on the {'graph' if fit.origin.graph else 'data set'} {fit.origin.target!r}; "
            f"fit on files of your own"
        )
    coding = fit.model.coding_
    used = ("id", "encoding", "decimal", "edge_ends", "edge_weight", "directed")
    lacking = [name for name in used if name not in roles]
    if coding is None or lacking:
        raise ModelFileError(
            f"--nodes: expected a model that says how its tables were read, got one that does not "
            f"say {listed(lacking or ['coding'])}; fit again"
        )
    form = {name: roles[name] for name in ("id", "encoding", "decimal", "edge_ends")}
    tables = read_frames(nodes, edges, text=coding.category_columns, **form)
    if tables.edges is None:
        say("no edges given: the new nodes are taken to have no neighbours")
    shared = {name: roles[name] for name in ("id", "edge_ends", "edge_weight", "directed")}
    # new nodes need not carry the column to be predicted
    target = roles["target"] if roles["target"] in tables.nodes else None
    if join:
        return join_frames(fit.data, tables.nodes, tables.edges, target=target, **shared)
    return graph_of(tables, target=target, coding=coding, need_target=False, **shared)
