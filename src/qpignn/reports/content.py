"""Content of the report page of a fitted model, as plain data, and writing the page."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch_geometric.data import Data

from qpignn import __version__
from qpignn.data.structure import GraphSummary, summarize_graph
from qpignn.diagnostics.coverage import Coverage
from qpignn.diagnostics.diagnosis import Diagnosis
from qpignn.diagnostics.wording import WORDINGS
from qpignn.io.files import check_path, json_safe, write_atomically
from qpignn.methods.base import IntervalMethod
from qpignn.reports.columns import column_content
from qpignn.reports.headline import key_numbers, sentences, verdict
from qpignn.reports.layout import graph_drawing
from qpignn.reports.markup import rounded
from qpignn.reports.page import render_page
from qpignn.reports.results import Results, examine
from qpignn.reports.rows import band_content, listed_nodes, nodes_content

PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "pandas")
ABOUT = {
    "degree": "Number of neighbours of a node.",
    "community": "Densely connected parts of the graph (Louvain), each named after its node of "
    "highest degree.",
    "distance": "Number of edges to the nearest node whose target was given to the fit.",
    "known neighbours": "Number of neighbours whose targets are known and used; with weighted "
    "edges the sum of their weights, where the mean weight counts as 1.",
    "homophily": "Mean difference between the prediction and the given targets of neighbours.",
    "prediction": "The predicted value.",
    "width": "Interval width: narrow intervals should cover as often as wide ones.",
}


def write_report(
    model: IntervalMethod,
    data: Data,
    path: str | Path,
    *,
    confidence_level: float | None = None,
    by: Mapping[str, Any] | Sequence[str] = (),
    columns: pd.DataFrame | Mapping[str, Any] | None = None,
    target: str = "target",
    title: str | None = None,
    without_graph: bool = False,
) -> Diagnosis:
    """Write a self-contained HTML page about a fitted model.

    Args:
        model: the fitted method.
        data: the graph, with its masks and all known targets. With ``pos`` (nodes, 2), the page
            draws a map; ``pos_names`` names the coordinates, and lon and lat are degrees.
        path: the file to write.
        confidence_level: one of the fitted levels; default the highest.
        by: columns to group by; see :func:`qpignn.diagnostics.diagnosis.diagnose`.
        columns: columns to show in the table of nodes and in the node card: a pandas table or a
            mapping from names to values, one per node, in the order of the graph's nodes. Numbers,
            text and dates, whether they are features or not. Default: the graph's named features.
            Of very large tables, the first columns are shown.
        target: name of the predicted quantity.
        title: title of the page.
        without_graph: whether to fit the same method once more, without edges, and add a finding
            that says whether the graph helps.

    Returns:
        The diagnosis that the page shows.

    Raises:
        SettingError: if ``columns`` is neither a table nor a mapping.
        ArrayError: if a column does not have one value per node.
    """
    path = check_path("path", path)
    results = examine(
        model, data, confidence_level=confidence_level, by=by, without_graph=without_graph
    )
    content = page_content(results, model, columns=columns, target=target, title=title)
    write_atomically(path, render_page(content).encode())
    return results.diagnosis


def page_content(
    results: Results,
    model: IntervalMethod,
    *,
    columns: pd.DataFrame | Mapping[str, Any] | None = None,
    target: str,
    title: str | None = None,
) -> dict[str, Any]:
    """Return the content of the page, for :func:`qpignn.reports.page.render_page`.

    Args:
        results: results of the model.
        model: the fitted method.
        columns: columns of the table of nodes; see :func:`write_report`.
        target: name of the predicted quantity.
        title: title of the page.
    """
    data, diagnosis = results.data, results.diagnosis
    shown = listed_nodes(data)
    place = np.full(len(results.intervals), -1)
    place[shown] = np.arange(len(shown))
    counts = summarize_graph(data)
    edges = f"{counts.edges:,} {'directed ' * counts.directed}edges"
    settings = {name: str(value) for name, value in model.fitted_.settings.items()}
    versions = {"qpignn": __version__, "Python": platform.python_version()}
    versions |= {name: version(name) for name in PACKAGES}
    many = WORDINGS[diagnosis.side].many.capitalize()
    kind = "Prediction intervals" if diagnosis.side == "both" else many
    return {
        "title": title or f"{kind} for {target}",
        "subtitle": f"{counts.nodes:,} nodes, {edges}, {counts.labelled:,} labelled",
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "version": __version__,
        "level": results.intervals.confidence_level,
        "target": target,
        "side": diagnosis.side,
        "summary": sentences(results, target),
        "verdict": verdict(diagnosis),
        "findings": [asdict(finding) for finding in diagnosis.findings],
        "figures": results.figures,
        "key_numbers": key_numbers(results),
        "band": band_content(data, results.intervals, place),
        "calibration": [{"level": one.level, **_shares(one)} for one in diagnosis.levels],
        "groupings": _groupings(diagnosis),
        "misses": _misses(diagnosis),
        "errors": [asdict(one) for one in diagnosis.errors],
        "training": _training(model, diagnosis.side),
        "graph": graph_drawing(data, place),
        "nodes": nodes_content(data, results.intervals, shown),
        "columns": column_content(data, columns, shown),
        "settings": [["method", type(model).__name__], *map(list, sorted(settings.items()))],
        "versions": [*map(list, versions.items())],
        "read": _read(data, counts),
    }


def _shares(coverage: Coverage) -> dict[str, float]:
    return {"coverage": coverage.share, "low": coverage.low, "high": coverage.high}


def _groupings(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    return [
        {
            "name": division.name,
            "title": f"column {division.name}" if division.column else division.name,
            "about": "A column of the node table." if division.column else ABOUT[division.name],
            "groups": [
                {
                    "label": group.label,
                    "nodes": group.coverage.nodes,
                    **_shares(group.coverage),
                    "size": group.width if group.bound is None else json_safe(group.bound),
                    "flagged": group.below,
                }
                for group in division.groups
            ],
        }
        for division in diagnosis.divisions
    ]


def _misses(diagnosis: Diagnosis) -> dict[str, int] | None:
    if diagnosis.coverage is None or diagnosis.side != "both":
        return None
    return {"below": diagnosis.below, "above": diagnosis.above, "nodes": diagnosis.coverage.nodes}


def _training(model: IntervalMethod, side: str) -> dict[str, Any] | None:
    """Return the training curves; ``level`` is the coverage that training aims at.

    That is the highest fitted level; a bound of level L is trained as one end of a two-sided
    interval of level 2L − 1.
    """
    history, level = model.history_, model.levels_[-1]
    if not len(history):
        return None
    aim = level if side == "both" else round(2 * level - 1, 9)
    curves = {name: rounded(getattr(history, name)) for name in ("loss", "coverage", "width")}
    scores = [[epoch, float(f"{score:.6g}")] for epoch, score in history.held_out.items()]
    end = {"best_epoch": history.best_epoch, "stopped": history.stopped}
    return {**curves, "held_out": scores, "level": aim, **end}


def _read(data: Data, counts: GraphSummary) -> list[list[str]]:
    shown = [
        [name, ("no", "yes")[value] if isinstance(value, bool) else f"{value:,}"]
        for name, value in asdict(counts).items()
    ]
    names = data.get("feature_names") or []
    return [*shown, ["feature columns", ", ".join(names[:30]) + (" …" if len(names) > 30 else "")]]
