"""``qpignn paper``: every table and figure of the paper, from one command each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qpignn.cli import options
from qpignn.cli.compare import results_file, run_shown
from qpignn.cli.output import check_output, print_json, print_table, say
from qpignn.errors import SettingError, check_choice, import_optional

if TYPE_CHECKING:
    from qpignn.paper.plan import Plan

app = typer.Typer(name="paper", help="Every table and figure of the paper.", no_args_is_help=True)


@app.command("list")
def list_specs(as_json: options.Json = False) -> None:
    """Name all tables and figures, where the paper has them, and how many cells each needs."""
    from qpignn.paper import specs

    lines: list[dict[str, Any]] = []
    for spec in specs().values():
        runs = sum(min(spec.seeds, v.seeds or spec.seeds) for v in spec.variants)
        cells = len(spec.datasets) * len(spec.conditions) * runs
        kind = "figure" if spec.picture else "table"
        about = {"name": spec.name, "kind": kind, "place": spec.place, "title": spec.title}
        figures = {"seeds": spec.seeds, "cells": cells, "paper": spec.facts is not None}
        lines.append({**about, **figures})
    if as_json:
        print_json(lines)
        return
    headings = ("name", "kind", "in the paper", "title", "cells")
    keys = ("name", "kind", "place", "title")
    shown = [(*(entry[key] for key in keys), f"{entry['cells']:,}") for entry in lines]
    print_table("tables and figures", headings, shown)


@app.command()
def run(
    name: Annotated[str, typer.Argument()],
    protocol: options.Protocol = "corrected",
    seeds: int | None = None,
    jobs: options.Jobs = 1,
    engine: options.Engine = "processes",
    quick: bool = False,
    results: options.Results = None,
    out: Annotated[Path, typer.Option(metavar="DIR")] = Path("paper-output"),
) -> None:
    """Run what a table or figure still lacks, then write it as Markdown, LaTeX, JSON, PNG and SVG.

    Interrupted or killed, it goes on where it stopped when called again. Tables that share cells
    share the work.

    Example: qpignn paper run robustness --jobs 2

    Args:
        name: See `qpignn paper list`; or a Python file with a SPEC; run also takes all.
        seeds: How many seeds; default the table's own.
        quick: Two data sets, one seed, two epochs: does it work at all?
        out: Folder for tables and pictures.
    """
    check_output(out, folder=True)
    import_optional("matplotlib", "a figure of the paper")
    from qpignn.paper.plan import shared_cells

    plans = _plans(name, protocol, seeds, quick=quick)
    for reason in dict.fromkeys(reason for plan in plans for reason in plan.missing):
        say(f"left out: {reason}")
    outcome = run_shown(shared_cells(plans), results, jobs=jobs, engine=engine)
    for path in _write(plans, _rows(plans, results), out):
        typer.echo(f"wrote {path}")
    if outcome.failures:
        raise typer.Exit(1)


@app.command()
def show(
    name: Annotated[str, typer.Argument()],
    protocol: options.Protocol = "corrected",
    seeds: int | None = None,
    against_paper: bool = False,
    form: Annotated[str, typer.Option("--format")] = "md",
    quick: bool = False,
    results: options.Results = None,
) -> None:
    """Print a table from the rows that are there; nothing is run.

    Example: qpignn paper show main --against-paper

    Args:
        name: See `qpignn paper list`; or a Python file with a SPEC; run also takes all.
        seeds: How many seeds; default the table's own.
        against_paper: Ours, the paper's and the difference.
        form: md, latex or json.
        quick: Two data sets, one seed, two epochs: does it work at all?

    Raises:
        SettingError: for all, or if there are no figures to show.
    """
    from qpignn.paper.tables import difference_table, frame_of, make_table
    from qpignn.reports.render import FORMATS

    write = FORMATS[check_choice("format", form, FORMATS)]
    if name == "all":
        raise SettingError("show: expected one table or figure, got all; see qpignn paper list")
    (plan,) = _plans(name, protocol, seeds, quick=quick, everywhere=not quick)
    if against_paper and plan.spec.facts is None:
        raise SettingError(f"the paper gives no figures for {plan.spec.name!r}")
    frame = frame_of(plan, _rows([plan], results))
    if len(frame) < len(plan.cells):
        say(f"{len(frame)} of {len(plan.cells)} cells are in {results_file(results)}")
    if frame.empty and plan.spec.variants:
        raise SettingError(f"nothing to show yet; first qpignn paper run {plan.spec.name}")
    table = difference_table(plan, frame) if against_paper else make_table(plan, frame)
    typer.echo(write(table), nl=False)


def _plans(
    name: str, protocol: str, seeds: int | None, *, quick: bool, everywhere: bool = False
) -> list[Plan]:
    from qpignn.paper import find_spec, specs
    from qpignn.paper.pictures import check_shown
    from qpignn.paper.plan import make_plan

    wanted = [*specs().values()] if name == "all" else [find_spec(name)]
    for spec in wanted:
        check_shown(spec)
    how: dict[str, Any] = {"seeds": seeds, "quick": quick, "everywhere": everywhere}
    return [make_plan(spec, protocol, **how) for spec in wanted]


def _rows(plans: Sequence[Plan], results: Path | None) -> dict[str, dict[str, Any]]:
    from qpignn.experiments.store import Store
    from qpignn.paper.plan import shared_cells

    return Store(results_file(results)).get(shared_cells(plans))


def _write(plans: Sequence[Plan], rows: dict[str, dict[str, Any]], out: Path) -> list[Path]:
    from qpignn.io.files import atomic_files, write_atomically
    from qpignn.paper.pictures import draw
    from qpignn.paper.tables import difference_table, frame_of, make_table
    from qpignn.reports.figures import save_figure
    from qpignn.reports.render import ENDINGS

    written = []
    for plan in plans:
        frame = frame_of(plan, rows)
        if frame.empty and plan.spec.variants:
            say(f"no rows for {plan.spec.name}")
            continue
        start = f"{plan.spec.name}.{plan.protocol}"
        tables = {start: make_table(plan, frame)}
        if plan.spec.facts:
            tables[f"{start}.against-paper"] = difference_table(plan, frame)
        with atomic_files():
            for stem, table in tables.items():
                for ending, write in ENDINGS.items():
                    written.append(out / f"{stem}{ending}")
                    write_atomically(written[-1], write(table).encode())
            for suffix in ("png", "svg") if plan.spec.picture else ():
                written.append(out / f"{start}.{suffix}")
                save_figure(draw(plan, frame), written[-1])
    return written
