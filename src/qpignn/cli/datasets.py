"""``qpignn datasets``: what can be loaded by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from qpignn.data.catalog import Dataset


def datasets(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on stdout.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Load each set that is here and verify its counts.")
    ] = False,
) -> None:
    """List the 19 data sets of the paper: size, and whether their files are here.

    Edges are undirected edges without self-loops (protocol corrected); the published columns count
    edges as the authors' code stored them.

    Example: qpignn datasets --json
    """
    from qpignn.data.catalog import BENCHMARK, EXTRA  # noqa: PLC0415 (torch is slow to import)

    rows = [_row(entry) for entry in BENCHMARK.values()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        _print_table(rows)
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
        typer.echo("every data set that is here has the counts above", err=True)


def _row(entry: Dataset) -> dict[str, Any]:
    from qpignn.data.catalog import why_missing  # noqa: PLC0415

    assert entry.sizes is not None
    corrected, published = entry.sizes["corrected"], entry.sizes["published"]
    reason = why_missing(entry)
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


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(title="Data sets", title_justify="left")
    for heading, justify in (
        ("name", "left"),
        ("nodes", "right"),
        ("edges", "right"),
        ("features", "right"),
        ("published edges", "right"),
        ("here", "left"),
        ("about", "left"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        counts = (f"{row[key]:,}" for key in ("nodes", "edges", "features", "published_edges"))
        table.add_row(row["name"], *counts, "yes" if row["available"] else "no", row["about"])
    console = Console()
    console.print(table)
    for row in rows:
        if not row["available"]:
            console.print(f"{row['name']}: {row['reason']}", highlight=False, soft_wrap=True)
