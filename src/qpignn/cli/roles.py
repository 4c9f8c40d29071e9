"""Options that say what the columns of a user's tables are, for every command that reads some."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from qpignn.cli.output import names

TARGET_HELP = "Column to predict; blank = unlabelled."
EDGES_HELP = "Edge table."
Id = Annotated[str, typer.Option(help="Id column of the node table.")]
Features = Annotated[
    str | None, typer.Option(help="Feature columns, by commas; default all that are left.")
]
Ignore = Annotated[str, typer.Option(help="Columns that are no features, by commas.")]
Categorical = Annotated[
    str, typer.Option(help="Feature columns of codes: categories, not numbers.")
]
Missing = Annotated[
    str, typer.Option(help="Blank features: error, or impute (median and an indicator).")
]
EdgeWeight = Annotated[str | None, typer.Option(help="Weight column of the edge table.")]
NodeWeight = Annotated[str | None, typer.Option(help="Weight column of the node table.")]
EdgeEnds = Annotated[
    str | None, typer.Option(help="The edge table's two id columns, such as from,to.")
]
Split = Annotated[str | None, typer.Option(help="Column saying train, validation, test.")]
Coordinates = Annotated[
    str | None, typer.Option(help="Two columns to draw the report's map by (lon,lat).")
]
Directed = Annotated[bool, typer.Option("--directed", help="Edges count one way only.")]
Encoding = Annotated[str, typer.Option(help="Encoding of text files.")]
Decimal = Annotated[str, typer.Option(help="Decimal sign of text files: . or ,")]


def roles_of(
    *,
    target: str | None,
    id: str,
    features: str | None,
    ignore: str,
    categorical: str,
    missing: str,
    edge_ends: str | None,
    edge_weight: str | None,
    node_weight: str | None,
    split: str | None,
    coordinates: str | None,
    directed: bool,
    encoding: str,
    decimal: str,
) -> dict[str, Any]:
    """Return what the options say as the library takes it: lists in place of words with commas."""
    return {
        "target": target,
        "id": id,
        "features": names(features) if features is not None else None,
        "ignore": names(ignore),
        "categorical": names(categorical),
        "missing": missing,
        "edge_ends": names(edge_ends) if edge_ends else None,
        "edge_weight": edge_weight,
        "node_weight": node_weight,
        "split": split,
        "coordinates": names(coordinates) if coordinates else None,
        "directed": directed,
        "encoding": encoding,
        "decimal": decimal,
    }
