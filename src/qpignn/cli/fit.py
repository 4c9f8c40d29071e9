"""``qpignn fit``: from a data set or files to a fitted model in a folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli.output import (
    Json,
    Settings,
    check_output,
    names,
    number,
    print_json,
    say,
    settings_of,
)
from qpignn.errors import SettingError, listed

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from qpignn.data.structure import Overview
    from qpignn.methods.base import IntervalMethod
    from qpignn.methods.fits import Origin

DEFAULT_ROLES: dict[str, Any] = {
    "target": None,
    "id": "id",
    "features": None,
    "ignore": [],
    "categorical": [],
    "missing": "error",
    "edge_ends": None,
    "edge_weight": None,
    "node_weight": None,
    "split": None,
    "coordinates": None,
    "directed": False,
    "encoding": "utf-8",
    "decimal": ".",
}
NODES_HELP = "Node table (.csv, .tsv, .parquet), or a .graphml file with nodes and edges."
FRACTION_HELP = "Share of labelled nodes held out for 'evaluate' and 'report' (0.2); 0 for none."


def fit(
    out: Annotated[Path, typer.Option(help="Folder for the fitted model.", metavar="DIR")],
    dataset: Annotated[str | None, typer.Option(help="A data set by name.")] = None,
    nodes: Annotated[Path | None, typer.Option(help=NODES_HELP)] = None,
    edges: Annotated[Path | None, typer.Option(help="Edge table.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Column to predict; blank = unlabelled.")
    ] = None,
    id: Annotated[str, typer.Option(help="Id column of the node table.")] = "id",
    features: Annotated[
        str | None, typer.Option(help="Feature columns, by commas; default all that are left.")
    ] = None,
    ignore: Annotated[str, typer.Option(help="Columns that are no features, by commas.")] = "",
    categorical: Annotated[
        str, typer.Option(help="Feature columns of codes: categories, not numbers.")
    ] = "",
    missing: Annotated[
        str, typer.Option(help="Blank features: error, or impute (median and an indicator).")
    ] = "error",
    edge_weight: Annotated[
        str | None, typer.Option(help="Weight column of the edge table.")
    ] = None,
    node_weight: Annotated[
        str | None, typer.Option(help="Weight column of the node table.")
    ] = None,
    edge_ends: Annotated[
        str | None, typer.Option(help="The edge table's two id columns, such as from,to.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Column saying train, validation, test.")
    ] = None,
    coordinates: Annotated[
        str | None, typer.Option(help="Two columns to draw the report's map by (lon,lat).")
    ] = None,
    directed: Annotated[bool, typer.Option("--directed", help="Edges count one way only.")] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of text files.")] = "utf-8",
    decimal: Annotated[str, typer.Option(help="Decimal sign of text files: . or ,")] = ".",
    confidence: Annotated[str, typer.Option(help="Wanted coverage, or several by commas.")] = "0.9",
    method: Annotated[str, typer.Option(help="Method by name.")] = "qpignn",
    test_fraction: Annotated[float | None, typer.Option(help=FRACTION_HELP)] = None,
    lambda_width: Annotated[
        str | None, typer.Option(help="Width penalty: auto, tuned or a number.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Training epochs, at most.")] = None,
    more: Settings = None,
    seed: Annotated[int, typer.Option(help="Decides split and initial weights.")] = 0,
    as_json: Json = False,
) -> None:
    """Fit a method on a data set or on your own files, and keep it in a folder.

    Columns of the node table without another role are features: numbers as they are, text as
    categories. Settings of the default method: --set side=upper (one bound only), --set y_min=0
    (where the target cannot go), --set target_transform=log1p; see help(qpignn.QpiGNN).

    Example: qpignn fit --nodes nodes.csv --edges edges.csv --target flow --out model
    """
    from qpignn.data.graph import given_nodes, test_nodes
    from qpignn.data.structure import overview
    from qpignn.data.views import hide_targets
    from qpignn.methods.fits import Fit, save_fit

    check_output(out, folder=True)
    share = _test_fraction(test_fraction, split)
    settings = settings_of(more, epochs=epochs, lambda_width=lambda_width)
    model = _method(method, confidence, {"seed": seed, "verbose": True, **settings})
    roles = {
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
    data, table, origin = _graph(dataset, nodes, edges, roles)
    found = overview(data)
    _tell_read(found, data)
    data = _split(data, share, split, seed)
    given, judged = given_nodes(data), test_nodes(data)
    if not bool(given.any()):
        raise SettingError(f"--split {split}: expected labelled train nodes, got none")
    say(f"split: {int(given.sum()):,} nodes to learn from, {int(judged.sum()):,} held out")
    model.fit(hide_targets(data, given))
    if model.history_.stopped == "interrupted":
        say(f"interrupted after {len(model.history_)} epochs: keeping what was trained so far")
    save_fit(out, Fit(model, data, table, origin))
    decided = _decided(model)
    report: dict[str, Any] = {
        "folder": str(out),
        "read": asdict(found),
        "decided": decided,
        "nodes": found.nodes,
        "labelled": found.labelled,
        "given": int(given.sum()),
        "test": int(judged.sum()),
        "epochs": len(model.history_),
        "stopped": model.history_.stopped,
    }
    if as_json:
        print_json(report)
        return
    say("decided: " + ", ".join(f"{name} {value}" for name, value in decided.items()))
    typer.echo(f"fitted on {report['given']:,} nodes in {report['epochs']} epochs; saved in {out}")
    if report["test"]:
        typer.echo(f"next: qpignn evaluate {out}   (on {report['test']:,} held-out nodes)")
    typer.echo(f"next: qpignn predict {out} --out intervals.csv")
    typer.echo(f"next: qpignn report {out} --open")


def _test_fraction(wanted: float | None, split: str | None) -> float:
    if split is not None and wanted is not None:
        raise SettingError("--test-fraction and --split exclude each other: who is test is given")
    share = 0.2 if wanted is None else wanted
    if not 0 <= share < 1:
        raise SettingError(f"--test-fraction: expected a share from 0 to below 1, got {share:g}")
    return share


def _method(name: str, confidence: str, settings: dict[str, Any]) -> IntervalMethod:
    """Make the method; levels below the wanted ones are kept too where they cost nothing."""
    from qpignn.intervals import check_levels
    from qpignn.methods.catalog import make_method

    levels = check_levels([number(word) for word in names(confidence)], "--confidence")
    wanted = levels[0] if len(levels) == 1 else levels
    free = make_method(name, confidence_level=wanted, **settings).free_levels()
    every = sorted({*levels, *(level for level in free if level < levels[-1])})
    return make_method(name, confidence_level=every if len(every) > 1 else every[0], **settings)


def _graph(
    dataset: str | None, nodes: Path | None, edges: Path | None, roles: dict[str, Any]
) -> tuple[Data, pd.DataFrame | None, Origin]:
    from qpignn.data.catalog import load_dataset
    from qpignn.data.readers import graph_of, read_frames
    from qpignn.methods.fits import Origin

    if (dataset is None) == (nodes is None):
        raise SettingError("expected either --dataset NAME or --nodes FILE, got both or neither")
    if dataset is not None:
        given = [name for name, value in roles.items() if value != DEFAULT_ROLES[name]]
        if edges is not None or given:
            raise SettingError(
                f"expected no roles of columns with --dataset, got "
                f"{listed(['edges'] * (edges is not None) + given)}; they go with --nodes"
            )
        return load_dataset(dataset), None, Origin(dataset, None)
    assert nodes is not None
    if roles["target"] is None:
        raise SettingError("expected --target COLUMN: which column of the node table to predict")
    form = {name: roles[name] for name in ("id", "encoding", "decimal", "edge_ends")}
    tables = read_frames(nodes, edges, text=roles["categorical"], **form)
    if tables.edges is None and (roles["edge_weight"] or roles["edge_ends"]):
        raise SettingError("--edge-weight and --edge-ends go with --edges")
    columns = {key: value for key, value in roles.items() if key not in ("encoding", "decimal")}
    directed = roles["directed"] if tables.directed is None else tables.directed
    return graph_of(tables, **columns), tables.nodes, Origin(None, {**roles, "directed": directed})


def _split(data: Data, share: float, column: str | None, seed: int) -> Data:
    from qpignn.data.split import split_nodes

    return split_nodes(data, test=share, seed=seed) if column is None and share > 0 else data


def _tell_read(found: Overview, data: Data) -> None:
    kind = "directed edges" if found.directed else "edges"
    say(
        f"read: {found.nodes:,} nodes ({found.labelled:,} labelled), {found.edges:,} {kind}, "
        f"{found.features:,} features; isolated nodes: {found.isolated:,}, connected components: "
        f"{found.components:,}"
    )
    for line in _coded(data):
        say(f"  {line}")


def _coded(data: Data) -> list[str]:
    """Say what became of columns that are not plain numbers."""
    coding = data.get("coding")
    if coding is None:
        return []
    lines = []
    for column in coding.columns:
        if column.kind == "category":
            lines.append(f"{column.name}: {len(column.categories)} categories, one column each")
        if column.blank:
            filled = "" if column.fill is None else f" filled with the median {column.fill:g} and"
            lines.append(f"{column.name}: blanks{filled} marked in a column of their own")
    return lines


def _decided(model: IntervalMethod) -> dict[str, Any]:
    """Return what the fit settled by itself."""
    inner: Any = getattr(model, "method_", model)
    settings = inner.fitted_.settings
    scaler = getattr(inner, "y_scaler_", None)
    found: dict[str, Any] = {"levels": ", ".join(f"{100 * level:g} %" for level in model.levels_)}
    if "scaling" in settings:
        found["scaling"] = settings["scaling"]
    if scaler is not None:
        found["target transform"] = scaler.name
    if settings.get("lambda_width") == "tuned":
        found["lambda"] = f"{inner.lambda_width_:.4g}"
    return found
