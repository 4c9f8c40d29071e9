"""The top of the report page: sentences, verdict and key numbers."""

from __future__ import annotations

import numpy as np

from qpignn.data.graph import labelled, test_nodes
from qpignn.diagnostics.coverage import percent
from qpignn.diagnostics.diagnosis import Diagnosis
from qpignn.diagnostics.findings import VAGUE
from qpignn.reports.markup import number
from qpignn.reports.results import Results
from qpignn.reports.wording import WORDINGS


def sentences(results: Results, target: str) -> list[str]:
    """Say what every node has, how many held-out ones are covered, and how many wait.

    Args:
        results: of the model.
        target: what is predicted, in words.
    """
    intervals, coverage = results.intervals, results.diagnosis.coverage
    words, level = WORDINGS[intervals.side], percent(intervals.confidence_level)
    named = "" if target == "target" else f" of {target}"
    article = "an" if words.one[0] in "aeiou" else "a"
    said = [
        f"Every node has a prediction{named} and {article} {words.one} that {words.meant} {level} "
        f"of the time."
    ]
    if coverage is not None:
        did = f"{coverage} of the intervals did"
        if intervals.side != "both":
            did = f"{coverage} of the true values were {words.all_kept}"
        said.append(
            f"On {coverage.nodes:,} labelled nodes that were kept from the fit, {did} (± is what "
            f"counting so many nodes allows; 95 %)."
        )
    waiting = ~labelled(results.data).numpy()
    if waiting.any():
        sizes = intervals.width if intervals.bound is None else intervals.bound
        middle = float(np.median(sizes[waiting]))
        less = "narrower than" if intervals.bound is None else "below"
        size = f", half of them {less} {number(middle)}" if np.isfinite(middle) else ""
        said.append(f"{waiting.sum():,} nodes without a known value have {words.many}{size}.")
    return said


def verdict(found: Diagnosis) -> dict[str, str]:
    """Return how far the result can be relied on: a severity and a sentence."""
    warnings = len(found.warnings)
    if warnings:
        things = "one thing" if warnings == 1 else f"{warnings} things"
        return {"severity": "warning", "text": f"Look at {things} before you rely on it"}
    if found.coverage is None:
        return {"severity": "note", "text": "No held-out nodes: coverage was not checked"}
    if found.coverage.margin > VAGUE:
        return {"severity": "note", "text": "Too few held-out nodes to say how far to rely on it"}
    return {"severity": "good", "text": "Nothing found that speaks against relying on it"}


def key_numbers(results: Results) -> list[dict[str, str]]:
    """Return the numbers at the top of the page, each with a label and a note."""
    found, figures = results.diagnosis, results.figures
    tiles = []
    if found.coverage is not None and figures is not None:
        sized = _interval_tiles if results.intervals.side == "both" else _bound_tiles
        tiles = [*sized(results, figures), _error_tile(figures)]
    known = int(labelled(results.data).sum())
    waiting = len(results.intervals) - known
    if waiting:
        return [*tiles, _tile("To predict", f"{waiting:,}", "nodes without a known value")]
    return [*tiles, _tile("Nodes", f"{known:,}", "all with a known value")]


def _interval_tiles(results: Results, figures: dict[str, float | None]) -> list[dict[str, str]]:
    found, judged = results.diagnosis, int(test_nodes(results.data).sum())
    assert found.coverage is not None
    missed = f"; {found.below + found.above:,} of {judged:,} missed"
    note = f"± {percent(found.coverage.margin, 1)}; wanted {percent(found.confidence_level)}"
    tiles = [_tile("Coverage", percent(found.coverage.share, 1), note + missed)]
    width, share = figures["mpiw_raw"], figures["mpiw"]
    if width is not None and share is not None and np.isfinite(width):
        range_note = f"{percent(share, 1)} of the range of the targets given"
        tiles.append(_tile("Mean width", number(width), range_note))
    return tiles


def _bound_tiles(results: Results, figures: dict[str, float | None]) -> list[dict[str, str]]:
    found, judged = results.diagnosis, int(test_nodes(results.data).sum())
    assert found.coverage is not None
    words, level = WORDINGS[results.intervals.side], found.confidence_level
    wanted = f"± {percent(found.coverage.margin, 1)}; wanted {percent(round(1 - level, 9))}"
    missed = f"{found.below + found.above:,} of {judged:,} {words.all_missed}"
    tiles = [_tile("Miss rate", percent(1 - found.coverage.share, 1), f"{wanted}; {missed}")]
    if figures["mean_bound"] is not None:
        note = "of held-out nodes, in the target's unit"
        tiles.append(_tile(f"Mean {words.one}", number(figures["mean_bound"]), note))
    if figures["pinball"] is not None:
        tau = level if results.intervals.side == "upper" else round(1 - level, 9)
        note = f"of the bound as the {percent(tau)} quantile; smaller is better"
        tiles.append(_tile("Pinball loss", number(figures["pinball"]), note))
    return tiles


def _error_tile(figures: dict[str, float | None]) -> dict[str, str]:
    note = f"of the prediction (MAE), in the target's unit; RMSE {number(figures['rmse'])}"
    return _tile("Mean error", number(figures["mae"]), note)


def _tile(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": label, "value": value, "note": note}
