"""Conformal promises, by Monte Carlo and against MAPIE; groups, neighbourhoods, users' own nets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from mapie.regression import SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from qpignn import (
    Conformal,
    QpiGNN,
    example_tables,
    from_frames,
    load_dataset,
    load_method,
    make_method,
    make_view,
    split_nodes,
)
from qpignn.errors import ArrayError, ModelFileError, NotFittedError, SettingError, SplitError
from qpignn.methods.groups import local_difficulty, node_groups

NO_EDGES = torch.empty((2, 0), dtype=torch.long)


class Zero(nn.Module):
    """Says nought for every node."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(x))


class Known(nn.Module):
    """Says columns of its input."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.columns = columns

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return x[:, : self.columns]


def nodes(y: Any, x: Any = None) -> Data:
    targets = torch.as_tensor(np.asarray(y))
    features = torch.ones(len(targets), 1) if x is None else torch.as_tensor(x).float()
    return Data(x=features, y=targets, edge_index=NO_EDGES)


def test_prefit_absolute_residuals_hand_computed() -> None:
    """|y| = 1 … 19: rank ⌈20·0.9⌉ = 18, so ±18; at 50 % ±10."""
    y = np.arange(1.0, 20.0) * np.where(np.arange(19) % 2, 1, -1)
    model = Conformal.prefit(Zero(), nodes(y), np.ones(19, bool), confidence_level=[0.5, 0.9])
    intervals = model.predict_interval(nodes(y))
    assert set(intervals.lower) == {-18.0}
    assert set(intervals.upper) == {18.0}
    assert set(model.predict_interval(nodes(y), confidence_level=0.5).upper) == {10.0}


def test_coverage_on_exchangeable_nodes_by_monte_carlo() -> None:
    """19 nodes at 90 %: coverage is 18/20 exactly, over draws of everything."""
    rng = np.random.default_rng(0)
    draws = 3000
    hits = 0
    for _ in range(draws):
        data = nodes(rng.standard_cauchy(20))
        model = Conformal.prefit(Zero(), data, np.arange(20) < 19)
        intervals = model.predict_interval(data, np.arange(20) == 19)
        hits += bool(intervals.covers(data.y[19:].numpy())[0])
    assert hits / draws == pytest.approx(0.9, abs=4 * (0.09 / draws) ** 0.5)


class Regressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    def fit(self, x: Any, y: Any) -> Regressor:
        self.fitted_ = True
        return self

    def predict(self, x: Any) -> Any:
        return x[:, 0]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_prefit_equals_mapie(level: float) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, 1)).astype(np.float32), rng.normal(size=60)
    theirs = SplitConformalRegressor(Regressor().fit(x, y), confidence_level=level, prefit=True)
    theirs.conformalize(x, y)
    _, wanted = theirs.predict_interval(x)
    model = Conformal.prefit(Known(1), nodes(y, x), np.ones(60, bool), confidence_level=level)
    intervals = model.predict_interval(nodes(y, x))
    np.testing.assert_allclose(intervals.lower, wanted[:, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(intervals.upper, wanted[:, 1, 0], rtol=1e-5)


@pytest.mark.parametrize(
    ("score", "lower", "upper"),
    [("cqr", -1 - 2, 3 + 2), ("normalised", 1 - 2 * 2, 1 + 2 * 2), ("absolute", 1 - 4, 1 + 4)],
)
def test_prefit_scores_hand_computed(score: str, lower: float, upper: float) -> None:
    """Said [−1, 3] around 1; a target of 5 is 2 outside, 4 off, 2 half-widths off."""
    x = np.tile([-1.0, 1.0, 3.0], (9, 1))
    y = np.array([1.0] * 8 + [5.0])
    model = Conformal.prefit(Known(3), nodes(y, x), np.ones(9, bool), score=score)
    intervals = model.predict_interval(nodes(y, x))
    assert (intervals.lower[0], intervals.upper[0]) == (lower, upper)
    assert intervals.prediction[0] == 1


def test_bounds_that_are_too_wide_shrink_but_never_cross() -> None:
    x = np.tile([-10.0, 10.0], (19, 1))
    y = np.linspace(-1, 1, 19)
    intervals = Conformal.prefit(Known(2), nodes(y, x), np.ones(19, bool)).predict_interval(
        nodes(y, x)
    )
    assert intervals.width[0] < 2.1
    assert (intervals.lower <= intervals.upper).all()
    uneven = np.tile([-10.0, 1.0], (19, 1))
    uneven[0] = [4.9, 5.1]  # narrow already: shrinking it by as much would cross
    near = nodes(y * 1e-6, uneven)
    intervals = Conformal.prefit(Known(2), near, np.ones(19, bool)).predict_interval(near)
    assert (intervals.lower <= intervals.upper).all()


def test_prefit_too_few_nodes_gives_infinite_bounds_and_warns() -> None:
    data = nodes(np.arange(8.0))
    with pytest.warns(UserWarning, match=r"too few calibration nodes for a level of 0.9 \(8\)"):
        model = Conformal.prefit(Zero(), data, np.ones(8, bool))
    assert np.isinf(model.predict_interval(data).width).all()


def test_every_group_is_covered_by_itself() -> None:
    rng = np.random.default_rng(2)
    loud = rng.random(4000) < 0.2
    data = nodes(rng.normal(size=4000) * np.where(loud, 4.0, 1.0))
    data.region = ["loud" if it else "quiet" for it in loud]
    score, judge = np.arange(4000) < 2000, np.arange(4000) >= 2000
    plain = Conformal.prefit(Zero(), data, score).predict_interval(data)
    each = Conformal.prefit(Zero(), data, score, groups="region").predict_interval(data)
    y = data.y.numpy()
    assert plain.covers(y)[judge & loud].mean() < 0.75
    for group in (loud, ~loud):
        assert each.covers(y)[judge & group].mean() == pytest.approx(0.9, abs=0.05)
    data.region = ["elsewhere"] * 4000  # a group without calibration nodes
    model = Conformal.prefit(Zero(), data, score, groups="region")
    data.region = ["new"] * 4000
    assert np.isinf(model.predict_interval(data).upper).all()


def pairs_and_fours() -> Data:
    """Ten pairs (degree 1) and five cliques of four (degree 3)."""
    parts = [list(range(i, i + 2)) for i in range(0, 20, 2)]
    parts += [list(range(i, i + 4)) for i in range(20, 40, 4)]
    ends = [(a, b) for part in parts for a in part for b in part if a != b]
    return Data(x=torch.ones(40, 1), edge_index=torch.tensor(ends).t().contiguous())


def test_groups_by_degree_and_community() -> None:
    data = pairs_and_fours()
    labels, state = node_groups(data, "degree", new=True)
    assert set(labels[:20]) == {"degree from 1"}
    assert set(labels[20:]) == {"degree from 3"}
    again, _ = node_groups(data, "degree", state=state)
    assert (again == labels).all()
    labels, state = node_groups(data, "community", new=True)
    assert len(set(labels)) == 15
    assert len(set(labels[20:24])) == 1
    other = Data(x=data.x, edge_index=data.edge_index[:, 2:])
    with pytest.raises(SettingError, match="expected the graph of the fit"):
        node_groups(other, "community", state=state)
    with pytest.raises(SettingError, match="expected degree, community, a column of categories"):
        node_groups(data, "colour", new=True)


def test_node_groups_reads_categories_from_csr_features() -> None:
    frame = pd.DataFrame(
        {"id": ["a", "b", "c"], "kind": ["road", "rail", "road"], "y": [1.0, 2.0, 3.0]}
    )
    data = from_frames(frame, None, target="y")
    data.x = data.x.to_sparse_csr()
    labels, _ = node_groups(data, "kind", new=True)
    assert labels.tolist() == ["road", "rail", "road"]


def test_local_difficulty_hand_computed() -> None:
    """Known residuals 1 and 3 (mean 2) beside node 0: (1 + 3 + 2·2) / 4 / 2 = 1; alone: 1."""
    edges = torch.tensor([[1, 2, 1], [0, 0, 3]])
    difficulty = local_difficulty(edges, np.array([np.nan, 1.0, 3.0, np.nan, np.nan]))
    assert difficulty.tolist() == pytest.approx([1.0, 1.0, 1.0, (1 + 4) / 3 / 2, 1.0])
    assert local_difficulty(edges, np.full(5, np.nan)).tolist() == [1.0] * 5


@pytest.mark.parametrize("settings", [{"neighbourhood": True}, {"groups": "degree"}, {}])
def test_conformal_of_a_method_covers_and_keeps_its_settings(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    covered = []
    for seed in range(6):
        view = make_view(split_nodes(load_dataset("er"), seed=seed))
        model = make_method("conformal:quantile", epochs=40, seed=seed, **settings).fit(view.fit)
        intervals = model.predict_interval(view.predict, view.test_mask)
        covered.append(intervals.covers(view.y_test).mean())
    # 160 calibration and 200 test nodes a draw
    assert np.mean(covered) == pytest.approx(0.9, abs=3 * (0.09 / 160 + 0.09 / 200) ** 0.5 / 6**0.5)
    model.save(tmp_path)
    again = load_method(tmp_path)
    assert isinstance(again, Conformal)
    assert again.neighbourhood == settings.get("neighbourhood", False)
    same = again.predict_interval(view.predict, view.test_mask)
    assert (same.lower == intervals.lower).all()


class Gnn(nn.Module):
    """What a user has trained in plain PyG."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(5, 16), SAGEConv(16, 1)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def test_prefit_of_a_module_covers_and_saves_numbers_without_the_net(tmp_path: Path) -> None:
    data = split_nodes(load_dataset("basic"), validation=0.3)
    net = Gnn()
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(100):
        adam.zero_grad()
        off = net(data.x, data.edge_index).squeeze() - data.y
        off[data.train_mask].square().mean().backward()
        adam.step()
    net.train()
    model = Conformal.prefit(net, data, data.val_mask, neighbourhood=False)
    intervals = model.predict_interval(data, data.test_mask)
    assert intervals.covers(data.y[data.test_mask]).mean() == pytest.approx(0.9, abs=0.08)
    assert model.parameters_ == sum(w.numel() for w in net.parameters())
    model.save(tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size < 20_000  # the numbers, not the net
    again = Conformal.load(tmp_path, model=net)
    assert (again.predict_interval(data, data.test_mask).lower == intervals.lower).all()
    with pytest.raises(ModelFileError, match=r"Conformal.load\(folder, model=net\)"):
        load_method(tmp_path)


def test_conformal_invalid_arguments_raise() -> None:
    data = nodes(np.arange(30.0))
    with pytest.raises(SplitError, match="calibration_mask: expected labelled nodes"):
        Conformal.prefit(Zero(), data, np.zeros(30, bool))
    with pytest.raises(ArrayError, match=r"model: expected \(30,\).* got \(30, 7\)"):
        Conformal.prefit(lambda x, e: torch.ones(30, 7), data, np.ones(30, bool))
    with pytest.raises(ArrayError, match="expected finite numbers"):
        Conformal.prefit(lambda x, e: torch.full((30,), np.nan), data, np.ones(30, bool))
    with pytest.raises(SettingError, match="method: expected a method of this library"):
        Conformal(Zero()).fit(data)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="calibration: expected a share"):
        make_method("conformal:sqr", calibration=1.0)
    with pytest.raises(SettingError, match="calibration: expected a number"):
        make_method("conformal:sqr", calibration="much")
    with pytest.raises(NotFittedError):
        make_method("conformal:sqr").predict_interval(data)


def test_corrected_gnn_with_random_correction_keeps_levels_nested() -> None:
    data = load_dataset("basic", nodes=120)
    model = make_method("corrected", confidence_level=[0.5, 0.9], epochs=5, correction_epochs=2)
    model.fit(data)
    torch.nn.init.normal_(model.second_.head.weight)  # type: ignore[attr-defined]
    inner, outer = (model.predict_interval(data, confidence_level=c) for c in (0.5, 0.9))
    assert (outer.lower <= inner.lower).all()
    assert (inner.upper <= outer.upper).all()
    assert (inner.lower <= inner.prediction).all()


@pytest.mark.parametrize("levels", [np.array([0.5, 0.9]), (0.5, 0.9)])
def test_levels_in_any_kind_of_list_can_be_saved(levels: Any, tmp_path: Path) -> None:
    model = make_method("cqr", confidence_level=levels, epochs=2)
    model.fit(load_dataset("basic", nodes=100)).save(tmp_path)
    assert load_method(tmp_path).levels_ == [0.5, 0.9]


def test_groups_by_a_column_of_categories() -> None:
    data = from_frames(*example_tables(200), target="pollution")
    model = Conformal(make_method("sqr", epochs=2), groups="kind").fit(data)
    kinds = {"rural", "suburban", "urban", "industrial"}
    assert set(model.widenings_[0.9]) <= kinds
    with pytest.raises(SettingError, match=r"a column of categories \(.kind.\)"):
        Conformal(make_method("sqr", epochs=2), groups="knid").fit(data)


def test_prefit_neighbourhood_is_refused() -> None:
    data = from_frames(*example_tables(60), target="pollution")
    with pytest.raises(SettingError, match="trained elsewhere"):
        Conformal.prefit(lambda x, edges: x[:, 0], data, ~data.y.isnan(), neighbourhood=True)


@pytest.mark.parametrize("score", ["cqr", "normalised", "absolute"])
def test_conformal_of_a_one_sided_method_keeps_its_side(score: str) -> None:
    """With a limit below, both bounds are finite: the side cannot be read off them."""
    data = load_dataset("basic", nodes=200)
    low = float(data.y.min()) - 1
    bound = QpiGNN(0.9, side="upper", y_min=low, epochs=5)
    intervals = Conformal(bound, score=score).fit(data).predict_interval(data)
    assert (intervals.lower == low).all()
    assert intervals.side == "upper"
