"""``qpignn datasets``: what can be loaded by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli.output import Json, print_json, print_table, say

if TYPE_CHECKING:
    from qpignn.data.catalog import Dataset


def datasets(
    as_json: Json = False,
    check: Annotated[
        bool, typer.Option("--check", help="Load each set that is here and verify its counts.")
    ] = False,
) -> None:
    """List the 19 data sets of the paper: size, and whether their files are here.

    Edges are undirected edges without self-loops (protocol corrected); the published columns count
    edges as the authors' code stored them.

    Example: qpignn datasets --json
    """
    from qpignn.data.catalog import BENCHMARK, EXTRA

    rows = [_row(entry) for entry in BENCHMARK.values()]
    if as_json:
        print_json(rows)
    else:
        _print(rows)
        typer.echo(f"Also by name: {', '.join(EXTRA)}; other years, countries and draws by option.")
    if check:
        differences = [
            line
            for entry in BENCHMARK.values()
            if not entry.missing()
            for line in entry.differences()
        ]
        for line in differences:
            typer.secho(line, fg="red", err=True)
        if differences:
            raise typer.Exit(1)
        say("every data set that is here has the counts above")


def _row(entry: Dataset) -> dict[str, Any]:
    from qpignn.data.catalog import missing_message

    assert entry.sizes is not None
    corrected, published = entry.sizes["corrected"], entry.sizes["published"]
    reason = missing_message(entry)
    return {
        "name": entry.name,
        "origin": entry.origin,
        "about": entry.about,
        "nodes": corrected.nodes,
        "edges": corrected.edges,
        "features": corrected.features,
        "ones_per_node": entry.ones_per_node,
        "published_nodes": published.nodes,
        "published_edges": published.edges,
        "published_self_loops": published.self_loops,
        "available": reason is None,
        "reason": reason,
    }


def _print(rows: list[dict[str, Any]]) -> None:
    headings = ("name", "nodes", "edges", "features", "published edges", "here", "about")
    counts = ("nodes", "edges", "features", "published_edges")
    shown = [
        (
            row["name"],
            *(f"{row[count]:,}" for count in counts),
            "yes" if row["available"] else "no",
            row["about"],
        )
        for row in rows
    ]
    print_table("Data sets", headings, shown)
    for row in rows:
        if not row["available"]:
            typer.echo(f"{row['name']}: {row['reason']}")
