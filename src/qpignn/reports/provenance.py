"""How the model was trained and the report made: the last two sections of the page."""

from __future__ import annotations

from typing import Any

from qpignn.diagnostics.coverage import percent
from qpignn.reports.markup import Section, chart, details, number, section, table, text
from qpignn.reports.wording import WORDINGS

ABOUT_FIGURES = {
    "confidence_level": "the coverage asked for",
    "n_test": "held-out nodes the figures are computed on",
    "picp": "coverage: the share of true values {kept}",
    "mpiw": "mean width of the intervals, in ranges of the given targets",
    "mpiw_raw": "mean width of the intervals, in the target's own unit",
    "nmpiw": "mean width, in ranges of the held-out targets",
    "mpe": "mean distance from the middle of the interval to the true value, in given ranges",
    "sharpness": "mean squared width: one very wide interval weighs more",
    "winkler": "Winkler score: width plus a price for every miss; smaller is better",
    "winkler_one": "the same with a price of 1 per unit missed",
    "cwc": "coverage and width in one number; smaller is better",
    "mae": "mean absolute error of the prediction, in the target's own unit",
    "rmse": "root mean squared error of the prediction, in the target's own unit",
    "mean_bound": "mean of the bounds, in the target's own unit",
    "miss_rate": "share of true values beyond their bound",
    "pinball": "pinball loss of the bound as a quantile, in the target's own unit",
}
STOPPED = {
    "epochs": "Training ran through all its epochs.",
    "patience": "Training stopped early, because held-out nodes were no longer served better.",
    "interrupted": "Training was interrupted before its end.",
}


def training(content: dict[str, Any]) -> Section | None:
    """Return the curves of training, epoch by epoch; None where there are none."""
    curves = content["training"]
    if not curves or not curves["loss"]:
        return None
    best, epochs = curves["best_epoch"], len(curves["loss"])
    kept = f" The weights kept are those of epoch {best} (dashed line)." if best >= 0 else ""
    stopped = STOPPED.get(curves["stopped"], str(curves["stopped"]))
    lead = f"{epochs:,} epochs, that is passes over the graph. {stopped}{kept}"
    aim = percent(curves["level"])
    covered = f"of training nodes; the line is the {aim} that training aims at"
    wide = "of intervals, in scaled units"
    if content["side"] != "both":
        covered = f"of training nodes by a two-sided {aim} interval, one end of which is the bound"
        wide = "of the two-sided intervals, in scaled units"
    panels = [
        ("loss", "Loss", "what training makes small"),
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
    """Return all figures, settings, versions and what was read; None where there is nothing."""
    kept = WORDINGS[content["side"]].all_kept
    figures = {k: v for k, v in (content["figures"] or {}).items() if v is not None}
    named = [
        (
            f"<code>{text(name)}</code>",
            number(value),
            text(ABOUT_FIGURES.get(name, "").replace("{kept}", kept)),
        )
        for name, value in figures.items()
    ]
    parts = [("Settings", "settings"), ("Versions", "versions"), ("What was read", "read")]
    body = details("All figures, by their short names", table((), named, "All figures", "words"))
    body = body if named else ""
    for title, name in parts:
        rows = [(text(left), text(right)) for left, right in content[name]]
        body += details(title, table((), rows, title, "words")) if rows else ""
    return section("background", "How this was made", "", body) if body else None
