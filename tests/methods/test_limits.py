"""Where the target can go: set by the user, or found in the given targets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.hostile import retype
from torch_geometric.data import Data

from qpignn import Conformal, QpiGNN, load_method, make_method
from qpignn.errors import ModelFileError, SettingError
from qpignn.methods.base import Bounds, IntervalMethod
from qpignn.methods.fitted import Fitted
from qpignn.methods.limits import Limits, check_limits
from qpignn.tasks import FitInputs, NodeTask
from qpignn.training.history import History

INF = math.inf


def graph(sign: float = 1.0) -> Data:
    """Targets that are mostly just above 0 (or below), so that free intervals go beyond it."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(120, 3, generator=draw)
    ends = torch.randint(0, 120, (2, 300), generator=draw)
    y = sign * (x[:, 0] + 0.5 * torch.randn(120, generator=draw)).square()
    return Data(x=x, y=y, edge_index=torch.cat([ends, ends.flip(0)], dim=1))


@pytest.mark.parametrize(
    ("y", "wanted"),
    [
        ([0.0, 3.0], (0, INF)),
        ([1.0, 3.0], (0, INF)),
        ([-1.0, -3.0], (-INF, 0)),
        ([0.0, -3.0], (-INF, 0)),
        ([-1.0, 3.0], (-INF, INF)),
        ([-1e-30, 3.0], (-INF, INF)),
    ],
)
def test_find_auto_keeps_the_sign_of_the_given_targets(
    y: list[float], wanted: tuple[float, float]
) -> None:
    limits = Limits.find("auto", "auto", np.array(y))
    assert (limits.low, limits.high) == wanted
    assert Limits.find(None, None, np.array(y)) == Limits()


def test_find_takes_numbers_as_they_are_and_refuses_targets_beyond() -> None:
    limits = Limits.find(-2, "auto", np.array([1.0, 3.0]))
    assert (limits.low, limits.high, limits.low_found) == (-2, INF, False)
    with pytest.raises(SettingError, match="between 2 and inf, got some from 1 to 3"):
        Limits.find(2, "auto", np.array([1.0, 3.0]))


def test_cut_leaves_infinite_bounds_only_at_limits_that_were_found() -> None:
    bounds = torch.tensor([-INF, -1.0, 2.0, INF])
    assert Limits.find("auto", "auto", np.array([0.0, 1.0])).cut(bounds).tolist() == [
        -INF,
        0,
        2,
        INF,
    ]
    assert Limits.find(0, 1, np.array([0.0, 1.0])).cut(bounds).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("limit", ["none", True, math.nan, INF, [0]])
def test_check_limits_refuses_what_is_no_limit(limit: Any) -> None:
    with pytest.raises(SettingError, match='y_max: expected "auto", a number, or None'):
        check_limits("auto", limit)


@pytest.mark.parametrize("name", ["qpignn", "sqr", "mc_dropout", "deep_ensemble", "cqr", "cfgnn"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bounds_keep_the_sign_of_the_targets(name: str, sign: float, tmp_path: Path) -> None:
    data = graph(sign)
    model = make_method(name, epochs=20, **({"correction_epochs": 5} if name == "cfgnn" else {}))
    free = make_method(name, epochs=20, y_min=None, y_max=None)
    assert (sign * free.fit(data).predict_interval(data).lower < 0).any() or sign < 0
    model.fit(data).save(tmp_path)
    for fitted in (model, load_method(tmp_path)):
        intervals = fitted.predict_interval(data)
        for column in (intervals.lower, intervals.prediction, intervals.upper):
            assert (sign * column >= 0).all()
        inner: Any = getattr(fitted, "method_", fitted)
        assert (inner.y_min_, inner.y_max_) == ((0, None) if sign > 0 else (None, 0))


def test_auto_limit_keeps_the_infinite_side_of_one_sided_bounds() -> None:
    data = graph()
    intervals = QpiGNN(epochs=3, side="upper").fit(data).predict_interval(data)
    assert np.isneginf(intervals.lower).all()


def test_published_methods_have_no_limits() -> None:
    assert QpiGNN.published().y_min is None
    assert make_method("sqr", "published").get_params()["y_max"] is None


class Fixed(IntervalMethod):
    """Says [−1, 1] everywhere, for targets that it takes to be from 0 up."""

    def __init__(self, confidence_level: float = 0.5, seed: int = 0) -> None:
        self.confidence_level, self.seed = confidence_level, seed

    parameters_ = 0

    limits_ = Limits(low=0.0, low_found=True)

    def _fit(self, inputs: FitInputs) -> int | None:
        self.history_ = History()
        return None

    def _predict(self, data: Data, level: float) -> Bounds:
        one = torch.ones(data.x.shape[0], dtype=torch.float64)
        return Bounds(0 * one, 0 * one, one)

    def _state(self) -> dict[str, torch.Tensor]:
        return {}

    def _restore(self, state: dict[str, torch.Tensor], fitted: Fitted) -> None:
        pass


def test_conformal_counts_targets_beyond_a_limit_as_missed() -> None:
    """By hand: at 50 % of 7 scoring nodes the 4th smallest score widens; 3 of 7 are negative."""
    y = torch.tensor([0.5, 2.0, 3.0, 4.0, -1e-9, -1e-9, -1e-9, 0.5, 0.5])
    data = Data(x=torch.ones(9, 1), y=y, edge_index=torch.empty(2, 0, dtype=torch.long))
    model = Conformal(Fixed())
    inputs = FitInputs(data, ~y.isnan(), NodeTask())
    model.method_ = model.method._fit_checked(inputs)
    model.history_ = model.method_.history_
    scored = model._calibrate(inputs, torch.arange(9) < 7, torch.zeros(9, dtype=torch.bool))
    assert model.widenings_ == {0.5: {"all": 3.0}}  # of −0.5, 1, 2, 3, ∞, ∞, ∞
    model.fitted_ = Fitted.of(model, data, scored)
    intervals = model.predict_interval(data)
    assert set(intervals.lower) == {0.0}  # not −3
    assert set(intervals.upper) == {4.0}


def test_limits_of_a_damaged_model_are_refused(tmp_path: Path) -> None:
    QpiGNN(epochs=2).fit(graph()).save(tmp_path)
    for bad in ([0.0], [math.nan, 1.0], [1.0, 0.0]):
        retype(tmp_path, limits=torch.tensor(bad, dtype=torch.float64))
        with pytest.raises(ModelFileError, match="limits: expected"):
            load_method(tmp_path)
