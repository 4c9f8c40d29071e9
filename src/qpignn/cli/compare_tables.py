"""What ``qpignn compare`` prints: figures, places, and differences to a publication's figures."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qpignn.cli.output import print_table, say

if TYPE_CHECKING:
    import pandas as pd

PLACE = (("data set", "{dataset}"), ("method", "{method}"), ("wanted", "{confidence_level:g}"))
"""The columns that name a line: heading, and format of its value."""


def print_rows(rows: list[dict[str, Any]], protocol: str) -> None:
    """Print mean and deviation over seeds of every data set, method and level.

    Args:
        rows: results.
        protocol: name of the protocol they were made under.
    """
    from qpignn.reports.tables import over_seeds, seed_count

    table = over_seeds(rows)
    for name in ("picp", "mpiw", "winkler"):
        figures = zip(table[f"{name}_mean"], table[f"{name}_std"], table["seeds"], strict=True)
        table[name] = [
            f"{mean:.3f} ± {std:.3f}" if n > 1 else f"{mean:.3f}" for mean, std, n in figures
        ]
    title = f"protocol {protocol}, mean ± deviation over {seed_count(table['seeds'])} seeds"
    _print_lines(
        title,
        table.assign(limit=_or_blank(table["limit"], ".2f")),
        *PLACE,
        *(("PICP", "{picp}"), ("MPIW", "{mpiw}"), ("Winkler", "{winkler}")),
        *(("× limit", "{limit}"), ("seconds", "{fit_seconds_mean:.1f}")),
    )


def _print_lines(title: str, table: pd.DataFrame, *columns: tuple[str, str]) -> None:
    """Print a table; a column is its heading and the format of a line's value."""
    lines = table.to_dict("records")
    shown = [[text.format_map(line) for _, text in columns] for line in lines]
    print_table(title, [heading for heading, _ in columns], shown)


def _or_blank(values: pd.Series[float], form: str) -> list[str]:
    """Return numbers as text; those that are not known are blank."""
    return ["" if isnan(value) else f"{value:{form}}" for value in values]


def ranked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows, places and counts of first places, as one document.

    Args:
        rows: results.

    Returns:
        A dictionary with ``rows``, ``ranks`` and ``first_places``.
    """
    from qpignn.reports.tables import first_places, ranking

    ranks = ranking(rows)
    tables = {"ranks": ranks, "first_places": first_places(ranks)}
    return {"rows": rows, **{name: table.to_dict("records") for name, table in tables.items()}}


def print_ranks(rows: list[dict[str, Any]]) -> None:
    """Print the methods' places on each data set, and how often each is first.

    Args:
        rows: results.
    """
    from qpignn.reports.tables import first_places, ranking, seed_count

    ranks = ranking(rows)
    _print_lines(
        f"places, means over {seed_count(ranks['seeds'])} seeds",
        ranks.assign(by_width=_or_blank(ranks["by_width"], ".0f")),
        *PLACE,
        *(("PICP", "{picp_mean:.3f}"), ("MPIW", "{mpiw_mean:.3f}"), ("place", "{by_width}")),
        *(("Winkler", "{winkler_mean:.3f}"), ("place", "{by_winkler:.0f}")),
        *(("/ best", "{over_best:.2f}"), ("seconds", "{fit_seconds_mean:.1f}")),
    )
    _print_lines(
        "first places; a method competes by MPIW where it covers",
        first_places(ranks),
        *PLACE[1:],
        *(("first by MPIW", "{first_by_width}"), ("by Winkler", "{first_by_winkler}")),
        *(("covers", "{covers} of {data_sets}"), ("Winkler / best", "{winkler_over_best:.3f}")),
        ("seconds", "{seconds:.1f}"),
    )


def print_against(rows: list[dict[str, Any]], path: Path, model: str, *, quiet: bool) -> None:
    """Print our figures beside a publication's; ``quiet`` prints the summary only.

    Args:
        rows: results of one method.
        path: CSV file of the publication's figures.
        model: which of its models.
        quiet: whether to leave out the table.
    """
    from qpignn.paper.reference_figures import compare_with_figures

    table = compare_with_figures(rows, path, model)
    columns, verdict = [("data set", "{dataset}")], ""
    for metric in ("picp", "mpiw"):
        for heading, kind in ((metric.upper(), ""), ("paper", "_paper"), ("Δ", "_difference")):
            columns.append((heading, f"{{{metric}{kind}:.3f}}"))
        size = table[f"{metric}_difference"].abs()
        verdict += f"|Δ{metric.upper()}|: median {size.median():.3f}, largest {size.max():.3f}; "
    if not quiet:
        _print_lines(f"against {model}", table, *columns)
    say(f"{verdict}{len(table)} data sets")


def tell_exploded(rows: list[dict[str, Any]]) -> None:
    """Name the seeds whose intervals are absurdly wide, since they rule the means.

    Args:
        rows: results.
    """
    import pandas as pd

    from qpignn.reports.tables import exploded_seeds

    exploded = exploded_seeds(pd.DataFrame(rows), ["dataset", "method", "confidence_level"])
    for line in exploded.to_dict("records"):
        say(
            f"note: {line['method']} on {line['dataset']}, seed {line['seed']}: mean width "
            f"{line['mpiw']:.3g}, where the other seeds' median is {line['median']:.3g}; without "
            f"it their mean would be {line['mean_without']:.3g}, not {line['mean']:.3g}"
        )
