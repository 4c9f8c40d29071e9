"""The summary of the report page: sentences, verdict and key numbers."""

from __future__ import annotations

import numpy as np

from qpignn.data.graph import labelled
from qpignn.diagnostics.coverage import Coverage
from qpignn.diagnostics.diagnosis import Diagnosis
from qpignn.diagnostics.findings import VAGUE
from qpignn.diagnostics.wording import WORDINGS, format_number, percent
from qpignn.reports.results import Results


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
        nodes = f"{unlabelled.sum():,} nodes without a known value"
        summary.append(f"{nodes} have {wording.many}{size}.")
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
    coverage, figures, tiles = results.diagnosis.coverage, results.figures, []
    if coverage is not None and figures is not None:
        rmse = format_number(figures["rmse"])
        note = f"of the prediction (MAE), in the target's unit; RMSE {rmse}"
        tiles = _size_tiles(results.diagnosis, coverage, figures)
        tiles.append(("Mean error", format_number(figures["mae"]), note))
    unlabelled = int((~labelled(results.data)).sum())
    if unlabelled:
        tiles.append(("To predict", f"{unlabelled:,}", "nodes without a known value"))
    else:
        tiles.append(("Nodes", f"{len(results.intervals):,}", "all with a known value"))
    return [dict(zip(("label", "value", "note"), tile, strict=True)) for tile in tiles]


def _size_tiles(
    diagnosis: Diagnosis, coverage: Coverage, figures: dict[str, float | None]
) -> list[tuple[str, str, str]]:
    """Return coverage and width of intervals, or miss rate, mean and loss of bounds."""
    side, level, wording = diagnosis.side, coverage.level, WORDINGS[diagnosis.side]
    margin = f"± {percent(coverage.margin, 1)}; nominal"
    missed = f"{diagnosis.below + diagnosis.above:,} of {coverage.nodes:,}"
    if side == "both":
        note = f"{margin} {percent(level)}; {missed} missed"
        tiles = [("Coverage", percent(coverage.share, 1), note)]
        width, share = figures["mpiw_raw"], figures["mpiw"]
        if width is not None and share is not None and np.isfinite(width):
            note = f"{percent(share, 1)} of the range of the given targets"
            tiles.append(("Mean width", format_number(width), note))
        return tiles
    rest = round(1 - level, 9)
    note = f"{margin} {percent(rest)}; {missed} {wording.all_missed}"
    tiles = [("Miss rate", percent(1 - coverage.share, 1), note)]
    if figures["mean_bound"] is not None:
        note = "of held-out nodes, in the target's unit"
        tiles.append((f"Mean {wording.one}", format_number(figures["mean_bound"]), note))
    if figures["pinball"] is not None:
        tau = percent(level if side == "upper" else rest)
        note = f"of the bound as the {tau} quantile; smaller is better"
        tiles.append(("Pinball loss", format_number(figures["pinball"]), note))
    return tiles
