"""The contract that every method of the catalog must keep."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch_geometric.data import Data

from qpignn import check_graph, load_method, make_method, split_nodes
from qpignn.errors import (
    ArrayError,
    GraphError,
    NotFittedError,
    SettingError,
    SplitError,
    TrainingError,
)
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import METHODS
from qpignn.methods.conformal import Conformal

NAMES = (*METHODS, "conformal:sqr", "conformal:qpignn", "ensemble:rqr")
FAST = {"correction_epochs": 10}
SETTINGS = {"corrected": FAST, "cfgnn": FAST, "cfgnn_tuned": {**FAST, "trials": 2}}
WITHOUT_NETS = ("boosting_quantiles", "boosting")
pytestmark = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def graph() -> Data:
    draw = torch.Generator().manual_seed(0)
    nodes = 120
    x = torch.rand(nodes, 4, generator=draw)
    x[x < 0.3] = 0  # so that sparse and dense mean something
    ends = torch.randint(0, nodes, (2, 200), generator=draw)
    y = torch.sin(3 * x[:, 0]) + 0.1 * torch.rand(nodes, generator=draw)
    y[::15] = float("nan")
    data = Data(x=x, y=y, edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    data.feature_names = list("abcd")
    return split_nodes(check_graph(data), test=0.3)


def make(name: str, **settings: object) -> IntervalMethod:
    quick = {"max_iter" if name in WITHOUT_NETS else "epochs": 30}
    return make_method(name, **{**quick, **SETTINGS.get(name, {}), **settings})


def inside(method: IntervalMethod) -> IntervalMethod:
    """The method whose net is trained."""
    return method.method if isinstance(method, Conformal) else method


def same(method: IntervalMethod, other: IntervalMethod, data: Data) -> bool:
    a, b = (m.predict_interval(data) for m in (method, other))
    return all(
        np.array_equal(getattr(a, c), getattr(b, c)) for c in ("prediction", "lower", "upper")
    )


def test_bounds_are_ordered_and_finite_for_every_node(name: str, graph: Data) -> None:
    intervals = make(name).fit(graph).predict_interval(graph)
    assert len(intervals) == 120
    assert (intervals.lower <= intervals.prediction).all()
    assert (intervals.prediction <= intervals.upper).all()
    assert np.isfinite(intervals.width).all()


def test_fit_does_not_use_hidden_targets(name: str, graph: Data) -> None:
    changed = Data(**graph.to_dict())
    outside = ~graph.train_mask
    changed.y = torch.where(outside, torch.full_like(graph.y, 1e6), graph.y)
    assert same(make(name).fit(graph), make(name).fit(changed), graph)
    given = graph.train_mask & (torch.arange(120) % 2 == 0)
    changed.y = torch.where(given, graph.y, -1e6 * torch.ones_like(graph.y))
    assert same(make(name).fit(graph, given), make(name).fit(changed, given), graph)


def test_same_seed_same_bits_other_seed_other_bits(name: str, graph: Data) -> None:
    fitted = make(name, seed=3).fit(graph)
    assert same(fitted, make(name, seed=3).fit(graph), graph)
    assert same(fitted, clone(fitted).fit(graph), graph)
    assert not same(fitted, make(name, seed=4).fit(graph), graph)


def test_fit_changes_neither_graph_nor_global_generator(name: str, graph: Data) -> None:
    before = {
        key: value.clone() for key, value in graph.to_dict().items() if torch.is_tensor(value)
    }
    state = torch.get_rng_state()
    make(name).fit(graph)
    assert torch.equal(state, torch.get_rng_state())
    for key, value in before.items():
        torch.testing.assert_close(graph[key], value, equal_nan=True, rtol=0, atol=0)


def test_renaming_nodes_renames_intervals(name: str, graph: Data) -> None:
    named = Data(**graph.to_dict())
    named.node_id = np.arange(1000, 1120)
    fitted = make(name).fit(named)
    order = torch.randperm(120, generator=torch.Generator().manual_seed(1))
    position = torch.empty_like(order)
    position[order] = torch.arange(120)
    moved = Data(x=graph.x[order], edge_index=position[graph.edge_index])
    moved.node_id = named.node_id[order.numpy()]
    a, b = fitted.predict_interval(moved), fitted.predict_interval(named).select(order.numpy())
    np.testing.assert_allclose(a.lower, b.lower, atol=1e-5)
    np.testing.assert_allclose(a.upper, b.upper, atol=1e-5)


def test_save_and_load_give_the_same_intervals(name: str, graph: Data, tmp_path: Path) -> None:
    fitted = make(name, confidence_level=0.8).fit(graph)
    fitted.save(tmp_path / "model")
    for loaded in (type(fitted).load(tmp_path / "model"), load_method(tmp_path / "model")):
        assert same(fitted, loaded, graph)
        assert str(loaded) == str(fitted)  # the same settings
        assert loaded.history_.to_frame().equals(fitted.history_.to_frame())
        assert loaded.history_.stopped == fitted.history_.stopped


def test_predict_mask_selects_nodes(name: str, graph: Data) -> None:
    fitted = make(name).fit(graph)
    all_nodes = fitted.predict_interval(graph)
    one = np.arange(120) == 17
    assert fitted.predict_interval(graph, one).lower.tolist() == [all_nodes.lower[17]]
    assert fitted.predict_interval(graph, torch.from_numpy(one)).node_id.tolist() == [17]
    assert fitted.predict(graph, one).tolist() == [all_nodes.prediction[17]]


def widened(graph: Data) -> Data:
    """The graph with 80 rare words beside its features, one of which is far from zero."""
    indicators = torch.rand(120, 80, generator=torch.Generator().manual_seed(2)) < 0.05
    out = Data(**graph.to_dict())
    out.x = torch.cat([graph.x + torch.tensor([0.0, 0.0, 0.0, 5000.0]), indicators.float()], dim=1)
    out.feature_names = [f"column {i}" for i in range(84)]
    return out


@pytest.mark.parametrize("wide", [False, True])
def test_dense_and_csr_features_give_the_same_bits(name: str, graph: Data, wide: bool) -> None:
    dense = widened(graph) if wide else graph
    sparse = Data(**dense.to_dict())
    sparse.x = dense.x.to_sparse_csr()
    fitted, other = make(name).fit(dense), make(name).fit(sparse)
    assert same(fitted, other, dense)
    assert same(fitted, other, sparse)  # and a fit on either reads both
    a, b = (fitted.predict_interval(data) for data in (dense, sparse))
    assert np.array_equal(a.lower, b.lower)
    assert np.array_equal(a.upper, b.upper)


@pytest.mark.parametrize("labels", [2, 5, 110])
def test_fit_without_edges_and_with_few_labels(name: str, graph: Data, labels: int) -> None:
    y = graph.y.clone()
    y[labels + 10 :] = float("nan")
    isolated = Data(x=graph.x, y=y, edge_index=torch.empty((2, 0), dtype=torch.long))
    assert len(make(name).fit(isolated).predict_interval(isolated)) == 120


def test_fit_with_a_test_mask_only_does_not_use_test_nodes(name: str, graph: Data) -> None:
    bare = Data(x=graph.x, y=graph.y, edge_index=graph.edge_index, test_mask=graph.test_mask)
    changed = Data(**bare.to_dict())
    changed.y = torch.where(graph.test_mask, 1e6, graph.y)
    assert same(make(name).fit(bare), make(name).fit(changed), bare)
    with pytest.raises(SplitError, match="apart from the graph's test_mask, got"):
        make(name).fit(bare, graph.test_mask)


def test_settings_changed_after_a_fit_do_not_relabel_it(
    name: str, graph: Data, tmp_path: Path
) -> None:
    fitted = make(name).fit(graph)
    other = {"max_iter": 8} if name in WITHOUT_NETS else {"hidden": 8}
    inside(fitted).set_params(confidence_level=0.5, **other)
    assert fitted.predict_interval(graph).confidence_level == 0.9
    fitted.save(tmp_path)
    assert load_method(tmp_path).confidence_level == 0.9


def test_predict_after_a_failed_fit_raises_not_fitted(name: str, graph: Data) -> None:
    if name in WITHOUT_NETS:
        pytest.skip("trees of any accepted setting can be trained")
    method = make(name, lr=1e30)
    with pytest.raises(TrainingError):
        method.fit(graph)
    with pytest.raises(NotFittedError, match="call fit first"):
        method.predict_interval(graph)
    inside(method).set_params(lr=0.01)
    method.fit(graph)
    inside(method).set_params(lr=1e30)
    with pytest.raises(TrainingError):
        method.fit(graph)  # the net of the good fit is gone, and so is its answer
    with pytest.raises(NotFittedError, match="call fit first"):
        method.predict_interval(graph)


def test_fit_without_weight_on_given_nodes_is_refused(name: str, graph: Data) -> None:
    weighted = Data(**graph.to_dict())
    weighted.node_weight = (~graph.train_mask).float()
    with pytest.raises(GraphError, match="expected weight on the given nodes, got zeros only"):
        make(name).fit(weighted)


def test_settings_accept_numpy_numbers(name: str, graph: Data, tmp_path: Path) -> None:
    rounds = "max_iter" if name in WITHOUT_NETS else "epochs"
    numbers = {rounds: np.int64(3), "seed": np.int64(1), "confidence_level": np.float32(0.5)}
    make(name, **numbers).fit(graph).save(tmp_path)
    assert load_method(tmp_path).seed == 1


def test_predict_graph_without_targets(name: str, graph: Data) -> None:
    fresh = Data(x=graph.x[:10], edge_index=torch.empty((2, 0), dtype=torch.long))
    assert len(make(name).fit(graph).predict_interval(fresh)) == 10


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_predict_has_the_fitted_level(name: str, graph: Data, level: float) -> None:
    fitted = make(name, confidence_level=level).fit(graph)
    assert fitted.predict_interval(graph).confidence_level == level


def test_several_levels_are_nested_and_survive_a_save(
    name: str, graph: Data, tmp_path: Path
) -> None:
    fitted = make(name, confidence_level=[0.8, 0.5]).fit(graph)
    assert fitted.levels_ == [0.5, 0.8]
    fitted.save(tmp_path)
    for method in (fitted, load_method(tmp_path)):
        inner, outer = (
            method.predict_interval(graph, confidence_level=level) for level in (0.5, 0.8)
        )
        assert (outer.lower <= inner.lower).all()
        assert (inner.upper <= outer.upper).all()
        assert method.predict_interval(graph).confidence_level == 0.8
    if not fitted.any_level:
        with pytest.raises(SettingError, match=r"one of the fitted levels \[0.5, 0.8\]"):
            fitted.predict_interval(graph, confidence_level=0.9)
        return
    widths = [
        fitted.predict_interval(graph, confidence_level=level).width.mean()
        for level in (0.2, 0.5, 0.65, 0.8, 0.99)
    ]
    assert widths[0] > 0
    assert (np.diff(widths) > 0).all()


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 90, None])
def test_levels_outside_zero_and_one_are_refused(name: str, graph: Data, level: object) -> None:
    with pytest.raises(SettingError, match="confidence_level: expected"):
        make(name, confidence_level=level).fit(graph)


def test_predict_with_other_columns_names_them(name: str, graph: Data, tmp_path: Path) -> None:
    fitted = make(name).fit(graph)
    fitted.save(tmp_path)
    fitted = load_method(tmp_path)
    other = Data(**graph.to_dict())
    other.feature_names = list("abce")
    with pytest.raises(GraphError, match="missing 'd', unknown 'e'"):
        fitted.predict_interval(other)
    other.feature_names = list("badc")
    with pytest.raises(GraphError, match="the same ones in another order"):
        fitted.predict_interval(other)
    narrow = Data(x=graph.x[:, :3], edge_index=graph.edge_index)
    with pytest.raises(GraphError, match="expected 4 feature columns as in the fit, got 3"):
        fitted.predict_interval(narrow)


def test_predict_and_save_before_fit_raise(name: str, graph: Data, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match="call fit first"):
        make(name).predict_interval(graph)
    with pytest.raises(NotFittedError, match="call fit first"):
        make(name).save(tmp_path)


@pytest.mark.parametrize("mask", [torch.ones(5, dtype=torch.bool), torch.arange(120)])
def test_fit_invalid_mask_is_refused(name: str, graph: Data, mask: torch.Tensor) -> None:
    with pytest.raises(ArrayError, match="mask: expected 120 booleans"):
        make(name).fit(graph, mask)


def test_fit_without_labels_among_given_nodes_is_refused(name: str, graph: Data) -> None:
    with pytest.raises(SplitError, match="112 nodes are labelled, but the mask gives none"):
        make(name).fit(graph, graph.y.isnan())
