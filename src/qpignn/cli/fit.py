"""``qpignn fit``: fit a method on a data set or on files and save it in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli import options
from qpignn.cli.output import check_output, is_main_process, print_json, say
from qpignn.data.column_roles import ColumnRoles
from qpignn.errors import SettingError, WriteError, check_choice, quoted
from qpignn.names import DATASETS

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.data.readers import GraphTables
    from qpignn.methods.base import IntervalMethod
    from qpignn.methods.bundle import Origin

CHECKPOINT = "checkpoint"  # folder in --out while a fit is unfinished


def fit(
    out: Annotated[Path, typer.Option(metavar="DIR")],
    dataset: str | None = None,
    nodes: Path | None = None,
    edges: Path | None = None,
    graph: Annotated[Path | None, typer.Option(metavar="DIR")] = None,
    *,
    roles: ColumnRoles,
    confidence: str = "0.9",
    method: str = "qpignn",
    side: str | None = None,
    y_min: float | None = None,
    y_max: float | None = None,
    test_fraction: float | None = None,
    lambda_width: options.LambdaWidth = None,
    epochs: int | None = None,
    more: options.Settings = None,
    seed: int = 0,
    resume: bool = False,
    checkpoint_every: Annotated[float, typer.Option(min=0)] = 10.0,
    as_json: options.Json = False,
) -> None:
    """Fit a method on a data set or on your own files, and save it in a folder.

    Columns of the node table without another role are features: numbers are used unchanged, text
    becomes categories. By default bounds keep the sign of the targets; --set y_min=null removes
    this limit. Further settings of the method: --set target_transform=log1p, --set hidden=64; see
    help(qpignn.QpiGNN).

    If a fit is killed, the same command with --resume continues it and gives the same model. After
    Ctrl-C (exit code 130) the partly trained model can be used, with a warning at every use, or
    continued with --resume. It does not replace a finished model in --out.

    To fit a graph larger than memory, convert it once (qpignn convert) and use --graph.

    Example: qpignn fit --nodes nodes.csv --edges edges.csv --target flow --out model

    Args:
        out: Folder for the fitted model.
        dataset: Name of a data set.
        nodes: Node table (.csv, .tsv, .parquet, .xlsx), or a .graphml file with nodes and edges.
        edges: Edge table.
        graph: A graph written by 'qpignn convert', in place of tables; it is not copied.
        roles: Roles of the columns and format of the files, one option each.
        confidence: Wanted coverage; several separated by commas.
        method: Name of the method, or mine.py:Class.
        side: both, lower or upper: which bounds to predict.
        y_min: Lower limit of the target.
        y_max: Upper limit of the target.
        test_fraction: Share of labelled nodes held out for testing; default 0.2, 0 for none.
        epochs: Largest number of training epochs.
        seed: Seed of the split and the initial weights.
        resume: Continue the killed or interrupted fit of the same command in --out.
        checkpoint_every: Seconds between checkpoints.

    Raises:
        SettingError: if options exclude each other, or no labelled node is left to learn from.
        KeyboardInterrupt: after an interrupted fit has been saved.
    """
    from qpignn.intervals import check_levels

    check_output(out, folder=True)
    levels = check_levels(options.numbers(confidence), "--confidence")
    options.check_method(method)
    settings = options.settings_of(
        more, epochs=epochs, lambda_width=lambda_width, side=side, y_min=y_min, y_max=y_max
    )
    _check_source(dataset, nodes, edges, graph, roles)
    share = _test_fraction(test_fraction, roles.split)
    # slow imports only after the options have been checked
    from qpignn.data.graph import given_nodes, test_nodes
    from qpignn.data.mapped import describe_graph
    from qpignn.data.settings import hide_targets
    from qpignn.data.split import split_nodes
    from qpignn.data.structure import summarize_graph
    from qpignn.methods.bundle import Fit, has_finished_fit, save_fit

    given_split = roles.split if graph is None else _split_of(graph)
    share = _test_fraction(test_fraction, given_split)
    model = _method(method, levels, {"seed": seed, "verbose": is_main_process(), **settings})
    data, tables, origin = _graph(dataset, nodes, edges, graph, roles)
    counts = asdict(summarize_graph(data)) if graph is None else describe_graph(graph).counts()
    _print_counts(counts, data, tables)
    if given_split is None and share > 0:
        data = split_nodes(data, test=share, seed=seed)
    given, test = given_nodes(data), test_nodes(data)
    if not bool(given.any()):
        raise SettingError(f"--split {given_split}: expected labelled train nodes, got none")
    say(f"split: {int(given.sum()):,} nodes to learn from, {int(test.sum()):,} held out")
    checkpoint = out / CHECKPOINT
    with _mention_resume(checkpoint):
        _train(model, hide_targets(data, given), checkpoint, checkpoint_every, resume=resume)
        if not is_main_process():
            return
        interrupted = model.history_.interrupted
        saves = not (interrupted and has_finished_fit(out, model))
        if saves:
            save_fit(out, Fit(model, data, None if tables is None else tables.nodes, origin))
    if not interrupted:
        _clear(checkpoint)
    decided = _decided(model)
    report: dict[str, Any] = {
        "folder": str(out),
        "saved": saves,
        "read": counts,
        "decided": decided,
        "nodes": counts["nodes"],
        "labelled": counts["labelled"],
        "given": int(given.sum()),
        "test": int(test.sum()),
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
    """Raise if sources exclude each other, or files or columns do not exist."""
    if [dataset, nodes, graph].count(None) != 2:
        raise SettingError(
            "expected either --dataset NAME or --nodes FILE or --graph DIR, got several or none"
        )
    if nodes is not None:
        options.check_tables(nodes, edges, roles)
        return
    given = [*["edges"] * (edges is not None), *roles.given()]
    if given:
        raise SettingError(
            f"expected no column options with --{'graph' if dataset is None else 'dataset'}, got "
            f"{quoted(given)}; use them with --nodes"
        )
    if dataset is not None:
        check_choice("data set", dataset, DATASETS)


def _test_fraction(wanted: float | None, split: str | None) -> float:
    if split is not None and wanted is not None:
        raise SettingError("--test-fraction and --split exclude each other: both choose test nodes")
    share = 0.2 if wanted is None else wanted
    if not 0 <= share < 1:
        raise SettingError(f"--test-fraction: expected a share from 0 to below 1, got {share:g}")
    return share


def _method(name: str, levels: list[float], settings: dict[str, Any]) -> IntervalMethod:
    """Return the method; levels below the wanted ones are added where they cost nothing."""
    from qpignn.methods.catalog import make_method

    wanted = levels[0] if len(levels) == 1 else levels
    free = make_method(name, confidence_level=wanted, **settings).free_levels()
    every = sorted({*levels, *(level for level in free if level < levels[-1])})
    return make_method(name, confidence_level=every if len(every) > 1 else every[0], **settings)


def _split_of(graph: Path) -> str | None:
    """Return the name of the mask that splits a converted graph, if it has one."""
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
    from qpignn import load_dataset, open_graph
    from qpignn.data.readers import graph_from_tables, read_tables
    from qpignn.methods.bundle import Origin

    if graph is not None:
        return open_graph(graph, verbose=is_main_process()), None, Origin.of_mapped(graph)
    if dataset is not None:
        return load_dataset(dataset), None, Origin(dataset, None)
    assert nodes is not None
    tables = read_tables(nodes, edges, roles, text=roles.categorical)
    data = graph_from_tables(tables, **roles.columns())
    directed = roles.directed if tables.directed is None else tables.directed
    return data, tables, Origin(None, replace(roles, id=tables.id, directed=directed))


def _train(model: IntervalMethod, data: Data, folder: Path, every: float, *, resume: bool) -> None:
    """Fit with checkpoints in a folder; continue from those it holds, or remove them first."""
    from qpignn.runtime import distributed
    from qpignn.training import checkpoint

    if resume and not checkpoint.has_checkpoints(folder):
        say(f"nothing to resume in {folder}: starting from the beginning")
    if not resume and is_main_process() and checkpoint.clear_checkpoints(folder):
        say(
            f"removed the unfinished fit in {folder}: starting from the beginning (--resume would "
            f"have continued it)"
        )
    with distributed.process_group():
        distributed.barrier()  # wait until rank 0 has removed old checkpoints
        if distributed.world_size() > 1:
            distributed.exit_on_sigterm()
            say(f"fitting on {distributed.world_size()} ranks")
        key, writes = checkpoint.fit_key(model, data), is_main_process()
        with checkpoint.checkpoints(folder, key, every, writes=writes, notify=say):
            model.fit(data)


def _clear(folder: Path) -> None:
    """Remove checkpoints after the fit was saved; a failure is only a warning."""
    from qpignn.training.checkpoint import clear_checkpoints

    try:
        clear_checkpoints(folder)
    except WriteError as error:
        say(f"warning: the fit is saved, but its checkpoint could not be removed ({error})")


@contextmanager
def _mention_resume(folder: Path) -> Iterator[None]:
    """Add to a KeyboardInterrupt how to continue from the checkpoints in a folder."""
    from qpignn.training.checkpoint import has_checkpoints

    try:
        yield
    except KeyboardInterrupt:
        if not has_checkpoints(folder):
            raise
        raise KeyboardInterrupt("the same command with --resume continues the fit") from None


def _print_counts(counts: dict[str, Any], data: Data, tables: GraphTables | None) -> None:
    from qpignn.data.matrix import is_sparse, stored_values

    kind = "directed edges" if counts["directed"] else "edges"
    sparse = more = ""
    if is_sparse(data.x):
        filled = len(stored_values(data.x)) / (data.x.shape[0] * data.x.shape[1])
        sparse = f" (sparse: {100 * filled:.2g} % are not zero)"
    if "components" in counts:  # not counted for a graph that stays on disk
        more = f"; isolated nodes: {counts['isolated']:,}, "
        more += f"connected components: {counts['components']:,}"
    say(
        f"read: {counts['nodes']:,} nodes ({counts['labelled']:,} labelled), {counts['edges']:,} "
        f"{kind}, {counts['features']:,} features{sparse}{more}"
    )
    for line in [*_detected(tables), *_encoded(data)]:
        say(f"  {line}")


def _detected(tables: GraphTables | None) -> Iterator[str]:
    """Yield one line per property of the files that was detected, not given."""
    if tables is None:
        return
    if tables.id != "id":
        yield f"ids: column {tables.id}"
    for name, frame in (("nodes", tables.nodes), ("edges", tables.edges)):
        if frame is not None and frame.attrs.get("decimal") == ",":
            yield f"{name}: decimal commas"


def _encoded(data: Data) -> Iterator[str]:
    """Yield one line per column that is not plain numbers: how it was encoded."""
    coding = data.get("coding")
    for column in () if coding is None else coding.columns:
        if column.kind == "category":
            yield f"{column.name}: {len(column.categories)} categories, one column each"
        if column.blank:
            filled = "" if column.fill is None else f" filled with the median {column.fill:g} and"
            yield f"{column.name}: missing values{filled} marked in an extra column"


def _decided(model: IntervalMethod) -> dict[str, Any]:
    """Return the settings that the fit chose automatically."""
    inner: Any = getattr(model, "method_", model)
    settings = inner.fitted_.settings
    scaler = getattr(inner, "y_scaler_", None)
    chosen: dict[str, Any] = {"levels": ", ".join(f"{100 * level:g} %" for level in model.levels_)}
    if "scaling" in settings:
        chosen["scaling"] = settings["scaling"]
    if scaler is not None:
        chosen["target transform"] = scaler.name
    for name in ("y_min", "y_max"):
        limit = getattr(inner, f"{name}_", None)
        if settings.get(name) == "auto" and limit is not None:
            chosen[name] = f"{limit:g}"
    if settings.get("lambda_width") == "tuned":
        chosen["lambda"] = f"{inner.lambda_width_:.4g}"
    return chosen
