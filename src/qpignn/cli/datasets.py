"""``qpignn datasets``: what can be loaded by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from qpignn.cli import options
from qpignn.cli.output import print_json, print_table, say
from qpignn.names import PROTOCOLS
from qpignn.protocols import GENERAL, find_protocol

if TYPE_CHECKING:
    from qpignn.data.catalog import Dataset

OTHERS = [name for name in PROTOCOLS if name != GENERAL]


def datasets(as_json: options.Json = False, check: bool = False) -> None:
    """List the 19 data sets of the paper: size, and whether their files are here.

    Edges are undirected edges without self-loops; columns with the name of another protocol count
    edges as it stores them.

    Example: qpignn datasets --json

    Args:
        check: Load each set that is here and verify its counts.
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
            f"{protocol} {line}"
            for entry in BENCHMARK.values()
            if not entry.missing()
            for protocol in PROTOCOLS
            for line in _differences(entry, protocol)
        ]
        for line in differences:
            typer.secho(line, fg="red", err=True)
        if differences:
            raise typer.Exit(1)
        say("every data set that is here has the counts above")


def _row(entry: Dataset) -> dict[str, Any]:
    from qpignn.data.catalog import missing_message

    reason = missing_message(entry)
    sizes = {name: find_protocol(name).declared_size(entry.name) for name in OTHERS}
    return {
        **{name: getattr(entry, name) for name in ("name", "origin", "about")},
        **{count: getattr(entry.size, count) for count in ("nodes", "edges", "features")},
        "ones_per_node": entry.ones_per_node,
        **{
            f"{name}_{count}": getattr(size, count)
            for name, size in sizes.items()
            for count in ("nodes", "edges", "self_loops")
        },
        "available": reason is None,
        "reason": reason,
    }


def _differences(entry: Dataset, protocol: str) -> list[str]:
    """Return where a data set differs from its declared counts under a protocol."""
    chosen = find_protocol(protocol)
    data = chosen.load_dataset(entry.name)
    return entry.differences(data, chosen.declared_size(entry.name), chosen.count(data))


def _print(rows: list[dict[str, Any]]) -> None:
    counts = ("nodes", "edges", "features", *(f"{name}_edges" for name in OTHERS))
    headings = ("name", *(count.replace("_", " ") for count in counts), "here", "about")
    shown = []
    for row in rows:
        here = "yes" if row["available"] else "no"
        shown.append((row["name"], *(f"{row[one]:,}" for one in counts), here, row["about"]))
    print_table("Data sets", headings, shown)
    for row in rows:
        if not row["available"]:
            typer.echo(f"{row['name']}: {row['reason']}")
