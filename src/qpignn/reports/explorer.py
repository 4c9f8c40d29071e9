"""The node explorer of the page: filter, graph, table and node card (``assets/explorer.html``)."""

from __future__ import annotations

from typing import Any

from qpignn.diagnostics.wording import WORDINGS, percent
from qpignn.reports.columns import left_out_note
from qpignn.reports.markup import escaped, fill_template, options, sentence, unbroken

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
SCOPE = '<label for="where" class="unseen">Where to search</label><select id="where">{}</select>'


def explorer(content: dict[str, Any]) -> str:
    """Return the explorer without nodes, which the browser fills in.

    Args:
        content: see :func:`qpignn.reports.page.render_page`.
    """
    nodes, columns, side = content["nodes"], content["columns"], content["side"]
    few, of = nodes["shown"], nodes["of"]
    part = f"{few:,} of {of:,} nodes are listed" * (few < of)
    listed = ": ".join(note for note in (part, nodes["note"]) if note)
    notes = (listed, left_out_note(columns["left_out"]))
    choices = "".join(
        f'<label class="choice"><input type="radio" name="threshold" value="{value}"'
        f"{' checked' * (value == 'all')}> <span>{label}</span> "
        f'<output class="number" data-count="{value}"></output></label>'
        for value, label in {"all": "all nodes", **THRESHOLDS[side]}.items()
    )
    scope = ""
    if any(column["kind"] == "text" for column in columns["list"]):
        scope = SCOPE.format(options({"id": "in ids", "text": "in ids and text"}))
    level, rest = (unbroken(percent(share)) for share in (content["level"], 1 - content["level"]))
    return fill_template(
        "explorer.html",
        notes="".join(f'<p class="lead">{sentence(note)}</p>' for note in notes if note),
        scope=scope,
        roles=options({"": "all roles", **dict(enumerate(ROLES))}),
        target=escaped(content["target"]),
        choices=choices,
        level=level,
        rest=rest,
        bounds=WORDINGS[side].many,
        missed=WORDINGS[side].all_missed,
        graph=_graph(content),
    )


def _graph(content: dict[str, Any]) -> str:
    """Return the canvas of the graph with its controls; empty without drawn nodes."""
    graph, side = content["graph"], content["side"]
    if not graph or not graph["node"]:
        return ""
    nodes, edges = (
        f"{graph[some]:,} of {graph[of]:,}" if graph[some] < graph[of] else f"{graph[of]:,}"
        for some, of in (("shown", "of"), ("edges_shown", "edges_of"))
    )
    titles = COLOURS if side == "both" else {**COLOURS, "width": f"distance to the {side} bound"}
    return fill_template(
        "graph.html",
        colours=options(titles),
        hidden="" if 1 in content["nodes"]["role"] else " hidden",
        kind="map" if graph["axes"] else "graph",
        shown=f"Drawn: {nodes} nodes and {edges} edges.",
        note=sentence(graph["note"]),
    )
