"""``qpignn predict``: the intervals of a fitted model, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli import options
from qpignn.cli.output import check_output, print_findings, print_json, say
from qpignn.errors import SettingError, quoted
from qpignn.io.csv_output import is_formula, to_csv
from qpignn.io.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from qpignn.diagnostics.findings import Finding
    from qpignn.methods.bundle import Fit

ENDINGS = (".csv", ".parquet", ".xlsx")
FEW = 200_000  # nodes: above this, coverage by group is not computed before predicting


def predict(
    folder: options.Folder,
    out: Annotated[Path, typer.Option(metavar="FILE")],
    nodes: Path | None = None,
    edges: Path | None = None,
    join: bool = False,
    only: str | None = None,
    confidence: options.Level = None,
    all_levels: bool = False,
    parts: bool = False,
    novelty: bool = False,
    known_neighbours: bool = False,
    spreadsheet: bool = False,
    method: options.SavedMethod = None,
    as_json: options.Json = False,
) -> None:
    """Write id, prediction, lower and upper for the unlabelled nodes, or for all.

    Without --nodes the graph of the fit is used; with --nodes (and --edges) another graph with the
    same columns; with --join new nodes whose edges may lead to nodes of the fit. Prints the
    warnings of 'evaluate', and a warning if the nodes of another graph differ from those of the
    fit.

    Ids are written unchanged, under the name of your id column. A spreadsheet takes some, such as
    =1+1, for formulas: use --spreadsheet or .xlsx if you open the table in one.

    Example: qpignn predict model --out intervals.csv

    Args:
        out: Table to write (.csv, .parquet or .xlsx).
        nodes: Another node table to predict on.
        edges: Its edge table.
        join: Add the new nodes to the graph of the fit.
        only: unlabelled (default), new (default of --join) or all nodes.
        all_levels: Bounds of every fitted level, as lower_90 …
        parts: Add the epistemic and aleatoric parts of each width.
        novelty: Add how far each node is from the labelled ones (above 1: beyond what was learnt).
        known_neighbours: Add how many neighbours of each node have targets that its interval uses.
        spreadsheet: Escape ids that a spreadsheet would take for formulas; quote all text.

    Raises:
        SettingError: if options exclude or need each other, or the file ending is not supported.
    """
    wanted = only or ("new" if join else "unlabelled")
    if wanted not in ("unlabelled", "all", *(["new"] if join else [])):
        raise SettingError(f"--only: expected unlabelled or all, got {only!r}; new with --join")
    if out.suffix.lower() not in ENDINGS:
        raise SettingError(f"--out: expected a file ending in {', '.join(ENDINGS)}, got {out}")
    if spreadsheet and out.suffix.lower() != ".csv":
        raise SettingError(f"--spreadsheet: expected a .csv file, got {out}")
    if nodes is None and edges is not None:
        raise SettingError("--edges needs --nodes: another graph needs both tables")
    if nodes is None and join:
        raise SettingError("--join needs --nodes: the new nodes")
    if all_levels and (parts or novelty or known_neighbours or confidence is not None):
        raise SettingError(
            "--all-levels excludes --parts, --novelty, --known-neighbours and --confidence, which "
            "apply to one level"
        )
    check_output(out, folder=False)
    from qpignn.diagnostics.findings import novelty_findings
    from qpignn.methods.bundle import load_fit, read_like
    from qpignn.methods.catalog import saved_class

    with saved_class(method):
        fit = load_fit(folder)
    data = fit.data if nodes is None else read_like(fit, nodes, edges, join=join)
    if nodes is not None and edges is None:
        say("no edges given: the new nodes have no neighbours")
    asked = _asked(data, wanted)
    intervals = fit.model.predict_interval(data, confidence_level=confidence).select(asked)
    print_findings([*_warnings(fit, data, asked), *novelty_findings(intervals)], err=True)
    if not len(intervals):
        say("every node is labelled, so there is nothing to predict; use --only all")
    frame = (
        _all_levels(fit, data, asked)
        if all_levels
        else intervals.to_frame(parts=parts, novelty=novelty, known_neighbours=known_neighbours)
    )
    if out.suffix.lower() == ".csv" and not spreadsheet:
        _mention_formulas(frame)
    write_atomically(out, _written(frame, out, spreadsheet))
    say(f"wrote {len(frame):,} intervals to {out}")
    if as_json:
        level = fit.model.levels_ if all_levels else intervals.confidence_level
        print_json({"file": str(out), "intervals": len(frame), "confidence_level": level})


def _asked(data: Data, wanted: str) -> Any:
    import numpy as np

    from qpignn.data.graph import labelled

    if wanted == "all":
        return np.ones(data.x.shape[0], dtype=bool)
    return (data.new_mask if wanted == "new" else ~labelled(data)).numpy()


def _warnings(fit: Fit, data: Data, asked: Any) -> list[Finding]:
    """Return reasons not to rely on the intervals of some nodes.

    Args:
        fit: the model, with the graph it was fitted on.
        data: the graph to predict on: that of the fit, another one, or that of the fit with new
            nodes.
        asked: boolean, the nodes that get an interval.
    """
    from qpignn.data.graph import given_nodes, labelled
    from qpignn.data.warnings import data_warnings, isolation_warnings
    from qpignn.diagnostics.findings import Finding, graph_shift_findings, shift_findings
    from qpignn.diagnostics.shift import graph_shift, label_shift

    own = data is fit.data
    texts = data_warnings(data, given_nodes(data)) if own else isolation_warnings(data, asked)
    findings = [] if own else graph_shift_findings(graph_shift(fit.data, data, asked))
    if fit.data.x.shape[0] <= FEW:
        # "training" is printed when loaded, "novelty" for the nodes that are predicted
        skipped = {"training", "novelty", *(() if own else ("shift",))}
        diagnosis = fit.model.diagnose(fit.data)
        findings += [one for one in diagnosis.findings if one.kind not in skipped]
    else:
        say("the graph is too large to check coverage by group here; use 'qpignn evaluate'")
        if own:
            labels = int(labelled(data).sum())
            findings += shift_findings(label_shift(data), labels, data.x.shape[0] - labels)
    warnings = [one for one in findings if one.severity == "warning"]
    return [*(Finding("graph", "warning", text) for text in texts), *warnings]


def _all_levels(fit: Fit, data: Data, asked: Any) -> pd.DataFrame:
    """Return one row per node: id, prediction, and the bounds of every level, widest last."""
    import pandas as pd

    bounds = []
    for level in fit.model.levels_:
        frame = fit.model.predict_interval(data, confidence_level=level).select(asked).to_frame()
        bounds.append(frame.iloc[:, 2:].add_suffix(f"_{100 * level:g}"))
    return pd.concat([frame.iloc[:, :2], *bounds], axis=1)


def _mention_formulas(frame: pd.DataFrame) -> None:
    """Print which ids a spreadsheet would evaluate as formulas."""
    formulas = [id for id in frame.iloc[:, 0] if is_formula(id)]
    if formulas:
        say(
            f"{len(formulas):,} ids look like formulas to a spreadsheet ({quoted(formulas, 3)}); "
            f"use --spreadsheet if you open the table in one"
        )


def _written(frame: pd.DataFrame, out: Path, spreadsheet: bool) -> bytes:
    from qpignn.data.excel_table import to_excel
    from qpignn.intervals import rounded_frame

    suffix = out.suffix.lower()
    if suffix == ".parquet":
        return bytes(frame.to_parquet())
    frame = rounded_frame(frame)
    return to_excel(frame) if suffix == ".xlsx" else to_csv(frame, spreadsheet=spreadsheet)
