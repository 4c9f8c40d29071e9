"""Numbers of any size, and graphs of odd shapes, through every method of the catalog.

Targets are scaled before a net sees them, so their unit changes nothing but the intervals' unit. A
power of two as the unit rounds nothing at all: intervals must then be the same to the last bit.
"""

from __future__ import annotations

import copy
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn import Intervals, QpiGNN, check_graph, make_method
from qpignn.errors import GraphError
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import METHODS, setting_names

NAMES = (*METHODS, "conformal:sqr", "conformal:qpignn", "ensemble:rqr")
FEW = {"correction_epochs": 5}
SETTINGS: dict[str, dict[str, Any]] = {
    "corrected": FEW,
    "cfgnn": FEW,
    "cfgnn_tuned": {**FEW, "trials": 2},
}
COLUMNS = ("prediction", "lower", "upper")
every_method = pytest.mark.parametrize("name", NAMES)


def graph(size: float = 1.0, nodes: int = 100, dtype: torch.dtype = torch.float64) -> Data:
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(nodes, 4, generator=draw)
    ends = torch.randint(0, nodes, (2, 2 * nodes), generator=draw)
    y = torch.sin(3 * x[:, 0]) + 0.1 * torch.rand(nodes, generator=draw)
    edges = torch.cat([ends, ends.flip(0)], dim=1)
    return check_graph(Data(x=x, y=(y.double() * size).to(dtype), edge_index=edges))


def make_quick(name: str, **settings: Any) -> IntervalMethod:
    quick = {"epochs": 5} if "epochs" in setting_names(name) else {}
    return make_method(name, **quick, **SETTINGS.get(name, {}), **settings)


def intervals_of(name: str, data: Data, **settings: Any) -> Intervals:
    method = make_quick(name, **settings)
    return method.fit(data).predict_interval(data)


@cache
def at_size_one(name: str) -> Intervals:
    return intervals_of(name, graph())


def check_bounds(actual: Intervals) -> None:
    assert np.isfinite(actual.width).all()
    assert (actual.width > 0).all()
    assert (actual.lower <= actual.prediction).all()
    assert (actual.prediction <= actual.upper).all()


@every_method
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_intervals_are_in_the_unit_of_the_target(name: str, size: float) -> None:
    """Powers of ten are rounded: the last bit of a scaled target may differ, and be trained on."""
    intervals = intervals_of(name, graph(size))
    check_bounds(intervals)
    for column in COLUMNS:
        wanted = getattr(at_size_one(name), column)
        np.testing.assert_allclose(getattr(intervals, column) / size, wanted, rtol=0, atol=1e-5)


@every_method
@pytest.mark.parametrize("power", [-660, 660])
def test_powers_of_two_change_no_bit(name: str, power: int) -> None:
    """2^±660 is about 10^±199: squares and products of two widths are beyond float64."""
    size = 2.0**power
    intervals = intervals_of(name, graph(size))
    for column in COLUMNS:
        np.testing.assert_array_equal(
            getattr(intervals, column) / size, getattr(at_size_one(name), column)
        )


@pytest.mark.parametrize("settings", [{"score": "normalised"}, {"neighbourhood": True}], ids=str)
@pytest.mark.parametrize("power", [-400, 400])
def test_powers_of_two_change_no_bit_of_conformal_scores(
    settings: dict[str, Any], power: int
) -> None:
    plain = intervals_of("conformal:sqr", graph(), **settings)
    intervals = intervals_of("conformal:sqr", graph(2.0**power), **settings)
    np.testing.assert_array_equal(intervals.upper / 2.0**power, plain.upper)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_targets_in_float32(size: float) -> None:
    intervals = intervals_of("qpignn", graph(size, dtype=torch.float32))
    check_bounds(intervals)
    wanted = at_size_one("qpignn")
    # targets were rounded to 24 bits; five epochs of lr 0.01 make little more of it
    np.testing.assert_allclose(intervals.upper / size, wanted.upper, rtol=0, atol=1e-5)


def heavy(size: float) -> Data:
    data = graph(nodes=150)
    draw = torch.Generator().manual_seed(1)
    data.y = size * torch.exp(2 * torch.randn(150, generator=draw).double() + 2 * data.x[:, 0])
    return data


@pytest.mark.parametrize("power", [-330, 330])
def test_sqrt_transform_does_not_depend_on_the_unit(power: int) -> None:
    intervals, wanted = (
        QpiGNN(epochs=30, target_transform="sqrt").fit(data).predict_interval(data)
        for data in (heavy(4.0**power), heavy(1.0))
    )
    np.testing.assert_array_equal(intervals.lower / 4.0**power, wanted.lower)
    np.testing.assert_array_equal(intervals.upper / 4.0**power, wanted.upper)


@pytest.mark.parametrize("size", [1e30, 1e200])
def test_heavy_tail_is_detected_at_any_scale(size: float) -> None:
    model = QpiGNN(epochs=30).fit(heavy(size))
    assert model.y_scaler_.name == "log1p"
    check_bounds(model.predict_interval(heavy(size)))


# ---- columns and targets that do not vary


@pytest.mark.parametrize("name", [name for name in NAMES if "scaling" in setting_names(name)])
@pytest.mark.parametrize("columns", [2, 70])  # 70 columns of zeros: features are stored as CSR
def test_column_constant_on_labelled_nodes_only_is_left_out_with_a_warning(
    name: str, columns: int
) -> None:
    data, labelled = graph(), torch.arange(100) < 60
    everywhere, elsewhere = copy.copy(data), copy.copy(data)
    added = torch.zeros(100, columns)
    everywhere.x = torch.cat([data.x, added], dim=1)
    elsewhere.x = everywhere.x.clone()
    elsewhere.x[~labelled, -1] = 10.0
    elsewhere.feature_names = [f"column {i}" for i in range(elsewhere.x.shape[1])]
    wanted = "constant on the labelled nodes"
    results = []
    for graph_of_fit in (everywhere, elsewhere):
        method = make_quick(name)
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            method.fit(graph_of_fit, labelled)
        messages = [str(w.message) for w in record if wanted in str(w.message)]
        if graph_of_fit is everywhere:
            assert not messages
        else:
            assert len(messages) == 1
            assert f"feature columns {elsewhere.feature_names[-1]!r}: {wanted}" in messages[0]
        results.append(method.predict_interval(graph_of_fit))
    for column in COLUMNS:
        np.testing.assert_array_equal(*(getattr(intervals, column) for intervals in results))


@every_method
def test_constant_column_changes_no_interval(name: str) -> None:
    results = []
    for constant in (0.1, -1e30):
        data = graph()
        data.x = torch.cat([data.x.double(), torch.full((100, 1), constant).double()], dim=1)
        results.append(intervals_of(name, data))
    one, other = results
    np.testing.assert_array_equal(other.lower, one.lower)
    np.testing.assert_array_equal(other.upper, one.upper)


@every_method
def test_constant_features_give_nodes_without_edges_one_interval(name: str) -> None:
    data = graph()
    data.x = torch.full((100, 2), 0.1)
    data.edge_index = torch.empty(2, 0, dtype=torch.long)
    intervals = intervals_of(name, data)
    check_bounds(intervals)
    assert np.ptp(intervals.lower) <= 1e-6 * intervals.width[0]
    assert np.ptp(intervals.upper) <= 1e-6 * intervals.width[0]


@every_method
@pytest.mark.parametrize("constant", [0.0, 0.1, 1e30])
def test_given_targets_that_do_not_vary_are_refused(name: str, constant: float) -> None:
    """Also where hidden ones do: what is hidden cannot be a reason."""
    data = graph()
    given = torch.arange(100) < 50
    data.y[given] = constant
    with pytest.raises(GraphError, match="expected targets that vary, got 50 labelled nodes"):
        make_quick(name).fit(data, given)


# ---- graphs in pieces, and hubs


def side_by_side(one: Data, other: Data) -> Data:
    shift = one.x.shape[0]
    edges = torch.cat([one.edge_index, other.edge_index + shift], dim=1)
    return Data(x=torch.cat([one.x, other.x]), edge_index=edges)


@every_method
def test_disconnected_graphs_do_not_affect_each_other(name: str) -> None:
    data = graph()
    # without ids, nodes are known by row and features, and their targets would be used
    settings = {"neighbours": "off"} if name.startswith("boosting") else {}
    model = make_quick(name, **settings).fit(data)
    other = graph(nodes=40)
    both = model.predict_interval(side_by_side(data, other))
    for part, alone in ((slice(0, 100), data), (slice(100, 140), other)):
        wanted = model.predict_interval(Data(x=alone.x, edge_index=alone.edge_index))
        # rows of a product may be summed in another order when there are more of them
        np.testing.assert_allclose(both.lower[part], wanted.lower, rtol=0, atol=1e-6)
        np.testing.assert_allclose(both.upper[part], wanted.upper, rtol=0, atol=1e-6)


def star(leaves: int, dtype: torch.dtype = torch.float32) -> Data:
    draw = torch.Generator().manual_seed(0)
    out = torch.arange(1, leaves + 1)
    hub = torch.zeros_like(out)
    x = torch.rand(leaves + 1, 2, generator=draw)
    y = x[:, 0] + 0.1 * torch.rand(leaves + 1, generator=draw)
    y[200:] = float("nan")
    edges = torch.stack([torch.cat([out, hub]), torch.cat([hub, out])])
    return Data(x=x.to(dtype), y=y, edge_index=edges)


@pytest.mark.parametrize("batch_size", [None, 64])
def test_hub_of_100000_neighbours_float32_agrees_with_float64(batch_size: int | None) -> None:
    """Float32 follows float64: three epochs of lr 0.01 begin at the same weights and masks."""
    data = star(10**5)
    results = {}
    for dtype in ("float32", "float64"):
        model = QpiGNN(members=1, hidden=4, epochs=3, batch_size=batch_size, dtype=dtype)
        results[dtype] = model.fit(data).predict_interval(data)
        check_bounds(results[dtype])
    for column in COLUMNS:
        single, double = (getattr(results[dtype], column) for dtype in ("float32", "float64"))
        np.testing.assert_allclose(single, double, rtol=0, atol=2e-6)


def relabelled(data: Data, order: Tensor) -> Data:
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    return Data(x=data.x[order], edge_index=place[data.edge_index])


def test_intervals_do_not_depend_on_the_position_of_a_hub() -> None:
    data = star(10**5)
    model = QpiGNN(members=1, hidden=4, epochs=3).fit(data)
    order = torch.arange(10**5, -1, -1)
    intervals = model.predict_interval(relabelled(data, order))
    wanted = model.predict_interval(data).select(order.numpy())
    np.testing.assert_allclose(intervals.lower, wanted.lower, rtol=0, atol=2e-6)
