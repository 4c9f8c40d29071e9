"""What the report page says of a fitted model: numbers, sentences and drawings, as plain data."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qpignn import __version__
from qpignn.data.graph import check_graph, given_nodes, labelled, test_nodes
from qpignn.data.structure import overview
from qpignn.diagnostics.coverage import percent
from qpignn.diagnostics.diagnosis import Diagnosis, diagnose
from qpignn.diagnostics.findings import VAGUE
from qpignn.errors import SettingError, brief
from qpignn.files import as_path, replace_file
from qpignn.intervals import Intervals
from qpignn.methods.base import IntervalMethod
from qpignn.metrics import summary
from qpignn.reports.layout import graph_drawing
from qpignn.reports.markup import number, rounded
from qpignn.reports.page import render_page
from qpignn.reports.rows import band_content, listed_nodes, nodes_content

if TYPE_CHECKING:
    from torch_geometric.data import Data

PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "pandas")
ABOUT = {
    "degree": "How many neighbours a node has.",
    "community": "Densely joined parts of the graph (Louvain), named after their best connected "
    "node.",
    "distance": "Edges to the nearest node whose target the fit was given.",
    "homophily": "How far the prediction is from the known targets of a node's neighbours.",
    "prediction": "The predicted value.",
    "width": "The width of the interval: narrow ones should cover as often as wide ones.",
}


@dataclass(frozen=True)
class Told:
    """A fitted model's intervals on a graph, what they are worth, and the figures."""

    data: Data
    intervals: Intervals
    diagnosis: Diagnosis
    figures: dict[str, float | None] | None


def write_report(
    model: IntervalMethod,
    data: Data,
    path: str | Path,
    *,
    confidence_level: float | None = None,
    by: Mapping[str, Any] | Sequence[str] = (),
    target: str = "target",
    title: str | None = None,
) -> Diagnosis:
    """Write one self-contained HTML page about a fitted model, and return what it found.

    Args:
        model: the fitted method.
        data: the graph, with its masks and all known targets; where it has ``pos`` (nodes, 2) the
            page draws a map.
        path: the file.
        confidence_level: which of the fitted levels; default the highest.
        by: columns to show coverage by; see :func:`qpignn.diagnostics.diagnosis.diagnose`.
        target: what is predicted, in words.
        title: of the page.
    """
    path = as_path("path", path)
    told = examine(model, data, confidence_level=confidence_level, by=by)
    content = page_content(told, model, target=target, title=title)
    replace_file(path, render_page(content).encode())
    return told.diagnosis


def examine(
    model: IntervalMethod,
    data: Data,
    *,
    confidence_level: float | None = None,
    by: Mapping[str, Any] | Sequence[str] = (),
) -> Told:
    """Predict on a whole graph at every level there is, and judge the wanted one."""
    if not isinstance(model, IntervalMethod):
        raise SettingError(f"model: expected a fitted method, got {brief(model)}")
    data = check_graph(data, need_target=False)
    intervals, *others = model.predict_levels(data, confidence_level=confidence_level)
    calibrated = model.fitted_.calibrated_on
    found = diagnose(data, intervals, others, by=by, calibration_nodes=calibrated)
    return Told(data, intervals, found, held_out_figures(data, intervals))


def held_out_figures(data: Data, intervals: Intervals) -> dict[str, float | None] | None:
    """Return the metrics of all held-out nodes, as ``qpignn evaluate --json`` prints them."""
    test = test_nodes(data)
    if not bool(test.any()):
        return None
    chosen = intervals.select(test.numpy())
    figures = summary(chosen, data.y[test], y_given=data.y[given_nodes(data)])
    return {"confidence_level": chosen.confidence_level, "n_test": int(test.sum()), **figures}


def page_content(
    told: Told, model: IntervalMethod, *, target: str, title: str | None = None
) -> dict[str, Any]:
    """Return everything the page shows, for :func:`qpignn.reports.page.render_page`."""
    data, found = told.data, told.diagnosis
    shown = listed_nodes(data)
    place = np.full(len(told.intervals), -1)
    place[shown] = np.arange(len(shown))
    counts = overview(data)
    edges = f"{counts.edges:,} {'directed ' * counts.directed}edges"
    return {
        "title": title or f"Prediction intervals for {target}",
        "subtitle": f"{counts.nodes:,} nodes, {edges}, {counts.labelled:,} labelled",
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "version": __version__,
        "level": told.intervals.confidence_level,
        "target": target,
        "side": found.side,
        "summary": _sentences(told, target),
        "verdict": _verdict(found),
        "findings": [asdict(finding) for finding in found.findings],
        "figures": told.figures,
        "key_numbers": _key_numbers(told),
        "band": band_content(data, told.intervals, place),
        "calibration": [
            {"level": one.level, "coverage": one.share, "low": one.low, "high": one.high}
            for one in found.levels
        ],
        "groupings": _groupings(found),
        "misses": _misses(found),
        "errors": [asdict(one) for one in found.errors],
        "training": _training(model),
        "graph": graph_drawing(data, place),
        "nodes": nodes_content(data, told.intervals, shown),
        "settings": _settings(model),
        "versions": _versions(),
        "read": _read(data),
    }


def _sentences(told: Told, target: str) -> list[str]:
    intervals, found = told.intervals, told.diagnosis
    level = percent(intervals.confidence_level)
    named = "" if target == "target" else f" of {target}"
    sentences = [
        f"Every node has a prediction{named} and an interval that is meant to hold the true value "
        f"{level} of the time."
    ]
    if found.coverage is not None:
        sentences.append(
            f"On {found.coverage.nodes:,} labelled nodes that were kept from the fit, "
            f"{found.coverage} of the intervals did (± is what counting so many nodes allows; "
            f"95 %)."
        )
    waiting = ~labelled(told.data).numpy()
    if waiting.any():
        middle = float(np.median(intervals.width[waiting]))
        size = f", half of them narrower than {number(middle)}" if np.isfinite(middle) else ""
        sentences.append(f"{waiting.sum():,} nodes without a known value have intervals{size}.")
    return sentences


def _verdict(found: Diagnosis) -> dict[str, str]:
    warnings = len(found.warnings)
    if warnings:
        things = "one thing" if warnings == 1 else f"{warnings} things"
        return {"severity": "warning", "text": f"Look at {things} before you rely on it"}
    if found.coverage is None:
        return {"severity": "note", "text": "No held-out nodes: coverage was not checked"}
    if found.coverage.margin > VAGUE:
        return {"severity": "note", "text": "Too few held-out nodes to say how far to rely on it"}
    return {"severity": "good", "text": "Nothing found that speaks against relying on it"}


def _key_numbers(told: Told) -> list[dict[str, str]]:
    found, figures, intervals = told.diagnosis, told.figures, told.intervals
    tiles = []
    if found.coverage is not None and figures is not None:
        test = test_nodes(told.data).numpy()
        off = np.abs(told.data.y.double().numpy() - intervals.prediction)[test]
        tiles = [
            _tile(
                "Coverage",
                percent(found.coverage.share, 1),
                f"± {percent(found.coverage.margin, 1)}; wanted {percent(found.confidence_level)}",
            ),
            *_width_tile(figures),
            _tile("Typical error", number(float(np.median(off))), "median, of the prediction"),
            _tile("Missed", f"{found.below + found.above:,}", f"of {len(off):,} held-out nodes"),
        ]
    known = int(labelled(told.data).sum())
    waiting = len(intervals) - known
    if waiting:
        return [*tiles, _tile("To predict", f"{waiting:,}", "nodes without a known value")]
    return [*tiles, _tile("Nodes", f"{known:,}", "all with a known value")]


def _width_tile(figures: dict[str, float | None]) -> list[dict[str, str]]:
    width, share = figures["mpiw_raw"], figures["mpiw"]
    if width is None or share is None or not np.isfinite(width):
        return []
    note = f"{percent(share, 1)} of the range of the targets given"
    return [_tile("Mean width", number(width), note)]


def _tile(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}


def _groupings(found: Diagnosis) -> list[dict[str, Any]]:
    return [
        {
            "name": division.name,
            "title": f"column {division.name}" if division.column else division.name,
            "about": "A column of the node table." if division.column else ABOUT[division.name],
            "groups": [
                {
                    "label": group.label,
                    "nodes": group.coverage.nodes,
                    "coverage": group.coverage.share,
                    "low": group.coverage.low,
                    "high": group.coverage.high,
                    "width": group.width,
                    "flagged": group.below,
                }
                for group in division.groups
            ],
        }
        for division in found.divisions
    ]


def _misses(found: Diagnosis) -> dict[str, int] | None:
    if found.coverage is None or found.side != "both":
        return None
    return {"below": found.below, "above": found.above, "nodes": found.coverage.nodes}


def _training(model: IntervalMethod) -> dict[str, Any] | None:
    history = model.history_
    if not len(history):
        return None
    curves = {name: rounded(getattr(history, name)) for name in ("loss", "coverage", "width")}
    looks = [[epoch, float(f"{score:.6g}")] for epoch, score in history.held_out.items()]
    end = {"best_epoch": history.best_epoch, "stopped": history.stopped}
    return {**curves, "held_out": looks, **end}


def _settings(model: IntervalMethod) -> list[list[str]]:
    settings = model.fitted_.settings
    return [["method", type(model).__name__], *([k, str(settings[k])] for k in sorted(settings))]


def _versions() -> list[list[str]]:
    packages = [[name, version(name)] for name in PACKAGES]
    return [["qpignn", __version__], ["Python", platform.python_version()], *packages]


def _read(data: Data) -> list[list[str]]:
    facts = asdict(overview(data))
    shown = [
        [name, "yes" if value is True else "no" if value is False else f"{value:,}"]
        for name, value in facts.items()
    ]
    names = data.get("feature_names") or []
    return [*shown, ["feature columns", ", ".join(names[:30]) + (" …" if len(names) > 30 else "")]]
