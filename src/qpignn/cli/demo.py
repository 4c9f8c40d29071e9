"""``qpignn demo``: the whole workflow on built-in data, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qpignn.cli import options
from qpignn.cli.output import check_output, print_json, print_metrics, print_table, say
from qpignn.errors import SettingError
from qpignn.io.csv_output import to_csv
from qpignn.io.files import write_atomically


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR")] = Path("demo-output"),
    seed: int = 0,
    as_json: options.Json = False,
) -> None:
    """Go from two tables to intervals and a report, on synthetic data that needs no download.

    The tables are written too, so that you can try other commands on them.

    Example: qpignn demo --out demo-output

    Args:
        out: Folder for the results.
        seed: Seed of the split and the initial weights.
    """
    from qpignn import QpiGNN, example_tables, from_frames, split_nodes, write_report
    from qpignn.data.graph import test_nodes
    from qpignn.intervals import rounded_frame
    from qpignn.reports.results import held_out_figures

    check_output(out, folder=True)
    stations, roads = example_tables()
    for name, table in (("nodes", stations), ("edges", roads)):
        write_atomically(out / f"{name}.csv", to_csv(table))
    data = split_nodes(from_frames(stations, roads, target="pollution"), seed=seed)
    test = test_nodes(data)
    say(
        f"data: {len(stations)} synthetic measuring stations, {len(roads):,} roads; pollution is "
        f"blank at {int(data.y.isnan().sum())}, and {int(test.sum())} more are held out for testing"
    )
    model = QpiGNN([0.5, 0.8, 0.9], seed=seed, verbose=True)
    model.fit(data, on_interrupt="raise")
    intervals = model.predict_interval(data)
    figures = held_out_figures(data, intervals)
    assert figures is not None
    blank = rounded_frame(intervals.select(data.y.isnan().numpy()).to_frame())
    write_atomically(out / "intervals.csv", to_csv(blank))
    held_out = intervals.select(test.numpy())
    written = [out / f"{name}.csv" for name in ("nodes", "edges", "intervals")]
    try:
        figure = held_out.plot(data.y[test])
    except SettingError as error:  # no matplotlib
        say(f"left out: intervals.png ({error})")
    else:
        from qpignn.reports.figures import save_figure

        written.append(out / "intervals.png")
        save_figure(figure, written[-1])
    page = out / "report.html"
    title = "Demo: pollution at measuring stations"
    write_report(model, data, page, target="pollution", title=title)
    if as_json:
        print_json({**figures, "report": str(page)})
        return
    columns = ("id", "prediction", "lower", "upper")
    first = [
        [str(row["id"]), *(f"{row[name]:.2f}" for name in columns[1:])]
        for row in blank.head(5).to_dict("records")
    ]
    print_table("the first stations without a measurement", columns, first)
    print_metrics(f"{len(held_out)} held-out stations, wanted coverage 0.9", figures)
    for path in written:
        typer.echo(f"wrote {path}")
    typer.echo(f"open the report: {page}")
