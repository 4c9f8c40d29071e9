"""Methods and losses of a user's own, each in one file outside the package."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import Conformal, load_dataset, make_method, split_nodes
from qpignn.errors import SettingError
from qpignn.methods import NetMethod

EXAMPLES = Path(__file__).parents[1] / "examples"
PATHS = ("examples/student_t.py:StudentT", "examples/own_loss.py:SmoothQuantile")


def imported(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data() -> Data:
    return split_nodes(load_dataset("er", nodes=300))


@pytest.fixture(params=[("student_t", "StudentT"), ("own_loss", "SmoothQuantile")])
def method(request: pytest.FixtureRequest) -> type[NetMethod]:
    module, name = request.param
    cls: type[NetMethod] = getattr(imported(module), name)
    return cls


def test_example_method_fits_saves_loads_and_is_wrapped(
    method: type[NetMethod], data: Data, tmp_path: Path
) -> None:
    fitted = method([0.5, 0.9], epochs=30, seed=1).fit(data)
    fitted.save(tmp_path)
    wide, narrow = (fitted.predict_interval(data, confidence_level=c) for c in (0.9, 0.5))
    assert (wide.lower <= narrow.lower).all()
    assert (narrow.upper <= wide.upper).all()
    again = method.load(tmp_path).predict_interval(data)
    assert np.array_equal(again.lower, wide.lower)
    wrapped = Conformal(method(epochs=30)).fit(data).predict_interval(data, data.test_mask)
    assert len(wrapped) == int(data.test_mask.sum())


def test_example_student_t_is_calibrated_on_held_out_nodes(data: Data) -> None:
    cls = imported("student_t").StudentT
    fitted = cls(epochs=60).fit(data)
    given = int((~data.test_mask).sum())
    assert fitted.fitted_.calibrated_on == given
    intervals = fitted.predict_interval(data)
    inside = (intervals.lower <= data.y.numpy()) & (data.y.numpy() <= intervals.upper)
    assert 0.8 <= inside[data.test_mask.numpy()].mean() <= 0.99
    plain = cls(epochs=5, calibrated=False).fit(data)
    assert plain.fitted_.calibrated_on is None
    with pytest.raises(SettingError, match="degrees: expected a number above 0"):
        cls(degrees=0).fit(data)


def test_example_smooth_pinball_tends_to_the_pinball_loss() -> None:
    loss = imported("own_loss").smooth_pinball
    quantile, y = torch.zeros(3), torch.tensor([-2.0, 0.0, 4.0])
    tau = torch.tensor(0.25)
    torch.testing.assert_close(loss(quantile, y, tau, 1e-3)[[0, 2]], torch.tensor([1.5, 1.0]))
    assert loss(quantile, y, tau, 1.0)[1] == pytest.approx(np.log(2))


@pytest.mark.parametrize("path", PATHS)
def test_make_method_of_an_example_file_fits_and_predicts(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    data = load_dataset("basic", nodes=60)
    method = make_method(path, epochs=2, hidden=8)
    assert type(method).__name__ == path.rpartition(":")[2]
    intervals = method.fit(data).predict_interval(data)
    assert len(intervals) == 60
    assert (intervals.lower <= intervals.upper).all()


def test_compare_with_example_files_gives_a_row_per_method(
    qpignn: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    arguments = ("compare", "--datasets", "basic", "--seeds", 1, "--epochs", 2, "--json")
    results = tmp_path / "rows.sqlite"
    done = qpignn(*arguments, "--methods", ",".join(PATHS), "--results", results)
    assert done.code == 0, done.err
    rows = json.loads(done.out)
    assert [row["method"] for row in rows] == [
        "student_t.py:StudentT",
        "own_loss.py:SmoothQuantile",
    ]
    assert all(0 <= row["picp"] <= 1 for row in rows)
