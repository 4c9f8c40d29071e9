"""Evaluating on held-out nodes, on labels added later, and on another graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qpignn.methods.bundle import load_fit

Run = Callable[..., Any]


@pytest.fixture
def world(qpignn: Run, tmp_path: Path) -> tuple[Path, pd.DataFrame]:
    """A model fitted with 60 targets blank, and the table with all of them.

    It uses no targets of neighbours: those of another graph's nodes are not known.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    ids = [f"n{i}" for i in range(300)]
    truth = pd.DataFrame({"node": ids, "x": x, "rate": 2 * x + 0.3 * rng.normal(size=300)})
    truth.assign(rate=truth["rate"].where(truth.index % 5 != 0)).to_csv(
        tmp_path / "nodes.csv", index=False
    )
    edges = pd.DataFrame({"from": ids, "to": [*ids[1:], ids[0]]})
    edges.to_csv(tmp_path / "edges.csv", index=False)
    files = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv")
    options = ("--target", "rate", "--epochs", 60, "--set", "neighbours=off")
    options += ("--set", "novelty=off")  # another graph lies beyond what was learnt
    done = qpignn("fit", *files, *options, "--out", tmp_path / "model")
    assert done.code == 0, done.err
    assert "  ids: column node" in done.err
    return tmp_path / "model", truth


def expected(model: Path, truth: pd.DataFrame, chosen: Any) -> dict[str, float]:
    fit = load_fit(model)
    intervals = fit.model.predict_interval(fit.data).to_frame()[chosen]
    y = truth["rate"][chosen]
    return {
        "picp": float(((intervals["lower"] <= y) & (y <= intervals["upper"])).mean()),
        "mae": float((y - intervals["prediction"]).abs().mean()),
        "rmse": float(((y - intervals["prediction"]) ** 2).mean() ** 0.5),
    }


def test_evaluate_with_labels_added_after_the_fit(
    qpignn: Run, world: tuple[Path, pd.DataFrame], tmp_path: Path
) -> None:
    model, truth = world
    new = truth["node"].str[1:].astype(int) % 5 == 0
    truth[["node", "rate"]].sample(frac=1, random_state=0).to_csv(tmp_path / "new.csv", index=False)
    done = qpignn("evaluate", model, "--nodes", tmp_path / "new.csv", "--json")
    assert done.code == 0, done.err
    figures = json.loads(done.out)
    held_out = load_fit(model).data.test_mask.numpy()
    assert figures["n_test"] == 60 + held_out.sum()  # not one that was given to the fit
    for name, value in expected(model, truth, new | held_out).items():
        assert figures[name] == pytest.approx(value, rel=1e-6), name
    shown = qpignn("evaluate", model, "--nodes", tmp_path / "new.csv").out
    assert "nodes labelled after the fit, wanted coverage 0.9" in shown


@pytest.mark.parametrize("neighbours", ["auto", "off"])
def test_evaluate_says_how_much_narrower_known_neighbours_make_intervals(
    neighbours: str, qpignn: Run, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    ids, x = [f"n{i}" for i in range(400)], rng.normal(size=400)
    error = np.convolve(rng.normal(size=410), np.ones(11), mode="valid")  # alike along the ring
    pd.DataFrame({"node": ids, "x": x, "rate": x + error}).to_csv(tmp_path / "n.csv", index=False)
    following = [pd.DataFrame({"from": ids, "to": np.roll(ids, -step)}) for step in (1, 2)]
    pd.concat(following).to_csv(tmp_path / "e.csv", index=False)
    arguments = ("--nodes", tmp_path / "n.csv", "--edges", tmp_path / "e.csv", "--target", "rate")
    settings = ("--epochs", 30, "--set", f"neighbours={neighbours}")
    done = qpignn("fit", *arguments, *settings, "--out", tmp_path / "model")
    assert done.code == 0, done.err
    shown = qpignn("evaluate", tmp_path / "model").out
    lines = [line for line in shown.splitlines() if "known targets of neighbours" in line]
    assert len(lines) == (neighbours == "auto")
    for line in lines:
        assert line.startswith("note: known targets of neighbours make intervals ")
        assert " % narrower on average: mean width " in line
    figures = json.loads(qpignn("evaluate", tmp_path / "model", "--json").out)
    assert figures["n_test"] == 80


def test_evaluate_on_another_graph_with_labels(
    qpignn: Run, world: tuple[Path, pd.DataFrame], tmp_path: Path
) -> None:
    model, truth = world
    truth.assign(node="m" + truth["node"]).to_csv(tmp_path / "other.csv", index=False)
    links = pd.read_csv(tmp_path / "edges.csv").map(lambda id: f"m{id}")
    links.to_csv(tmp_path / "links.csv", index=False)
    arguments = ("evaluate", model, "--nodes", tmp_path / "other.csv", "--edges")
    figures = json.loads(qpignn(*arguments, tmp_path / "links.csv", "--json").out)
    assert figures["n_test"] == 300
    for name, value in expected(model, truth, slice(None)).items():
        assert figures[name] == pytest.approx(value, rel=1e-5), name


def test_evaluate_without_new_targets_of_known_nodes_is_refused(
    qpignn: Run, world: tuple[Path, pd.DataFrame], tmp_path: Path
) -> None:
    model, truth = world
    given = load_fit(model).data.train_mask.numpy()
    file = tmp_path / "new.csv"
    for frame, message in (
        (truth[given], "expected targets that the fit was not given, got none"),
        (truth.assign(node="m" + truth["node"]), "expected nodes of the fit, got 'mn0'"),
        (truth.drop(columns="rate"), "lacks the column 'rate'"),
        (truth.assign(node="n1"), "expected each node id once"),
    ):
        frame.to_csv(file, index=False)
        done = qpignn("evaluate", model, "--nodes", file)
        assert (done.code, message in done.err) == (2, True), done.err
    assert "--edges needs --nodes" in qpignn("evaluate", model, "--edges", file).err


def test_evaluate_without_graph_reports_the_effect_of_the_graph(
    world: tuple[Path, pd.DataFrame], qpignn: Run
) -> None:
    model, _ = world
    done = qpignn("evaluate", model, "--without-graph")
    assert done.code == 0, done.err
    assert "against the same method fitted without edges" in done.out
    effect = json.loads(qpignn("evaluate", model, "--without-graph", "--json").out)["graph_effect"]
    assert effect["units"] == 48
    assert effect["standard_error"] > 0
