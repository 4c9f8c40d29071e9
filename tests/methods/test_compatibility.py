"""Folders that version 0.1 wrote: models of every method, a fit, a saved and a converted graph."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qpignn import load_graph, load_method, open_graph

OLD = Path(__file__).parents[1] / "fixtures" / "0.1"
MODELS = sorted(path.parent.name for path in OLD.glob("*/model.json") if path.parent.name != "fit")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a copy of the folders: reading leaves lock files behind."""
    shutil.copytree(OLD, tmp_path / "old")
    return tmp_path / "old"


@pytest.mark.parametrize("name", MODELS)
def test_load_method_of_a_folder_written_by_0_1_gives_its_intervals(name: str, old: Path) -> None:
    model = load_method(old / name)
    intervals = model.predict_interval(load_graph(old / "graph")).to_frame()
    expected = pd.read_csv(old / name / "expected.csv")
    assert intervals["id"].tolist() == expected["id"].tolist()
    columns = ["prediction", "lower", "upper"]
    # bounds are differences of float32 numbers near 1, whose rounding depends on the processor
    np.testing.assert_allclose(
        intervals[columns].to_numpy(), expected[columns].to_numpy(), rtol=1e-5, atol=1e-6
    )


def test_predict_on_a_fit_written_by_0_1_gives_its_intervals(
    old: Path, tmp_path: Path, qpignn: Callable[..., Any]
) -> None:
    out = tmp_path / "out.csv"
    done = qpignn("predict", old / "fit", "--only", "all", "--out", out)
    assert done.code == 0, done.err
    expected = pd.read_csv(old / "fit" / "expected.csv")
    pd.testing.assert_frame_equal(pd.read_csv(out), expected, rtol=1e-5)


def test_open_graph_of_a_folder_written_by_0_1(old: Path) -> None:
    data = open_graph(old / "mapped")
    assert tuple(data.x.shape) == (80, 9)
    assert int((~data.y.isnan()).sum()) == 61
    assert data.num_edges == 32
