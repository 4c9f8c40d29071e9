"""Units beyond what was learnt: wider intervals, flagged and named; the others unchanged."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import QpiGNN, check_graph, load_dataset, load_method, make_method, split_nodes
from qpignn.errors import ModelFileError, SettingError, UnknownNameError
from qpignn.methods.catalog import METHODS, setting_names

NAMES = (*METHODS, "conformal:sqr")
NAMED = ("income", "age", "rate", "share")


@pytest.fixture(scope="module")
def graph() -> Data:
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(300, 4, generator=draw)
    ends = torch.randint(0, 300, (2, 900), generator=draw)
    y = x[:, 0] + torch.sin(3 * x[:, 1]) + 0.1 * torch.randn(300, generator=draw)
    both = torch.cat([ends, ends.flip(0)], dim=1)
    data = check_graph(Data(x=x, y=y, edge_index=both, feature_names=[*NAMED]))
    return split_nodes(data, test=0.3, seed=1)


@pytest.fixture(scope="module")
def model(graph: Data) -> QpiGNN:
    return QpiGNN([0.5, 0.9], epochs=60).fit(graph)


def moved(graph: Data, nodes: Any, column: int, value: float) -> Data:
    changed = copy.copy(graph)
    changed.x = graph.x.clone()
    changed.x[nodes, column] = value
    return changed


def quick(name: str, **settings: Any) -> Any:
    if "epochs" not in setting_names(name):
        return make_method(name, max_iter=20, **settings)
    return make_method(name, epochs=3, hidden=8, **settings)


@pytest.mark.parametrize("name", NAMES)
def test_method_in_range_is_bit_equal_to_novelty_off(name: str, graph: Data) -> None:
    everything = torch.ones(300, dtype=torch.bool)
    whole = copy.copy(graph)  # all nodes are given, so that no feature is beyond the range
    whole.train_mask, whole.val_mask, whole.test_mask = everything, ~everything, ~everything
    on, off = (quick(name, novelty=choice).fit(whole) for choice in ("widen", "off"))
    a, b = on.predict_interval(whole), off.predict_interval(whole)
    usual = a.novelty <= 1
    assert usual.mean() > 0.97
    assert (a.lower == b.lower)[usual].all()
    assert (a.upper == b.upper)[usual].all()
    assert b.novelty is None


@pytest.mark.parametrize("name", NAMES)
def test_method_sentinel_is_flagged_named_and_wide(name: str, graph: Data) -> None:
    fitted = quick(name).fit(graph)
    before = fitted.predict_interval(graph)
    after = fitted.predict_interval(moved(graph, [7], 2, 9999.0))
    assert after.novelty[7] > 1
    assert after.novelty_reason[7] == "column 'rate'"
    assert after.width[7] >= 0.99 * before.width[graph.train_mask | graph.val_mask].mean()
    assert np.isfinite(after.prediction).all()


def test_widths_beyond_the_range_rise_with_distance_and_exceed_the_usual(
    graph: Data, model: QpiGNN
) -> None:
    usual = model.predict_interval(graph)
    widths = []
    for value in (1.5, 2.0, 4.0, 16.0, 1e3, 1e6):
        for level in (0.5, 0.9):
            shown = model.predict_interval(moved(graph, [3], 0, value), confidence_level=level)
            widths.append(shown.width[3])
    low, high = np.array(widths).reshape(-1, 2).T
    assert (np.diff(low) > 0).all()
    assert (np.diff(high) > 0).all()
    assert (low <= high).all()
    assert high[0] >= usual.width.mean() * 0.999


def test_predictions_stay_where_the_range_ends(graph: Data, model: QpiGNN) -> None:
    far, farther = (model.predict(moved(graph, [3], 0, value)) for value in (5.0, 500.0))
    assert far[3] == farther[3]


def test_novelty_whole_column_times_1000_flags_every_node(graph: Data, model: QpiGNN) -> None:
    scaled = copy.copy(graph)
    scaled.x = graph.x * torch.tensor([1.0, 1000.0, 1.0, 1.0])
    intervals = model.predict_interval(scaled)
    assert (intervals.novelty > 1).mean() > 0.95
    assert set(intervals.novelty_reason[intervals.novelty > 1]) == {"column 'age'"}


def test_novelty_unusual_combination_within_all_ranges_is_flagged() -> None:
    draw = torch.Generator().manual_seed(3)
    first = torch.randn(500, generator=draw)
    x = torch.stack([first, first + 0.05 * torch.randn(500, generator=draw)], dim=1)
    ring = torch.arange(500)
    ends = torch.stack([ring, ring.roll(1)])
    data = check_graph(Data(x=x, y=first + 1, edge_index=torch.cat([ends, ends.flip(0)], dim=1)))
    fitted = QpiGNN(epochs=2).fit(data)
    odd = copy.copy(data)
    odd.x = x.clone()
    odd.x[9] = torch.tensor([1.5, -1.5])
    intervals = fitted.predict_interval(odd)
    assert intervals.novelty_reason[9] == "combination of features"
    assert fitted.predict_interval(data).novelty[9] <= 1


def test_novelty_far_from_all_labels_is_flagged_and_no_narrower() -> None:
    draw = np.random.default_rng(0)
    nodes = 600
    region = np.cumsum(draw.normal(0, 0.3, nodes))  # neighbours on the path have similar targets
    x = torch.from_numpy(draw.normal(size=(nodes, 2))).float()
    ends = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    data = Data(
        x=x,
        y=torch.from_numpy(region).float() + x[:, 0],
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
    )
    data = check_graph(data)
    labelled = torch.arange(nodes) < 400
    on, off = (
        QpiGNN(epochs=20, novelty=choice).fit(data, labelled).predict_interval(data)
        for choice in ("widen", "off")
    )
    assert on.novelty_reason[550] == "distance to labelled nodes"
    assert (on.width >= off.width * (1 - 1e-9)).all()
    assert on.novelty[:390].max() <= on.novelty[550]


@pytest.mark.parametrize("name", ["qpignn", "cqr", "mc_dropout"])
def test_saved_method_predicts_the_same_novelty_and_bounds(
    name: str, graph: Data, tmp_path: Path
) -> None:
    fitted, changed = quick(name).fit(graph), moved(graph, [1, 2], 3, 50.0)
    fitted.save(tmp_path)
    a, b = (one.predict_interval(changed) for one in (fitted, load_method(tmp_path)))
    assert (a.upper == b.upper).all()
    assert (a.novelty == b.novelty).all()
    assert a.novelty_reason.tolist() == b.novelty_reason.tolist()


def test_loading_damaged_novelty_is_refused(graph: Data, tmp_path: Path) -> None:
    fitted = quick("sqr").fit(graph)
    state = fitted.novelty_.state()
    kind = type(fitted.novelty_)
    for name, value in (
        ("columns", torch.zeros(4, 4).double()),  # scale 0
        ("columns", torch.zeros(4, 3).double()),
        ("root", state["root"] * torch.nan),
        ("mean", state["mean"][:3]),
        ("normal", state["normal"][:0]),
        ("slopes", state["slopes"].float()),
    ):
        with pytest.raises((ValueError, ModelFileError)):
            kind.from_state({**state, name: value}, 4)


def test_novelty_does_not_depend_on_the_order_of_nodes(graph: Data) -> None:
    labelled = copy.copy(graph)
    labelled.node_id = np.array([f"n{i}" for i in range(300)], dtype=object)
    fitted = quick("sqr").fit(labelled)
    order = torch.randperm(300, generator=torch.Generator().manual_seed(5))
    place = torch.empty_like(order)
    place[order] = torch.arange(300)
    turned = Data(
        x=labelled.x[order],
        edge_index=place[labelled.edge_index],
        node_id=labelled.node_id[order.numpy()],
        feature_names=[*NAMED],
    )
    a, b = fitted.predict_interval(labelled), fitted.predict_interval(turned)
    np.testing.assert_allclose(b.novelty, a.novelty[order.numpy()], rtol=1e-5)


def test_flagged_share_under_random_splits_is_below_two_percent() -> None:
    shares = []
    for name in ("basic", "er", "tree"):
        for seed in range(3):
            data = split_nodes(load_dataset(name), test=0.2, seed=seed)
            intervals = make_method("sqr", epochs=1, seed=seed).fit(data).predict_interval(data)
            shares.append((intervals.novelty[data.test_mask.numpy()] > 1).mean())
    assert np.mean(shares) <= 0.02


def test_targets_of_hidden_nodes_do_not_reach_novelty(graph: Data) -> None:
    spoilt = copy.copy(graph)
    spoilt.y = torch.where(graph.test_mask, 1e6, graph.y)
    a, b = (quick("sqr").fit(one).novelty_.state() for one in (graph, spoilt))
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_setting_is_checked_and_the_column_needs_it(graph: Data) -> None:
    with pytest.raises(UnknownNameError, match="unknown novelty 'on'"):
        quick("sqr", novelty="on").fit(graph)
    without = quick("sqr", novelty="off").fit(graph).predict_interval(graph)
    with pytest.raises(SettingError, match="novelty"):
        without.to_frame(novelty=True)
    shown = quick("sqr").fit(graph).predict_interval(graph).to_frame(novelty=True)
    assert [*shown.columns] == ["id", "prediction", "lower", "upper", "novelty"]


def test_one_step_of_a_constant_degree_is_not_far() -> None:
    side = 16
    ids = torch.arange(side * side).view(side, side)
    right, down = torch.roll(ids, -1, 1), torch.roll(ids, -1, 0)
    one_way = torch.cat(
        [torch.stack([ids.flatten(), ends.flatten()]) for ends in (right, down)], dim=1
    )
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(side * side, 2, generator=draw)
    y = x[:, 0] + 0.1 * torch.randn(side * side, generator=draw)
    torus = check_graph(Data(x=x, y=y, edge_index=torch.cat([one_way, one_way.flip(0)], dim=1)))
    model = QpiGNN(epochs=30).fit(torus)
    fewer = copy.copy(torus)
    kept = (torus.edge_index != 0).all(dim=0) | (torus.edge_index != 1).all(dim=0)
    fewer.edge_index = torus.edge_index[:, kept]
    before, after = model.predict_interval(torus), model.predict_interval(fewer)
    assert (after.width < 3 * before.width).all()


def test_trees_without_ids_have_the_slopes_of_those_with_ids(graph: Data) -> None:
    named = copy.copy(graph)
    named.node_id = [f"n{i}" for i in range(300)]
    slopes = [
        make_method("boosting_quantiles", max_iter=20).fit(one).novelty_.growth.slopes
        for one in (graph, named)
    ]
    np.testing.assert_allclose(slopes[0], slopes[1])


def test_parts_of_widths_beyond_the_range_are_cut_at_the_limits_of_the_target() -> None:
    data = load_dataset("basic", nodes=300)
    data.y = data.y - data.y.min()
    model = QpiGNN(epochs=30).fit(data)
    assert model.y_min_ == 0
    intervals = model.predict_interval(moved(data, [7], 0, 50.0))
    assert intervals.lower[7] == 0
    assert (intervals.epistemic <= intervals.width).all()


def test_levels_between_fitted_ones_are_nested_beyond_the_range(graph: Data) -> None:
    model = make_method("sqr", confidence_level=[0.5, 0.9], epochs=20, hidden=8).fit(graph)
    far = copy.copy(graph)
    far.x = graph.x + 0.8
    widths = [
        model.predict_interval(far, confidence_level=level) for level in (0.4, 0.5, 0.51, 0.9)
    ]
    assert (widths[0].novelty > 1).mean() > 0.5
    for inner, outer in itertools.pairwise(widths):
        assert (outer.lower <= inner.lower + 1e-9).all()
        assert (outer.upper >= inner.upper - 1e-9).all()


def test_features_of_another_precision_are_not_beyond_the_range(graph: Data) -> None:
    tenths = copy.copy(graph)
    tenths.x = (graph.x * 10).floor() / 10
    model = QpiGNN(epochs=5).fit(tenths)
    exact = copy.copy(tenths)
    exact.x = torch.from_numpy(np.round(tenths.x.double().numpy(), 1))
    flagged = (model.predict_interval(one).novelty > 1 for one in (tenths, exact))
    assert np.array_equal(*flagged)


def test_reason_without_feature_names_is_the_number_of_the_column(graph: Data) -> None:
    plain = Data(x=graph.x, y=graph.y, edge_index=graph.edge_index)
    model = QpiGNN(epochs=5).fit(plain)
    assert model.predict_interval(moved(plain, [7], 2, 99.0)).novelty_reason[7] == "column 2"
