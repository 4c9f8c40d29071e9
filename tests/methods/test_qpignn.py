from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import QpiGNN, load_dataset, make_view, metrics, split_nodes
from qpignn.data.settings import View
from qpignn.errors import QpignnWarning, SettingError, SplitError, UnknownNameError
from qpignn.methods import net_training


def coverage_and_width(method: QpiGNN, name: str, seed: int = 0) -> tuple[float, float]:
    view = make_view(split_nodes(load_dataset(name), seed=seed))
    intervals = method.fit(view.fit).predict_interval(view.predict, view.test_mask)
    return (
        metrics.picp(view.y_test, intervals.lower, intervals.upper),
        metrics.mpiw(view.y_test, intervals.lower, intervals.upper),
    )


def test_auto_is_half_alpha() -> None:
    data = load_dataset("basic", nodes=50)
    assert QpiGNN(0.8, epochs=1).fit(data).lambda_width_ == pytest.approx(0.1)
    assert QpiGNN([0.5, 0.9], epochs=1).fit(data).lambda_width_ == pytest.approx(0.05)
    # a bound on one side that misses α has α/2 = 2·0.05 on that side of a two-sided interval
    assert QpiGNN(0.95, side="upper", epochs=1).fit(data).lambda_width_ == pytest.approx(0.05)
    assert QpiGNN(lambda_width=0.3, epochs=1).fit(data).lambda_width_ == 0.3


def test_coverage_of_training_nodes_reaches_the_level() -> None:
    data = load_dataset("tree")
    for level in (0.6, 0.9):
        plain = {"dropout": 0.0, "weight_decay": 0.0, "patience": None}
        method = QpiGNN(level, (1 - level) / 2, lr=5e-3, **plain).fit(data)  # type: ignore[arg-type]
        late = method.history_.coverage[-100:]
        assert sum(late) / 100 == pytest.approx(level, abs=0.02)


def test_width_penalty_of_one_half_collapses() -> None:
    narrow, wide = (coverage_and_width(QpiGNN(lambda_width=lam), "er") for lam in (0.5, 0.05))
    assert narrow[0] < 0.5
    assert wide[0] > 0.8


def test_default_covers_and_is_near_the_narrowest_possible() -> None:
    """The noise of basic is 0.1·U(0, 1), so no 90 % interval can be narrower than 0.09."""
    figures = [coverage_and_width(QpiGNN(seed=seed), "basic", seed) for seed in range(3)]
    coverage, width = (sum(column) / 3 for column in zip(*figures, strict=True))
    assert coverage == pytest.approx(0.9, abs=0.05)  # 2.5 errors of three times 200 nodes
    assert 0.09 * coverage / 0.9 * 0.95 < width < 1.3 * 0.09 * coverage / 0.9


def test_one_sided_noise_gives_narrow_unequal_intervals() -> None:
    """Outlier adds 3 ± 1 to one node in twenty; the narrowest 90 % interval leaves those out."""
    coverage, width = coverage_and_width(QpiGNN(), "outlier")
    assert coverage > 0.84
    assert width < 0.3


LEVELS = [0.5, 0.8, 0.9, 0.95]


@pytest.fixture(scope="module")
def several() -> tuple[QpiGNN, View]:
    view = make_view(split_nodes(load_dataset("er")))
    return QpiGNN(LEVELS, epochs=150).fit(view.fit), view


def test_levels_are_nested_and_chosen_when_predicting(several: tuple[QpiGNN, View]) -> None:
    model, view = several
    assert model.levels_ == LEVELS
    results = [model.predict_interval(view.predict, confidence_level=level) for level in LEVELS]
    for inner, outer in pairwise(results):
        assert (outer.lower <= inner.lower).all()
        assert (inner.upper <= outer.upper).all()
        assert (outer.width > inner.width).any()
        assert (outer.prediction == inner.prediction).all()
    assert [f.confidence_level for f in results] == LEVELS
    assert model.predict_interval(view.predict).confidence_level == 0.95
    with pytest.raises(SettingError, match=r"one of the fitted levels \[0.5, .*got 0.7"):
        model.predict_interval(view.predict, confidence_level=0.7)


def test_each_level_covers_its_share(several: tuple[QpiGNN, View]) -> None:
    model, view = several
    for level in LEVELS:
        intervals = model.predict_interval(view.predict, view.test_mask, confidence_level=level)
        coverage = metrics.picp(view.y_test, intervals.lower, intervals.upper)
        assert coverage == pytest.approx(level, abs=4 * (level * (1 - level) / 200) ** 0.5)


def test_parts_of_the_width_add_up(several: tuple[QpiGNN, View]) -> None:
    model, view = several
    intervals = model.predict_interval(view.predict)
    assert intervals.epistemic is not None
    assert (intervals.epistemic >= 0).all()
    assert (intervals.epistemic <= intervals.width).all()
    assert 0 < intervals.epistemic.mean() < 0.5 * intervals.width.mean()
    frame = intervals.to_frame(parts=True)
    assert list(frame.columns[-2:]) == ["epistemic", "aleatoric"]


def test_epistemic_is_larger_far_from_the_training_features() -> None:
    x = torch.linspace(-1, 1, 300).unsqueeze(1)
    y = x.squeeze().sin() + 0.05 * torch.randn(300, generator=torch.Generator().manual_seed(0))
    data = Data(x=x, y=y, edge_index=torch.empty((2, 0), dtype=torch.long))
    model = QpiGNN(epochs=150).fit(data)
    far = Data(x=x + 6, edge_index=data.edge_index)
    near, away = (model.predict_interval(graph).epistemic for graph in (data, far))
    assert near is not None
    assert away is not None
    assert away.mean() > 3 * near.mean()


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_bounds_on_one_side(side: str) -> None:
    view = make_view(split_nodes(load_dataset("uniform")))
    model = QpiGNN([0.8, 0.9], side=side, epochs=100).fit(view.fit)
    intervals = model.predict_interval(view.predict, view.test_mask)
    free, bound = (
        (intervals.upper, intervals.lower)
        if side == "lower"
        else (intervals.lower, intervals.upper)
    )
    assert np.isinf(free).all()
    assert np.isfinite(bound).all()
    assert metrics.picp(view.y_test, intervals.lower, intervals.upper) == pytest.approx(
        0.9, abs=0.085
    )
    both = QpiGNN(0.9, epochs=100).fit(view.fit).predict_interval(view.predict, view.test_mask)
    inner = intervals.lower - both.lower if side == "lower" else both.upper - intervals.upper
    assert inner.mean() > 0  # all the miss is on one side, so the bound may lie further in


def test_y_min_and_y_max_clip_bounds() -> None:
    data = load_dataset("gaussian", nodes=200)
    low, high = float(data.y.min()), float(data.y.max())
    free = QpiGNN(epochs=20).fit(data).predict_interval(data)
    cut = QpiGNN(epochs=20, y_min=low, y_max=high).fit(data).predict_interval(data)
    assert free.lower.min() < low
    assert cut.lower == pytest.approx(np.clip(free.lower, low, high))
    assert cut.upper == pytest.approx(np.clip(free.upper, low, high))
    assert cut.epistemic is not None
    assert (cut.epistemic <= cut.width + 1e-12).all()
    one = QpiGNN(epochs=20, y_max=high, side="lower").fit(data).predict_interval(data)
    assert one.upper == pytest.approx(high)
    assert one.side == "lower"  # though the other bound is finite
    with pytest.raises(SettingError, match="expected the given targets between 0 and inf, got"):
        QpiGNN(y_min=0).fit(Data(x=data.x, y=data.y - 9, edge_index=data.edge_index))


def heavy(seed: int = 0) -> Data:
    data = load_dataset("basic", nodes=300)
    noise = torch.randn(300, generator=torch.Generator().manual_seed(seed))
    data.y = (8 * data.x[:, 0] + 0.2 * noise).exp()
    return data


def test_target_transform_auto_uses_log1p_for_heavy_tails_only() -> None:
    data = heavy()
    model = QpiGNN(epochs=60).fit(data)
    assert model.y_scaler_.name == "log1p"
    assert (model.predict_interval(data).lower > -1).all()
    assert QpiGNN(epochs=2).fit(load_dataset("basic", nodes=100)).y_scaler_.name == "none"
    assert QpiGNN(lambda_width=0.05, epochs=2).fit(data).y_scaler_.name == "none"


def test_auto_takes_the_transform_with_the_lower_median_width_on_log_normal_targets() -> None:
    """A mean width would be decided by the largest nodes: it is lower without a logarithm here."""
    data = split_nodes(load_dataset("er"))
    z = (data.y - data.y.mean()) / data.y.std()
    data.y = torch.exp(2 * z.double())
    view = make_view(data)
    results = {}
    for name in ("none", "log1p", "auto"):
        model = QpiGNN(epochs=150, target_transform=name).fit(view.fit)
        results[name] = model.predict_interval(view.predict, view.test_mask)
    widths = {name: intervals.width for name, intervals in results.items()}
    assert widths["none"].mean() < widths["log1p"].mean()
    assert np.median(widths["log1p"]) < 0.8 * np.median(widths["none"])
    assert np.array_equal(results["auto"].lower, results["log1p"].lower)
    for intervals in results.values():
        assert (intervals.lower >= 0).all()
        coverage = metrics.picp(view.y_test, intervals.lower, intervals.upper)
        assert coverage == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize("name", ["none", "log1p", "sqrt"])
def test_target_transform_by_name_is_used_and_saved(name: str, tmp_path: Path) -> None:
    data = heavy()
    model = QpiGNN(epochs=5, target_transform=name).fit(data)
    assert model.y_scaler_.name == name
    model.save(tmp_path)
    again = QpiGNN.load(tmp_path)
    assert (again.predict_interval(data).upper == model.predict_interval(data).upper).all()
    assert again.scalings_ == model.scalings_


def test_tuned_searches_on_held_out_given_nodes() -> None:
    data = load_dataset("tree", nodes=200)
    model = QpiGNN(lambda_width="tuned", trials=6, epochs=80).fit(data)
    assert 0.005 <= model.lambda_width_ <= 0.5
    assert QpiGNN(lambda_width="tuned", trials=6, epochs=80).fit(data).lambda_width_ == (
        model.lambda_width_
    )
    fixed = QpiGNN(lambda_width=model.lambda_width_, epochs=80).fit(data)  # the same fit
    assert (fixed.predict_interval(data).lower == model.predict_interval(data).lower).all()
    published = QpiGNN.published("tuned", trials=3, epochs=5).fit(data)
    assert 0.1 <= published.lambda_width_ <= 1
    assert published.history_.held_out == {}  # the last fit is on all given nodes


def test_lambda_width_tuned_with_too_few_nodes_is_refused() -> None:
    data = load_dataset("basic", nodes=40)
    with pytest.raises(SplitError, match="lambda_width: expected given nodes to hold out"):
        QpiGNN(lambda_width="tuned", epochs=2).fit(data, torch.arange(40) < 4)


def test_lambda_width_tuned_is_lower_for_a_higher_level() -> None:
    data = load_dataset("tree", nodes=300)
    prices = [
        QpiGNN(level, "tuned", trials=8, epochs=150).fit(data).lambda_width_
        for level in (0.5, 0.95)
    ]
    assert prices[1] < prices[0]


def test_levels_of_a_fit_do_not_change_with_the_callers_list() -> None:
    data = load_dataset("basic", nodes=100)
    levels = [0.7, 0.9]
    model = QpiGNN(levels, epochs=20).fit(data)
    before = model.predict_interval(data).width.mean()
    levels.remove(0.7)
    assert model.levels_ == [0.7, 0.9]
    assert model.predict_interval(data).width.mean() == before


@pytest.mark.parametrize("levels", [np.array([0.5, 0.9]), (0.5, 0.9), {0.5, 0.9}])
def test_levels_in_any_kind_of_list(levels: Any, tmp_path: Path) -> None:
    model = QpiGNN(levels, epochs=2).fit(load_dataset("basic", nodes=50))
    model.save(tmp_path)
    assert QpiGNN.load(tmp_path).levels_ == [0.5, 0.9]


def test_one_sided_bound_with_few_labels_or_unusual_features() -> None:
    data = load_dataset("basic", nodes=100)
    with pytest.warns(UserWarning, match="0 held-out nodes"):
        model = QpiGNN(side="upper", epochs=2).fit(data, torch.arange(100) < 4)
    assert np.isneginf(model.predict_interval(data).lower).all()
    model = QpiGNN(side="upper", epochs=30).fit(data)
    data.x[0] = 1e4
    assert not np.isnan(model.predict_interval(data).upper).any()


def test_nodes_of_weight_zero_do_not_affect_the_fit() -> None:
    data = load_dataset("basic", nodes=100)
    data.node_weight = torch.ones(100)
    data.node_weight[7] = 0
    changed = Data(**data.to_dict())
    changed.y = data.y.clone()
    changed.y[7] = -1e6
    a, b = (QpiGNN(epochs=5, y_min=-1).fit(d).predict_interval(data) for d in (data, changed))
    assert (a.lower == b.lower).all()


def test_limits_in_the_precision_of_the_targets() -> None:
    data = load_dataset("basic", nodes=50)
    data.y = data.y / data.y.max() * torch.tensor(0.1)
    QpiGNN(epochs=1, y_max=0.1).fit(data)


def interrupting(model: QpiGNN, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = net_training.measured, 0

    def measured(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(net_training, "measured", measured)


@pytest.mark.parametrize("at", [5, 11, 15])  # in the first fit, at the second's start, within it
def test_fit_interrupted_in_any_transform_is_marked(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = QpiGNN(epochs=10)
    interrupting(model, at, monkeypatch)
    model.fit(heavy())
    assert model.history_.stopped == "interrupted"
    assert model.y_scaler_.name == "none"
    assert len(model.predict_interval(heavy())) == 300


def test_history_coverage_reaches_the_level() -> None:
    data = load_dataset("tree")
    history = QpiGNN(0.3, epochs=120, dropout=0.0).fit(data).history_
    assert history.coverage[-1] == pytest.approx(0.3, abs=0.1)


@pytest.mark.parametrize("side", ["both", "lower", "upper"])
@pytest.mark.parametrize(("labels", "level"), [(1, 0.9), (4, 0.9), (8, 0.9), (18, 0.95)])
def test_qpignn_too_few_labels_gives_infinite_bounds_and_warns(
    labels: int, level: float, side: str
) -> None:
    data = load_dataset("basic", nodes=40)
    needed = {0.9: 9, 0.95: 19}[level]
    held_out = labels if labels >= 5 else 0
    message = rf"{held_out} held-out nodes of {labels} labelled.* {level}, which needs {needed};"
    with pytest.warns(QpignnWarning, match=message):
        model = QpiGNN(level, side=side, epochs=2).fit(data, torch.arange(40) < labels)
    intervals = model.predict_interval(data)
    assert np.isneginf(intervals.lower).all()
    assert np.isposinf(intervals.upper).all()
    assert np.isfinite(intervals.prediction).all()


@pytest.mark.parametrize(("labels", "level"), [(9, 0.9), (19, 0.95)])
def test_qpignn_just_enough_labels_gives_finite_bounds(labels: int, level: float) -> None:
    data = load_dataset("basic", nodes=40)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*held-out")
        model = QpiGNN(level, epochs=2).fit(data, torch.arange(40) < labels)
    assert np.isfinite(model.predict_interval(data).width).all()


def test_qpignn_several_levels_only_those_with_too_few_labels_are_infinite(tmp_path: Path) -> None:
    data = load_dataset("basic", nodes=40)
    with pytest.warns(QpignnWarning, match="0.99, which needs 99"):
        QpiGNN([0.5, 0.99], epochs=2).fit(data, torch.arange(40) < 30).save(tmp_path / "model")
    model = QpiGNN.load(tmp_path / "model")
    assert np.isfinite(model.predict_interval(data, confidence_level=0.5).width).all()
    assert np.isinf(model.predict_interval(data, confidence_level=0.99).width).all()


def test_intervals_scale_with_the_unit_of_the_target() -> None:
    data = load_dataset("basic", nodes=200)
    moved = Data(x=data.x, edge_index=data.edge_index, y=data.y.double() * 1e6 + 1e9)
    model = QpiGNN(epochs=40, dtype="float64", y_min=None)  # a limit of 0 would move with the zero
    a, b = (model.fit(d).predict_interval(d) for d in (data, moved))
    assert (b.lower - 1e9) / 1e6 == pytest.approx(a.lower, abs=1e-4)


def test_node_weights_draw_the_fit_to_heavy_nodes() -> None:
    x = torch.ones(40, 1)
    y = torch.cat([torch.zeros(20), torch.ones(20)])
    edges = torch.empty((2, 0), dtype=torch.long)
    weight = torch.cat([torch.full((20,), 100.0), torch.ones(20)])
    data = Data(x=x, y=y, edge_index=edges, node_weight=weight)
    method = QpiGNN(0.5, epochs=300, patience=None, dropout=0.0).fit(data)
    assert method.predict(data).mean() < 0.2


def test_fit_uses_validation_nodes_of_the_graph_for_early_stopping() -> None:
    data = split_nodes(load_dataset("basic", nodes=200), validation=0.2)
    mixed = Data(**data.to_dict())  # the same targets on other validation nodes
    mixed.y = data.y.clone()
    mixed.y[data.val_mask] = data.y[data.val_mask].flip(0)
    a, b = (QpiGNN(lambda_width=0.05, epochs=15).fit(graph).history_ for graph in (data, mixed))
    assert a.loss == b.loss  # they carry no loss
    assert min(a.held_out.values()) < min(b.held_out.values())  # but are what is scored


def test_published_has_the_settings_of_the_paper() -> None:
    settings = QpiGNN.published().get_params()
    wanted = {
        "lambda_width": 0.5,
        "half_width": "sigmoid",
        "violation": "violated",
        "scaling": "range",
        "lr": 1e-3,
        "weight_decay": 1e-3,
        "dropout": 0.0,
        "epochs": 500,
        "patience": None,
    }
    assert wanted.items() <= settings.items()
    assert QpiGNN.published(0.1, seed=5, epochs=7).get_params()["epochs"] == 7


@pytest.mark.parametrize(
    "settings",
    [
        {"lambda_width": -0.1},
        {"lambda_width": "tight"},
        {"lambda_width": float("inf")},
        {"lambda_width": float("nan")},
        {"lambda_width": "auto", "violation": "violated"},
        {"lambda_width": 0.05, "confidence_level": [0.5, 0.9]},
        {"lambda_width": 0.05, "side": "lower"},
        {"lambda_width": "tuned", "tails": "free"},
        {"confidence_level": []},
        {"confidence_level": [0.5, 1.0]},
        {"side": "lower", "confidence_level": [0.4, 0.9]},
        {"y_min": 1.0, "y_max": 1.0},
        {"y_min": "a"},
        {"target_transform": "log1p", "scaling": "range"},
        {"members": 0},
        {"members": "x"},
        {"lambda_width": True},
        {"lambda_width": np.array([0.1, 0.2])},
        {"lr": "fast"},
        {"dropout": None},
        {"weight_decay": float("inf")},
        {"trials": 0},
        {"seed": -1},
        {"hidden": 0},
        {"layers": 1.5},
        {"dropout": 1.0},
        {"epochs": 0},
        {"lr": -1.0},
        {"patience": 0},
    ],
)
def test_settings_outside_their_range_are_refused(settings: dict[str, object]) -> None:
    name = next(iter(settings))
    with pytest.raises(SettingError, match=f"{name}: expected"):
        QpiGNN(**settings).fit(load_dataset("basic", nodes=50))  # type: ignore[arg-type]


WORDS = ["half_width", "violation", "width", "scaling", "dtype", "side", "tails", "activation"]


@pytest.mark.parametrize("name", [*WORDS, "target_transform"])
def test_unknown_choice_of_a_setting_is_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown {name} 'other'"):
        QpiGNN(**{name: "other"}).fit(load_dataset("basic", nodes=50))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"violation": "product", "lambda_width": 0.1},
        {"width": "l2", "lambda_width": 0.1},
        {"tails": "equal", "lambda_width": 0.1},
        {"layers": 1},
        {"layers": 3},
        {"members": 1},
        {"members": 5, "activation": "relu", "half_width": "sigmoid"},
        {"members": 5, "lambda_width": 0.1},
    ],
)
def test_other_forms_of_the_loss_reduce_it(options: dict[str, object]) -> None:
    data = load_dataset("basic", nodes=100)
    method = QpiGNN(epochs=60, **options).fit(data)  # type: ignore[arg-type]
    assert method.history_.loss[-1] < method.history_.loss[0]


def test_fit_chameleon_with_wide_sparse_features(real: Callable[..., Data]) -> None:
    data = split_nodes(real("chameleon"))
    method = QpiGNN(epochs=20).fit(make_view(data).fit)
    each = 2 * 3132 * 32 + 32 + 2 * 32 * 32 + 32 + 7 * 32 + 7
    assert method.parameters_ == 10 * each
    assert len(method.predict_interval(data)) == 2277


def test_check_settings_lambda_beyond_float32_is_refused() -> None:
    with pytest.raises(SettingError, match="largest float32"):
        QpiGNN(lambda_width=1e40).check_settings()
    QpiGNN(lambda_width=1e40, dtype="float64").check_settings()
