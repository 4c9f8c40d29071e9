"""Sections of the report page, as HTML that is readable without JavaScript."""

from __future__ import annotations

from typing import Any

from qpignn.diagnostics.wording import WORDINGS, format_number, percent
from qpignn.errors import plural
from qpignn.reports import markup
from qpignn.reports.explorer import explorer
from qpignn.reports.metric_texts import metric_texts

ABOUT_FIGURES = metric_texts("about")
STOPPED = {
    "epochs": "Training completed all epochs.",
    "patience": "Training stopped early because the held-out score no longer improved.",
    "interrupted": "Training was interrupted before its end.",
}


def sections(content: dict[str, Any]) -> list[markup.Section]:
    """Return the sections that are not empty, in their order.

    Args:
        content: see :func:`qpignn.reports.page.render_page`.
    """
    charts = (_band, _calibration, _errors, _groups, _explorer)
    makers = (_summary, _findings, *charts, _training, _background)
    return [part for make in makers if (part := make(content)) is not None]


def _summary(content: dict[str, Any]) -> markup.Section:
    summary = " ".join(markup.sentence(one) for one in content["summary"])
    tiles = "".join(
        f'<div class="tile"><dt>{markup.escaped(tile["label"])}</dt>'
        f'<dd class="value">{markup.escaped(tile["value"])}</dd>'
        f'<dd class="note">{markup.escaped(markup.unbroken(tile["note"]))}</dd></div>'
        for tile in content["key_numbers"]
    )
    numbers = f'<dl class="tiles">{tiles}</dl>' if tiles else ""
    prose = f'<div class="prose"><p>{summary}</p></div>'
    return markup.section("summary", "Summary", "", prose + numbers)


def _findings(content: dict[str, Any]) -> markup.Section | None:
    items = "".join(
        f'<li class="finding {finding["severity"]}">{markup.icon(finding["severity"])}'
        f'<p><strong class="word">{finding["severity"].capitalize()}.</strong> '
        f"{markup.sentence(finding['text'])}</p></li>"
        for finding in content["findings"]
    )
    body = f'<ul class="findings">{items}</ul>'
    return markup.section("findings", "Findings", "", body) if items else None


def _band(content: dict[str, Any]) -> markup.Section | None:
    band, misses = content["band"], _misses(content)
    if not band or not band["target"]:
        return markup.section("band", "Misses", "", misses) if misses else None
    wording, two_sided = WORDINGS[content["side"]], content["side"] == "both"
    missed = band["inside"].count(False)
    of = f"{band['shown']:,} of {band['of']:,}" if band["shown"] < band["of"] else f"{band['of']:,}"
    mark = "bar" if two_sided else "mark"
    line = "" if two_sided else " The line points to the side where the true value should lie."
    lead = (
        f"Each {mark} is the {percent(content['level'])} {wording.one} of one held-out node, in "
        f"order of prediction ({of} held-out nodes).{line} Crosses are true values "
        f"{wording.all_missed}; about {percent(round(1 - content['level'], 9))} of the true values "
        f"should be crosses."
    )
    label = (
        f"{wording.many.capitalize()} of {plural(len(band['target']), 'node')} in order of "
        f"prediction of {content['target']}; {missed} of the true values are {wording.all_missed}."
    )
    entries = (
        ("bar" if two_sided else content["side"], wording.one),
        ("tick", "prediction"),
        ("dot", f"true value, {wording.covered}"),
        ("cross", f"true value, {wording.missed} ({missed:,})"),
    )
    body = markup.legend(entries) + markup.chart("band", label) + misses
    return markup.section("band", f"{wording.many.capitalize()} and true values", lead, body)


def _misses(content: dict[str, Any]) -> str:
    misses = content["misses"]
    if not misses:
        return ""
    expected = (1 - content["level"]) / 2 * misses["nodes"]
    shown = format_number(round(expected, 1) if expected < 10 else round(expected))
    lead = (
        f"Of {plural(misses['nodes'], 'node')} held out, {misses['below']:,} had a true value "
        f"below the interval and {misses['above']:,} above it. If misses were balanced, about "
        f"{shown} would fall on each side (dashed line)."
    )
    return (
        '<div class="part"><h3>Misses below and above</h3>'
        f'<p class="lead">{markup.escaped(lead)}</p>{markup.chart("misses", lead)}</div>'
    )


def _calibration(content: dict[str, Any]) -> markup.Section | None:
    levels = content["calibration"]
    if not levels:
        return None
    wording = WORDINGS[content["side"]]
    lead = (
        f"Points on the dashed line have exactly the nominal coverage. Below it, "
        f"{wording.undercoverage}; above it, {wording.overcoverage}. Bars show the 95\u00a0% error "
        "margin."
    )
    shares = [markup.unbroken(percent(point["coverage"], 1)) for point in levels]
    wanted = [percent(point["level"]) for point in levels]
    pairs = [f"{share} at {level}" for share, level in zip(shares, wanted, strict=True)]
    label = f"Observed against nominal coverage: {'; '.join(pairs)}."
    rows = list(zip(wanted, shares, map(markup.percent_range, levels), strict=True))
    listed = markup.table(("Nominal", "Observed", "95\u00a0% range"), rows, "Coverage by level")
    body = markup.chart("calibration", label) + markup.details("Values as a table", listed)
    return markup.section("calibration", "Nominal and observed coverage", lead, body)


def _errors(content: dict[str, Any]) -> markup.Section | None:
    bins = content["errors"]
    if not bins:
        return None
    lead = (
        "Held-out nodes grouped by the width of their interval. If the line rises, wide intervals "
        "indicate predictions with larger errors."
    )
    ends = ", ".join(
        f"{format_number(one['error'])} at width {format_number(one['width'])}"
        for one in (bins[0], bins[-1])
    )
    label = f"Mean error of the prediction against width: {ends}."
    columns = [markup.aligned([group[name] for group in bins]) for name in ("width", "error")]
    rows = list(zip(*columns, (f"{group['nodes']:,}" for group in bins), strict=True))
    listed = markup.table(("Mean width", "Mean error", "Nodes"), rows, "Error by width")
    body = markup.chart("errors", label) + markup.details("Values as a table", listed)
    return markup.section("errors", "Width and error", lead, body)


def _groups(content: dict[str, Any]) -> markup.Section | None:
    groupings = [grouping for grouping in content["groupings"] if grouping["groups"]]
    if not groupings:
        return None
    titles = {i: grouping["title"] for i, grouping in enumerate(groupings)}
    choice = (
        '<p class="controls js-only"><label for="grouping">Group nodes by</label> '
        f'<select id="grouping">{markup.options(titles)}</select></p>'
    )
    blocks = "".join(_grouping(content, i, grouping) for i, grouping in enumerate(groupings))
    lead = (
        f"Coverage of the held-out nodes by group. The dashed line is the nominal "
        f"{percent(content['level'])}; bars show the 95\u00a0% error margin. Diamonds mark "
        "groups with significantly low coverage."
    )
    return markup.section("groups", "Coverage by group", lead, choice + blocks)


def _grouping(content: dict[str, Any], position: int, grouping: dict[str, Any]) -> str:
    groups, title = grouping["groups"], markup.escaped(grouping["title"])
    flagged = sum(bool(group["flagged"]) for group in groups)
    label = (
        f"Coverage in {len(groups)} groups by {grouping['title']}, {flagged} of them with low "
        "coverage; the values are in the table."
    )
    head = ("Group", "Nodes", "Coverage", "95\u00a0% range", WORDINGS[content["side"]].mean)
    sizes = markup.aligned([group["size"] for group in groups])
    rows = [_group_row(group, size) for group, size in zip(groups, sizes, strict=True)]
    listed = markup.table(head, rows, f"Coverage by {grouping['title']}", "figures")
    return (
        f'<div class="grouping" data-grouping="{position}"><h3>By {title}</h3>'
        f'<p class="lead">{markup.sentence(grouping["about"])}</p><div class="twin">'
        f"{markup.chart(f'group-{position}', label)}{listed}</div></div>"
    )


def _group_row(group: dict[str, Any], size: str) -> tuple[str, ...]:
    mark = ' <span class="flag">◆ low</span>' if group["flagged"] else ""
    return (
        f"{markup.escaped(markup.unbroken(group['label']))}{mark}",
        f"{group['nodes']:,}",
        markup.unbroken(percent(group["coverage"], 1)),
        markup.percent_range(group),
        size,
    )


def _explorer(content: dict[str, Any]) -> markup.Section | None:
    nodes = content["nodes"]
    if not nodes or not nodes["id"]:
        return None
    one = WORDINGS[content["side"]].one
    lead = f"Select a node in the graph or in the table to see its {one} and its columns."
    return markup.section("nodes", "Nodes", lead, explorer(content))


def _training(content: dict[str, Any]) -> markup.Section | None:
    """Return the training curves by epoch; None without any."""
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
        f"</figcaption>{markup.chart(f'training-{name}', f'{title} by epoch; {about}.')}</figure>"
        for name, title, about in panels
        if curves[name]
    )
    return markup.section("training", "Training", lead, f'<div class="small-charts">{body}</div>')


def _background(content: dict[str, Any]) -> markup.Section | None:
    """Return all metrics, settings, versions and facts about the input; None without any."""
    covered = WORDINGS[content["side"]].all_covered
    metrics: list[tuple[str, ...]] = []
    for name, value in (content["figures"] or {}).items():
        if value is not None:
            about = markup.escaped(ABOUT_FIGURES.get(name, "").replace("{covered}", covered))
            code = f"<code>{markup.escaped(name)}</code>"
            metrics.append((code, format_number(value), about))
    parts = {"All metrics": metrics}
    for title, name in (("Settings", "settings"), ("Versions", "versions"), ("Input data", "read")):
        parts[title] = [tuple(map(markup.escaped, row)) for row in content[name]]
    body = "".join(
        markup.details(title, markup.table((), rows, title, "definitions"))
        for title, rows in parts.items()
        if rows
    )
    return markup.section("background", "Details", "", body) if body else None
