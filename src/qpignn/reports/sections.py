"""The sections of the report page, each as HTML that stands without JavaScript."""

from __future__ import annotations

from typing import Any

from qpignn.diagnostics.coverage import percent
from qpignn.reports.explorer import explorer
from qpignn.reports.markup import (
    WORDS,
    Section,
    aligned,
    chart,
    details,
    icon,
    legend,
    nodes_in_words,
    number,
    percent_range,
    percentage,
    section,
    sentence,
    table,
    text,
)
from qpignn.reports.provenance import background, training
from qpignn.reports.wording import WORDINGS


def sections(content: dict[str, Any]) -> list[Section]:
    """Return the sections that a content has something for, in their order.

    Args:
        content: see :func:`qpignn.reports.page.render_page`.
    """
    makers = (
        _summary,
        _watch,
        _band,
        _calibration,
        _errors,
        _groups,
        _explorer,
        training,
        background,
    )
    made = [found for make in makers if (found := make(content)) is not None]
    return [found for found in made if found.html]


def _summary(content: dict[str, Any]) -> Section:
    words = " ".join(sentence(words) for words in content["summary"])
    tiles = "".join(
        f'<div class="tile"><dt>{text(tile["label"])}</dt>'
        f'<dd class="value">{text(tile["value"])}</dd>'
        f'<dd class="note">{text(_unbroken(tile["note"]))}</dd></div>'
        for tile in content["key_numbers"]
    )
    numbers = f'<dl class="tiles">{tiles}</dl>' if tiles else ""
    return section("summary", "In short", "", f'<div class="prose"><p>{words}</p></div>{numbers}')


def _unbroken(words: str) -> str:
    """No line break before a per cent sign."""
    return words.replace(" %", "\u00a0%")


def _watch(content: dict[str, Any]) -> Section | None:
    findings = content["findings"]
    if not findings:
        return None
    items = "".join(
        f'<li class="finding {found["severity"]}">{icon(found["severity"])}'
        f'<p><strong class="word">{WORDS[found["severity"]]}.</strong> '
        f"{sentence(found['text'])}</p></li>"
        for found in findings
    )
    return section("watch", "What to watch", "", f'<ul class="findings">{items}</ul>')


def _band(content: dict[str, Any]) -> Section | None:
    band = content["band"]
    if not band or not band["target"]:
        return _misses_alone(content)
    words, two_sided = WORDINGS[content["side"]], content["side"] == "both"
    missed = band["inside"].count(False)
    of = f"{band['shown']:,} of {band['of']:,}" if band["shown"] < band["of"] else f"{band['of']:,}"
    mark = "bar" if two_sided else "mark"
    reach = "" if two_sided else " The line leads to where the true value should be."
    lead = (
        f"Every {mark} is the {percent(content['level'])} {words.one} of one held-out node, from "
        f"left to right by rising prediction ({of} held-out nodes).{reach} A cross is a true value "
        f"{words.missed}; about {percent(round(1 - content['level'], 9))} of the true values "
        f"should be crosses."
    )
    label = (
        f"{words.many.capitalize()} of {nodes_in_words(len(band['target']))} by rising prediction "
        f"of {content['target']}; {missed} of the true values are {words.missed}."
    )
    entries = (
        ("bar" if two_sided else content["side"], words.one),
        ("tick", "prediction"),
        ("dot", f"true value, {words.kept}"),
        ("cross", f"true value, {words.missed} ({missed:,})"),
    )
    body = legend(entries) + chart("band", label) + _misses(content)
    return section("band", f"{words.many.capitalize()} and true values", lead, body)


def _misses(content: dict[str, Any]) -> str:
    misses = content["misses"]
    if not misses:
        return ""
    expected = (1 - content["level"]) / 2 * misses["nodes"]
    words = (
        f"Of {nodes_in_words(misses['nodes'])} held out, {misses['below']:,} had a true value "
        f"below the interval and {misses['above']:,} above it. If misses were even, about "
        f"{number(round(expected, 1) if expected < 10 else round(expected))} would fall on each "
        "side (dashed line)."
    )
    return (
        '<div class="part"><h3>Which side the misses are on</h3>'
        f'<p class="lead">{text(words)}</p>{chart("misses", words)}</div>'
    )


def _misses_alone(content: dict[str, Any]) -> Section | None:
    body = _misses(content)
    return section("band", "Misses", "", body) if body else None


def _calibration(content: dict[str, Any]) -> Section | None:
    levels = content["calibration"]
    if not levels:
        return None
    words = WORDINGS[content["side"]]
    lead = (
        f"Points on the dashed line keep their promise; below it, {words.tight}, above it, "
        f"{words.loose}. Bars show which coverages the count is compatible with (95\u00a0%)."
    )
    label = "Attained against wanted coverage: " + "; ".join(
        f"{percentage(point['coverage'])} at {percent(point['level'])}" for point in levels
    )
    rows = [
        (
            percent(point["level"]),
            percentage(point["coverage"]),
            percent_range(point),
        )
        for point in levels
    ]
    listed = table(("Wanted", "Attained", "95\u00a0% range"), rows, "Coverage by level")
    body = chart("calibration", label + ".") + details("These figures as a table", listed)
    return section("calibration", "Wanted and attained coverage", lead, body)


def _errors(content: dict[str, Any]) -> Section | None:
    bins = content["errors"]
    if not bins:
        return None
    lead = (
        "Held-out nodes in groups by the width of their interval. A rising line means that wide "
        "intervals stand where predictions really are worse."
    )
    first, last = bins[0], bins[-1]
    label = (
        f"Mean error of the prediction against width: {number(first['error'])} at width "
        f"{number(first['width'])}, {number(last['error'])} at width {number(last['width'])}."
    )
    columns = [aligned([group[name] for group in bins]) for name in ("width", "error")]
    rows = list(zip(*columns, (f"{group['nodes']:,}" for group in bins), strict=True))
    listed = table(("Mean width", "Mean error", "Nodes"), rows, "Error by width")
    body = chart("errors", label) + details("These figures as a table", listed)
    return section("errors", "Width and error", lead, body)


def _groups(content: dict[str, Any]) -> Section | None:
    groupings = [grouping for grouping in content["groupings"] if grouping["groups"]]
    if not groupings:
        return None
    options = "".join(
        f'<option value="{i}">{text(grouping["title"])}</option>'
        for i, grouping in enumerate(groupings)
    )
    choice = (
        '<p class="controls js-only"><label for="grouping">Group nodes by</label> '
        f'<select id="grouping">{options}</select></p>'
    )
    blocks = "".join(_grouping(content, i, grouping) for i, grouping in enumerate(groupings))
    lead = (
        f"The same coverage, taken apart. The dashed line is the wanted "
        f"{percent(content['level'])}; bars show which coverages the count is compatible with "
        "(95\u00a0%). Groups to watch are drawn as diamonds."
    )
    return section("groups", "Coverage by group", lead, choice + blocks)


def _grouping(content: dict[str, Any], position: int, grouping: dict[str, Any]) -> str:
    groups = grouping["groups"]
    flagged = sum(bool(group["flagged"]) for group in groups)
    label = (
        f"Coverage in {len(groups)} groups by {grouping['title']}, {flagged} of them to watch; "
        "the figures are in the table."
    )
    head = ("Group", "Nodes", "Coverage", "95\u00a0% range", WORDINGS[content["side"]].mean)
    sizes = aligned([group["size"] for group in groups])
    rows = [_group_row(group, size) for group, size in zip(groups, sizes, strict=True)]
    listed = table(head, rows, f"Coverage by {grouping['title']}", "figures")
    return (
        f'<div class="grouping" data-grouping="{position}"><h3>By {text(grouping["title"])}</h3>'
        f'<p class="lead">{sentence(grouping["about"])}</p><div class="twin">'
        f"{chart(f'group-{position}', label)}{listed}</div></div>"
    )


def _group_row(group: dict[str, Any], size: str) -> tuple[str, ...]:
    mark = ' <span class="flag">◆ watch</span>' if group["flagged"] else ""
    return (
        f"{text(group['label'])}{mark}",
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
    lead = f"Choose a node in the graph or in the table to see its {one} and its columns."
    return section("nodes", "Node by node", lead, explorer(content))
