"""``qpignn convert``: conversion of tables larger than memory into a graph on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qpignn.cli import options
from qpignn.cli.output import check_output, print_json
from qpignn.data.column_roles import ColumnRoles
from qpignn.errors import SettingError, check_integer


def convert(
    nodes: Path,
    out: Annotated[Path, typer.Option(metavar="DIR")],
    edges: Path | None = None,
    *,
    roles: ColumnRoles,
    memory: int = 1024,
    as_json: options.Json = False,
) -> None:
    """Convert tables larger than memory into a graph that 'fit --graph' reads from disk.

    Columns get the same roles, by the same rules, as in 'fit'. A graph in DIR is replaced. The same
    command starts a killed conversion again.

    Example: qpignn convert --nodes nodes.parquet --edges edges.parquet --target flow --out graph

    Args:
        nodes: Node table (.csv, .tsv, .parquet).
        out: Folder for the graph.
        edges: Edge table.
        roles: Roles of the columns and format of the files, one option each.
        memory: Memory to use, in MiB, in addition to the ids and one column.

    Raises:
        SettingError: if a sheet of an Excel file is named.
    """
    check_output(out, folder=True)
    check_integer("--memory", memory)
    if roles.node_sheet or roles.edge_sheet:
        raise SettingError("--node-sheet and --edge-sheet go with Excel files, which fit reads")
    options.check_tables(nodes, edges, roles)
    from qpignn.data.convert import convert_graph

    wanted = {k: v for k, v in vars(roles).items() if k not in ("node_sheet", "edge_sheet")}
    counts = convert_graph(nodes, edges, out, memory=memory << 20, verbose=True, **wanted).counts()
    if as_json:
        print_json({"folder": str(out), **counts})
        return
    kind = "directed edges" if counts["directed"] else "edges"
    typer.echo(
        f"converted {counts['nodes']:,} nodes ({counts['labelled']:,} labelled), "
        f"{counts['edges']:,} {kind}, {counts['features']:,} features: {counts['bytes']:,} bytes "
        f"in {out}"
    )
    typer.echo(f"next: qpignn fit --graph {out} --out model")
