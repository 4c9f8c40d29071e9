"""The last sections of the report page: training curves, and all metrics and settings."""

from __future__ import annotations

from typing import Any

from qpignn.diagnostics.coverage import percent
from qpignn.reports.markup import Section, chart, details, escaped, format_number, section, table
from qpignn.reports.wording import WORDINGS

ABOUT_FIGURES = {
    "confidence_level": "the nominal coverage",
    "n_test": "number of held-out nodes that the metrics are computed on",
    "picp": "coverage: share of true values {covered}",
    "mpiw": "mean interval width, divided by the range of the given targets",
    "mpiw_raw": "mean interval width, in the target's unit",
    "nmpiw": "mean interval width, divided by the range of the held-out targets",
    "mpe": "mean distance from interval midpoint to true value, divided by the given range",
    "sharpness": "mean squared width: very wide intervals have a large weight",
    "winkler": "Winkler score: width plus a penalty for every miss; smaller is better",
    "winkler_one": "Winkler score with a penalty of 1 per unit missed",
    "cwc": "coverage width criterion: coverage and width in one number; smaller is better",
    "mae": "mean absolute error of the prediction, in the target's unit",
    "rmse": "root mean squared error of the prediction, in the target's unit",
    "mean_bound": "mean of the bounds, in the target's unit",
    "miss_rate": "share of true values beyond their bounds",
    "pinball": "pinball loss of the bound as a quantile, in the target's unit",
}
STOPPED = {
    "epochs": "Training completed all epochs.",
    "patience": "Training stopped early because the held-out score no longer improved.",
    "interrupted": "Training was interrupted before its end.",
}


def training(content: dict[str, Any]) -> Section | None:
    """Return the training curves by epoch; None without any.

    Args:
        content: see :func:`qpignn.reports.page.render_page`.
    """
    curves = content["training"]
    if not curves or not curves["loss"]:
        return None
    best, epochs = curves["best_epoch"], len(curves["loss"])
    kept = f" The weights are those of epoch {best} (dashed line)." if best >= 0 else ""
    stopped = STOPPED.get(curves["stopped"], str(curves["stopped"]))
    lead = f"{epochs:,} epochs (passes over the graph). {stopped}{kept}"
    aim = percent(curves["level"])
    covered = f"of training nodes; the line is the {aim} that training aims at"
    wide = "of intervals, in scaled units"
    if content["side"] != "both":
        covered = f"of training nodes by a two-sided {aim} interval, one end of which is the bound"
        wide = "of the two-sided intervals, in scaled units"
    panels = [
        ("loss", "Loss", "minimised by training"),
        ("coverage", "Coverage", covered),
        ("width", "Mean width", wide),
        ("held_out", "Held-out score", "lower is better"),
    ]
    body = "".join(
        f'<figure><figcaption><strong>{title}</strong> <span class="muted">{about}</span>'
        f"</figcaption>{chart(f'training-{name}', f'{title} by epoch; {about}.')}</figure>"
        for name, title, about in panels
        if curves[name]
    )
    return section("training", "Training", lead, f'<div class="small-charts">{body}</div>')


def background(content: dict[str, Any]) -> Section | None:
    """Return all metrics, settings, versions and facts about the input; None without any.

    Args:
        content: see :func:`qpignn.reports.page.render_page`.
    """
    covered = WORDINGS[content["side"]].all_covered
    figures = {k: v for k, v in (content["figures"] or {}).items() if v is not None}
    metrics = [
        (
            f"<code>{escaped(name)}</code>",
            format_number(value),
            escaped(ABOUT_FIGURES.get(name, "").replace("{covered}", covered)),
        )
        for name, value in figures.items()
    ]
    parts = [("Settings", "settings"), ("Versions", "versions"), ("Input data", "read")]
    body = (
        details("All metrics", table((), metrics, "All metrics", "definitions")) if metrics else ""
    )
    for title, name in parts:
        rows = [(escaped(left), escaped(right)) for left, right in content[name]]
        body += details(title, table((), rows, title, "definitions")) if rows else ""
    return section("background", "Details", "", body) if body else None
