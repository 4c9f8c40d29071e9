"""Sections of the report page, as HTML that is readable without JavaScript."""

from __future__ import annotations

from typing import Any

from qpignn.diagnostics.coverage import percent
from qpignn.reports.explorer import explorer
from qpignn.reports.markup import (
    SEVERITY_NAMES,
    Section,
    aligned,
    chart,
    details,
    escaped,
    format_number,
    icon,
    legend,
    node_count,
    percent_range,
    percentage,
    section,
    sentence,
    table,
)
from qpignn.reports.provenance import background, training
from qpignn.reports.wording import WORDINGS


def sections(content: dict[str, Any]) -> list[Section]:
    """Return the sections that are not empty, in their order.

    Args:
        content: see :func:`qpignn.reports.page.render_page`.
    """
    charts = (_band, _calibration, _errors, _groups, _explorer)
    makers = (_summary, _findings, *charts, training, background)
    return [part for make in makers if (part := make(content)) is not None]


def _summary(content: dict[str, Any]) -> Section:
    summary = " ".join(sentence(one) for one in content["summary"])
    tiles = "".join(
        f'<div class="tile"><dt>{escaped(tile["label"])}</dt>'
        f'<dd class="value">{escaped(tile["value"])}</dd>'
        f'<dd class="note">{escaped(_unbroken(tile["note"]))}</dd></div>'
        for tile in content["key_numbers"]
    )
    numbers = f'<dl class="tiles">{tiles}</dl>' if tiles else ""
    prose = f'<div class="prose"><p>{summary}</p></div>'
    return section("summary", "Summary", "", prose + numbers)


def _unbroken(note: str) -> str:
    """Replace spaces before per cent signs by non-breaking ones."""
    return note.replace(" %", "\u00a0%")


def _findings(content: dict[str, Any]) -> Section | None:
    findings = content["findings"]
    if not findings:
        return None
    items = "".join(
        f'<li class="finding {finding["severity"]}">{icon(finding["severity"])}'
        f'<p><strong class="word">{SEVERITY_NAMES[finding["severity"]]}.</strong> '
        f"{sentence(finding['text'])}</p></li>"
        for finding in findings
    )
    return section("findings", "Findings", "", f'<ul class="findings">{items}</ul>')


def _band(content: dict[str, Any]) -> Section | None:
    band = content["band"]
    if not band or not band["target"]:
        return _misses_alone(content)
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
        f"{wording.many.capitalize()} of {node_count(len(band['target']))} in order of prediction "
        f"of {content['target']}; {missed} of the true values are {wording.all_missed}."
    )
    entries = (
        ("bar" if two_sided else content["side"], wording.one),
        ("tick", "prediction"),
        ("dot", f"true value, {wording.covered}"),
        ("cross", f"true value, {wording.missed} ({missed:,})"),
    )
    body = legend(entries) + chart("band", label) + _misses(content)
    return section("band", f"{wording.many.capitalize()} and true values", lead, body)


def _misses(content: dict[str, Any]) -> str:
    misses = content["misses"]
    if not misses:
        return ""
    expected = (1 - content["level"]) / 2 * misses["nodes"]
    shown = format_number(round(expected, 1) if expected < 10 else round(expected))
    lead = (
        f"Of {node_count(misses['nodes'])} held out, {misses['below']:,} had a true value "
        f"below the interval and {misses['above']:,} above it. If misses were balanced, about "
        f"{shown} would fall on each side (dashed line)."
    )
    return (
        '<div class="part"><h3>Misses below and above</h3>'
        f'<p class="lead">{escaped(lead)}</p>{chart("misses", lead)}</div>'
    )


def _misses_alone(content: dict[str, Any]) -> Section | None:
    body = _misses(content)
    return section("band", "Misses", "", body) if body else None


def _calibration(content: dict[str, Any]) -> Section | None:
    levels = content["calibration"]
    if not levels:
        return None
    wording = WORDINGS[content["side"]]
    lead = (
        f"Points on the dashed line have exactly the nominal coverage. Below it, "
        f"{wording.undercoverage}; above it, {wording.overcoverage}. Bars show the 95\u00a0% error "
        "margin."
    )
    label = "Observed against nominal coverage: " + "; ".join(
        f"{percentage(point['coverage'])} at {percent(point['level'])}" for point in levels
    )
    rows = [
        (percent(point["level"]), percentage(point["coverage"]), percent_range(point))
        for point in levels
    ]
    listed = table(("Nominal", "Observed", "95\u00a0% range"), rows, "Coverage by level")
    body = chart("calibration", label + ".") + details("Values as a table", listed)
    return section("calibration", "Nominal and observed coverage", lead, body)


def _errors(content: dict[str, Any]) -> Section | None:
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
    columns = [aligned([group[name] for group in bins]) for name in ("width", "error")]
    rows = list(zip(*columns, (f"{group['nodes']:,}" for group in bins), strict=True))
    listed = table(("Mean width", "Mean error", "Nodes"), rows, "Error by width")
    body = chart("errors", label) + details("Values as a table", listed)
    return section("errors", "Width and error", lead, body)


def _groups(content: dict[str, Any]) -> Section | None:
    groupings = [grouping for grouping in content["groupings"] if grouping["groups"]]
    if not groupings:
        return None
    options = "".join(
        f'<option value="{i}">{escaped(grouping["title"])}</option>'
        for i, grouping in enumerate(groupings)
    )
    choice = (
        '<p class="controls js-only"><label for="grouping">Group nodes by</label> '
        f'<select id="grouping">{options}</select></p>'
    )
    blocks = "".join(_grouping(content, i, grouping) for i, grouping in enumerate(groupings))
    lead = (
        f"Coverage of the held-out nodes by group. The dashed line is the nominal "
        f"{percent(content['level'])}; bars show the 95\u00a0% error margin. Diamonds mark "
        "groups with significantly low coverage."
    )
    return section("groups", "Coverage by group", lead, choice + blocks)


def _grouping(content: dict[str, Any], position: int, grouping: dict[str, Any]) -> str:
    groups = grouping["groups"]
    flagged = sum(bool(group["flagged"]) for group in groups)
    label = (
        f"Coverage in {len(groups)} groups by {grouping['title']}, {flagged} of them with low "
        "coverage; the values are in the table."
    )
    head = ("Group", "Nodes", "Coverage", "95\u00a0% range", WORDINGS[content["side"]].mean)
    sizes = aligned([group["size"] for group in groups])
    rows = [_group_row(group, size) for group, size in zip(groups, sizes, strict=True)]
    listed = table(head, rows, f"Coverage by {grouping['title']}", "figures")
    return (
        f'<div class="grouping" data-grouping="{position}"><h3>By {escaped(grouping["title"])}</h3>'
        f'<p class="lead">{sentence(grouping["about"])}</p><div class="twin">'
        f"{chart(f'group-{position}', label)}{listed}</div></div>"
    )


def _group_row(group: dict[str, Any], size: str) -> tuple[str, ...]:
    mark = ' <span class="flag">◆ low</span>' if group["flagged"] else ""
    return (
        f"{escaped(_unbroken(group['label']))}{mark}",
        f"{group['nodes']:,}",
        percentage(group["coverage"]),
        percent_range(group),
        size,
    )


def _explorer(content: dict[str, Any]) -> Section | None:
    nodes = content["nodes"]
    if not nodes or not nodes["id"]:
        return None
    one = WORDINGS[content["side"]].one
    lead = f"Select a node in the graph or in the table to see its {one} and its columns."
    return section("nodes", "Nodes", lead, explorer(content))
