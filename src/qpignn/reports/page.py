"""A report as one page of HTML that needs nothing else: no network, no server, no other file.

What matters is written here, as text and tables, so that it is there without JavaScript and on
paper; charts, the graph and the table of nodes are drawn in the browser (``assets/page.js``) from
the same content, which is embedded as JSON. Names and ids come from users' files and are never
trusted: everything written here is escaped, and the page's own policy lets no script run but ours.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from qpignn.diagnostics.coverage import percent
from qpignn.files import finite
from qpignn.reports.explorer import graph_view, node_table
from qpignn.reports.markup import (
    WORDS,
    aligned,
    chart,
    details,
    icon,
    legend,
    nodes_in_words,
    number,
    percent_range,
    percentage,
    sentence,
    table,
    text,
)

ABOUT_FIGURES = {
    "confidence_level": "the coverage asked for",
    "n_test": "held-out nodes the figures are computed on",
    "picp": "coverage: the share of true values inside their interval",
    "mpiw": "mean width of the intervals, in ranges of the given targets",
    "mpiw_raw": "mean width of the intervals, in the target's own unit",
    "nmpiw": "mean width, in ranges of the held-out targets",
    "mpe": "mean distance from the middle of the interval to the true value, in given ranges",
    "sharpness": "mean squared width: one very wide interval weighs more",
    "winkler": "Winkler score: width plus a price for every miss; smaller is better",
    "winkler_one": "the same with a lower price, as the published code counts",
    "cwc": "coverage and width in one number; smaller is better",
}
STOPPED = {
    "epochs": "Training ran through all its epochs.",
    "patience": "Training stopped early, because held-out nodes were no longer served better.",
    "interrupted": "Training was interrupted.",
}


class Section(NamedTuple):
    """A part of the page: its anchor, its name in the list of contents, and its HTML."""

    anchor: str
    title: str
    html: str


def render_page(content: dict[str, Any]) -> str:
    """Return the whole report as HTML.

    Args:
        content: title, subtitle, made, version, level, target, summary, verdict, findings, figures,
            key_numbers, band, calibration, groupings, misses, errors, training, graph, nodes,
            settings, versions and read, in plain Python types. A part that is None or empty is
            left out. Bounds that are None are unbounded; ``graph["y"]`` grows downwards, as on a
            screen, and ``graph["aspect"]`` is width over height; epochs count from 0.
    """
    style, script = _asset("page.css"), _asset("page.js")
    parts = [section for section in _sections(content) if section.html]
    return Template(_asset("page.html")).substitute(
        policy=_policy(style, script),
        title=text(content["title"]),
        style=style,
        script=script,
        header=_header(content),
        contents=_contents(parts),
        sections="\n".join(_arrange(parts)),
        footer=f"<p>Made {text(content['made'])} with qpignn {text(content['version'])}.</p>",
        content=_embedded(content),
    )


def _asset(name: str) -> str:
    return files("qpignn.reports").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing from anywhere, and only the style and the script this page was made with."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(words: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()


def _embedded(content: dict[str, Any]) -> str:
    """JSON in ASCII in which no string can end the script it stands in."""
    words = json.dumps(finite(content), allow_nan=False, separators=(",", ":"))
    return words.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _section(anchor: str, title: str, lead: str, body: str, kind: str = "") -> Section:
    """Frame a part; ``lead`` is plain text that says how to read it."""
    words = f'<p class="lead">{text(lead)}</p>' if lead else ""
    frame = (
        f'<section id="{anchor}" class="card {kind}" aria-labelledby="{anchor}-title">'
        f'<h2 id="{anchor}-title">{text(title)}</h2>{words}{body}</section>'
    )
    return Section(anchor, title, frame)


def _sections(content: dict[str, Any]) -> list[Section]:
    makers = (
        _summary,
        _watch,
        _band,
        _calibration,
        _errors,
        _groups,
        _explorer,
        _training,
        _background,
    )
    return [section for make in makers if (section := make(content)) is not None]


def _arrange(parts: list[Section]) -> list[str]:
    """Put calibration and errors, which are small, side by side."""
    small = [part.html for part in parts if part.anchor in ("calibration", "errors")]
    pair = f'<div class="pair">{"".join(small)}</div>'
    arranged = []
    for part in parts:
        if part.html in small:
            arranged += [pair] if part.html == small[0] else []
        else:
            arranged.append(part.html)
    return arranged


def _contents(parts: list[Section]) -> str:
    items = "".join(f'<li><a href="#{part.anchor}">{text(part.title)}</a></li>' for part in parts)
    return f"<ol>{items}</ol>"


def _header(content: dict[str, Any]) -> str:
    verdict = content["verdict"]
    severity = verdict["severity"]
    return (
        '<button type="button" id="theme" class="button quiet js-only" aria-pressed="false">'
        "Dark mode</button>"
        f"<h1>{text(content['title'])}</h1>"
        f'<p class="subtitle">{text(content["subtitle"])}</p>'
        f'<p class="verdict {severity}">{icon(severity)}<span><strong>{WORDS[severity]}.</strong> '
        f"{sentence(verdict['text'])}</span></p>"
    )


def _summary(content: dict[str, Any]) -> Section:
    words = " ".join(sentence(words) for words in content["summary"])
    tiles = "".join(
        f'<div class="tile"><dt>{text(tile["label"])}</dt>'
        f'<dd class="value">{text(tile["value"])}</dd><dd class="note">{text(tile["note"])}</dd>'
        "</div>"
        for tile in content["key_numbers"]
    )
    numbers = f'<dl class="tiles">{tiles}</dl>' if tiles else ""
    return _section("summary", "In short", "", f'<div class="prose"><p>{words}</p></div>{numbers}')


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
    return _section("watch", "What to watch", "", f'<ul class="findings">{items}</ul>')


def _band(content: dict[str, Any]) -> Section | None:
    band = content["band"]
    if not band or not band["target"]:
        return _misses_alone(content)
    missed = band["inside"].count(False)
    of = f"{band['shown']:,} of {band['of']:,}" if band["shown"] < band["of"] else f"{band['of']:,}"
    lead = (
        f"Every bar is the {percent(content['level'])} interval of one held-out node, from left to "
        f"right by true value ({of} held-out nodes). A cross is a true value outside its bar; "
        f"about {percent(1 - content['level'])} of them should be crosses."
    )
    label = (
        f"Intervals of {nodes_in_words(len(band['target']))} by rising {content['target']}; "
        f"{missed} of the true values lie outside."
    )
    entries = (
        ("bar", "interval"),
        ("tick", "prediction"),
        ("dot", "true value, inside"),
        ("cross", f"true value, missed ({missed:,})"),
    )
    body = legend(entries) + chart("band", label) + _misses(content)
    return _section("band", "Intervals and true values", lead, body)


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
    return _section("band", "Misses", "", body) if body else None


def _calibration(content: dict[str, Any]) -> Section | None:
    levels = content["calibration"]
    if not levels:
        return None
    lead = (
        "Points on the dashed line keep their promise; below it, intervals are too narrow, above "
        "it, wider than need be. Bars show which coverages the count is compatible with "
        "(95\u00a0%)."
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
    return _section("calibration", "Wanted and attained coverage", lead, body)


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
    return _section("errors", "Width and error", lead, body)


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
    return _section("groups", "Coverage by group", lead, choice + blocks)


def _grouping(content: dict[str, Any], position: int, grouping: dict[str, Any]) -> str:
    groups = grouping["groups"]
    flagged = sum(bool(group["flagged"]) for group in groups)
    label = (
        f"Coverage in {len(groups)} groups by {grouping['title']}, {flagged} of them to watch; "
        "the figures are in the table."
    )
    head = ("Group", "Nodes", "Coverage", "95\u00a0% range", "Mean width")
    widths = aligned([group["width"] for group in groups])
    rows = [_group_row(group, width) for group, width in zip(groups, widths, strict=True)]
    listed = table(head, rows, f"Coverage by {grouping['title']}", "figures")
    return (
        f'<div class="grouping" data-grouping="{position}"><h3>By {text(grouping["title"])}</h3>'
        f'<p class="lead">{sentence(grouping["about"])}</p><div class="twin">'
        f"{chart(f'group-{position}', label)}{listed}</div></div>"
    )


def _group_row(group: dict[str, Any], width: str) -> tuple[str, ...]:
    mark = ' <span class="flag">◆ watch</span>' if group["flagged"] else ""
    return (
        f"{text(group['label'])}{mark}",
        f"{group['nodes']:,}",
        percentage(group["coverage"]),
        percent_range(group),
        width,
    )


def _training(content: dict[str, Any]) -> Section | None:
    training = content["training"]
    if not training or not training["loss"]:
        return None
    best, epochs = training["best_epoch"], len(training["loss"])
    kept = f" The weights kept are those of epoch {best} (dashed line)." if best >= 0 else ""
    stopped = STOPPED.get(training["stopped"], str(training["stopped"]))
    lead = f"{epochs:,} epochs, that is passes over the graph. {stopped}{kept}"
    panels = [
        ("loss", "Loss", "what training makes small"),
        ("coverage", "Coverage", "of training nodes; the level line is what is wanted"),
        ("width", "Mean width", "of intervals, in scaled units"),
        ("held_out", "Held-out score", "lower is better"),
    ]
    body = "".join(
        f'<figure><figcaption><strong>{title}</strong> <span class="muted">{about}</span>'
        f"</figcaption>{chart(f'training-{name}', f'{title} by epoch; {about}.')}</figure>"
        for name, title, about in panels
        if training[name]
    )
    return _section("training", "Training", lead, f'<div class="small-charts">{body}</div>')


def _explorer(content: dict[str, Any]) -> Section | None:
    nodes = content["nodes"]
    if not nodes or not nodes["id"]:
        return None
    lead = "Choose a node in the graph or in the table to see its interval."
    part = f"{nodes['shown']:,} of {nodes['of']:,} nodes are listed" * (
        nodes["shown"] < nodes["of"]
    )
    words = ": ".join(told for told in (part, nodes["note"]) if told)
    note = f'<p class="lead">{sentence(words)}</p>' if words else ""
    body = (
        f'{note}<div class="explorer js-only">{graph_view(content)}{node_table()}'
        '<div class="panel" id="panel" role="region" aria-label="The chosen node"></div></div>'
    )
    return _section("nodes", "Node by node", lead, body)


def _background(content: dict[str, Any]) -> Section | None:
    figures = content["figures"]
    named = [
        (
            f"<code>{text(name)}</code>",
            number(value),
            text(ABOUT_FIGURES.get(name, "")),
        )
        for name, value in (figures or {}).items()
    ]
    parts = [("Settings", "settings"), ("Versions", "versions"), ("What was read", "read")]
    body = details("All figures, by their short names", table((), named, "All figures", "words"))
    body = body if named else ""
    for title, name in parts:
        rows = [(text(left), text(right)) for left, right in content[name]]
        body += details(title, table((), rows, title, "words")) if rows else ""
    return _section("background", "How this was made", "", body) if body else None
