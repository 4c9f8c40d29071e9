"""Predicting: which warnings come with it, and what the written tables hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qpignn.methods.bundle import load_fit

Run = Callable[..., Any]


def counties(nodes: int = 160, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two rings; a target that follows two features, blank on a fifth of them at random."""
    rng = np.random.default_rng(seed)
    size, slope = rng.normal(size=(2, nodes))
    ids = [f"{1000 + 2 * i}" for i in range(nodes)]
    rate = 3 + size + 0.5 * slope + 0.2 * rng.normal(size=nodes)
    table = pd.DataFrame({"FIPS": ids, "size": size, "slope": slope, "rate": rate})
    table.loc[rng.permutation(nodes)[: nodes // 5], "rate"] = np.nan
    half = nodes // 2
    following = [*range(1, half), 0, *range(half + 1, nodes), half]
    return table, pd.DataFrame({"from": ids, "to": [ids[i] for i in following]})


@pytest.fixture
def fit_on(qpignn: Run, tmp_path: Path) -> Callable[..., Path]:
    def fit(table: pd.DataFrame, edges: pd.DataFrame, *options: object) -> Path:
        table.to_csv(tmp_path / "nodes.csv", index=False)
        edges.to_csv(tmp_path / "edges.csv", index=False)
        files = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv")
        arguments = (*files, "--id", "FIPS", "--target", "rate", "--epochs", 30, *options)
        done = qpignn("fit", *arguments, "--out", tmp_path / "model")
        assert done.code == 0, done.err
        return tmp_path / "model"

    return fit


def test_predict_without_findings_prints_no_warning(
    qpignn: Run, fit_on: Callable[..., Path], tmp_path: Path
) -> None:
    model = fit_on(*counties())
    done = qpignn("predict", model, "--out", tmp_path / "i.csv")
    assert done.code == 0
    assert done.err.splitlines() == [f"wrote 32 intervals to {tmp_path / 'i.csv'}"]


def test_predict_warns_of_parts_without_a_label(
    qpignn: Run, fit_on: Callable[..., Path], tmp_path: Path
) -> None:
    table, edges = counties()
    table.loc[80:, "rate"] = np.nan  # the second ring
    model = fit_on(table, edges, "--epochs", 5)
    done = qpignn("predict", model, "--out", tmp_path / "i.csv")
    assert done.code == 0
    assert "warning: 80 of" in done.err
    assert "are in parts of the graph where no target is given" in done.err


def test_fit_and_predict_warn_of_a_column_that_is_blank_with_the_target(
    qpignn: Run, tmp_path: Path
) -> None:
    table, edges = counties()
    table["age"] = np.where(table["rate"].isna(), np.nan, np.arange(160) % 9)
    table["wet"] = np.where(np.arange(160) % 3 == 0, np.nan, 1.0)  # blanks of another origin
    table.to_csv(tmp_path / "n.csv", index=False)
    edges.to_csv(tmp_path / "e.csv", index=False)
    arguments = ("--nodes", tmp_path / "n.csv", "--edges", tmp_path / "e.csv", "--id", "FIPS")
    more = ("--target", "rate", "--missing", "impute", "--epochs", 2, "--out", tmp_path / "m")
    warned = "warning: column 'age' (32): blank on so many nodes, hardly any of which is labelled"
    assert warned in qpignn("fit", *arguments, *more).err
    done = qpignn("predict", tmp_path / "m", "--out", tmp_path / "i.csv")
    assert warned in done.err
    assert "'wet'" not in done.err


def test_predict_compares_another_table_with_that_of_the_fit(
    qpignn: Run, fit_on: Callable[..., Path], tmp_path: Path
) -> None:
    model = fit_on(*counties())
    table, edges = counties(seed=1)
    other = table.drop(columns="rate")
    other.to_csv(tmp_path / "other.csv", index=False)
    edges.to_csv(tmp_path / "links.csv", index=False)
    arguments = ("--nodes", tmp_path / "other.csv", "--edges", tmp_path / "links.csv")
    done = qpignn("predict", model, *arguments, "--out", tmp_path / "i.csv")
    assert (done.code, "warning" in done.err) == (0, False), done.err
    other.assign(size=1000 * other["size"]).to_csv(tmp_path / "other.csv", index=False)
    done = qpignn("predict", model, *arguments, "--out", tmp_path / "i.csv")
    assert done.code == 0
    assert (
        "warning: the 160 nodes of this graph differ from those of the training graph" in done.err
    )
    assert "size" in done.err


def test_predict_names_the_id_column_as_the_user_does_and_writes_no_noise_digits(
    qpignn: Run, fit_on: Callable[..., Path], tmp_path: Path
) -> None:
    model = fit_on(*counties())
    assert qpignn("predict", model, "--only", "all", "--out", tmp_path / "i.csv").code == 0
    text = (tmp_path / "i.csv").read_text().splitlines()
    assert text[0] == "FIPS,prediction,lower,upper"
    cells = [cell for line in text[1:] for cell in line.split(",")[1:]]
    assert max(len(cell.lstrip("-").partition(".")[2]) for cell in cells) <= 7
    fit = load_fit(model)
    exact = fit.model.predict_interval(fit.data).to_frame()
    assert list(exact.columns) == text[0].split(",")
    shown = pd.read_csv(tmp_path / "i.csv")
    width = (exact["upper"] - exact["lower"]).min()
    for name in ("prediction", "lower", "upper"):
        np.testing.assert_allclose(shown[name], exact[name], rtol=0, atol=1e-4 * width)
    assert (shown["lower"] <= shown["prediction"]).all()


def test_predict_writes_every_fitted_level(
    qpignn: Run, fit_on: Callable[..., Path], tmp_path: Path
) -> None:
    model = fit_on(*counties(), "--confidence", "0.5,0.9,0.975")
    arguments = ("predict", model, "--only", "all", "--out", tmp_path / "i.parquet")
    assert qpignn(*arguments, "--all-levels").code == 0
    frame = pd.read_parquet(tmp_path / "i.parquet")
    bounds = [
        f"{end}_{level}" for level in ("50", "80", "90", "97.5") for end in ("lower", "upper")
    ]
    assert list(frame.columns) == ["FIPS", "prediction", *bounds]
    fit = load_fit(model)
    for level in (0.5, 0.9, 0.975):
        exact = fit.model.predict_interval(fit.data, confidence_level=level)
        assert (frame[f"lower_{100 * level:g}"] == exact.lower).all()
        assert (frame[f"upper_{100 * level:g}"] == exact.upper).all()
    assert "apply to one level" in qpignn(*arguments, "--all-levels", "--parts").err


def alike(nodes: int = 400) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A ring, each node joined to the next two; errors of neighbours go together."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=nodes)
    error = np.convolve(rng.normal(size=nodes + 10), np.ones(11), mode="valid")
    ids = [f"{1000 + i}" for i in range(nodes)]
    table = pd.DataFrame({"FIPS": ids, "size": size, "rate": 20 + size + error})
    table.loc[rng.permutation(nodes)[: nodes // 5], "rate"] = np.nan
    following = [pd.DataFrame({"from": ids, "to": np.roll(ids, -step)}) for step in (1, 2)]
    return table, pd.concat(following)


def test_predict_known_neighbours_writes_how_many_targets_are_known(
    qpignn: Run, fit_on: Callable[..., Path], tmp_path: Path
) -> None:
    table, edges = alike()
    model = fit_on(table, edges)
    done = qpignn("predict", model, "--known-neighbours", "--out", tmp_path / "i.csv")
    assert done.code == 0, done.err
    frame = pd.read_csv(tmp_path / "i.csv", dtype={"FIPS": str})
    assert list(frame.columns) == ["FIPS", "prediction", "lower", "upper", "known_neighbours"]
    assert frame["known_neighbours"].dtype == np.int64
    data = load_fit(model).data
    given = (data.train_mask & ~data.y.isnan()).numpy()
    blank = np.flatnonzero(table["rate"].isna())
    near = (blank[:, None] + np.array([-2, -1, 1, 2])) % len(table)
    wanted = dict(zip(table["FIPS"][blank], given[near].sum(axis=1), strict=True))
    assert dict(zip(frame["FIPS"], frame["known_neighbours"], strict=True)) == wanted
    refused = qpignn("predict", model, "--known-neighbours", "--all-levels", "--out", "i.csv")
    assert refused.code == 2
    assert "apply to one level" in refused.err


def test_predict_known_neighbours_of_a_model_that_uses_none_is_refused(
    qpignn: Run, fit_on: Callable[..., Path], tmp_path: Path
) -> None:
    model = fit_on(*counties(), "--set", "neighbours=off")
    done = qpignn("predict", model, "--known-neighbours", "--out", tmp_path / "i.csv")
    assert done.code == 2
    message = "error: known_neighbours: expected intervals that use the known targets of neighbours"
    assert done.err.startswith(message)
    assert not (tmp_path / "i.csv").exists()


def test_predict_writes_a_workbook_that_computes_nothing(
    qpignn: Run, fit_on: Callable[..., Path], tmp_path: Path
) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason='needs the extra "excel"')
    table, edges = counties()
    table.loc[0, "FIPS"] = edges.loc[0, "from"] = edges.loc[79, "to"] = "=1+1"
    table.loc[0, "rate"] = np.nan
    model = fit_on(table, edges)
    done = qpignn("predict", model, "--out", tmp_path / "i.xlsx")
    assert done.code == 0, done.err
    sheet = openpyxl.load_workbook(tmp_path / "i.xlsx").active
    assert [cell.value for cell in sheet[1]] == ["FIPS", "prediction", "lower", "upper"]
    assert (sheet["A2"].value, sheet["A2"].data_type) == ("=1+1", "s")
    assert sheet.max_row == 1 + table["rate"].isna().sum()
