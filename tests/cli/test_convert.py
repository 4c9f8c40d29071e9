"""From tables to a graph on disk, and from there to intervals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from qpignn import example_tables
from qpignn.data.mapped import open_graph, write_graph
from qpignn.errors import ModelFileError
from qpignn.methods.bundle import load_fit

Run = Callable[..., Any]


@pytest.fixture
def tables(tmp_path: Path) -> tuple[object, ...]:
    nodes, edges = example_tables(80)
    nodes["part"] = np.where(np.arange(80) % 4 > 0, "train", "test")
    nodes.to_csv(tmp_path / "n.csv", index=False)
    edges.to_csv(tmp_path / "e.csv", index=False)
    return ("--nodes", tmp_path / "n.csv", "--edges", tmp_path / "e.csv", "--target", "pollution")


@pytest.fixture
def graph(qpignn: Run, tables: tuple[object, ...], tmp_path: Path) -> Path:
    done = qpignn("convert", *tables, "--ignore", "part", "--out", tmp_path / "graph")
    assert done.code == 0, done.err
    return tmp_path / "graph"


@pytest.fixture
def fitted(qpignn: Run, graph: Path, tmp_path: Path) -> Path:
    done = qpignn("fit", "--graph", graph, "--epochs", 5, "--out", tmp_path / "model")
    assert done.code == 0, done.err
    return tmp_path / "model"


def test_convert_reports_the_written_graph(
    qpignn: Run, tables: tuple[object, ...], tmp_path: Path
) -> None:
    arguments = ("convert", *tables, "--ignore", "part", "--out", tmp_path / "g")
    roads = len(pd.read_csv(tmp_path / "e.csv"))
    done = qpignn(*arguments)
    assert done.code == 0, done.err
    assert f"converted 80 nodes (60 labelled), {roads} edges, 8 features: " in done.out
    assert f"next: qpignn fit --graph {tmp_path / 'g'}" in done.out
    report = json.loads(qpignn(*arguments, "--directed", "--memory", 1, "--json").out)
    size = sum(p.stat().st_size for p in (tmp_path / "g").iterdir() if p.name != "mapped.json")
    assert report == {
        "folder": str(tmp_path / "g"),
        "nodes": 80,
        "labelled": 60,
        "edges": roads,
        "directed": True,
        "features": 8,
        "bytes": size,
    }


def test_fit_on_converted_graph_equals_fit_on_tables(
    qpignn: Run, tables: tuple[object, ...], fitted: Path, tmp_path: Path
) -> None:
    options = ("--ignore", "part", "--epochs", 5, "--out", tmp_path / "other")
    assert qpignn("fit", *tables, *options).code == 0
    frames, figures = [], []
    for folder in (fitted, tmp_path / "other"):
        out = tmp_path / "i.csv"
        assert qpignn("predict", folder, "--only", "all", "--out", out).code == 0
        frames.append(pd.read_csv(out))
        figures.append(json.loads(qpignn("evaluate", folder, "--json").out))
    pd.testing.assert_frame_equal(*frames, rtol=1e-3)  # sums run in another order
    assert figures[0]["n_test"] == figures[1]["n_test"] == 12
    assert figures[0]["mpiw"] == pytest.approx(figures[1]["mpiw"], rel=1e-2)


def test_fit_on_converted_graph_stores_masks_and_no_copy_of_the_graph(
    graph: Path, fitted: Path
) -> None:
    there = {p.relative_to(fitted).as_posix() for p in fitted.rglob("*") if p.is_file()}
    files = {"fit.json", "model.json", "model.safetensors", "graph/masks.safetensors"}
    assert there == {*files, ".qpignn.lock"}
    fit = load_fit(fitted)
    assert fit.origin.target == "pollution"
    assert int(fit.data.test_mask.sum()) == 12
    assert open_graph(graph).get("test_mask") is None
    assert torch.equal(fit.data.x, open_graph(graph).x)


def test_report_and_join_on_converted_graph(qpignn: Run, fitted: Path, tmp_path: Path) -> None:
    done = qpignn("report", fitted)
    assert done.code == 0, done.err
    assert "pollution" in (fitted / "report.html").read_text()
    new, roads, out = tmp_path / "new.csv", tmp_path / "roads.csv", tmp_path / "i.csv"
    row = pd.read_csv(tmp_path / "n.csv").head(1).drop(columns=["pollution", "part"])
    row.assign(id="n1").to_csv(new, index=False)
    pd.DataFrame({"from": ["n1"], "to": ["S0003"]}).to_csv(roads, index=False)
    done = qpignn("predict", fitted, "--nodes", new, "--edges", roads, "--join", "--out", out)
    assert done.code == 0, done.err
    assert pd.read_csv(out)["id"].tolist() == ["n1"]
    assert qpignn("predict", fitted, "--nodes", new, "--out", out).code == 0


def test_load_fit_with_another_graph_at_its_path_is_refused(
    qpignn: Run, tables: tuple[object, ...], graph: Path, fitted: Path, tmp_path: Path
) -> None:
    shutil.move(graph, tmp_path / "moved")
    for command in (("evaluate",), ("report",), ("predict", "--out", tmp_path / "i.csv")):
        done = qpignn(command[0], fitted, *command[1:])
        assert done.code == 2
        assert f"expected the graph of the fit in {graph}, got none that opens" in done.err
    frame = pd.read_csv(tmp_path / "n.csv")
    frame["pollution"] += 1
    frame.to_csv(tmp_path / "n.csv", index=False)
    assert qpignn("convert", *tables, "--ignore", "part", "--out", graph).code == 0
    with pytest.raises(ModelFileError, match=r"got another graph; put it back there, or fit again"):
        load_fit(fitted)
    shutil.rmtree(graph)
    shutil.move(tmp_path / "moved", graph)
    assert load_fit(fitted).data.num_nodes == 80


def test_fit_folder_is_reused_for_another_kind_of_fit(
    qpignn: Run, tables: tuple[object, ...], graph: Path, fitted: Path
) -> None:
    assert qpignn("fit", *tables, "--ignore", "part", "--epochs", 2, "--out", fitted).code == 0
    assert load_fit(fitted).table is not None
    assert not (fitted / "graph" / "masks.safetensors").exists()
    assert qpignn("fit", "--graph", graph, "--epochs", 2, "--out", fitted).code == 0
    assert load_fit(fitted).table is None
    assert [p.name for p in (fitted / "graph").iterdir()] == ["masks.safetensors"]
    (fitted / "graph" / "masks.safetensors").write_bytes(b"")
    with pytest.raises(ModelFileError, match="missing, damaged or mixed files"):
        load_fit(fitted)


def test_convert_split_column_is_used_by_fit(
    qpignn: Run, tables: tuple[object, ...], tmp_path: Path
) -> None:
    graph, model = tmp_path / "g", tmp_path / "m"
    assert qpignn("convert", *tables, "--split", "part", "--out", graph).code == 0
    labelled = pd.read_csv(tmp_path / "n.csv")["pollution"].notna()
    held_out = int(labelled[::4].sum())
    report = json.loads(
        qpignn("fit", "--graph", graph, "--epochs", 2, "--out", model, "--json").out
    )
    assert (report["given"], report["test"]) == (60 - held_out, held_out)
    assert report["read"]["labelled"] == report["labelled"] == 60
    assert json.loads(qpignn("evaluate", model, "--json").out)["n_test"] == held_out
    done = qpignn("fit", "--graph", graph, "--test-fraction", 0.5, "--out", model)
    assert (done.code, "exclude each other" in done.err) == (2, True)


def test_fit_on_graph_written_by_write_graph(qpignn: Run, tmp_path: Path) -> None:
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(60, 2, generator=rng)
    ends = torch.randint(0, 60, (2, 100), generator=rng)
    write_graph(tmp_path / "mine", Data(x=x, edge_index=ends, y=x.sum(dim=1)))
    model, out = tmp_path / "m", tmp_path / "i.csv"
    assert qpignn("fit", "--graph", tmp_path / "mine", "--epochs", 2, "--out", model).code == 0
    assert qpignn("predict", model, "--only", "all", "--out", out).code == 0
    assert pd.read_csv(out)["id"].tolist() == list(range(60))
    assert load_fit(model).origin.target == "mine"
    done = qpignn("predict", model, "--nodes", "x.csv", "--out", out)
    assert "was fitted on the graph 'mine'" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dataset", "basic"), "either --dataset NAME or --nodes FILE or --graph DIR"),
        (("--target", "y"), "no column options with --graph, got 'target'"),
        (("--edges", "e.csv"), "no column options with --graph, got 'edges'"),
    ],
)
def test_fit_graph_with_table_options_is_refused(
    qpignn: Run, graph: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = qpignn("fit", "--graph", graph, *arguments, "--out", tmp_path / "m")
    assert done.code == 2
    assert message in done.err


def test_convert_invalid_input_exits_2(
    qpignn: Run, tables: tuple[object, ...], tmp_path: Path
) -> None:
    done = qpignn("fit", "--graph", tmp_path, "--out", tmp_path / "m")
    assert done.code == 2
    assert "expected a folder written by 'qpignn convert'" in done.err
    out = ("--out", tmp_path / "g")
    done = qpignn("convert", *tables[:2], *tables[4:], "--edge-weight", "w", *out)
    assert (done.code, "need --edges" in done.err) == (2, True)
    done = qpignn("convert", *tables, "--memory", 0, *out)
    assert (done.code, "--memory: expected a whole number" in done.err) == (2, True)
    done = qpignn("convert", *tables, "--id", "name", *out)
    assert (done.code, "expected an id column 'name'" in done.err) == (2, True)
    assert not (tmp_path / "g").exists()


def test_mapped_graph_with_changed_rows_is_refused_by_every_command(
    qpignn: Run, graph: Path, fitted: Path, tmp_path: Path
) -> None:
    """The rows of ``x.npy`` in reverse: same size, same header, features of other nodes."""
    x = np.load(graph / "x.npy", mmap_mode="r+")
    x[:] = x[::-1].copy()
    x.flush()
    for arguments in (
        ("fit", "--graph", graph, "--epochs", 5, "--out", tmp_path / "other"),
        ("predict", fitted, "--out", tmp_path / "i.csv"),
        ("evaluate", fitted),
        ("report", fitted),
    ):
        done = qpignn(*arguments)
        assert done.code == 2, arguments
        assert "got other bytes in x.npy than its description states" in done.err
    assert not (tmp_path / "i.csv").exists()
    assert not (tmp_path / "other" / "model.json").exists()
