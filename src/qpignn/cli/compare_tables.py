"""What ``qpignn compare`` prints: figures, places, and differences to a publication's figures."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Any

from qpignn.cli.output import print_table, say


def print_rows(rows: list[dict[str, Any]], protocol: str) -> None:
    """Print mean and deviation over seeds of every data set, method and level.

    Args:
        rows: results.
        protocol: name of the protocol they were made under.
    """
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


def ranked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows, places and counts of first places, as one document.

    Args:
        rows: results.

    Returns:
        A dictionary with ``rows``, ``ranks`` and ``first_places``.
    """
    from qpignn.reports.tables import first_places, ranking

    ranks = ranking(rows)
    counts = first_places(ranks)
    places = {"ranks": ranks.to_dict("records"), "first_places": counts.to_dict("records")}
    return {"rows": rows, **places}


def print_ranks(rows: list[dict[str, Any]]) -> None:
    """Print the methods' places on each data set, and how often each is first.

    Args:
        rows: results.
    """
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
