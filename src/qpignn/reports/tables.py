"""Tables of results: mean and spread over seeds, and held against published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from qpignn.errors import ReadError, SettingError, UnknownNameError, listed

SHOWN = ("picp", "mpiw", "winkler", "fit_seconds")


def over_seeds(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return mean and standard deviation over seeds, one line per data set, method and level.

    ``limit`` is mean width over mean narrowest possible width, where that is known.
    """
    frame = pd.DataFrame(rows)
    frame[list(SHOWN)] = frame[list(SHOWN)].astype(float)  # one-sided results have no widths
    by = ["dataset", "method", "confidence_level"]
    groups = frame.groupby(by, sort=False)
    means, spreads = groups[list(SHOWN)].mean(), groups[list(SHOWN)].std()
    table = means.add_suffix("_mean").join(spreads.add_suffix("_std"))
    possible = groups["mpiw_limit"].agg(lambda limits: limits.astype(float).mean())
    return table.assign(seeds=groups.size(), limit=means["mpiw"] / possible).reset_index()


SHORT = 0.01  # coverage a method may lack and still be ranked by width


def ranking(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the methods' places on each data set, by width and by Winkler score.

    By width only methods compete whose mean coverage is at most a point below the wanted one; the
    others have no place there (NaN).
    """
    table = over_seeds(rows)
    covers = table["picp_mean"] >= table["confidence_level"] - SHORT - 1e-9
    eligible = table["mpiw_mean"].where(covers)
    by = [table["dataset"], table["confidence_level"]]
    return table.assign(
        by_width=eligible.groupby(by, sort=False).rank(method="min"),
        by_winkler=table["winkler_mean"].groupby(by, sort=False).rank(method="min"),
        over_best=table["winkler_mean"]
        / table["winkler_mean"].groupby(by, sort=False).transform("min"),
    )


def first_places(ranks: pd.DataFrame) -> pd.DataFrame:
    """Return for each method how often it is first, and how far from the best it is on average.

    One line per level and method.
    """
    groups = ranks.groupby(["confidence_level", "method"], sort=False)
    return pd.DataFrame(
        {
            "data_sets": groups.size(),
            "first_by_width": groups["by_width"].agg(lambda places: int((places == 1).sum())),
            "first_by_winkler": groups["by_winkler"].agg(lambda places: int((places == 1).sum())),
            "covers": groups["by_width"].agg(lambda places: int(places.notna().sum())),
            "winkler_over_best": groups["over_best"].agg(lambda r: float(np.exp(np.log(r).mean()))),
            "seconds": groups["fit_seconds_mean"].mean(),
        }
    ).reset_index()


OWN_UNIT = (
    "CF-GNN",
    "CF-GNN_opt",
    "CF-GNN tuned",
)  # models whose published widths are in the target's unit


def against(rows: list[dict[str, Any]], path: Path, model: str) -> pd.DataFrame:
    """Return our mean PICP and MPIW beside a published table's, and the differences.

    Widths are in multiples of the given targets' range, as the paper's are, but for CF-GNN's,
    which it gives in the target's own unit.

    Args:
        rows: results of one method.
        path: CSV with the columns model, dataset, metric, value.
        model: which of its models to compare with.
    """
    frame = pd.DataFrame(rows)
    one_kind(set(zip(frame["method"], frame["confidence_level"], strict=True)), model)
    theirs = published_model(path, model)
    if model in OWN_UNIT:
        frame["mpiw"] = frame["mpiw_raw"]
    ours = frame.groupby("dataset", sort=False)[["picp", "mpiw"]].mean()
    table = ours.join(theirs.add_suffix("_paper"), how="inner")
    if table.empty:
        raise SettingError(f"{path} has none of the data sets {listed(ours.index)} for {model!r}")
    for metric in ("picp", "mpiw"):
        table[f"{metric}_difference"] = table[metric] - table[f"{metric}_paper"]
    return table.reset_index()


def one_kind(kinds: set[tuple[str, float]], model: str) -> None:
    """Raise unless there is one method at one level to compare with a published model."""
    if len(kinds) > 1:
        raise SettingError(
            f"expected one method at one level to compare with {model!r}, got "
            f"{listed(sorted(kinds))}"
        )


def published_model(path: Path, model: str) -> pd.DataFrame:
    """Return one model's published figures: a line per data set, a column per metric."""
    try:
        published = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ReadError(f"{path}: expected a CSV of published figures: {error}") from error
    wanted = {"model", "dataset", "metric", "value"}
    if not wanted <= set(published.columns):
        raise ReadError(f"{path}: expected the columns {sorted(wanted)}, got {listed(published)}")
    if model not in set(published["model"]):
        raise UnknownNameError("model", model, published["model"].unique())
    return published[published["model"] == model].pivot_table(
        index="dataset", columns="metric", values="value"
    )
