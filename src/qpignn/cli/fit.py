"""``qpignn fit``: from a data set or files to a fitted model in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli.options import EDGES_HELP, NODES_HELP, check_method, check_tables, takes_tables
from qpignn.cli.output import (
    Json,
    Settings,
    check_output,
    names,
    number,
    print_json,
    say,
    settings_of,
    speaks,
)
from qpignn.data.column_roles import ColumnRoles
from qpignn.errors import SettingError, WriteError, check_choice, quoted
from qpignn.names import DATASETS

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from qpignn.data.readers import GraphTables
    from qpignn.methods.base import IntervalMethod
    from qpignn.methods.bundle import Origin

GRAPH_HELP = "A graph written by 'qpignn convert', in place of tables; it stays where it is."
FRACTION_HELP = "Share of labelled nodes held out for 'evaluate' and 'report' (0.2); 0 for none."
RESUME_HELP = "Continue a fit that was killed or interrupted, if --out holds one of this command."
CHECKPOINT = "checkpoint"  # folder in --out, while a fit is unfinished


@takes_tables()
def fit(
    out: Annotated[Path, typer.Option(help="Folder for the fitted model.", metavar="DIR")],
    dataset: Annotated[str | None, typer.Option(help="A data set by name.")] = None,
    nodes: Annotated[Path | None, typer.Option(help=NODES_HELP)] = None,
    edges: Annotated[Path | None, typer.Option(help=EDGES_HELP)] = None,
    graph: Annotated[Path | None, typer.Option(help=GRAPH_HELP, metavar="DIR")] = None,
    *,
    roles: ColumnRoles,
    confidence: Annotated[str, typer.Option(help="Wanted coverage, or several by commas.")] = "0.9",
    method: Annotated[str, typer.Option(help="Method by name, or mine.py:Class.")] = "qpignn",
    side: Annotated[
        str | None, typer.Option(help="both, or only a lower or an upper bound.")
    ] = None,
    y_min: Annotated[float | None, typer.Option(help="The target is never below this.")] = None,
    y_max: Annotated[float | None, typer.Option(help="The target is never above this.")] = None,
    test_fraction: Annotated[float | None, typer.Option(help=FRACTION_HELP)] = None,
    lambda_width: Annotated[
        str | None, typer.Option(help="Width penalty: auto, tuned or a number.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Training epochs, at most.")] = None,
    more: Settings = None,
    seed: Annotated[int, typer.Option(help="Decides split and initial weights.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help=RESUME_HELP)] = False,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints.", min=0)
    ] = 10.0,
    as_json: Json = False,
) -> None:
    """Fit a method on a data set or on your own files, and keep it in a folder.

    Columns of the node table without another role are features: numbers as they are, text as
    categories. By default bounds keep the sign of the targets; --set y_min=null lifts that. Further
    settings of the method: --set target_transform=log1p, --set hidden=64; see help(qpignn.QpiGNN).

    A fit that was killed is not lost: the same command with --resume goes on where it was and ends
    with the same model. So does one that Ctrl-C interrupted (exit code 130); until then its partly
    trained model can be used, with a warning at every use. It does not replace a finished model
    that --out already holds.

    A graph larger than memory is converted once (qpignn convert) and then fitted with --graph.

    Example: qpignn fit --nodes nodes.csv --edges edges.csv --target flow --out model
    """
    from qpignn.intervals import check_levels

    check_output(out, folder=True)
    levels = check_levels([number(word) for word in names(confidence)], "--confidence")
    check_method(method)
    settings = settings_of(
        more, epochs=epochs, lambda_width=lambda_width, side=side, y_min=y_min, y_max=y_max
    )
    _check_source(dataset, nodes, edges, graph, roles)
    share = _test_fraction(test_fraction, roles.split)
    # all that takes time to import comes from here on
    from qpignn.data.graph import given_nodes, test_nodes
    from qpignn.data.mapped import describe_graph
    from qpignn.data.settings import hide_targets
    from qpignn.data.structure import summarize_graph
    from qpignn.methods.bundle import Fit, has_finished_fit, save_fit

    given_split = roles.split if graph is None else _split_of(graph)
    share = _test_fraction(test_fraction, given_split)
    model = _method(method, levels, {"seed": seed, "verbose": speaks(), **settings})
    data, tables, origin = _graph(dataset, nodes, edges, graph, roles)
    found = asdict(summarize_graph(data)) if graph is None else describe_graph(graph).counts()
    _tell_read(found, data, tables)
    data = _split(data, share, given_split, seed)
    given, judged = given_nodes(data), test_nodes(data)
    if not bool(given.any()):
        raise SettingError(f"--split {given_split}: expected labelled train nodes, got none")
    say(f"split: {int(given.sum()):,} nodes to learn from, {int(judged.sum()):,} held out")
    kept = out / CHECKPOINT
    with _told_to_resume(kept):
        _fit_kept(model, hide_targets(data, given), kept, checkpoint_every, resume=resume)
    if not speaks():
        return
    table = None if tables is None else tables.nodes
    interrupted = model.history_.interrupted
    saves = not (interrupted and has_finished_fit(out, model))
    if saves:
        with _told_to_resume(kept):
            save_fit(out, Fit(model, data, table, origin))
    if not interrupted:
        _clear(kept)
    decided = _decided(model)
    report: dict[str, Any] = {
        "folder": str(out),
        "saved": saves,
        "read": found,
        "decided": decided,
        "nodes": found["nodes"],
        "labelled": found["labelled"],
        "given": int(given.sum()),
        "test": int(judged.sum()),
        "epochs": len(model.history_),
        "stopped": model.history_.stopped,
    }
    if as_json:
        print_json(report)
    if interrupted:
        raise KeyboardInterrupt(
            f"the partly trained model is in {out}; the same command with --resume finishes it"
            if saves
            else f"the earlier model in {out} is unchanged; the same command with --resume "
            f"finishes the new one"
        )
    if as_json:
        return
    say("decided: " + ", ".join(f"{name} {value}" for name, value in decided.items()))
    typer.echo(f"fitted on {report['given']:,} nodes in {report['epochs']} epochs; saved in {out}")
    if report["test"]:
        typer.echo(f"next: qpignn evaluate {out}   (on {report['test']:,} held-out nodes)")
    typer.echo(f"next: qpignn predict {out} --out intervals.csv")
    typer.echo(f"next: qpignn report {out} --open")


def _check_source(
    dataset: str | None,
    nodes: Path | None,
    edges: Path | None,
    graph: Path | None,
    roles: ColumnRoles,
) -> None:
    """Raise for sources that exclude each other, and for files and columns that are not there."""
    if [dataset, nodes, graph].count(None) != 2:
        raise SettingError(
            "expected either --dataset NAME or --nodes FILE or --graph DIR, got several or none"
        )
    if nodes is not None:
        check_tables(nodes, edges, roles)
        return
    given = [*["edges"] * (edges is not None), *roles.given()]
    if given:
        raise SettingError(
            f"expected no roles of columns with --{'graph' if dataset is None else 'dataset'}, got "
            f"{quoted(given)}; they go with --nodes"
        )
    if dataset is not None:
        check_choice("data set", dataset, DATASETS)


def _test_fraction(wanted: float | None, split: str | None) -> float:
    if split is not None and wanted is not None:
        raise SettingError("--test-fraction and --split exclude each other: who is test is given")
    share = 0.2 if wanted is None else wanted
    if not 0 <= share < 1:
        raise SettingError(f"--test-fraction: expected a share from 0 to below 1, got {share:g}")
    return share


def _method(name: str, levels: list[float], settings: dict[str, Any]) -> IntervalMethod:
    """Make the method; levels below the wanted ones are kept too where they cost nothing."""
    from qpignn.methods.catalog import make_method

    wanted = levels[0] if len(levels) == 1 else levels
    free = make_method(name, confidence_level=wanted, **settings).free_levels()
    every = sorted({*levels, *(level for level in free if level < levels[-1])})
    return make_method(name, confidence_level=every if len(every) > 1 else every[0], **settings)


def _split_of(graph: Path) -> str | None:
    """Return what says who is held out in a converted graph, if something does."""
    from qpignn.data.graph import MASKS
    from qpignn.data.mapped import describe_graph

    files = describe_graph(graph).files
    return next((name for name in MASKS if f"{name}.npy" in files), None)


def _graph(
    dataset: str | None,
    nodes: Path | None,
    edges: Path | None,
    graph: Path | None,
    roles: ColumnRoles,
) -> tuple[Data, GraphTables | None, Origin]:
    """Return the graph, the tables it was read from, and where it came from."""
    from qpignn.data.catalog import load_dataset
    from qpignn.data.mapped import open_graph
    from qpignn.data.readers import graph_from_tables, read_tables
    from qpignn.methods.bundle import Origin

    if graph is not None:
        return open_graph(graph, verbose=speaks()), None, Origin.of_mapped(graph)
    if dataset is not None:
        return load_dataset(dataset), None, Origin(dataset, None)
    assert nodes is not None
    tables = read_tables(nodes, edges, roles, text=roles.categorical)
    data = graph_from_tables(tables, **roles.columns())
    directed = roles.directed if tables.directed is None else tables.directed
    return data, tables, Origin(None, roles.with_(id=tables.id, directed=directed))


def _split(data: Data, share: float, column: str | None, seed: int) -> Data:
    from qpignn.data.split import split_nodes

    return split_nodes(data, test=share, seed=seed) if column is None and share > 0 else data


def _fit_kept(
    model: IntervalMethod, data: Data, folder: Path, every: float, *, resume: bool
) -> None:
    """Fit, keeping checkpoints in a folder; go on with those it holds, or remove them first."""
    from qpignn.runtime import distributed
    from qpignn.training.checkpoint import (
        checkpoints,
        clear_checkpoints,
        fit_key,
        has_checkpoints,
    )

    if resume and not has_checkpoints(folder):
        say(f"nothing to resume in {folder}: starting anew")
    if not resume and speaks() and clear_checkpoints(folder):
        say(
            f"an unfinished fit was in {folder}: starting anew (--resume would have gone on with "
            f"it)"
        )
    with distributed.process_group():
        distributed.barrier()  # nobody reads what the first is still taking away
        if distributed.world_size() > 1:
            distributed.exit_on_sigterm()
            say(f"fitting on {distributed.world_size()} ranks")
        with checkpoints(folder, fit_key(model, data), every, writes=speaks(), notify=say):
            model.fit(data)


def _clear(folder: Path) -> None:
    """Remove checkpoints that nobody needs any more; the fit is saved, so it has not failed."""
    from qpignn.training.checkpoint import clear_checkpoints

    try:
        clear_checkpoints(folder)
    except WriteError as error:
        say(f"warning: the fit is saved, but its checkpoint could not be removed ({error})")


@contextmanager
def _told_to_resume(folder: Path) -> Iterator[None]:
    """Say, where Ctrl-C ends the command, how to go on with what was kept."""
    from qpignn.training.checkpoint import has_checkpoints

    try:
        yield
    except KeyboardInterrupt:
        if not has_checkpoints(folder):
            raise
        raise KeyboardInterrupt("the same command with --resume goes on") from None


def _tell_read(found: dict[str, Any], data: Data, tables: GraphTables | None) -> None:
    kind = "directed edges" if found["directed"] else "edges"
    more = ""
    if "components" in found:  # not counted where the graph stays on disk
        more = f"; isolated nodes: {found['isolated']:,}, "
        more += f"connected components: {found['components']:,}"
    say(
        f"read: {found['nodes']:,} nodes ({found['labelled']:,} labelled), {found['edges']:,} "
        f"{kind}, {found['features']:,} features{_sparse(data.x)}{more}"
    )
    for line in [*_written(tables), *_coded(data)]:
        say(f"  {line}")


def _sparse(x: Tensor) -> str:
    """Say how full a sparse matrix of features is; nothing of a dense one."""
    from qpignn.data.matrix import is_sparse, stored_values

    if not is_sparse(x):
        return ""
    filled = len(stored_values(x)) / (x.shape[0] * x.shape[1])
    return f" (sparse: {100 * filled:.2g} % are not zero)"


def _written(tables: GraphTables | None) -> list[str]:
    """Say what was recognised in the files without being asked for."""
    if tables is None:
        return []
    lines = [f"ids: column {tables.id}"] if tables.id != "id" else []
    for name, frame in (("nodes", tables.nodes), ("edges", tables.edges)):
        if frame is not None and frame.attrs.get("decimal") == ",":
            lines.append(f"{name}: decimal commas")
    return lines


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
    for name in ("y_min", "y_max"):
        limit = getattr(inner, f"{name}_", None)
        if settings.get(name) == "auto" and limit is not None:
            found[name] = f"{limit:g}"
    if settings.get("lambda_width") == "tuned":
        found["lambda"] = f"{inner.lambda_width_:.4g}"
    return found
