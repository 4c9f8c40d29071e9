"""The part of the page in which nodes are looked up: the graph and the table."""

from __future__ import annotations

from typing import Any

from qpignn.reports.markup import sentence, text


def graph_view(content: dict[str, Any]) -> str:
    """The canvas of the graph with its controls; empty where nothing is drawn."""
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
    label = f"The graph: {shown}Nodes are coloured by the width of their interval."
    return (
        '<div class="graph"><div class="controls"><div id="ramp" class="ramp"></div>'
        f'<label class="check"{unused}><input type="checkbox" id="mark" checked> frame missed nodes'
        "</label>"
        f'<div class="zoom" role="group" aria-label="Zoom">{buttons}</div></div>'
        f'<canvas id="graph" tabindex="0" role="application" aria-label="{text(label)}" '
        'aria-describedby="graph-help"></canvas>'
        f'<p class="lead" id="graph-help">{text(shown)}{sentence(graph["note"])} '
        "Drag to move; click the graph and turn the wheel to zoom. On the keyboard, arrows step "
        "from node to node, Enter chooses, + and − zoom.</p></div>"
    )


def node_table() -> str:
    """The searchable table, which the browser fills."""
    columns = (
        ("id", "node"),
        ("role", "role"),
        ("prediction", "prediction"),
        ("lower", "lower"),
        ("upper", "upper"),
        ("width", "width"),
        ("target", "true value"),
        ("inside", "inside?"),
    )
    head = "".join(
        f'<th scope="col" class="{name}" aria-sort="none"><button type="button" '
        f'data-sort="{name}">{title}</button></th>'
        for name, title in columns
    )
    pager = "".join(
        f'<button type="button" class="button" data-page="{way}">{label}</button>'
        for way, label in (("first", "First"), ("back", "Back"), ("on", "Next"), ("last", "Last"))
    )
    return (
        '<div class="table"><div class="controls" role="search">'
        '<label for="search" class="unseen">Search by node id</label>'
        '<input type="search" id="search" placeholder="Search by node id" autocomplete="off" '
        'spellcheck="false"><label for="role" class="unseen">Role of the nodes</label>'
        '<select id="role"><option value="">all roles</option><option value="0">given</option>'
        '<option value="1">held out</option><option value="2">unlabelled</option>'
        '<option value="3">not used</option></select>'
        '<button type="button" class="button" id="download">Save as CSV</button></div>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Table of nodes">'
        '<table class="figures rows"><caption class="unseen">Nodes and their intervals</caption>'
        f'<thead><tr>{head}</tr></thead><tbody id="rows"></tbody></table></div>'
        '<div class="controls pager"><p id="count" role="status"></p>'
        f'<div role="group" aria-label="Pages">{pager}</div></div></div>'
    )
