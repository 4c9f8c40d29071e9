"""The node explorer of the page: filter, graph, table and node card."""

from __future__ import annotations

from typing import Any

from qpignn.diagnostics.wording import WORDINGS
from qpignn.reports.columns import left_out_note
from qpignn.reports.markup import escaped, format_number, options, sentence

COLOURS = {
    "width": "width of the interval",
    "prediction": "prediction",
    "error": "error: true value − prediction",
}
THRESHOLDS = {
    "both": {"above": "surely above", "below": "surely below", "either": "may be either"},
    "upper": {"below": "surely below", "either": "may be above"},
    "lower": {"above": "surely above", "either": "may be below"},
}
"""What a threshold decides; one-sided bounds decide one side only."""
ROLES = ("given", "held out", "unlabelled", "not used")
ZOOMS = (("in", "Zoom in", "+"), ("out", "Zoom out", "−"), ("fit", "Show the whole graph", "Fit"))
PAGES = {"first": "First", "back": "Previous", "on": "Next", "last": "Last"}


def explorer(content: dict[str, Any]) -> str:
    """Return the explorer without nodes, which the browser fills in.

    Args:
        content: see :func:`qpignn.reports.page.render_page`.
    """
    nodes = content["nodes"]
    few, of = nodes["shown"], nodes["of"]
    part = f"{few:,} of {of:,} nodes are listed" * (few < of)
    listed = ": ".join(note for note in (part, nodes["note"]) if note)
    notes = (listed, left_out_note(content["columns"]["left_out"]))
    shown = "".join(f'<p class="lead">{sentence(note)}</p>' for note in notes if note)
    return (
        f'{shown}<div class="explorer js-only" id="explorer">'
        f"{_filter(content)}{_graph(content)}{_table()}"
        '<div class="panel" id="panel" role="region" aria-label="Selected node" tabindex="0">'
        "</div></div>"
    )


def _filter(content: dict[str, Any]) -> str:
    """Return the controls that filter nodes in both the graph and the table."""
    choices = "".join(
        f'<label class="choice"><input type="radio" name="threshold" value="{value}"'
        f"{' checked' * (value == 'all')}> <span>{label}</span> "
        f'<output class="number" data-count="{value}"></output></label>'
        for value, label in {"all": "all nodes", **THRESHOLDS[content["side"]]}.items()
    )
    roles = options({"": "all roles", **dict(enumerate(ROLES))})
    wording, level = WORDINGS[content["side"]], content["level"]
    shares = [format_number(round(100 * share, 9)) for share in (level, 1 - level)]
    return (
        '<div class="filter"><div class="controls" role="search">'
        '<label for="search" class="unseen">Search for nodes</label>'
        '<input type="search" id="search" placeholder="Search by node id" autocomplete="off" '
        f'spellcheck="false">{_search_scope(content["columns"]["list"])}'
        '<label for="role" class="unseen">Role of the nodes</label>'
        f'<select id="role">{roles}</select>'
        f'<label for="threshold" class="long">Threshold for {escaped(content["target"])}</label>'
        '<input type="number" id="threshold" step="any" placeholder="a number" '
        'autocomplete="off"></div>'
        '<fieldset class="controls choices" id="choices"><legend class="unseen">'
        f"Nodes on which side of the threshold</legend>{choices}</fieldset>"
        f'<p class="lead" id="threshold-help" hidden>“Surely” is according to the '
        f"{shares[0]}\u00a0% {wording.many}: about {shares[1]}\u00a0% of all true values are "
        f"{wording.all_missed}.</p></div>"
    )


def _search_scope(columns: list[dict[str, Any]]) -> str:
    """Return the choice between ids and text; empty without text columns."""
    if not any(column["kind"] == "text" for column in columns):
        return ""
    choices = options({"id": "in ids", "text": "in ids and text"})
    label = '<label for="where" class="unseen">Where to search</label>'
    return f'{label}<select id="where">{choices}</select>'


def _graph(content: dict[str, Any]) -> str:
    """Return the canvas of the graph with its controls; empty without drawn nodes."""
    graph = content["graph"]
    if not graph or not graph["node"]:
        return ""
    nodes, edges = (
        f"{graph[some]:,} of {graph[of]:,}" if graph[some] < graph[of] else f"{graph[of]:,}"
        for some, of in (("shown", "of"), ("edges_shown", "edges_of"))
    )
    shown = f"Drawn: {nodes} nodes and {edges} edges. "
    buttons = "".join(
        f'<button type="button" class="button" data-zoom="{way}" aria-label="{label}">{sign}'
        "</button>"
        for way, label, sign in ZOOMS
    )
    unused = "" if 1 in content["nodes"]["role"] else " hidden"
    label = f"The {'map' if graph['axes'] else 'graph'}: {shown}"
    return (
        f'<div class="graph"><div class="controls">{_colours(content["side"])}'
        f'<label class="check"{unused}><input type="checkbox" id="mark" checked> outline missed '
        'nodes</label></div><div class="controls"><div id="ramp" class="ramp" role="img"></div>'
        f'<div class="zoom" role="group" aria-label="Zoom">{buttons}</div></div>'
        f'<canvas id="graph" tabindex="0" role="application" aria-label="{escaped(label)}" '
        'aria-describedby="graph-help"></canvas>'
        '<p class="lead" id="colour-note"></p>'
        f'<p class="lead" id="graph-help">{escaped(shown)}{sentence(graph["note"])} '
        "Drag to pan; click the graph, then scroll to zoom. Keyboard: arrow keys move between "
        "nodes, Enter selects, + and − zoom.</p></div>"
    )


def _colours(side: str) -> str:
    """Return the choice of the quantity that colours show."""
    titles = COLOURS if side == "both" else {**COLOURS, "width": f"distance to the {side} bound"}
    return f'<label for="colour">Colour by</label> <select id="colour">{options(titles)}</select>'


def _table() -> str:
    """Return the table with its controls; the browser fills in header and rows."""
    pager = "".join(
        f'<button type="button" class="button" data-page="{way}">{label}</button>'
        for way, label in PAGES.items()
    )
    return (
        '<div class="table"><div class="controls">'
        '<details class="chooser" id="chooser"><summary class="button">Columns</summary>'
        '<fieldset><legend class="unseen">Columns of the table</legend>'
        '<div id="columns"></div></fieldset></details>'
        '<button type="button" class="button" id="download">Save as CSV</button></div>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Table of nodes">'
        '<table class="figures rows"><caption class="unseen">Nodes and their predictions</caption>'
        '<thead><tr id="head"></tr></thead><tbody id="rows"></tbody></table></div>'
        '<div class="controls pager"><p id="count" role="status"></p>'
        f'<div role="group" aria-label="Pages">{pager}</div></div></div>'
    )
