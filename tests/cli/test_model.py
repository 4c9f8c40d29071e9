from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qpignn.data.storage import load_graph

Run = Callable[..., Any]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A ring of 80 stations with text ids; every fifth has no target."""
    rng = np.random.default_rng(0)
    names = [f"s{i:02d}" for i in range(80)]
    height = rng.uniform(size=80)
    rain = np.sin(3 * height) + 0.1 * rng.uniform(size=80)
    frame = pd.DataFrame({"station": names, "height": height, "slope": rng.uniform(size=80)})
    frame["rain"] = np.where(np.arange(80) % 5 == 0, np.nan, rain)
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    frame.to_csv(nodes, index=False)
    pd.DataFrame({"a": names, "b": names[1:] + names[:1]}).to_csv(edges, index=False)
    return nodes, edges


@pytest.fixture
def fitted(qpignn: Run, files: tuple[Path, Path], tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    options = ("--id", "station", "--target", "rain", "--epochs", 20, "--out", folder)
    done = qpignn("fit", "--nodes", files[0], "--edges", files[1], *options)
    assert done.code == 0, done.err
    assert "80 nodes (64 labelled), 80 edges, 2 features" in done.err
    assert f"next: qpignn evaluate {folder}" in done.out
    return folder


def test_predict_gives_exactly_the_blank_nodes(qpignn: Run, fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "intervals.csv"
    assert qpignn("predict", fitted, "--out", out).code == 0
    frame = pd.read_csv(out)
    assert list(frame.columns) == ["station", "prediction", "lower", "upper"]
    assert frame["station"].tolist() == [f"s{i:02d}" for i in range(0, 80, 5)]
    assert (frame["lower"] <= frame["upper"]).all()


def test_predict_all_to_parquet(qpignn: Run, fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "intervals.parquet"
    assert qpignn("predict", fitted, "--only", "all", "--out", out).code == 0
    assert len(pd.read_parquet(out)) == 80


def test_evaluate_uses_the_held_out_nodes(
    qpignn: Run, files: tuple[Path, Path], fitted: Path, tmp_path: Path
) -> None:
    figures = json.loads(qpignn("evaluate", fitted, "--json").out)
    assert figures["n_test"] == 12  # a fifth of 64
    all_nodes = tmp_path / "all.csv"
    assert qpignn("predict", fitted, "--only", "all", "--out", all_nodes).code == 0
    frame = pd.read_csv(all_nodes).join(pd.read_csv(files[0])["rain"])
    graph = load_graph(fitted / "graph")
    held_out = frame[graph.test_mask.numpy()]
    inside = (held_out["lower"] <= held_out["rain"]) & (held_out["rain"] <= held_out["upper"])
    assert figures["picp"] == pytest.approx(inside.mean())
    unit = np.ptp(frame["rain"][graph.train_mask.numpy()])
    assert figures["mpiw"] == pytest.approx((held_out["upper"] - held_out["lower"]).mean() / unit)
    assert "coverage (PICP)" in qpignn("evaluate", fitted).out


def test_predict_new_graph_with_the_columns_of_the_fit(
    qpignn: Run, files: tuple[Path, Path], fitted: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.csv"
    frame = pd.read_csv(files[0]).head(10)
    frame[["slope", "station", "height"]].assign(extra=1).to_csv(new, index=False)
    out = tmp_path / "new_intervals.csv"
    few = tmp_path / "few.csv"
    pd.read_csv(files[1]).head(9).to_csv(few, index=False)
    done = qpignn("predict", fitted, "--nodes", new, "--out", out)
    assert done.code == 0
    assert len(pd.read_csv(out)) == 10
    assert "the new nodes have no neighbours" in done.err
    frame.assign(rain="").to_csv(new, index=False)  # the column is there, but nothing is known
    done = qpignn("predict", fitted, "--nodes", new, "--edges", few, "--out", out, "--json")
    assert json.loads(done.out) == {"file": str(out), "intervals": 10, "confidence_level": 0.9}
    assert "no neighbours" not in done.err
    frame.drop(columns="slope").to_csv(new, index=False)
    done = qpignn("predict", fitted, "--nodes", new, "--out", out)
    assert done.code == 2
    assert "lacks the column 'slope'" in done.err


def test_fit_split_column_is_used(qpignn: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    frame = pd.read_csv(files[0])
    frame["part"] = np.where(np.arange(80) < 60, "train", "test")
    frame.to_csv(files[0], index=False)
    options = ("--id", "station", "--target", "rain", "--split", "part", "--epochs", 3)
    done = qpignn("fit", "--nodes", files[0], *options, "--out", tmp_path / "m", "--json")
    report = json.loads(done.out)
    assert (report["given"], report["test"]) == (48, 16)  # labelled ones only
    assert json.loads(qpignn("evaluate", tmp_path / "m", "--json").out)["n_test"] == 16


def test_fit_data_set_without_held_out_nodes_cannot_be_evaluated(
    qpignn: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    options = ("--test-fraction", 0, "--epochs", 2, "--confidence", 0.8, "--out", folder, "--json")
    report = json.loads(qpignn("fit", "--dataset", "basic", *options).out)
    assert (report["given"], report["test"]) == (1000, 0)
    done = qpignn("evaluate", folder)
    assert done.code == 2
    assert "fit with --test-fraction" in done.err
    done = qpignn("predict", folder, "--out", tmp_path / "i.csv")
    assert done.code == 0
    assert "use --only all" in done.err
    done = qpignn("predict", folder, "--nodes", "x.csv", "--out", tmp_path / "i.csv")
    assert "was fitted on the data set 'basic'" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dataset", "chamelion"), "did you mean chameleon"),
        (("--dataset", "basic", "--confidence", 90), "--confidence: expected a number strictly"),
        (("--dataset", "basic", "--method", "qpi"), "unknown method 'qpi'"),
        (("--dataset", "basic", "--nodes", "x.csv"), "either --dataset NAME or --nodes FILE"),
        ((), "either --dataset NAME or --nodes FILE"),
        (("--nodes", "x.csv"), "expected --target COLUMN"),
        (("--nodes", "absent.csv", "--target", "y"), "absent.csv: expected a file, got nothing"),
        (
            ("--dataset", "basic", "--target", "y"),
            "with --dataset, got 'target'; use them with --nodes",
        ),
        (("--dataset", "basic", "--epochs", 0), "epochs: expected a whole number"),
        (("--dataset", "basic", "--test-fraction", 1.5), "--test-fraction: expected a share"),
    ],
)
def test_fit_invalid_tables_exit_2_without_a_traceback(
    qpignn: Run, tmp_path: Path, options: tuple[object, ...], message: str
) -> None:
    done = qpignn("fit", *options, "--out", tmp_path / "m")
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert message in done.err
    assert not list((tmp_path / "m").glob("*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--out", "x.txt"), "ending in .csv, .parquet, .xlsx"),
        (("--out", "x.csv", "--only", "some"), "expected unlabelled or all, got 'some'"),
        (("--out", "x.csv", "--edges", "e.csv"), "--edges needs --nodes"),
    ],
)
def test_predict_invalid_options_exit_2(
    qpignn: Run, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = qpignn("predict", tmp_path, *options)
    assert done.code == 2
    assert message in done.err


def test_evaluate_truncated_or_missing_model_exits_2(
    qpignn: Run, fitted: Path, tmp_path: Path
) -> None:
    weights = fitted / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    done = qpignn("evaluate", fitted)
    assert (done.code, "cut short" in done.err) == (2, True)
    done = qpignn("evaluate", tmp_path / "nothing")
    assert (done.code, "expected a saved model" in done.err) == (2, True)


def test_unwritable_outputs_are_refused_before_training(qpignn: Run, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    for arguments in (
        ("fit", "--dataset", "basic", "--out", taken),
        ("demo", "--out", taken),
        ("compare", "--datasets", "basic", "--results", taken / "r.sqlite"),
    ):
        done = qpignn(*arguments)
        assert done.code == 2
        assert done.err.startswith("error: ")
        assert "epoch" not in done.err


def test_evaluate_folder_mixed_from_two_fits_is_refused(
    qpignn: Run, files: tuple[Path, Path], fitted: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    arguments = ("--id", "station", "--target", "rain", "--epochs", 3, "--seed", 7, "--out", other)
    assert qpignn("fit", "--nodes", files[0], *arguments).code == 0
    shutil.copytree(other / "graph", fitted / "graph", dirs_exist_ok=True)
    done = qpignn("evaluate", fitted)
    assert done.code == 2
    assert "missing, damaged or mixed files; fit again" in done.err


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"roles": null}', None])
def test_evaluate_damaged_fit_json_is_refused(
    qpignn: Run, fitted: Path, content: str | None
) -> None:
    if content is None:
        (fitted / "fit.json").unlink()
    else:
        (fitted / "fit.json").write_text(content)
    done = qpignn("evaluate", fitted)
    assert (done.code, "fit again" in done.err) == (2, True)


def test_fit_invalid_split_column_exits_2(
    qpignn: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    frame = pd.read_csv(files[0]).assign(part="test")
    frame.to_csv(files[0], index=False)
    arguments = (
        "fit",
        "--nodes",
        files[0],
        "--id",
        "station",
        "--target",
        "rain",
        "--split",
        "part",
    )
    done = qpignn(*arguments, "--out", tmp_path / "m")
    assert (done.code, "expected labelled train nodes, got none" in done.err) == (2, True)
    done = qpignn(*arguments, "--test-fraction", 0.3, "--out", tmp_path / "m")
    assert (done.code, "exclude each other" in done.err) == (2, True)
    assert not (tmp_path / "m").exists()


def test_named_edge_ends(qpignn: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    edges = pd.read_csv(files[1])
    edges.insert(0, "km", 1)
    edges.to_csv(files[1], index=False)
    arguments = (
        "fit",
        "--nodes",
        files[0],
        "--edges",
        files[1],
        "--id",
        "station",
        "--target",
        "rain",
    )
    done = qpignn(*arguments, "--epochs", 2, "--edge-ends", "a,b", "--out", tmp_path / "m")
    assert "80 edges" in done.err
    done = qpignn(*arguments, "--out", tmp_path / "n")
    assert (done.code, "has a different value in every row" in done.err) == (2, True)


def test_debug_shows_the_traceback(
    qpignn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QPIGNN_DEBUG", "1")
    done = qpignn("evaluate", tmp_path / "nothing")
    assert done.code == 2
    assert "Traceback" in done.err
    assert "expected a saved model" in done.err


def test_help_of_every_command_has_an_example(qpignn: Run) -> None:
    for command in ("demo", "fit", "evaluate", "predict", "report", "compare", "datasets"):
        assert f"Example: qpignn {command}" in " ".join(qpignn(command, "--help").out.split())


def test_several_levels_and_parts_of_the_width(
    qpignn: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, out = tmp_path / "model", tmp_path / "intervals.csv"
    options = ("--id", "station", "--target", "rain", "--epochs", 20, "--out", folder)
    levels = ("--confidence", "0.5,0.8", "--set", "y_min=0")
    assert qpignn("fit", "--nodes", files[0], "--edges", files[1], *options, *levels).code == 0
    assert qpignn("predict", folder, "--out", out, "--parts").code == 0
    wide = pd.read_csv(out)
    assert list(wide.columns) == [
        "station",
        "prediction",
        "lower",
        "upper",
        "epistemic",
        "aleatoric",
    ]
    assert (wide["lower"] >= 0).all()
    parts, widths = wide["epistemic"] + wide["aleatoric"], wide["upper"] - wide["lower"]
    np.testing.assert_allclose(parts, widths, atol=1e-6)  # as many digits as are written
    assert qpignn("predict", folder, "--out", out, "--confidence", 0.5).code == 0
    narrow = pd.read_csv(out)
    assert (narrow["upper"] <= wide["upper"]).all()
    figures = json.loads(qpignn("evaluate", folder, "--confidence", 0.5, "--json").out)
    assert figures["confidence_level"] == 0.5
    done = qpignn("evaluate", folder, "--confidence", 0.7)
    assert (done.code, "one of the fitted levels [0.5, 0.8]" in done.err) == (2, True)


def test_fit_and_predict_one_sided(qpignn: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    folder, out = tmp_path / "model", tmp_path / "intervals.csv"
    options = ("--id", "station", "--target", "rain", "--epochs", 5, "--out", folder)
    assert qpignn("fit", "--nodes", files[0], *options, "--set", "side=upper").code == 0
    assert qpignn("predict", folder, "--out", out).code == 0
    assert np.isneginf(pd.read_csv(out)["lower"]).all()
    figures = json.loads(qpignn("evaluate", folder, "--json").out)
    assert figures["mpiw"] is None  # no lower end, no width
    assert 0 <= figures["picp"] <= 1
