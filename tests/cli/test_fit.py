"""A user's own tables on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from qpignn.methods.bundle import load_fit

Run = Callable[..., Any]


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"s{i}" for i in range(60)],
            "kind": rng.choice(["bakery", "kiosk"], 60),
            "zone": rng.integers(1, 4, 60),
            "area": rng.uniform(20, 90, 60),
            "note": [f"text {i}" for i in range(60)],
        }
    )
    frame["sales"] = 2 * frame["area"] + np.where(frame["kind"] == "kiosk", 50, 0)
    frame.loc[:9, "sales"] = np.nan
    path = tmp_path / "shops.csv"
    frame.to_csv(path, index=False)
    ends = pd.DataFrame({"from": frame["id"][:-1], "to": frame["id"][1:].to_numpy()})
    ends.to_csv(tmp_path / "streets.csv", index=False)
    return path


def fit_arguments(shops: Path, *more: object, folder: str = "m") -> tuple[object, ...]:
    edges = shops.parent / "streets.csv"
    files = ("fit", "--nodes", shops, "--edges", edges, "--target", "sales", "--epochs", 3)
    return (*files, "--ignore", "note", "--out", shops.parent / folder, *more)


def nodes_only(shops: Path) -> tuple[object, ...]:
    options = ("--target", "sales", "--epochs", 2, "--out", shops.parent / "m")
    return ("fit", "--nodes", shops, *options)


def test_fit_reports_graph_columns_split_and_settings(qpignn: Run, shops: Path) -> None:
    done = qpignn(*fit_arguments(shops, "--categorical", "zone"))
    assert done.code == 0, done.err
    assert "60 nodes (50 labelled), 59 edges, 6 features" in done.err
    assert "isolated nodes: 0, connected components: 1" in done.err
    assert "kind: 2 categories" in done.err
    assert "zone: 3 categories" in done.err
    assert "split: 40 nodes to learn from, 10 held out" in done.err
    assert "levels 50 %, 80 %, 90 %, scaling standard, target transform none" in done.err
    assert ", y_min 0\n" in done.err  # sales are never negative
    report = json.loads(qpignn(*fit_arguments(shops, "--json")).out)
    assert report["read"]["features"] == 4  # zone is a number now
    assert report["decided"]["scaling"] == "standard"
    fit = load_fit(shops.parent / "m")
    assert fit.data.feature_names == ["kind=bakery", "kind=kiosk", "zone", "area"]
    assert fit.table is not None
    assert list(fit.table["note"][:2]) == ["text 0", "text 1"]


def test_fit_free_text_column_is_refused_with_advice(qpignn: Run, shops: Path) -> None:
    done = qpignn("fit", "--nodes", shops, "--target", "sales", "--out", shops.parent / "m")
    assert done.code == 2
    assert "'note'" in done.err
    assert "ignore" in done.err


def test_fit_missing_impute_fills_blank_features(qpignn: Run, shops: Path) -> None:
    frame = pd.read_csv(shops)
    median = frame["area"].iloc[5:].median()
    frame.loc[:4, "area"] = np.nan
    frame.to_csv(shops, index=False)
    done = qpignn(*fit_arguments(shops))
    assert (done.code, "--missing impute" in done.err) == (2, True)
    done = qpignn(*fit_arguments(shops, "--missing", "impute"))
    assert done.code == 0, done.err
    assert f"area: missing values filled with the median {median:g}" in done.err
    fit = load_fit(shops.parent / "m")
    assert fit.data.feature_names[-1] == "area is blank"
    np.testing.assert_allclose(fit.data.x[:5, -2], median, rtol=1e-6)


def test_predict_other_graph_with_an_unknown_category(qpignn: Run, shops: Path) -> None:
    assert qpignn(*fit_arguments(shops)).code == 0
    other = pd.read_csv(shops).head(5).drop(columns=["sales", "note"])
    other["kind"] = ["bakery", "kiosk", "market", "market", "kiosk"]
    other.to_csv(shops.parent / "other.csv", index=False)
    out = shops.parent / "out.csv"
    done = qpignn(
        "predict", shops.parent / "m", "--nodes", shops.parent / "other.csv", "--out", out
    )
    assert done.code == 0, done.err
    assert "warning: " in done.err
    assert "'market' (2 nodes)" in done.err
    assert len(pd.read_csv(out)) == 5
    other.drop(columns="area").assign(aera=1).to_csv(shops.parent / "other.csv", index=False)
    done = qpignn(
        "predict", shops.parent / "m", "--nodes", shops.parent / "other.csv", "--out", out
    )
    assert done.code == 2
    assert "lacks the column 'area'" in done.err
    assert "'aera'" in done.err


def test_predict_join_adds_new_nodes_to_the_graph_of_the_fit(qpignn: Run, shops: Path) -> None:
    assert qpignn(*fit_arguments(shops)).code == 0
    folder, out = shops.parent / "m", shops.parent / "out.csv"
    new, roads = shops.parent / "new.csv", shops.parent / "roads.csv"
    row = pd.read_csv(shops).iloc[[20]].drop(columns=["sales", "note"])
    row.assign(id="n1").to_csv(new, index=False)
    pd.DataFrame({"from": ["n1", "n1"], "to": ["s19", "s21"]}).to_csv(roads, index=False)
    done = qpignn("predict", folder, "--nodes", new, "--edges", roads, "--join", "--out", out)
    assert done.code == 0, done.err
    predictions = pd.read_csv(out)
    assert predictions["id"].tolist() == ["n1"]
    # the twin of s20 hears what s20 hears; their neighbours now hear one more alike
    assert qpignn("predict", folder, "--only", "all", "--out", out).code == 0
    twin = pd.read_csv(out).set_index("id").loc["s20"]
    assert predictions["prediction"].iloc[0] == pytest.approx(twin["prediction"], rel=0.2)
    done = qpignn("predict", folder, "--nodes", new, "--edges", roads, "--out", out)
    assert (done.code, "'s19'" in done.err) == (2, True)  # unknown without --join
    done = qpignn("predict", folder, "--join", "--out", out)
    assert (done.code, "--join needs --nodes" in done.err) == (2, True)
    again = ("predict", folder, "--nodes", new, "--edges", roads, "--join", "--out", out)
    assert qpignn(*again, "--only", "all").code == 0
    assert len(pd.read_csv(out)) == 61


def test_fit_and_predict_on_graphml(qpignn: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    graph = nx.DiGraph()
    for i in range(60):
        attributes = {"flow": float(rng.normal())} if i >= 10 else {}
        graph.add_node(
            f"n{i}", lanes=int(rng.integers(1, 4)), kind=str(rng.choice(["a", "b"])), **attributes
        )
    graph.add_edges_from((f"n{i}", f"n{i + 1}") for i in range(59))
    path, folder, out = tmp_path / "g.graphml", tmp_path / "m", tmp_path / "out.csv"
    nx.write_graphml(graph, path)
    done = qpignn("fit", "--nodes", path, "--target", "flow", "--epochs", 2, "--out", folder)
    assert done.code == 0, done.err
    assert "60 nodes (50 labelled), 59 directed edges, 3 features" in done.err
    assert qpignn("predict", folder, "--out", out).code == 0
    assert pd.read_csv(out)["id"].tolist() == [f"n{i}" for i in range(10)]
    assert qpignn("predict", folder, "--nodes", path, "--only", "all", "--out", out).code == 0
    same = pd.read_csv(out)
    assert qpignn("predict", folder, "--only", "all", "--out", out).code == 0
    pd.testing.assert_frame_equal(same, pd.read_csv(out))


def test_codes_keep_leading_zeros_in_fit_and_predict(qpignn: Run, shops: Path) -> None:
    frame = pd.read_csv(shops).drop(columns="note")
    frame["zone"] = np.where(
        np.arange(60) % 3 == 0, "01", np.where(np.arange(60) % 3 == 1, "1", "NA")
    )
    frame.to_csv(shops, index=False)
    arguments = (
        "--target",
        "sales",
        "--categorical",
        "zone",
        "--epochs",
        2,
        "--out",
        shops.parent / "m",
    )
    assert qpignn("fit", "--nodes", shops, *arguments).code == 0
    coding = load_fit(shops.parent / "m").model.coding_
    assert coding is not None
    assert [column.categories for column in coding.columns if column.name == "zone"] == [
        ("01", "1", "NA")
    ]
    other, out = shops.parent / "other.csv", shops.parent / "out.csv"
    frame[frame["zone"] == "01"].to_csv(other, index=False)  # a column of digits only
    done = qpignn("predict", shops.parent / "m", "--nodes", other, "--only", "all", "--out", out)
    assert (done.code, "got new ones" in done.err) == (0, False)


def test_fit_decimal_comma_is_detected_and_stored(qpignn: Run, shops: Path) -> None:
    frame = pd.read_csv(shops).drop(columns="note")
    frame.to_csv(shops, index=False, sep=";", decimal=",")
    arguments = nodes_only(shops)
    done = qpignn(*arguments)
    assert done.code == 0
    assert "  nodes: decimal commas" in done.err
    done = qpignn(*arguments, "--decimal", ".")
    assert done.code == 2
    assert "a decimal comma" in done.err
    assert "--decimal ," in done.err
    table = load_fit(shops.parent / "m").table
    assert table is not None
    np.testing.assert_allclose(table["area"], frame["area"])


def test_fit_categorical_accepts_dates(qpignn: Run, shops: Path) -> None:
    frame = pd.read_csv(shops).drop(columns="note")
    frame["when"] = np.where(np.arange(60) % 2, "2024-01", "2024-02")
    frame.to_csv(shops, index=False)
    arguments = nodes_only(shops)
    done = qpignn(*arguments)
    assert (done.code, "got dates" in done.err, "--ignore" in done.err) == (2, True, True)
    assert qpignn(*arguments, "--categorical", "when").code == 0
