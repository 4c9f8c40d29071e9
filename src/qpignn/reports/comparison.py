"""The table of a comparison: methods on data sets, mean and spread over seeds."""

from __future__ import annotations

from typing import Any

from qpignn.reports.tables import Row, Shown, Table, over_seeds, seed_count

METRICS = {"picp": "PICP", "mpiw": "MPIW", "winkler": "Winkler", "fit_seconds": "seconds"}
NOTE = (
    "Mean ± standard deviation over seeds; widths and scores in multiples of the range of the "
    "given targets. Bold: the wanted coverage is reached (to two digits); underlined: the "
    "narrowest of those."
)


def comparison_table(rows: list[dict[str, Any]], protocol: str) -> Table:
    """Return the figures of a comparison, one line per data set, method and level.

    Args:
        rows: results, one per data set, method, level and seed.
        protocol: under which they were made.
    """
    table = over_seeds(rows)
    reached = table["picp_mean"].map(lambda mean: round(mean, 2)) >= table["confidence_level"]
    widths = table["mpiw_mean"].where(reached)
    narrowest = widths.groupby([table["dataset"], table["confidence_level"]]).transform("min")
    lines = table.assign(picp=reached, mpiw=widths == narrowest).to_dict("records")

    def figure(line: dict[Any, Any], metric: str) -> tuple[Shown, ...]:
        mean, spread = line[f"{metric}_mean"], line[f"{metric}_std"]
        strong, best = (metric == name and bool(line[name]) for name in ("picp", "mpiw"))
        return (Shown(metric, mean, spread, strong, best),)

    shown: list[Row] = []
    for line in lines:
        place = str(line["dataset"]), str(line["method"]), f"{line['confidence_level']:g}"
        shown.append((*place, *(figure(line, metric) for metric in METRICS)))
    title = f"Methods under the protocol {protocol}, seeds: {seed_count(table['seeds'])}"
    return Table(title, ("data set", "method", "level", *METRICS.values()), tuple(shown), NOTE)
