"""Boosted trees: their columns, computed by hand; saved models; coverage with a conformal step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch_geometric.data import Data

from hostile import describe, integers, retype, within
from qpignn import check_graph, load_method, make_method, split_nodes
from qpignn.errors import ModelFileError, SettingError
from qpignn.methods import Boosting, Conformal
from qpignn.methods.boosting import nested
from qpignn.methods.boosting_columns import GraphColumns, KnownTargets, fit_components
from qpignn.methods.known_nodes import KnownNodes

NAN = float("nan")
FAST: dict[str, Any] = {"max_iter": 10}


def undirected(*pairs: tuple[int, int]) -> Tensor:
    ends = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
    return torch.cat([ends, ends.flip(0)], dim=1)


def columns_of(data: Data, targets: dict[int, float] | None) -> np.ndarray:
    """The columns of all nodes of a graph where the targets of some are known."""
    stored = None
    if targets is not None:
        mask = torch.zeros(data.x.shape[0], dtype=torch.bool)
        mask[[*targets]] = True
        stored = KnownTargets(
            KnownNodes.of(data, mask), np.array([targets[k] for k in sorted(targets)])
        )
    return GraphColumns.of(data, None, stored).rows(slice(None))


def path(x: list[float], edges: Tensor, weight: list[float] | None = None) -> Data:
    data = Data(x=torch.tensor(x).reshape(-1, 1), edge_index=edges)
    if weight is not None:
        data.edge_weight = torch.tensor(weight)
    return data


def drawn(nodes: int, seed: int = 0, columns: int = 3) -> Data:
    """Nodes whose target follows a feature, and hidden values that are alike along edges."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.rand(nodes, columns, generator=draw)
    group = torch.arange(nodes) // 10
    level = torch.randn(nodes // 10 + 1, generator=draw)[group]
    inside = torch.randint(0, 10, (2, 2 * nodes), generator=draw)
    start = torch.randint(0, nodes // 10, (2 * nodes,), generator=draw) * 10
    y = 2 * x[:, 0] + level + 0.2 * torch.randn(nodes, generator=draw)
    data = Data(x=x, y=y.double(), edge_index=start + inside)
    data.node_id = np.arange(nodes) + 5000
    return check_graph(data)


# ---- columns


def test_columns_on_a_path() -> None:
    """0 – 1 – 2 – 3 and 4 alone; the targets of 0 and 2 are known."""
    data = path([1.0, 2.0, 4.0, 8.0, 16.0], undirected((0, 1), (1, 2), (2, 3)))
    columns = columns_of(data, {0: 10.0, 2: 30.0})
    expected = [
        # x, mean of neighbours, degree, known neighbours, their mean, two steps away, their mean
        [1, 2, 1, 0, NAN, 1, 30],
        [2, 2.5, 2, 2, 20, 0, NAN],
        [4, 5, 2, 0, NAN, 1, 10],
        [8, 4, 1, 1, 30, 0, NAN],
        [16, NAN, 0, 0, NAN, 0, NAN],
    ]
    np.testing.assert_allclose(columns, expected)
    np.testing.assert_allclose(columns_of(data, None), np.array(expected)[:, :3])


def test_columns_do_not_count_self_loops_and_repeated_edges() -> None:
    plain = path([1.0, 2.0, 4.0], undirected((0, 1), (1, 2)))
    repeated = path([1.0, 2.0, 4.0], undirected((0, 1), (0, 1), (1, 2), (1, 1), (0, 0)))
    targets = {0: 1.0, 1: 5.0}
    np.testing.assert_array_equal(columns_of(plain, targets), columns_of(repeated, targets))


def test_columns_directed_edges_count_in_both_directions() -> None:
    one_way = path([1.0, 2.0, 4.0], torch.tensor([[0, 2], [1, 1]]))
    both = path([1.0, 2.0, 4.0], undirected((0, 1), (1, 2)))
    targets = {0: 1.0, 2: 5.0}
    np.testing.assert_array_equal(columns_of(one_way, targets), columns_of(both, targets))


def test_columns_respect_edge_weights() -> None:
    """Weights 1 and 3 are divided by their mean: 0.5 and 1.5."""
    edges = undirected((0, 1), (1, 2))
    data = path([1.0, 2.0, 4.0], edges, [1.0, 3.0, 1.0, 3.0])
    columns = columns_of(data, {0: 10.0, 2: 30.0})
    middle = [2, (0.5 * 1 + 1.5 * 4) / 2, 2, 2, (0.5 * 10 + 1.5 * 30) / 2, 0, NAN]
    np.testing.assert_allclose(columns[1], middle)
    np.testing.assert_allclose(columns[0], [1, 2, 0.5, 0, NAN, 0.5 * 1.5, 30])


@given(st.integers(0, 2**32), st.floats(-1e6, 1e6))
def test_columns_of_a_node_do_not_contain_its_own_target(seed: int, value: float) -> None:
    rng = np.random.default_rng(seed)
    ends = torch.from_numpy(rng.integers(0, 12, (2, 30)))
    weight = torch.from_numpy(rng.uniform(0.1, 5, 30))
    data = Data(x=torch.rand(12, 1), edge_index=ends, edge_weight=weight)
    targets = dict(enumerate(rng.normal(size=12).tolist()))
    before, after = (columns_of(data, {**targets, 3: own}) for own in (targets[3], value))
    scale = 1e-9 * max(1, abs(value))
    np.testing.assert_allclose(after[3], before[3], rtol=0, atol=scale)


def test_wide_features_become_components() -> None:
    x = torch.rand(50, 100, generator=torch.Generator().manual_seed(0))
    data = Data(x=x, edge_index=undirected((0, 1)))
    components = fit_components(x, seed=0)
    assert components is not None
    assert components.shape == (100, 50)  # no more than nodes
    columns = GraphColumns.of(data, components, None).rows(slice(None))
    np.testing.assert_allclose(columns[:, :50], x.double().numpy() @ components, rtol=1e-9)
    np.testing.assert_allclose(columns[0, 50:100], columns[1, :50])
    assert fit_components(x[:, :64], seed=0) is None


def test_products_beyond_float64_are_missing() -> None:
    data = Data(x=torch.full((3, 2), 1e300, dtype=torch.float64), edge_index=undirected((0, 1)))
    columns = GraphColumns.of(data, np.full((2, 1), 1e100), None).rows(slice(None))
    np.testing.assert_array_equal(columns, [[NAN, NAN, 1], [NAN, NAN, 1], [NAN, NAN, 0]])


# ---- trees


def test_quantiles_equal_those_of_scikit_learn() -> None:
    data = drawn(300)
    weighted = Data(**data.to_dict(), node_weight=torch.linspace(0.5, 2, 300))
    settings = {"max_features": 1.0, "max_iter": 20, "min_samples_leaf": 10}
    for graph in (data, weighted):
        model = Boosting(neighbours="off", novelty="off", y_min=None, **settings).fit(graph)
        intervals = model.predict_interval(graph)
        columns, weight = columns_of(graph, None), graph.get("node_weight")
        other = HistGradientBoostingRegressor(
            loss="quantile",
            quantile=0.95,
            learning_rate=0.05,
            early_stopping=False,
            **settings,
        )
        other.fit(columns, graph.y.numpy(), None if weight is None else weight.double().numpy())
        upper = np.maximum(other.predict(columns), intervals.prediction)
        np.testing.assert_allclose(intervals.upper, upper, rtol=1e-12)


def test_nested_bounds_contain_those_of_lower_levels_and_the_prediction() -> None:
    """Two levels and crossing quantiles of one node: lower 0.3 and 0.4, upper 0.6 and 0.5."""
    quantiles = np.array([[0.3], [0.4], [0.6], [0.5], [0.7]])
    lower, upper, value = nested(quantiles, 2)
    assert (lower[0], upper[0], value[0]) == (0.3, 0.7, 0.7)


def test_known_targets_of_neighbours_make_intervals_narrower() -> None:
    data = split_nodes(drawn(600), test=0.3)
    y = data.y[data.test_mask].numpy()
    errors = {}
    for neighbours in ("auto", "off"):
        model = make_method("boosting", neighbours=neighbours).fit(data)
        intervals = model.predict_interval(data, data.test_mask)
        errors[neighbours] = (intervals.width.mean(), np.abs(intervals.prediction - y).mean())
        assert (intervals.known_neighbours is None) == (neighbours == "off")
    assert errors["auto"][0] < 0.8 * errors["off"][0]
    assert errors["auto"][1] < 0.8 * errors["off"][1]


def test_lower_limit_is_zero_where_no_target_is_negative() -> None:
    data = drawn(100)
    data.y = data.y.abs()
    intervals = make_method("boosting", **FAST).fit(data).predict_interval(data)
    assert intervals.lower.min() == 0
    free = make_method("boosting", **FAST, y_min=None).fit(data).predict_interval(data)
    assert free.lower.min() < 0


@pytest.mark.parametrize("weighted", [False, True])
def test_number_of_threads_changes_no_bit(weighted: bool) -> None:
    data = drawn(300, columns=80)
    if weighted:
        data.node_weight = torch.rand(300, generator=torch.Generator().manual_seed(1)) + 0.01
    bounds = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            model = make_method("boosting", max_iter=50, novelty="off").fit(data)
            bounds.append(model.predict_interval(data).lower)
    np.testing.assert_array_equal(*bounds)


def test_early_stopping_needs_enough_nodes_and_trains_fewer_trees() -> None:
    settings: dict[str, Any] = {"early_stopping": True, "max_iter": 300, "novelty": "off"}
    assert Boosting(**settings).fit(drawn(400)).parameters_ < 900
    assert Boosting(**settings).fit(drawn(40)).parameters_ == 900


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"neighbours": "on"}, "unknown neighbours 'on'"),
        ({"max_iter": 5_001}, "max_iter: expected at most 5,000 trees, got 5,001"),
        ({"learning_rate": 0}, "learning_rate: expected a number above 0, up to 1, got 0"),
        ({"max_features": 1.5}, "max_features: expected a number above 0, up to 1, got 1.5"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes: expected a whole number from 2 up, got 1"),
        ({"l2_regularization": -1}, "l2_regularization: expected a number from 0 up, got -1"),
    ],
)
def test_invalid_settings_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises((SettingError, LookupError), match=message):
        make_method("boosting", **setting)


def test_fit_initial_weights_are_refused() -> None:
    with pytest.raises(SettingError, match="initial_weights: expected none for boosted trees"):
        Boosting(**FAST).fit(drawn(60), initial_weights={"net": torch.zeros(1)})


# ---- the conformal step


def test_boosting_is_the_quantile_method_with_a_conformal_step() -> None:
    data = drawn(200)
    one = make_method("boosting", **FAST).fit(data)
    other = Conformal(Boosting(**FAST)).fit(data)
    assert isinstance(one, Conformal)
    np.testing.assert_array_equal(
        one.predict_interval(data).lower, other.predict_interval(data).lower
    )


def test_scored_nodes_are_not_among_the_known_ones() -> None:
    data = split_nodes(drawn(200), test=0.3)
    model = make_method("boosting", **FAST).fit(data)
    stored = model.method_.known_targets_
    given = int((~data.test_mask).sum())
    assert len(stored.y) == given - model.fitted_.calibrated_on
    among = stored.nodes.found_in(data)
    assert not bool((among & data.test_mask).any())


def test_coverage_on_exchangeable_nodes_by_monte_carlo() -> None:
    """One new node per fit: hits are independent. Rank/(n + 1) of n = 24 scores is 20/25."""
    draws, hits = 150, 0
    for seed in range(draws):
        data = drawn(130, seed=seed)
        rng = np.random.default_rng(seed)
        chosen = torch.from_numpy(rng.permutation(130)[:97])  # as a random split draws them
        given, new = torch.zeros(130, dtype=torch.bool), int(chosen[-1])
        given[chosen[:-1]] = True
        settings = {"confidence_level": 0.8, "max_iter": 5, "seed": seed, "novelty": "off"}
        model = make_method("boosting", **settings).fit(data, given)
        assert model.fitted_.calibrated_on == 24
        intervals = model.predict_interval(data)
        hits += bool(intervals.lower[new] <= data.y[new] <= intervals.upper[new])
    low, high = binom.ppf([5e-4, 1 - 5e-4], draws, 20 / 25)
    assert low <= hits <= high, hits / draws


# ---- other graphs, and saved models


def test_targets_of_the_predicted_graph_are_never_read() -> None:
    data = split_nodes(drawn(200), test=0.3)
    model = make_method("boosting", **FAST).fit(data)
    blank = Data(**data.to_dict())
    blank.y = torch.full_like(data.y, 1e9)
    np.testing.assert_array_equal(
        model.predict_interval(blank).lower, model.predict_interval(data).lower
    )


def test_graph_without_known_nodes_is_predicted_without_targets() -> None:
    data, other = drawn(200), drawn(80, seed=9)
    other.node_id = np.arange(80)
    model = make_method("boosting", **FAST).fit(data)
    intervals = model.predict_interval(
        Data(x=other.x, edge_index=other.edge_index, node_id=other.node_id)
    )
    assert np.isfinite(intervals.width).all()
    assert not intervals.known_neighbours.any()


def test_known_nodes_are_found_by_id_in_another_order() -> None:
    data = drawn(100)
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    position = torch.argsort(order)
    moved = Data(x=data.x[order], edge_index=position[data.edge_index])
    moved.node_id = data.node_id[order.numpy()]
    model = make_method("boosting", **FAST).fit(data)
    a, b = model.predict_interval(moved), model.predict_interval(data).select(order.numpy())
    np.testing.assert_array_equal(a.known_neighbours, b.known_neighbours)
    np.testing.assert_allclose(a.upper, b.upper, rtol=1e-9)


@pytest.mark.parametrize("columns", [3, 80])
@pytest.mark.parametrize(
    "settings", [{}, {"neighbours": "off"}, {"y_min": None, "y_max": 50.0}, {"novelty": "off"}]
)
def test_loaded_model_is_equal_in_every_bit(
    columns: int, settings: dict[str, Any], tmp_path: Path
) -> None:
    data = split_nodes(drawn(150, columns=columns), test=0.3)
    data.node_weight = torch.linspace(0.5, 2, 150)
    model = make_method("boosting", confidence_level=[0.5, 0.9], **FAST, **settings).fit(data)
    model.save(tmp_path)
    loaded = load_method(tmp_path)
    for level in (0.5, 0.9):
        a, b = (m.predict_interval(data, confidence_level=level) for m in (model, loaded))
        for part in ("prediction", "lower", "upper"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
    assert loaded.parameters_ == model.parameters_
    assert {path.suffix for path in tmp_path.iterdir()} <= {".json", ".safetensors", ".lock"}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    data = drawn(60)
    data.node_weight = torch.linspace(0.5, 2, 60)
    Boosting(**FAST, novelty="off").fit(data).save(folder)
    return folder


@pytest.fixture
def model(honest: Path, tmp_path: Path) -> Path:
    for path in honest.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    "tensors",
    [
        {"columns": None},
        {"columns": integers(60, 11)},
        {"columns": torch.zeros(60, 10, dtype=torch.float64)},
        {"columns": torch.zeros(59, 11, dtype=torch.float64)},
        {"columns": torch.zeros(0, 11, dtype=torch.float64)},
        {"columns": torch.full((60, 11), float("inf"), dtype=torch.float64)},
        {"columns": torch.zeros(60, 11, dtype=torch.float64)},  # the quantiles are others then
        {"targets": torch.zeros(60)},
        {"targets": torch.zeros(0, dtype=torch.float64)},
        {"targets": torch.full((60,), NAN, dtype=torch.float64)},
        {"targets": torch.zeros((), dtype=torch.float64)},
        {"weights": torch.zeros(60, dtype=torch.float64)},
        {"weights": -torch.ones(60, dtype=torch.float64)},
        {"weights": None},
        {"quantiles": torch.zeros(2, 60, dtype=torch.float64)},
        {"quantiles": torch.full((3, 60), NAN, dtype=torch.float64)},
        {"known_nodes": integers(61)},
        {"known_nodes": torch.zeros(2, dtype=torch.int64)},
        {"known_nodes": None},
        {"components": torch.zeros(3, 3, dtype=torch.float64)},
        {"limits": None},
        {"more": torch.zeros(1)},
    ],
    ids=lambda tensors: " ".join(f"{key} {getattr(t, 'shape', '')}" for key, t in tensors.items()),
)
def test_load_tensors_of_wrong_type_shape_or_values_are_refused(
    model: Path, tensors: dict[str, Tensor | None]
) -> None:
    retype(model, **tensors)
    with within(), pytest.raises(ModelFileError):
        load_method(model)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_iter": 10**9},
        {"max_iter": 200},
        {"max_leaf_nodes": 2},
        {"learning_rate": 0.5},
        {"min_samples_leaf": 2**40},
        {"confidence_level": [i / 10**6 for i in range(1, 10**5)]},
        {"neighbours": "off"},
        {"seed": "0; import os"},
    ],
    ids=lambda values: str(values)[:40],
)
def test_load_other_or_huge_settings_are_refused(model: Path, settings: dict[str, Any]) -> None:
    stored = json.loads((model / "model.json").read_text())["settings"]
    describe(model, settings={**stored, **settings})
    with within(), pytest.raises(ModelFileError):
        load_method(model)


def test_load_honest_model(model: Path) -> None:
    retype(model)  # what signs the changed folders above must not be what is refused
    assert len(load_method(model).predict_interval(drawn(60))) == 60
