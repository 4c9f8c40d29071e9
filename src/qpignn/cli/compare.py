"""``qpignn compare``: methods side by side on data sets, over seeds, resumable."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli.options import check_method
from qpignn.cli.output import (
    Json,
    Settings,
    check_output,
    names,
    number,
    print_json,
    print_table,
    say,
    settings_of,
)
from qpignn.errors import one_of
from qpignn.names import DATASETS, ENGINES, PROTOCOLS, SPLITS, VIEWS
from qpignn.progress import progress

if TYPE_CHECKING:
    from qpignn.experiments.cell import Cell
    from qpignn.experiments.run import Outcome

ENGINE_HELP = "processes, or ray (RAY_ADDRESS names a cluster)."


def compare(
    datasets: Annotated[str, typer.Option(help="Names, separated by commas, or all.")],
    methods: Annotated[str, typer.Option(help="Names, separated by commas, or all.")] = "qpignn",
    seeds: Annotated[int, typer.Option(help="How many seeds (published: runs).")] = 5,
    protocol: Annotated[str, typer.Option(help="corrected or published.")] = "corrected",
    view: Annotated[
        str | None, typer.Option(help="transductive (default), inductive, isolated.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="random (default), degree, community.")] = None,
    confidence: Annotated[str, typer.Option(help="Wanted coverages, by commas.")] = "0.9",
    lambda_width: Annotated[
        str | None, typer.Option(help="Width penalty: auto, tuned or a number.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Training epochs, at most.")] = None,
    more: Settings = None,
    jobs: Annotated[int, typer.Option(help="Processes, of one thread each.")] = 1,
    engine: Annotated[str, typer.Option(help=ENGINE_HELP)] = "processes",
    results: Annotated[
        Path | None,
        typer.Option(help="Results file (SQLite); finished cells in it are not run again."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run all cells again.")] = False,
    rank: Annotated[
        bool, typer.Option("--rank", help="Rank the methods by width and by Winkler score.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="CSV (model, dataset, metric, value) to compare with.")
    ] = None,
    against_model: Annotated[str, typer.Option(help="Which of its models.")] = "",
    as_json: Json = False,
) -> None:
    """Run methods on data sets over seeds: 20 % of the nodes are test, the method gets the rest.

    Interrupted, it goes on where it stopped when called again. A table shows mean ± standard
    deviation over seeds, and under "× limit" the mean width over the narrowest possible at the
    coverage attained, where the noise is known; --json gives one row per data set, method and seed.

    Example: qpignn compare --datasets basic,er --methods qpignn --seeds 3 --jobs 2
    """
    from qpignn.intervals import check_level

    levels = [check_level(number(c), "--confidence") for c in names(confidence)]
    for name in [] if datasets == "all" else names(datasets):
        one_of("data set", name, DATASETS)
    for name in [] if methods == "all" else names(methods):
        check_method(name)
    for kind, word, known in (
        ("protocol", protocol, PROTOCOLS),
        ("view", view, VIEWS),
        ("split", split, SPLITS),
        ("engine", engine, ENGINES),
    ):
        if word is not None:
            one_of(kind, word, known)
    # all that takes time to import comes from here on
    from qpignn.experiments.cell import grid
    from qpignn.methods.catalog import ALL
    from qpignn.reports.tables import one_kind, published_model

    settings = settings_of(more, epochs=epochs, lambda_width=lambda_width)
    cells = grid(
        _datasets(datasets),
        list(ALL) if methods == "all" else names(methods),
        seeds,
        protocol=protocol,
        view=view,
        split=split,
        confidence_levels=levels,
        settings=settings,
    )
    if against is not None:  # mistakes should not wait for the training
        published_model(against, against_model)
        one_kind({(cell.method, cell.confidence_level) for cell in cells}, against_model)
    outcome = run_shown(cells, results, jobs=jobs, engine=engine, fresh=fresh)
    if as_json:
        print_json(_ranked(outcome.rows) if rank and outcome.rows else outcome.rows)
    elif rank and outcome.rows:
        _print_ranks(outcome.rows)
    elif outcome.rows:
        _print_rows(outcome.rows, protocol)
    if against is not None and outcome.rows:
        _print_against(outcome.rows, against, against_model, quiet=as_json)
    if outcome.failures:
        raise typer.Exit(1)


def results_file(results: Path | None) -> Path:
    """Return the results file; by default the one in the user's cache."""
    from qpignn.data.sources.files import cache_folder

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
    """Run the cells that are missing from a results file, showing how far it is."""
    import torch

    from qpignn.experiments.run import run_cells
    from qpignn.experiments.store import Store

    store = Store(results_file(results))
    torch.set_num_threads(1)  # as in the other processes, so that seconds compare
    try:
        with progress("cells", len(cells)) as show:
            finished = count(1 + (0 if fresh else len(store.get(cells))))
            outcome = run_cells(
                cells,
                store,
                engine=engine,
                jobs=jobs,
                fresh=fresh,
                on_done=lambda cell, error: show(
                    next(finished), f"{cell.dataset} {cell.method} seed {cell.seed}"
                ),
            )
    except KeyboardInterrupt:
        kept = len(store.get(cells))
        raise KeyboardInterrupt(
            f"{kept} of {len(cells)} rows are in {store.path}; call again to go on"
        ) from None
    say(f"{len(outcome.rows)} rows, {outcome.reused} of them found in {store.path}")
    for cell, error in outcome.failures:
        say(f"failed: {cell.dataset} {cell.method} seed {cell.seed}: {error}")
    return outcome


def _datasets(wanted: str) -> list[str]:
    from qpignn.data.catalog import BENCHMARK, find_dataset, why_missing

    if wanted != "all":
        return [find_dataset(name).name for name in names(wanted)]
    here = []
    for name, entry in BENCHMARK.items():
        reason = why_missing(entry)
        if reason is None:
            here.append(name)
        else:
            say(f"left out: {name} ({reason})")
    return here


def _print_rows(rows: list[dict[str, Any]], protocol: str) -> None:
    from qpignn.reports.tables import over_seeds

    table = over_seeds(rows)
    shown = [
        (
            line["dataset"],
            line["method"],
            f"{line['confidence_level']:g}",
            *(
                f"{line[f'{name}_mean']:.3f}"
                + (f" ± {line[f'{name}_std']:.3f}" if line["seeds"] > 1 else "")
                for name in ("picp", "mpiw", "winkler")
            ),
            "" if isnan(line["limit"]) else f"{line['limit']:.2f}",
            f"{line['fit_seconds_mean']:.1f}",
        )
        for line in table.to_dict("records")
    ]
    title = f"protocol {protocol}, mean ± deviation over {_seeds(table)} seeds"
    headings = ("data set", "method", "wanted", "PICP", "MPIW", "Winkler", "× limit", "seconds")
    print_table(title, headings, shown)


def _ranked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows, places and counts of first places, as one document."""
    from qpignn.reports.tables import first_places, ranking

    ranks = ranking(rows)
    counts = first_places(ranks)
    places = {"ranks": ranks.to_dict("records"), "first_places": counts.to_dict("records")}
    return {"rows": rows, **places}


def _print_ranks(rows: list[dict[str, Any]]) -> None:
    from qpignn.reports.tables import first_places, ranking

    ranks = ranking(rows)
    shown = [
        (
            line["dataset"],
            line["method"],
            f"{line['confidence_level']:g}",
            f"{line['picp_mean']:.3f}",
            f"{line['mpiw_mean']:.3f}",
            "" if isnan(line["by_width"]) else f"{line['by_width']:.0f}",
            f"{line['winkler_mean']:.3f}",
            f"{line['by_winkler']:.0f}",
            f"{line['over_best']:.2f}",
            f"{line['fit_seconds_mean']:.1f}",
        )
        for line in ranks.to_dict("records")
    ]
    headings = (
        *("data set", "method", "wanted", "PICP", "MPIW", "place", "Winkler", "place", "/ best"),
        "seconds",
    )
    print_table(f"places, means over {_seeds(ranks)} seeds", headings, shown)
    counts = [
        (
            line["method"],
            f"{line['confidence_level']:g}",
            str(line["first_by_width"]),
            str(line["first_by_winkler"]),
            f"{line['covers']} of {line['data_sets']}",
            f"{line['winkler_over_best']:.3f}",
            f"{line['seconds']:.1f}",
        )
        for line in first_places(ranks).to_dict("records")
    ]
    columns = (
        *("method", "wanted", "first by MPIW", "by Winkler", "covers", "Winkler / best", "seconds"),
    )
    print_table("first places; a method competes by MPIW where it covers", columns, counts)


def _seeds(table: Any) -> str:
    """Over how many seeds each line averages."""
    low, high = int(table["seeds"].min()), int(table["seeds"].max())
    return str(low) if low == high else f"{low} to {high}"


def _print_against(rows: list[dict[str, Any]], path: Path, model: str, *, quiet: bool) -> None:
    from qpignn.reports.tables import against

    table = against(rows, path, model)
    differences = table[["picp_difference", "mpiw_difference"]].abs()
    verdict = (
        f"|ΔPICP|: median {differences['picp_difference'].median():.3f}, "
        f"largest {differences['picp_difference'].max():.3f}; "
        f"|ΔMPIW|: median {differences['mpiw_difference'].median():.3f}, "
        f"largest {differences['mpiw_difference'].max():.3f}; {len(table)} data sets"
    )
    if not quiet:
        columns = [
            f"{metric}{kind}"
            for metric in ("picp", "mpiw")
            for kind in ("", "_paper", "_difference")
        ]
        shown = [
            (line["dataset"], *(f"{line[column]:.3f}" for column in columns))
            for line in table.to_dict("records")
        ]
        headings = ("data set", "PICP", "paper", "Δ", "MPIW", "paper", "Δ")
        print_table(f"against {model}", headings, shown)
    say(verdict)
