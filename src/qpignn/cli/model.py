"""``qpignn fit``, ``evaluate`` and ``predict``: from files to intervals."""

from __future__ import annotations

import hashlib
import json
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
    print_metrics,
    say,
    settings_of,
)
from qpignn.errors import ModelFileError, ReadError, SettingError, listed
from qpignn.files import replace_file

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.intervals import Intervals

ORIGIN = "fit.json"
DEFAULT_ROLES: dict[str, Any] = {
    "target": None,
    "id": "id",
    "edge_ends": None,
    "edge_weight": None,
    "node_weight": None,
    "split": None,
    "directed": False,
    "encoding": "utf-8",
}
Level = Annotated[
    float | None, typer.Option(help="Which of the fitted levels; default the highest.")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder written by 'qpignn fit'.")]


def fit(
    out: Annotated[Path, typer.Option(help="Folder for the fitted model.", metavar="DIR")],
    dataset: Annotated[str | None, typer.Option(help="A data set by name.")] = None,
    nodes: Annotated[Path | None, typer.Option(help="Node table (.csv, .tsv, .parquet).")] = None,
    edges: Annotated[Path | None, typer.Option(help="Edge table.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Column to predict; blank = unlabelled.")
    ] = None,
    id: Annotated[str, typer.Option(help="Id column of the node table.")] = "id",
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
    directed: Annotated[bool, typer.Option("--directed", help="Edges count one way only.")] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of text files.")] = "utf-8",
    confidence: Annotated[str, typer.Option(help="Wanted coverage, or several by commas.")] = "0.9",
    method: Annotated[str, typer.Option(help="Method by name.")] = "qpignn",
    test_fraction: Annotated[
        float | None,
        typer.Option(help="Share of labelled nodes held out for 'evaluate' (0.2); 0 for none."),
    ] = None,
    lambda_width: Annotated[
        str | None, typer.Option(help="Width penalty: auto, tuned or a number.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Training epochs, at most.")] = None,
    more: Settings = None,
    seed: Annotated[int, typer.Option(help="Decides split and initial weights.")] = 0,
    as_json: Json = False,
) -> None:
    """Fit a method on a data set or on your own files, and keep it in a folder.

    Settings of the default method: --set side=upper (one bound only), --set y_min=0 (where the
    target cannot go), --set target_transform=log1p; see help(qpignn.QpiGNN).

    Example: qpignn fit --nodes nodes.csv --edges edges.csv --target flow --out model
    """
    from qpignn.data.graph import given_nodes, labelled, test_nodes
    from qpignn.data.split import split_nodes
    from qpignn.data.storage import save_graph
    from qpignn.data.views import hide_targets
    from qpignn.intervals import check_levels
    from qpignn.methods.catalog import make_method

    check_output(out, folder=True)
    levels = check_levels([number(word) for word in names(confidence)], "--confidence")
    if split is not None and test_fraction is not None:
        raise SettingError("--test-fraction and --split exclude each other: who is test is given")
    test_fraction = 0.2 if test_fraction is None else test_fraction
    if not 0 <= test_fraction < 1:
        raise SettingError(
            f"--test-fraction: expected a share from 0 to below 1, got {test_fraction:g}"
        )
    settings = settings_of(more, epochs=epochs, lambda_width=lambda_width)
    settings["confidence_level"] = levels[0] if len(levels) == 1 else levels
    model = make_method(method, **{"seed": seed, "verbose": True, **settings})
    roles = {
        "target": target,
        "id": id,
        "edge_ends": [end.strip() for end in edge_ends.split(",")] if edge_ends else None,
        "edge_weight": edge_weight,
        "node_weight": node_weight,
        "split": split,
        "directed": directed,
        "encoding": encoding,
    }
    data = _graph(dataset, nodes, edges, roles)
    known = int(labelled(data).sum())
    say(
        f"read {data.x.shape[0]:,} nodes ({known:,} labelled), {data.edge_index.shape[1]:,} "
        f"directed edges, {data.x.shape[1]:,} features"
    )
    if split is None and test_fraction > 0:
        data = split_nodes(data, test=test_fraction, seed=seed)
    given, judged = given_nodes(data), test_nodes(data)
    if not bool(given.any()):
        raise SettingError(f"--split {split}: expected labelled train nodes, got none")
    model.fit(hide_targets(data, given))
    if model.history_.stopped == "interrupted":
        say(f"interrupted after {len(model.history_)} epochs: keeping what was trained so far")
    model.save(out)
    save_graph(out / "graph", data)
    origin = {
        "dataset": dataset,
        "roles": None if dataset else roles,
        "features": data.get("feature_names"),
        "digests": _digests(out),
    }
    # written last, because it vouches for the other files
    replace_file(out / ORIGIN, json.dumps(origin, indent=2).encode())
    report: dict[str, Any] = {
        "folder": str(out),
        "nodes": data.x.shape[0],
        "labelled": known,
        "given": int(given.sum()),
        "test": int(judged.sum()),
        "epochs": len(model.history_),
        "stopped": model.history_.stopped,
    }
    if as_json:
        print_json(report)
    else:
        typer.echo(
            f"fitted on {report['given']:,} nodes in {report['epochs']} epochs; saved in {out}"
        )
        if report["test"]:
            typer.echo(f"next: qpignn evaluate {out}   (on {report['test']:,} held-out nodes)")
        typer.echo(f"next: qpignn predict {out} --out intervals.csv")


def evaluate(folder: Folder, confidence: Level = None, as_json: Json = False) -> None:
    """Judge a fitted model on the labelled nodes held out from its fit.

    Example: qpignn evaluate model --json
    """
    from qpignn.data.graph import given_nodes, test_nodes
    from qpignn.metrics import summary

    data, intervals = _load(folder, confidence)
    test = test_nodes(data)
    if not bool(test.any()):
        raise ModelFileError(
            f"{folder}: expected held-out nodes to judge on, got none; fit with "
            f"--test-fraction 0.2 or mark test nodes in the split column"
        )
    chosen = intervals.select(test.numpy())
    figures = summary(chosen, data.y[test], y_given=data.y[given_nodes(data)])
    if as_json:
        wanted = {"confidence_level": chosen.confidence_level, "n_test": int(test.sum())}
        print_json({**wanted, **figures})
    else:
        title = f"{int(test.sum()):,} held-out nodes, wanted coverage {chosen.confidence_level:g}"
        print_metrics(title, figures)


def predict(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="Table to write (.csv or .parquet).", metavar="FILE")],
    nodes: Annotated[Path | None, typer.Option(help="Another node table to predict on.")] = None,
    edges: Annotated[Path | None, typer.Option(help="Its edge table.")] = None,
    only: Annotated[str, typer.Option(help="unlabelled or all nodes.")] = "unlabelled",
    confidence: Level = None,
    parts: Annotated[
        bool,
        typer.Option("--parts", help="Also what part of the width is the model's own doubt."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write id, prediction, lower and upper for the unlabelled nodes, or for all.

    Without --nodes the graph of the fit is used.

    Example: qpignn predict model --out intervals.csv
    """
    from qpignn.data.graph import labelled

    if only not in ("unlabelled", "all"):
        raise SettingError(f"--only: expected unlabelled or all, got {only!r}")
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise SettingError(f"--out: expected a file ending in .csv or .parquet, got {out}")
    if edges is not None and nodes is None:
        raise SettingError("--edges goes with --nodes: another graph needs both its tables")
    check_output(out, folder=False)
    data, intervals = _load(folder, confidence, nodes, edges)
    if nodes is not None and edges is None:
        say("no --edges given: the new nodes are taken to have no neighbours")
    if only == "unlabelled":
        intervals = intervals.select((~labelled(data)).numpy())
        if not len(intervals):
            say("every node is labelled, so there is nothing to predict; use --only all")
    frame = intervals.to_frame(parts=parts)
    content = (
        frame.to_parquet()
        if out.suffix.lower() == ".parquet"
        else frame.to_csv(index=False).encode()
    )
    replace_file(out, content)
    say(f"wrote {len(frame):,} intervals to {out}")
    if as_json:
        level = intervals.confidence_level
        print_json({"file": str(out), "intervals": len(frame), "confidence_level": level})


def _graph(
    dataset: str | None, nodes: Path | None, edges: Path | None, roles: dict[str, Any]
) -> Data:
    from qpignn.data.catalog import load_dataset
    from qpignn.data.readers import read_graph

    if (dataset is None) == (nodes is None):
        raise SettingError("expected either --dataset NAME or --nodes FILE, got both or neither")
    if dataset is not None:
        given = [name for name, value in roles.items() if value != DEFAULT_ROLES.get(name)]
        if edges is not None or given:
            raise SettingError(
                f"expected no roles of columns with --dataset, got "
                f"{listed(['edges'] * (edges is not None) + given)}; they go with --nodes"
            )
        return load_dataset(dataset)
    assert nodes is not None
    if edges is None and (roles["edge_weight"] or roles["edge_ends"]):
        raise SettingError("--edge-weight and --edge-ends go with --edges")
    if roles["target"] is None:
        raise SettingError("expected --target COLUMN: which column of the node table to predict")
    return read_graph(nodes, edges, **roles)


def _load(
    folder: Path,
    confidence: float | None,
    nodes: Path | None = None,
    edges: Path | None = None,
) -> tuple[Data, Intervals]:
    from qpignn.data.readers import read_graph, read_table
    from qpignn.data.storage import load_graph
    from qpignn.methods.catalog import load_method

    model = load_method(folder)
    origin = _read_origin(folder)
    if nodes is None:
        data = load_graph(folder / "graph")
        data.feature_names = model.fitted_.names
    else:
        if origin["roles"] is None:
            raise ReadError(
                f"{folder}: was fitted on the data set {origin['dataset']!r}, so new files cannot "
                f"be matched to its columns"
            )
        roles = dict(origin["roles"])
        roles["node_weight"] = roles["split"] = None
        columns = read_table(nodes, text=[roles["id"]], encoding=roles["encoding"]).columns
        if roles["target"] not in columns:  # new nodes need not carry the column to be predicted
            roles["target"] = None
        data = read_graph(nodes, edges, features=origin["features"], need_target=False, **roles)
    return data, model.predict_interval(data, confidence_level=confidence)


def _digests(folder: Path) -> dict[str, str]:
    names = ("model.json", "graph/graph.safetensors", "graph/nodes.parquet")
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def _read_origin(folder: Path) -> dict[str, Any]:
    """Return where a fitted folder came from; it must be whole and of one fit."""
    try:
        origin = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))
        roles = origin["roles"]
        whole = origin["digests"] == _digests(folder) and (
            roles is None or roles.keys() == DEFAULT_ROLES.keys()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise ModelFileError(
            f"{folder}: expected a folder written by one 'qpignn fit', got one with missing, "
            f"damaged or mixed files; fit again"
        )
    return dict(origin)
