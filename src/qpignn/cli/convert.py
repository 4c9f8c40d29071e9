"""``qpignn convert``: tables larger than memory become a graph that stays on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qpignn.cli import roles
from qpignn.cli.output import Json, check_output, print_json
from qpignn.errors import SettingError, whole_number


def convert(
    nodes: Annotated[Path, typer.Option(help="Node table (.csv, .tsv, .parquet).")],
    target: Annotated[str, typer.Option(help=roles.TARGET_HELP)],
    out: Annotated[Path, typer.Option(help="Folder for the graph.", metavar="DIR")],
    edges: Annotated[Path | None, typer.Option(help=roles.EDGES_HELP)] = None,
    id: roles.Id = "id",
    features: roles.Features = None,
    ignore: roles.Ignore = "",
    categorical: roles.Categorical = "",
    missing: roles.Missing = "error",
    edge_weight: roles.EdgeWeight = None,
    node_weight: roles.NodeWeight = None,
    edge_ends: roles.EdgeEnds = None,
    split: roles.Split = None,
    coordinates: roles.Coordinates = None,
    directed: roles.Directed = False,
    encoding: roles.Encoding = "utf-8",
    decimal: roles.Decimal = ".",
    memory: Annotated[
        int, typer.Option(help="Memory to use, in MiB, beside the ids and one column.")
    ] = 1024,
    as_json: Json = False,
) -> None:
    """Turn tables larger than memory into a graph that 'fit --graph' reads from disk.

    Columns get the same roles, by the same rules, as in 'fit'. A graph that is in DIR is replaced;
    a conversion that was killed is begun anew by the same command.

    Example: qpignn convert --nodes nodes.parquet --edges edges.parquet --target flow --out graph
    """
    from qpignn.data.convert import convert_graph

    check_output(out, folder=True)
    whole_number("--memory", memory)
    if edges is None and (edge_weight or edge_ends):
        raise SettingError("--edge-weight and --edge-ends go with --edges")
    wanted: dict[str, Any] = roles.roles_of(
        target=target,
        id=id,
        features=features,
        ignore=ignore,
        categorical=categorical,
        missing=missing,
        edge_ends=edge_ends,
        edge_weight=edge_weight,
        node_weight=node_weight,
        split=split,
        coordinates=coordinates,
        directed=directed,
        encoding=encoding,
        decimal=decimal,
    )
    told = convert_graph(nodes, edges, out, memory=memory << 20, verbose=True, **wanted).counts()
    if as_json:
        print_json({"folder": str(out), **told})
        return
    kind = "directed edges" if told["directed"] else "edges"
    typer.echo(
        f"converted {told['nodes']:,} nodes ({told['labelled']:,} labelled), {told['edges']:,} "
        f"{kind}, {told['features']:,} features: {told['bytes']:,} bytes in {out}"
    )
    typer.echo(f"next: qpignn fit --graph {out} --out model")
