"""``qpignn demo``: the main job on built-in data, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qpignn.cli.output import Json, check_output, print_json, print_metrics, print_table, say
from qpignn.files import replace_file


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.", metavar="DIR")] = Path(
        "demo-output"
    ),
    seed: Annotated[int, typer.Option(help="Decides split and initial weights.")] = 0,
    as_json: Json = False,
) -> None:
    """Fit QpiGNN on a built-in graph, judge it on held-out nodes, and draw its intervals.

    Example: qpignn demo --out demo-output
    """
    from qpignn.data.catalog import load_dataset
    from qpignn.data.split import split_nodes
    from qpignn.data.views import make_view
    from qpignn.methods.qpignn import QpiGNN
    from qpignn.reports.content import held_out_figures, write_report
    from qpignn.reports.figures import save_figure

    check_output(out, folder=True)
    data = split_nodes(load_dataset("er"), seed=seed)
    view = make_view(data)
    say("data: an Erdős–Rényi graph of 1,000 nodes whose target follows the degree; 200 held out")
    model = QpiGNN([0.5, 0.8, 0.9], seed=seed, verbose=True).fit(view.fit)
    everyone = model.predict_interval(data)
    figures = held_out_figures(data, everyone)
    assert figures is not None
    intervals = everyone.select(view.test_mask.numpy())
    frame = intervals.to_frame().assign(target=view.y_test.numpy())
    replace_file(out / "intervals.csv", frame.to_csv(index=False).encode())
    save_figure(intervals.plot(view.y_test), out / "intervals.png")
    page = out / "report.html"
    write_report(model, data, page, title="The demo: a built-in graph")
    if as_json:
        print_json({**figures, "report": str(page)})
        return
    columns = ("id", "prediction", "lower", "upper", "target")
    first = [
        [str(row["id"]), *(f"{row[name]:.3f}" for name in columns[1:])]
        for row in frame.head(5).to_dict("records")
    ]
    print_table("the first held-out nodes", columns, first)
    print_metrics(f"{len(intervals)} held-out nodes, wanted coverage 0.9", figures)
    typer.echo(f"wrote {out / 'intervals.csv'} and {out / 'intervals.png'}")
    typer.echo(f"open the report: {page}")
