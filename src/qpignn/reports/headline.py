"""The summary of the report page: sentences, verdict and key numbers."""

from __future__ import annotations

import numpy as np

from qpignn.data.graph import labelled, test_nodes
from qpignn.diagnostics.coverage import percent
from qpignn.diagnostics.diagnosis import Diagnosis
from qpignn.diagnostics.findings import VAGUE
from qpignn.reports.markup import format_number
from qpignn.reports.results import Results
from qpignn.reports.wording import WORDINGS


def sentences(results: Results, target: str) -> list[str]:
    """Return the summary: what was predicted, the observed coverage, the unlabelled nodes.

    Args:
        results: results of the model.
        target: name of the predicted quantity.
    """
    intervals, coverage = results.intervals, results.diagnosis.coverage
    wording, level = WORDINGS[intervals.side], percent(intervals.confidence_level)
    named = "" if target == "target" else f" of {target}"
    article = "an" if wording.one[0] in "aeiou" else "a"
    summary = [
        f"Every node has a prediction{named} and {article} {wording.one} that {wording.purpose} "
        f"{level} of the time."
    ]
    if coverage is not None:
        summary.append(
            f"This was the case for {coverage} of {coverage.nodes:,} labelled nodes that were held "
            f"out from training (± is the 95 % error margin for this number of nodes)."
        )
    unlabelled = ~labelled(results.data).numpy()
    if unlabelled.any():
        sizes = intervals.width if intervals.bound is None else intervals.bound
        median = float(np.median(sizes[unlabelled]))
        of = " width" if intervals.bound is None else ""
        size = f" (median{of} {format_number(median)})" if np.isfinite(median) else ""
        summary.append(
            f"{unlabelled.sum():,} nodes without a known value have {wording.many}{size}."
        )
    return summary


def verdict(diagnosis: Diagnosis) -> dict[str, str]:
    """Return the overall assessment: a severity and a sentence.

    Args:
        diagnosis: diagnosis of the model.
    """
    warnings = len(diagnosis.warnings)
    if warnings:
        some = "the warning" if warnings == 1 else f"the {warnings} warnings"
        return {"severity": "warning", "text": f"Read {some} below before relying on the result"}
    if diagnosis.coverage is None:
        return {"severity": "note", "text": "No held-out nodes: coverage was not checked"}
    if diagnosis.coverage.margin > VAGUE:
        return {"severity": "note", "text": "Too few held-out nodes to assess the coverage"}
    return {"severity": "good", "text": "The checks found no problem"}


def key_numbers(results: Results) -> list[dict[str, str]]:
    """Return the key numbers, each with a label and a note.

    Args:
        results: results of the model.
    """
    figures = results.figures
    tiles = []
    if results.diagnosis.coverage is not None and figures is not None:
        note = (
            f"of the prediction (MAE), in the target's unit; RMSE {format_number(figures['rmse'])}"
        )
        error = _tile("Mean error", format_number(figures["mae"]), note)
        size_tiles = _interval_tiles if results.intervals.side == "both" else _bound_tiles
        tiles = [*size_tiles(results, figures), error]
    n_labelled = int(labelled(results.data).sum())
    unlabelled = len(results.intervals) - n_labelled
    if unlabelled:
        return [*tiles, _tile("To predict", f"{unlabelled:,}", "nodes without a known value")]
    return [*tiles, _tile("Nodes", f"{n_labelled:,}", "all with a known value")]


def _interval_tiles(results: Results, figures: dict[str, float | None]) -> list[dict[str, str]]:
    diagnosis, held_out = results.diagnosis, int(test_nodes(results.data).sum())
    assert diagnosis.coverage is not None
    missed = f"; {diagnosis.below + diagnosis.above:,} of {held_out:,} missed"
    margin = f"± {percent(diagnosis.coverage.margin, 1)}"
    note = f"{margin}; nominal {percent(diagnosis.confidence_level)}{missed}"
    tiles = [_tile("Coverage", percent(diagnosis.coverage.share, 1), note)]
    width, share = figures["mpiw_raw"], figures["mpiw"]
    if width is not None and share is not None and np.isfinite(width):
        range_note = f"{percent(share, 1)} of the range of the given targets"
        tiles.append(_tile("Mean width", format_number(width), range_note))
    return tiles


def _bound_tiles(results: Results, figures: dict[str, float | None]) -> list[dict[str, str]]:
    diagnosis, held_out = results.diagnosis, int(test_nodes(results.data).sum())
    assert diagnosis.coverage is not None
    wording, level = WORDINGS[results.intervals.side], diagnosis.confidence_level
    margin = f"± {percent(diagnosis.coverage.margin, 1)}"
    missed = f"{diagnosis.below + diagnosis.above:,} of {held_out:,} {wording.all_missed}"
    note = f"{margin}; nominal {percent(round(1 - level, 9))}; {missed}"
    tiles = [_tile("Miss rate", percent(1 - diagnosis.coverage.share, 1), note)]
    if figures["mean_bound"] is not None:
        note = "of held-out nodes, in the target's unit"
        tiles.append(_tile(f"Mean {wording.one}", format_number(figures["mean_bound"]), note))
    if figures["pinball"] is not None:
        tau = level if results.intervals.side == "upper" else round(1 - level, 9)
        note = f"of the bound as the {percent(tau)} quantile; smaller is better"
        tiles.append(_tile("Pinball loss", format_number(figures["pinball"]), note))
    return tiles


def _tile(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}
