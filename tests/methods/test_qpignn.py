from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_geometric.data import Data

from qpignn import QpiGNN, load_dataset, make_view, metrics, split_nodes
from qpignn.errors import SettingError, UnknownNameError


def judged(method: QpiGNN, name: str, seed: int = 0) -> tuple[float, float]:
    view = make_view(split_nodes(load_dataset(name), seed=seed))
    intervals = method.fit(view.fit).predict_interval(view.predict, view.test_mask)
    return (
        metrics.picp(view.y_test, intervals.lower, intervals.upper),
        metrics.mpiw(view.y_test, intervals.lower, intervals.upper),
    )


def test_auto_is_half_alpha() -> None:
    data = load_dataset("basic", nodes=50)
    assert QpiGNN(0.8, epochs=1).fit(data).lambda_width_ == pytest.approx(0.1)
    assert QpiGNN(lambda_width=0.3, epochs=1).fit(data).lambda_width_ == 0.3


def test_coverage_on_the_training_nodes_settles_at_the_wanted_one() -> None:
    data = load_dataset("tree")
    for level in (0.6, 0.9):
        method = QpiGNN(level, dropout=0.0, patience=None).fit(data)
        late = method.history_.coverage[-100:]
        assert sum(late) / 100 == pytest.approx(level, abs=0.02)


def test_the_printed_loss_collapses_at_one_half() -> None:
    narrow, wide = (judged(QpiGNN(lambda_width=lam), "er") for lam in (0.5, 0.05))
    assert narrow[0] < 0.5
    assert wide[0] > 0.8


def test_intervals_are_much_narrower_than_the_targets_spread() -> None:
    coverage, width = judged(QpiGNN(), "basic")
    y = load_dataset("basic").y
    assert coverage > 0.8
    assert width < 0.3 * float(y.max() - y.min())


def test_units_of_the_target_do_not_matter() -> None:
    data = load_dataset("basic", nodes=200)
    moved = Data(x=data.x, edge_index=data.edge_index, y=data.y.double() * 1e6 + 1e9)
    a, b = (QpiGNN(epochs=40, dtype="float64").fit(d).predict_interval(d) for d in (data, moved))
    assert (b.lower - 1e9) / 1e6 == pytest.approx(a.lower, abs=1e-4)


def test_node_weights_draw_the_fit_to_heavy_nodes() -> None:
    x = torch.ones(40, 1)
    y = torch.cat([torch.zeros(20), torch.ones(20)])
    edges = torch.empty((2, 0), dtype=torch.long)
    weight = torch.cat([torch.full((20,), 100.0), torch.ones(20)])
    data = Data(x=x, y=y, edge_index=edges, node_weight=weight)
    method = QpiGNN(0.5, epochs=300, patience=None, dropout=0.0).fit(data)
    assert method.predict(data).mean() < 0.2


def test_validation_nodes_of_the_graph_are_the_ones_watched() -> None:
    data = split_nodes(load_dataset("basic", nodes=200), validation=0.2)
    mixed = Data(**data.to_dict())  # the same targets on other validation nodes
    mixed.y = data.y.clone()
    mixed.y[data.val_mask] = data.y[data.val_mask].flip(0)
    a, b = (QpiGNN(epochs=15).fit(graph).history_ for graph in (data, mixed))
    assert a.loss == b.loss  # they carry no loss
    assert min(a.held_out) < min(b.held_out)  # but they are what the score is about


def test_the_published_variant() -> None:
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
        {"seed": -1},
        {"hidden": 0},
        {"layers": 1.5},
        {"dropout": 1.0},
        {"epochs": 0},
        {"lr": -1.0},
        {"patience": 0},
    ],
)
def test_settings_outside_their_range(settings: dict[str, object]) -> None:
    (name,) = settings
    with pytest.raises(SettingError, match=f"{name}: expected"):
        QpiGNN(**settings).fit(load_dataset("basic", nodes=50))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["half_width", "violation", "width", "scaling", "dtype"])
def test_words_that_are_no_setting(name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown {name} 'other'"):
        QpiGNN(**{name: "other"}).fit(load_dataset("basic", nodes=50))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options", [{"violation": "product"}, {"width": "l2"}, {"layers": 1}, {"layers": 3}]
)
def test_other_forms_train_too(options: dict[str, object]) -> None:
    data = load_dataset("basic", nodes=100)
    method = QpiGNN(epochs=60, **options).fit(data)  # type: ignore[arg-type]
    assert method.history_.loss[-1] < method.history_.loss[0]


def test_a_real_graph_with_wide_sparse_features(real: Callable[..., Data]) -> None:
    data = split_nodes(real("chameleon"))
    method = QpiGNN(epochs=20).fit(make_view(data).fit)
    assert method.parameters_ == 2 * 3132 * 64 + 64 + 2 * 64 * 64 + 64 + 2 * 64 + 2
    assert len(method.predict_interval(data)) == 2277
