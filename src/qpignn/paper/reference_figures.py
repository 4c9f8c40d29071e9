"""Our figures beside those of a publication, from a CSV file of its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from qpignn.errors import ReadError, SettingError, UnknownNameError, quoted

OWN_UNIT = ("CF-GNN", "CF-GNN_opt", "CF-GNN tuned")
"""Models whose published widths are in the target's unit."""


def compare_with_figures(rows: list[dict[str, Any]], path: Path, model: str) -> pd.DataFrame:
    """Return our mean PICP and MPIW beside a published table's, and the differences.

    Widths are in multiples of the given targets' range, as the paper's are, but for CF-GNN's,
    which it gives in the target's own unit.

    Args:
        rows: results of one method.
        path: CSV with the columns model, dataset, metric, value.
        model: which of its models to compare with.

    Raises:
        SettingError: for several methods or levels, or no data set in common.
        ReadError: if the file cannot be read.
        UnknownNameError: for an unknown model.
    """
    frame = pd.DataFrame(rows)
    check_single_method(set(zip(frame["method"], frame["confidence_level"], strict=True)), model)
    theirs = read_figures(path, model)
    if model in OWN_UNIT:
        frame["mpiw"] = frame["mpiw_raw"]
    ours = frame.groupby("dataset", sort=False)[["picp", "mpiw"]].mean()
    table = ours.join(theirs.add_suffix("_paper"), how="inner")
    if table.empty:
        raise SettingError(f"{path} has none of the data sets {quoted(ours.index)} for {model!r}")
    for metric in ("picp", "mpiw"):
        table[f"{metric}_difference"] = table[metric] - table[f"{metric}_paper"]
    return table.reset_index()


def check_single_method(kinds: set[tuple[str, float]], model: str) -> None:
    """Raise unless there is one method at one level to compare with a published model.

    Args:
        kinds: methods with their levels.
        model: the model to compare with.

    Raises:
        SettingError: if there are several.
    """
    if len(kinds) > 1:
        raise SettingError(
            f"expected one method at one level to compare with {model!r}, got "
            f"{quoted(sorted(kinds))}"
        )


def read_figures(path: Path, model: str) -> pd.DataFrame:
    """Return one model's published figures: a line per data set, a column per metric.

    Args:
        path: CSV with the columns model, dataset, metric, value.
        model: which of its models.

    Raises:
        ReadError: if the file cannot be read or lacks a column.
        UnknownNameError: if it lacks the model.
    """
    try:
        published = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ReadError(f"{path}: expected a CSV of published figures: {error}") from error
    wanted = {"model", "dataset", "metric", "value"}
    if not wanted <= set(published.columns):
        raise ReadError(f"{path}: expected the columns {sorted(wanted)}, got {quoted(published)}")
    if model not in set(published["model"]):
        raise UnknownNameError("model", model, published["model"].unique())
    figures = published[published["model"] == model]
    return figures.pivot_table(index="dataset", columns="metric", values="value")
