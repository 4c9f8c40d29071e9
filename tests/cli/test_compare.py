from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from qpignn import example_tables, read_graph, save_graph
from qpignn.data.catalog import BENCHMARK
from qpignn.experiments.cell import Cell
from qpignn.methods.catalog import ALL

Run = Callable[..., Any]


@pytest.fixture
def compare(qpignn: Run, tmp_path: Path) -> Run:
    def run(*arguments: object) -> Any:
        return qpignn("compare", "--epochs", 2, "--results", tmp_path / "r.sqlite", *arguments)

    return run


def test_compare_gives_one_row_per_data_set_method_and_seed(compare: Run) -> None:
    arguments = ("--datasets", "basic,edge", "--methods", "qpignn", "--seeds", 2, "--json")
    done = compare(*arguments)
    rows = json.loads(done.out)
    assert [(r["dataset"], r["seed"]) for r in rows] == [
        ("basic", 0), ("basic", 1), ("edge", 0), ("edge", 1),
    ]  # fmt: skip
    assert "0 of them found" in done.err
    again = compare(*arguments)
    assert json.loads(again.out) == rows
    assert "4 of them found" in again.err
    assert "0 of them found" in compare(*arguments, "--fresh").err


def test_compare_prints_a_table_for_several_levels(compare: Run) -> None:
    done = compare("--datasets", "basic", "--seeds", 2, "--confidence", "0.5,0.9")
    assert done.code == 0
    assert "protocol corrected, mean ± deviation over 2 seeds" in done.out
    assert done.out.count("basic") == 2
    alone = compare("--datasets", "basic", "--seeds", 1).out
    assert "over 1 seeds" in alone
    assert "±" not in alone.split("seconds")[1]  # one seed has no spread to show


def test_compare_fixed_width_penalty_under_published_protocol(compare: Run) -> None:
    arguments = ("--lambda-width", "0.5", "--protocol", "published", "--seeds", 1, "--json")
    (row,) = json.loads(compare("--datasets", "basic", *arguments).out)
    assert (row["lambda_width"], row["protocol"], row["view"]) == (0.5, "published", "isolated")


def test_compare_all_datasets_runs_available_ones_and_lists_the_others(
    compare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("QPIGNN_DATA_DIR", "QPIGNN_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    keep = ("basic", "anaheim")
    monkeypatch.setattr("qpignn.data.catalog.BENCHMARK", {name: BENCHMARK[name] for name in keep})
    done = compare("--datasets", "all", "--methods", "all", "--seeds", 1, "--json")
    assert done.code == 0
    rows = json.loads(done.out)
    assert {row["dataset"] for row in rows} == {"basic"}
    assert [row["method"] for row in rows] == list(ALL)
    assert "left out: anaheim" in done.err


def test_compare_all_and_another_method_runs_each_once(
    qpignn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qpignn.methods.catalog.ALL", ("boosting_quantiles",))
    shared = ("--datasets", "basic", "--seeds", 1, "--set", "max_iter=2", "--json")
    names = "all,boosting,boosting_quantiles"
    done = qpignn("compare", *shared, "--methods", names, "--results", tmp_path / "r.sqlite")
    assert done.code == 0, done.err
    methods = [row["method"] for row in json.loads(done.out)]
    assert methods == ["boosting_quantiles", "boosting"]


def test_compare_against_published_figures_prints_differences(compare: Run, tmp_path: Path) -> None:
    paper = tmp_path / "paper.csv"
    paper.write_text("model,dataset,metric,value\nQ,basic,picp,0.9\nQ,basic,mpiw,0.3\n")
    done = compare("--datasets", "basic", "--seeds", 1, "--against", paper, "--against-model", "Q")
    assert "against Q" in done.out
    assert "|ΔPICP|: median" in done.err
    assert "1 data sets" in done.err


def test_compare_interrupted_reports_stored_rows_and_resumes(
    compare: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--datasets", "basic", "--seeds", 3)
    compare("--datasets", "basic", "--seeds", 1)

    def interrupted(cell: Cell) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Cell, "run", interrupted)
    done = compare(*arguments)
    assert done.code == 130
    assert "interrupted: 1 of 3 rows are in" in done.err
    monkeypatch.undo()
    assert "1 of them found" in compare(*arguments).err


def test_compare_failing_cell_is_listed_and_exits_1(compare: Run) -> None:
    done = compare("--datasets", "basic", "--seeds", 1, "--set", "lr=1e30")
    assert done.code == 1
    assert "failed: basic qpignn seed 0: TrainingError" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--datasets", "basix"), "unknown data set 'basix'"),
        (("--datasets", "basic", "--methods", "sqrt"), "unknown method 'sqrt'"),
        (("--datasets", "basic", "--view", "top"), "unknown view 'top'"),
        (("--datasets", "basic", "--split", "age"), "unknown split 'age'"),
        (("--datasets", "basic", "--confidence", "1.2"), "--confidence: expected"),
        (("--datasets", "basic", "--lambda-width", "wide"), 'lambda_width: expected "auto"'),
        (("--datasets", "basic", "--jobs", 0), "jobs: expected a whole number from 1 up"),
        (("--datasets", "basic", "--confidence", "high"), "--confidence: expected"),
        (("--datasets", "basic", "--against", "absent.csv"), "expected a CSV of published figures"),
        (("--datasets", "basic", "--protocol", "published", "--view", "inductive"), "isolated"),
    ],
)
def test_compare_invalid_options_exit_2(
    compare: Run, arguments: tuple[object, ...], message: str
) -> None:
    done = compare(*arguments)
    assert done.code == 2
    assert message in done.err


def test_compare_set_changes_settings_and_refuses_other_forms(compare: Run) -> None:
    arguments = ("--datasets", "basic", "--seeds", 1, "--json")
    (row,) = json.loads(compare(*arguments, "--set", "members=5", "--set", "tails=equal").out)
    (ten,) = json.loads(compare(*arguments).out)
    assert 2 * row["parameters"] == ten["parameters"]
    done = compare(*arguments, "--set", "width")
    assert (done.code, "--set: expected name=value" in done.err) == (2, True)
    done = compare(*arguments, "--set", "seed=7")
    assert (done.code, "--set: seed has its own option" in done.err) == (2, True)
    done = compare(*arguments, "--set", "colour=red")
    assert (done.code, "has no setting 'colour'" in done.err) == (2, True)


def test_curve_writes_rows_and_picture(
    qpignn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qpignn.cli.curve.LAMBDAS", (0.05, 0.5))
    monkeypatch.setattr("qpignn.cli.curve.PLAIN", {"epochs": 2})
    picture = tmp_path / "figures" / "lambda.png"
    arguments = ("--datasets", "basic", "--seeds", 1, "--results", tmp_path / "r.sqlite", "--json")
    rows = json.loads(qpignn("curve", "--out", picture, *arguments).out)
    assert [(r["loss"], r["lambda_width"]) for r in rows] == [
        ("self-calibrating", "auto"), ("printed", 0.05), ("printed", 0.5),
        ("published", 0.05), ("published", 0.5),
    ]  # fmt: skip
    assert picture.stat().st_size > 10_000
    done = qpignn("curve", "--out", tmp_path / "lambda.xyz", *arguments)
    assert (done.code, "ending in .png or .svg" in done.err) == (2, True)


def test_compare_rank_prints_ranks(compare: Run) -> None:
    done = compare("--datasets", "basic", "--methods", "sqr,rqr", "--seeds", 1, "--rank")
    assert done.code == 0
    assert "first by MPIW" in done.out
    assert done.out.count("sqr") == 2


def test_compare_rank_json_has_ranks_per_level(compare: Run) -> None:
    arguments = (
        "--datasets",
        "basic",
        "--methods",
        "sqr,rqr",
        "--seeds",
        1,
        "--confidence",
        "0.5,0.9",
    )
    document = json.loads(compare(*arguments, "--rank", "--json").out)
    assert len(document["rows"]) == len(document["ranks"]) == 4
    counts = {(c["method"], c["confidence_level"]): c for c in document["first_places"]}
    assert {c["data_sets"] for c in counts.values()} == {1}
    for level in (0.5, 0.9):
        assert sum(counts[name, level]["first_by_winkler"] for name in ("sqr", "rqr")) == 1


def test_compare_two_methods_against_one_model_is_refused_before_training(
    compare: Run, tmp_path: Path
) -> None:
    paper = tmp_path / "paper.csv"
    paper.write_text("model,dataset,metric,value\nA,basic,picp,0.9\n")
    arguments = ("--datasets", "basic", "--methods", "sqr,rqr", "--against", paper)
    done = compare(*arguments, "--against-model", "A")
    assert (done.code, "expected one method at one level" in done.err) == (2, True)
    assert "rows" not in done.err


# --- graphs of the user's own ---


@pytest.fixture
def own(tmp_path: Path) -> tuple[object, ...]:
    """Options that name two tables of 150 stations."""
    stations, roads = example_tables(nodes=150)
    stations.to_csv(tmp_path / "stations.csv", index=False)
    roads.to_csv(tmp_path / "roads.csv", index=False)
    files = ("--nodes", tmp_path / "stations.csv", "--edges", tmp_path / "roads.csv")
    return ("compare", *files, "--target", "pollution", "--epochs", 2, "--seeds", 2)


def test_compare_on_own_tables_resumes_and_notices_changed_files(
    qpignn: Run, own: tuple[object, ...], tmp_path: Path
) -> None:
    arguments = (*own, "--methods", "sqr,cqr", "--results", tmp_path / "r.sqlite", "--json")
    done = qpignn(*arguments)
    assert done.code == 0, done.err
    rows = json.loads(done.out)
    assert {(row["dataset"], row["method"], row["seed"]) for row in rows} == {
        ("stations", method, seed) for method in ("sqr", "cqr") for seed in (0, 1)
    }
    assert "4 rows, 4 of them found" in qpignn(*arguments).err
    table = pd.read_csv(tmp_path / "stations.csv")
    table.assign(height=table["height"] + 1).to_csv(tmp_path / "stations.csv", index=False)
    assert "4 rows, 0 of them found" in qpignn(*arguments).err


def test_compare_on_a_saved_graph_gives_the_rows_of_its_tables(
    qpignn: Run, own: tuple[object, ...], tmp_path: Path
) -> None:
    tables = (tmp_path / "stations.csv", tmp_path / "roads.csv")
    save_graph(tmp_path / "saved" / "stations", read_graph(*tables, target="pollution"))
    shared = ("--methods", "sqr", "--results", tmp_path / "r.sqlite", "--json")
    from_tables = json.loads(qpignn(*own, *shared).out)
    arguments = (
        "compare",
        "--datasets",
        tmp_path / "saved" / "stations",
        "--epochs",
        2,
        "--seeds",
        2,
    )
    done = qpignn(*arguments, *shared)
    assert json.loads(done.out) == from_tables
    assert "2 of them found" in done.err


def test_compare_label_fraction_gives_methods_fewer_labels_and_the_same_test_nodes(
    qpignn: Run, own: tuple[object, ...], tmp_path: Path
) -> None:
    arguments = (*own, "--methods", "sqr", "--results", tmp_path / "r.sqlite", "--json")
    every = json.loads(qpignn(*arguments).out)
    few = json.loads(qpignn(*arguments, "--label-fraction", 0.3).out)
    labelled = every[0]["n_train"] + every[0]["n_test"]
    assert [row["n_train"] for row in few] == [round(0.3 * labelled)] * 2
    assert [row["n_test"] for row in few] == [row["n_test"] for row in every]
    done = qpignn(*arguments, "--label-fraction", 0.9)
    assert done.code == 1
    assert "label_fraction: expected a share that leaves 1 to" in done.err


@pytest.mark.parametrize("suffix", [".md", ".tex", ".csv", ".json"])
def test_compare_writes_its_table(
    qpignn: Run, own: tuple[object, ...], tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"table{suffix}"
    done = qpignn(*own, "--methods", "sqr", "--results", tmp_path / "r.sqlite", "--out", out)
    assert done.code == 0, done.err
    text = out.read_text()
    assert "stations" in text
    assert {".tex": r"\toprule", ".md": "| data set |", ".csv": "picp_mean", ".json": '"rows"'}[
        suffix
    ] in text
    assert "the results file is --results" in qpignn(*own, "--out", tmp_path / "r.sqlite").err


def test_compare_sources_exclude_each_other(qpignn: Run, own: tuple[object, ...]) -> None:
    for arguments, message in (
        (("compare",), "expected either --datasets NAMES or --nodes FILE, got both or none"),
        ((*own, "--datasets", "er"), "got both or none"),
        (("compare", "--datasets", "er", "--target", "y"), "no roles of columns with --datasets"),
        ((*own, "--protocol", "published"), "expected corrected for a graph of your own"),
    ):
        done = qpignn(*arguments)
        assert (done.code, message in done.err) == (2, True), done.err
