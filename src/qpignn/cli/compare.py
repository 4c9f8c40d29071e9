"""``qpignn compare``: methods side by side on data sets, over seeds, resumable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli import options
from qpignn.cli.compare_tables import print_against, print_ranks, print_rows, ranked, tell_exploded
from qpignn.cli.output import check_output, print_json, say
from qpignn.data.column_roles import ColumnRoles
from qpignn.errors import SettingError, check_choice, quoted
from qpignn.names import DATASET_GROUP, DATASETS, ENGINES, SPLITS, VIEWS
from qpignn.protocols import GENERAL, protocol_names
from qpignn.runtime.entry_points import installed
from qpignn.runtime.progress import progress_bar

if TYPE_CHECKING:
    from qpignn.experiments.cell import Cell
    from qpignn.experiments.run import Outcome

KNOWN = {"protocol": protocol_names(), "view": VIEWS, "split": SPLITS, "engine": ENGINES}
"""The words that options know."""
EVERY = "all"
"""The name that stands for several methods; others may stand beside it."""


def compare(
    datasets: str = "",
    nodes: Path | None = None,
    edges: Path | None = None,
    *,
    roles: ColumnRoles,
    methods: str = "qpignn",
    seeds: int = 5,
    protocol: options.Protocol = GENERAL,
    view: str | None = None,
    split: str | None = None,
    confidence: str = "0.9",
    lambda_width: options.LambdaWidth = None,
    label_fraction: float | None = None,
    epochs: int | None = None,
    more: options.Settings = None,
    jobs: options.Jobs = 1,
    engine: options.Engine = "processes",
    results: options.Results = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    fresh: bool = False,
    rank: bool = False,
    against: Path | None = None,
    against_model: str = "",
    as_json: options.Json = False,
) -> None:
    """Run methods on data sets over seeds: 20 % of the nodes are test, the method gets the rest.

    Data sets are names, folders written by qpignn.save_graph, or your own tables (--nodes, --edges,
    --target and the other options of 'fit'). --label-fraction 0.2 gives methods the targets of
    20 % of the labelled nodes only.

    Interrupted, it goes on where it stopped when called again. A table shows mean ± standard
    deviation over seeds, and under "× limit" the mean width over the narrowest possible at the
    coverage attained, where the noise is known; --json gives one row per data set, method and seed.

    Example: qpignn compare --datasets basic,er --methods qpignn --seeds 3 --jobs 2

    Args:
        datasets: Names or folders of saved graphs, by commas, or all.
        nodes: Your own node table, as in 'fit'.
        edges: Edge table.
        roles: Roles of the columns and format of the files, one option each.
        methods: Names, by commas, all among them; mine.py:Class for a method of your own.
        seeds: How many seeds.
        view: transductive (default), inductive, isolated.
        split: random (default), degree, community.
        confidence: Wanted coverages, by commas.
        label_fraction: Share of the labelled nodes that methods are given.
        epochs: Training epochs, at most.
        out: Table to write (.md, .tex, .csv or .json).
        fresh: Run all cells again.
        rank: Rank the methods by width and by Winkler score.
        against: CSV (model, dataset, metric, value) to compare with.
        against_model: Which of its models.
    """
    from qpignn.intervals import check_level

    levels = [check_level(one, "--confidence") for one in options.numbers(confidence)]
    _check_input(datasets, nodes, edges, roles)
    for name in [name for name in options.names(methods) if name != EVERY]:
        options.check_method(name)
    choices: dict[str, Any] = {"protocol": protocol, "view": view, "split": split}
    given = {name: word for name, word in {**choices, "engine": engine}.items() if word is not None}
    for option, word in given.items():
        check_choice(option, word, KNOWN[option])
    if out is not None:
        _check_table(out)
    # all that takes time to import comes from here on
    from qpignn.experiments.cell import grid
    from qpignn.paper.reference_figures import check_single_method, read_figures

    settings = options.settings_of(more, epochs=epochs, lambda_width=lambda_width)
    if against is not None:  # mistakes should not wait for the training
        read_figures(against, against_model)
    with _own_graph(nodes, edges, roles) as own:
        cells = grid(
            _datasets(datasets) if own is None else [own],
            _methods(methods),
            seeds,
            **choices,
            confidence_levels=levels,
            settings=settings,
            label_fraction=label_fraction,
        )
        if against is not None:
            kinds = {(cell.method, cell.confidence_level) for cell in cells}
            check_single_method(kinds, against_model)
        outcome = run_shown(cells, results, jobs=jobs, engine=engine, fresh=fresh)
    if outcome.rows:
        if out is not None:
            _write_table(outcome.rows, protocol, out)
        if as_json:
            print_json(ranked(outcome.rows) if rank else outcome.rows)
        elif rank:
            print_ranks(outcome.rows)
        else:
            print_rows(outcome.rows, protocol)
        tell_exploded(outcome.rows)
        if against is not None:
            print_against(outcome.rows, against, against_model, quiet=as_json)
    if outcome.failures:
        raise typer.Exit(1)


def _check_input(datasets: str, nodes: Path | None, edges: Path | None, roles: ColumnRoles) -> None:
    """Raise for sources that exclude each other and for names, files and columns not there."""
    if (nodes is None) == (not datasets):
        raise SettingError("expected either --datasets NAMES or --nodes FILE, got both or none")
    if nodes is not None:
        options.check_tables(nodes, edges, roles)
        return
    for name in [] if datasets == "all" else options.names(datasets):
        if not Path(name).is_dir():
            check_choice("data set", name, [*DATASETS, *installed(DATASET_GROUP)])
    given = [*["edges"] * (edges is not None), *roles.given()]
    if given:
        raise SettingError(f"expected no roles of columns with --datasets, got {quoted(given)}")


def results_file(results: Path | None) -> Path:
    """Return the results file; by default the one in the user's cache.

    Args:
        results: path of the file, or None for the default.
    """
    from qpignn.io.files import cache_folder

    results = results or cache_folder() / "results.sqlite"
    check_output(results, folder=False)
    return results


def run_shown(
    cells: Sequence[Cell],
    results: Path | None,
    *,
    jobs: int = 1,
    engine: str = "processes",
    fresh: bool = False,
) -> Outcome:
    """Run the cells that are missing from a results file, showing how far it is.

    Args:
        cells: the cells.
        results: path of the results file, or None for the default.
        jobs: number of processes.
        engine: ``processes`` or ``ray``.
        fresh: run cells again that the file has.

    Returns:
        The rows of all cells, and what failed.

    Raises:
        KeyboardInterrupt: interrupted; the message tells how many rows are kept.
    """
    import torch

    from qpignn.experiments.run import run_cells
    from qpignn.experiments.store import Store

    def label(cell: Cell) -> str:
        return f"{cell.name} {cell.method} seed {cell.seed}"

    def done(cell: Cell, error: str | None) -> None:
        show(next(finished), label(cell))

    store = Store(results_file(results))
    torch.set_num_threads(1)  # as in the other processes, so that seconds compare
    finished = count(1 + (0 if fresh else len(store.get(cells))))
    try:
        with progress_bar("cells", len(cells)) as show:
            outcome = run_cells(cells, store, engine=engine, jobs=jobs, fresh=fresh, on_done=done)
    except KeyboardInterrupt:
        kept = f"{len(store.get(cells))} of {len(cells)} rows"
        raise KeyboardInterrupt(f"{kept} are in {store.path}; call again to go on") from None
    say(f"{len(outcome.rows)} rows, {outcome.reused} of them found in {store.path}")
    for cell, error in outcome.failures:
        say(f"failed: {label(cell)}: {error}")
    return outcome


def _methods(wanted: str) -> list[str]:
    from qpignn.methods.catalog import ALL

    chosen = (ALL if name == EVERY else (name,) for name in options.names(wanted))
    return [*chain.from_iterable(chosen)]


def _datasets(wanted: str) -> list[str]:
    from qpignn.data.catalog import BENCHMARK, missing_message

    if wanted != "all":
        return options.names(wanted)
    missing = {name: missing_message(entry) for name, entry in BENCHMARK.items()}
    for name, reason in missing.items():
        if reason is not None:
            say(f"left out: {name} ({reason})")
    return [name for name, reason in missing.items() if reason is None]


@contextmanager
def _own_graph(nodes: Path | None, edges: Path | None, roles: ColumnRoles) -> Iterator[str | None]:
    """Keep the graph of the user's tables in a folder while the block runs, for all processes.

    The folder bears the name of the node table, which the rows carry.
    """
    if nodes is None:
        yield None
        return
    from qpignn import read_graph, save_graph

    data = read_graph(nodes, edges, **vars(roles))
    with TemporaryDirectory(prefix="qpignn-") as place:
        folder = Path(place) / nodes.name.partition(".")[0]
        save_graph(folder, data)
        yield str(folder)


def _check_table(path: Path) -> None:
    endings = (".md", ".tex", ".csv", ".json")
    if path.suffix.lower() not in endings:
        raise SettingError(
            f"--out: expected a table ending in {', '.join(endings)}, got {path}; the results file "
            f"is --results"
        )
    check_output(path, folder=False)


def _write_table(rows: list[dict[str, Any]], protocol: str, path: Path) -> None:
    from qpignn.io.csv_output import to_csv
    from qpignn.io.files import write_atomically
    from qpignn.reports.comparison import comparison_table
    from qpignn.reports.render import ENDINGS
    from qpignn.reports.tables import over_seeds

    write = ENDINGS.get(path.suffix.lower())
    text = write(comparison_table(rows, protocol)).encode() if write else to_csv(over_seeds(rows))
    write_atomically(path, text)
    say(f"wrote {path}")
