"""What metrics are called and what they say, in one table: ``assets/metrics.csv``."""

from __future__ import annotations

from csv import DictReader

from qpignn.reports.markup import asset


def metric_texts(kind: str) -> dict[str, str]:
    """Return one kind of text of all metrics that have it, in the order in which they are shown.

    Args:
        kind: ``heading`` (of a column), ``label`` (in the terminal) or ``about`` (an explanation).
    """
    rows = DictReader(asset("metrics.csv").splitlines())
    return {row["metric"]: row[kind] for row in rows if row[kind]}
