"""The part of the page in which nodes are looked up: filter, graph, table and node card."""

from __future__ import annotations

from typing import Any

from qpignn.reports.columns import left_out_note
from qpignn.reports.markup import number, sentence, text
from qpignn.reports.wording import WORDINGS

COLOURS = {
    "width": "width of the interval",
    "prediction": "prediction",
    "error": "error: true value − prediction",
}


def explorer(content: dict[str, Any]) -> str:
    """Return the whole part, empty of nodes: the browser fills it."""
    nodes = content["nodes"]
    part = f"{nodes['shown']:,} of {nodes['of']:,} nodes are listed" * (
        nodes["shown"] < nodes["of"]
    )
    listed = ": ".join(words for words in (part, nodes["note"]) if words)
    notes = (listed, left_out_note(content["columns"]["left_out"]))
    shown = "".join(f'<p class="lead">{sentence(words)}</p>' for words in notes if words)
    return (
        f'{shown}<div class="explorer js-only" id="explorer">'
        f"{_filter(content)}{_graph(content)}{_table()}"
        '<div class="panel" id="panel" role="region" aria-label="The chosen node" tabindex="0">'
        "</div></div>"
    )


def _filter(content: dict[str, Any]) -> str:
    """Return the controls that choose nodes, for the graph and the table alike."""
    roles = ("given", "held out", "unlabelled", "not used")
    options = "".join(f'<option value="{i}">{role}</option>' for i, role in enumerate(roles))
    choices = "".join(
        f'<label class="choice"><input type="radio" name="threshold" value="{value}"'
        f"{' checked' * (value == 'all')}> <span>{label}</span> "
        f'<output class="number" data-count="{value}"></output></label>'
        for value, label in _threshold_choices(content["side"])
    )
    level, words = number(100 * content["level"]), WORDINGS[content["side"]]
    return (
        '<div class="filter"><div class="controls" role="search">'
        '<label for="search" class="unseen">Search for nodes</label>'
        '<input type="search" id="search" placeholder="Search by node id" autocomplete="off" '
        f'spellcheck="false">{_places(content["columns"]["list"])}'
        '<label for="role" class="unseen">Role of the nodes</label>'
        f'<select id="role"><option value="">all roles</option>{options}</select>'
        f'<label for="threshold" class="long">Threshold for {text(content["target"])}</label>'
        '<input type="number" id="threshold" step="any" placeholder="a number" '
        'autocomplete="off"></div>'
        '<fieldset class="controls choices" id="choices"><legend class="unseen">'
        f"Nodes on which side of the threshold</legend>{choices}</fieldset>"
        f'<p class="lead" id="threshold-help" hidden>“Surely” is by the {level}\u00a0% '
        f"{words.many}: about {number(round(100 - 100 * content['level'], 9))}\u00a0% of all true "
        f"values are {words.all_missed}.</p></div>"
    )


def _places(columns: list[dict[str, Any]]) -> str:
    """Return the choice of where to search, if there are texts beside the ids."""
    if not any(column["kind"] == "text" for column in columns):
        return ""
    return (
        '<label for="where" class="unseen">Where to search</label><select id="where">'
        '<option value="id">in ids</option><option value="text">in ids and text</option></select>'
    )


def _threshold_choices(side: str) -> list[tuple[str, str]]:
    """Return what a threshold can tell apart; one bound decides on one side only."""
    every = ("all", "all nodes")
    above, below = ("above", "surely above"), ("below", "surely below")
    if side == "upper":
        return [every, below, ("either", "may be above")]
    if side == "lower":
        return [every, above, ("either", "may be below")]
    return [every, above, below, ("either", "may be either")]


def _graph(content: dict[str, Any]) -> str:
    """Return the canvas of the graph with its controls; empty where nothing is drawn."""
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
        for way, label, sign in (
            ("in", "Zoom in", "+"),
            ("out", "Zoom out", "−"),
            ("fit", "Show the whole graph", "Fit"),
        )
    )
    unused = "" if 1 in content["nodes"]["role"] else " hidden"
    label = f"The {'map' if graph['axes'] else 'graph'}: {shown}"
    return (
        f'<div class="graph"><div class="controls">{_colours(content["side"])}'
        f'<label class="check"{unused}><input type="checkbox" id="mark" checked> frame missed nodes'
        '</label></div><div class="controls"><div id="ramp" class="ramp" role="img"></div>'
        f'<div class="zoom" role="group" aria-label="Zoom">{buttons}</div></div>'
        f'<canvas id="graph" tabindex="0" role="application" aria-label="{text(label)}" '
        'aria-describedby="graph-help"></canvas>'
        '<p class="lead" id="colour-note"></p>'
        f'<p class="lead" id="graph-help">{text(shown)}{sentence(graph["note"])} '
        "Drag to move; click the graph and turn the wheel to zoom. On the keyboard, arrows step "
        "from node to node, Enter chooses, + and − zoom.</p></div>"
    )


def _colours(side: str) -> str:
    """Return the choice of what colours show."""
    titles = COLOURS if side == "both" else {**COLOURS, "width": f"distance to the {side} bound"}
    options = "".join(f'<option value="{name}">{title}</option>' for name, title in titles.items())
    return f'<label for="colour">Colour by</label> <select id="colour">{options}</select>'


def _table() -> str:
    """Return the table with its controls; the browser fills in head and rows."""
    pager = "".join(
        f'<button type="button" class="button" data-page="{way}">{label}</button>'
        for way, label in (("first", "First"), ("back", "Back"), ("on", "Next"), ("last", "Last"))
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
