"""``qpignn curve``: what λ does to coverage and width, measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qpignn.cli import options
from qpignn.cli.compare import run_shown
from qpignn.cli.output import check_output, print_json
from qpignn.errors import SettingError, import_optional
from qpignn.paper.entries.lambda_curve import PLAIN

LAMBDAS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)


def curve(
    out: Annotated[Path, typer.Option(metavar="FILE")],
    datasets: str = "er,education",
    seeds: int = 5,
    confidence: float = 0.9,
    epochs: int | None = None,
    jobs: options.Jobs = 1,
    results: options.Results = None,
    as_json: options.Json = False,
) -> None:
    """Draw coverage and width against λ, for both forms of the loss and the default.

    Example: qpignn curve --out lambda.png --jobs 2

    Args:
        out: Picture to write (.png or .svg).
        datasets: Names, separated by commas.
        seeds: How many seeds.
        confidence: Wanted coverage.
        epochs: Training epochs, at most.

    Raises:
        SettingError: if --out is neither a .png nor an .svg file.
    """
    if out.suffix.lower() not in (".png", ".svg"):
        raise SettingError(f"--out: expected a file ending in .png or .svg, got {out}")
    check_output(out, folder=False)
    import_optional("matplotlib", "a picture")
    from qpignn.experiments.cell import Cell, grid
    from qpignn.paper.loss_curve import VIOLATIONS, lambda_curve
    from qpignn.reports.figures import save_figure

    def cells(**settings: Any) -> list[Cell]:
        own = settings if epochs is None else {**settings, "epochs": epochs}
        wanted = options.names(datasets)
        return grid(wanted, ["qpignn"], seeds, confidence_levels=[confidence], settings=own)

    kinds = [("self-calibrating", cell) for cell in cells()]
    for form, violation in VIOLATIONS.items():
        for lam in LAMBDAS:
            fixed = cells(**PLAIN, lambda_width=lam, violation=violation)
            kinds += [(form, cell) for cell in fixed]
    outcome = run_shown([cell for _, cell in kinds], results, jobs=jobs)
    if outcome.failures:
        raise typer.Exit(1)
    rows = [{"loss": form, **row} for (form, _), row in zip(kinds, outcome.rows, strict=True)]
    save_figure(lambda_curve(rows, confidence), out)
    if as_json:
        print_json(rows)
    else:
        typer.echo(f"wrote {out}")
