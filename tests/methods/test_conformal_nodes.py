"""Conformal around one-sided methods, limits, and nodes that stand in another order."""

from __future__ import annotations

import copy
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch import Tensor
from torch_geometric.data import Data

from qpignn import Conformal, QpiGNN, make_method
from qpignn.errors import ModelFileError, QpignnWarning, SettingError
from qpignn.methods.base import Bounds
from qpignn.methods.fitted import Fitted
from qpignn.methods.prefit import Prefit
from qpignn.methods.serialization import read_folder, write_folder
from qpignn.tasks import FitInputs, NodeTask

SCORES = ("cqr", "normalised", "absolute")


def graph(nodes: int = 120, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, nodes, (2, 3 * nodes))
    x = rng.normal(size=(nodes, 3))
    y = x[:, 0] + np.abs(x[:, 1]) * rng.normal(size=nodes)
    edges = torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1))
    return Data(x=torch.from_numpy(x).float(), y=torch.from_numpy(y), edge_index=edges)


def permuted(data: Data, order: Tensor) -> Data:
    """The same graph with its nodes in another order."""
    position = torch.empty_like(order)
    position[order] = torch.arange(len(order))
    moved = Data(x=data.x[order], y=data.y[order], edge_index=position[data.edge_index])
    if data.get("node_id") is not None:
        moved.node_id = [data.node_id[i] for i in order.tolist()]
    return moved


# ---- neighbourhoods


@pytest.mark.parametrize("ids", [[f"n{i}" for i in range(120)], list(range(1000, 1120))])
def test_neighbourhood_permuted_nodes_keep_their_intervals(ids: list[Any], tmp_path: Path) -> None:
    data = graph()
    data.node_id = ids
    model = Conformal(make_method("sqr", epochs=20), neighbourhood=True).fit(data)
    order = torch.randperm(120, generator=torch.Generator().manual_seed(1))
    moved = permuted(data, order)
    wanted = model.predict_interval(data).select(order.numpy())
    model.save(tmp_path / "model")
    for fitted in (model, Conformal.load(tmp_path / "model")):
        intervals = fitted.predict_interval(moved)
        np.testing.assert_allclose(intervals.lower, wanted.lower, atol=1e-5)
        np.testing.assert_allclose(intervals.upper, wanted.upper, atol=1e-5)


def test_neighbourhood_new_nodes_have_no_residual_of_their_own() -> None:
    """Nodes joined without edges get the overall difficulty 1, the others what they had."""
    data = graph()
    data.node_id = [f"n{i}" for i in range(120)]
    model = Conformal(make_method("sqr", epochs=20), neighbourhood=True, score="absolute").fit(data)
    grown = Data(
        x=torch.cat([torch.zeros(5, 3), data.x]),
        edge_index=data.edge_index + 5,
        node_id=[*(f"new{i}" for i in range(5)), *data.node_id],
    )
    intervals, wanted = model.predict_interval(grown), model.predict_interval(data)
    np.testing.assert_allclose(intervals.width[5:], wanted.width, rtol=1e-5)
    widening = model.widenings_[0.9]["all"]
    np.testing.assert_allclose(intervals.width[:5], 2 * widening, rtol=1e-6)


def test_neighbourhood_without_ids_refuses_another_order_and_another_graph() -> None:
    data = graph()
    model = Conformal(make_method("sqr", epochs=5), neighbourhood=True).fit(data)
    assert len(model.predict_interval(data)) == 120
    order = torch.arange(120).flip(0)
    for other in (permuted(data, order), graph(seed=1), graph(nodes=60)):
        with pytest.raises(SettingError, match="expected the graph of the fit"):
            model.predict_interval(other)
    named = copy.copy(data)
    named.node_id = [f"n{i}" for i in range(120)]
    with pytest.raises(SettingError, match="expected a graph without node_id"):
        model.predict_interval(named)


def test_neighbourhood_with_ids_refuses_a_graph_of_other_nodes() -> None:
    data = graph()
    data.node_id = [f"n{i}" for i in range(120)]
    model = Conformal(make_method("sqr", epochs=5), neighbourhood=True).fit(data)
    other = graph(seed=1)
    with pytest.raises(SettingError, match="expected a graph with node_id"):
        model.predict_interval(other)
    other.node_id = [f"m{i}" for i in range(120)]
    with pytest.raises(SettingError, match="got none of them"):
        model.predict_interval(other)
    other.node_id = [1, "1", *range(2, 120)]
    with pytest.raises(SettingError, match="differ as text"):
        model.predict_interval(other)


def test_neighbourhood_saved_without_ids_is_refused(tmp_path: Path) -> None:
    model = Conformal(make_method("sqr", epochs=5), neighbourhood=True).fit(graph())
    model.save(tmp_path / "model")
    description, state = read_folder(tmp_path / "model")
    state.pop("residual_nodes")
    state["residuals"] = torch.zeros(120, dtype=torch.float64)
    write_folder(tmp_path / "old", description, state)
    with pytest.raises(ModelFileError, match="fit again"):
        Conformal.load(tmp_path / "old")


# ---- one-sided methods


class OneSided(Prefit):
    """A net whose columns are the bound and the prediction; the other bound is infinite."""

    def __init__(self, side: str, confidence_level: float = 0.9) -> None:
        super().__init__(lambda x, edges: x[:, :2], confidence_level)
        self.side = side

    def _predict(self, data: Data, level: float) -> Bounds:
        bound, prediction = data.x.double().t()[:2]
        endless = torch.full_like(bound, math.inf)
        ends = (bound, endless) if self.side == "lower" else (-endless, bound)
        return Bounds(prediction, *ends, side=self.side)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_conformal_of_one_sided_method_covers_at_the_level(side: str, score: str) -> None:
    """Exact for exchangeable scores without ties: rank 18 of 19 nodes covers 18/20."""
    rng, hits, draws = np.random.default_rng(5), 0, 1200
    sign = -1 if side == "lower" else 1
    for _ in range(draws):
        spread = rng.uniform(0.5, 2.0, 20)
        middle = rng.normal(size=20)
        x = np.column_stack([middle + sign * spread * rng.uniform(0.1, 2.0, 20), middle])
        y = middle + spread * (rng.exponential(size=20) - 0.7)
        empty = torch.empty(2, 0, dtype=torch.long)
        data = Data(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=empty)
        scoring = torch.arange(20) < 19
        model = Conformal(OneSided(side), score=score)
        inputs = FitInputs(data, scoring, NodeTask())
        model.method_ = OneSided(side)._fit_checked(inputs)
        scored = model._calibrate(inputs, scoring, torch.zeros_like(scoring))
        model.history_, model.fitted_ = model.method_.history_, Fitted.of(model, data, scored)
        intervals = model.predict_interval(data)
        assert intervals.side == side
        assert np.isinf(intervals.upper if side == "lower" else intervals.lower).all()
        assert np.isfinite(intervals.lower if side == "lower" else intervals.upper).all()
        hits += bool(intervals.lower[19] <= y[19] <= intervals.upper[19])
    low, high = binom.ppf([5e-4, 1 - 5e-4], draws, 18 / 20)
    assert low <= hits <= high


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_conformal_of_one_sided_qpignn_is_one_sided(side: str, score: str, tmp_path: Path) -> None:
    data = graph()
    model = Conformal(QpiGNN([0.8, 0.9], side=side, epochs=20), score=score).fit(data)
    model.save(tmp_path / "model")
    for fitted in (model, Conformal.load(tmp_path / "model")):
        inner, outer = (
            fitted.predict_interval(data, confidence_level=level) for level in (0.8, 0.9)
        )
        assert (inner.side, outer.side) == (side, side)
        asked, open_side = ("lower", "upper") if side == "lower" else ("upper", "lower")
        assert np.isfinite(getattr(outer, asked)).all()
        assert np.isinf(getattr(outer, open_side)).all()
        assert (outer.lower <= inner.lower).all()
        assert (outer.upper >= inner.upper).all()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("side", ["both", "lower", "upper"])
def test_conformal_around_infinite_intervals_is_never_nan(side: str, score: str) -> None:
    """Four nodes to fit on, 36 to calibrate with: the method inside has infinite bounds."""
    data = graph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QpignnWarning)
        model = Conformal(QpiGNN(side=side, epochs=3), score=score, calibration=0.9)
        intervals = model.fit(data, torch.arange(120) < 40).predict_interval(data)
    ends = {"both": ("lower", "upper"), "lower": ("lower",), "upper": ("upper",)}[side]
    for end in ends:  # predictions are finite, so only absolute scores can make a finite bound
        assert (np.isfinite(getattr(intervals, end)) == (score == "absolute")).all()


@pytest.mark.parametrize("score", SCORES)
def test_conformal_of_qpignn_with_limits_stays_within_them(score: str) -> None:
    data = graph()
    data.y = data.y.abs() + 0.01
    model = Conformal(QpiGNN(y_min=0.0, y_max=6.0, epochs=20), score=score).fit(data)
    intervals = model.predict_interval(data)
    for column in (intervals.lower, intervals.prediction, intervals.upper):
        assert column.min() >= 0.0
        assert column.max() <= 6.0
    assert (intervals.lower == 0.0).any()  # some would have gone below
