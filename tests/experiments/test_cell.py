from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from qpignn.data.catalog import load_dataset
from qpignn.data.split import split_nodes
from qpignn.errors import SettingError, UnknownNameError
from qpignn.experiments import cell as cells
from qpignn.experiments.cell import Cell, grid
from qpignn.training.weights import FlatWeights

FAST = {"epochs": 3}
COLUMNS = [
    *("dataset", "method", "seed", "protocol", "view", "split", "confidence_level"),
    *(
        "source",
        "damage",
        "options",
        "label_fraction",
        "lambda_width",
        "lambda_found",
        "n_train",
        "n_test",
    ),
    *("picp", "mpiw", "mpiw_raw", "nmpiw", "mpe", "sharpness", "winkler", "winkler_one", "cwc"),
    *("mae", "rmse", "mean_bound", "miss_rate", "pinball"),
    *("mpiw_limit", "fit_seconds", "peak_mb", "parameters", "inputs", "versions"),
]


def test_cell_run_row_has_the_documented_columns() -> None:
    row = Cell("basic", "qpignn", 0, settings=FAST).run()
    assert list(row) == COLUMNS
    assert (row["n_train"], row["n_test"]) == (800, 200)
    assert row["lambda_width"] == "auto"
    # ten nets: two layers of (neighbour, root, bias), a value and two half-widths for three levels
    each = 2 * 5 * 32 + 32 + 2 * 32 * 32 + 32 + 7 * 32 + 7
    assert row["parameters"] == 10 * each


def test_widths_are_in_units_of_the_given_targets_range() -> None:
    """On outlier the extreme targets fall on either side of the split, so the ranges differ."""
    for seed in range(20):
        data = split_nodes(load_dataset("outlier"), test=0.2, seed=seed)
        given, test = data.y[data.train_mask], data.y[data.test_mask]
        if float(given.max()) < float(test.max()):
            break
    row = Cell("outlier", "qpignn", seed, settings=FAST).run()
    unit = row["mpiw_raw"] / row["mpiw"]
    assert unit == pytest.approx(float(given.max() - given.min()))
    assert unit < 0.99 * float(data.y.max() - data.y.min())


def test_cell_one_sided_has_figures_of_bounds_and_none_of_widths() -> None:
    row = Cell("basic", "qpignn", 0, settings={**FAST, "side": "upper"}).run()
    assert row["miss_rate"] == pytest.approx(1 - row["picp"])
    assert np.isfinite([row["mean_bound"], row["pinball"], row["mae"], row["rmse"]]).all()
    assert (row["mpiw"], row["winkler"]) == (None, None)
    json.dumps(row, allow_nan=False)


def test_cell_run_interrupted_raises_keyboard_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, steps = FlatWeights.step, 0

    def third(weights: FlatWeights) -> None:
        nonlocal steps
        steps += 1
        if steps == 3:
            raise KeyboardInterrupt
        plain(weights)

    monkeypatch.setattr(FlatWeights, "step", third)
    with pytest.raises(KeyboardInterrupt):
        Cell("basic", "qpignn", 0, settings=FAST).run()


@pytest.mark.parametrize("view", ["transductive", "inductive", "isolated"])
@pytest.mark.parametrize("split", ["random", "degree", "community"])
def test_cell_runs_every_view_and_split(view: str, split: str) -> None:
    row = Cell("basic", "qpignn", 1, view=view, split=split, settings=FAST).run()
    assert (row["view"], row["split"], row["n_test"]) == (view, split, 200)


def test_equal_cells_give_equal_rows() -> None:
    first, second = (Cell("basic", "qpignn", 2, settings=FAST).run() for _ in range(2))
    for row in (first, second):
        del row["fit_seconds"], row["peak_mb"]
    assert first == second


def test_cell_with_a_source_is_fitted_on_it_and_evaluated_on_its_data_set() -> None:
    row = Cell("er", "qpignn", 0, source="tree", settings=FAST).run()
    tree = split_nodes(load_dataset("tree"), test=0.2, seed=0)
    assert row["n_train"] == int(tree.train_mask.sum())
    assert row["n_test"] == 200
    targets = tree.y[tree.train_mask]
    assert row["mpiw_raw"] / row["mpiw"] == pytest.approx(float(targets.max() - targets.min()))
    assert row["mpiw_limit"] is None  # the noise law is of other nodes


@pytest.mark.parametrize("protocol", ["corrected", "published"])
def test_cell_options_damage_and_keep(protocol: str) -> None:
    plain = Cell("basic", "sqr", 0, protocol, options={"nodes": 100}, settings=FAST)
    row = plain.run()
    assert (row["n_train"], row["n_test"]) == (80, 20)
    damaged = replace(plain, damage={"target_noise": 2.0}, keep=("history", "intervals")).run()
    assert damaged["mpiw_raw"] > 1.5 * row["mpiw_raw"]  # it learns from noisier targets
    assert damaged["history"]["epoch"] == [0, 1, 2]
    assert len(damaged["history"]["loss"]) == 3
    kept = damaged["intervals"]
    assert kept["prediction"] == sorted(kept["prediction"])
    inside = [a <= y <= b for y, a, b in zip(kept["y"], kept["lower"], kept["upper"], strict=True)]
    assert sum(inside) / 20 == pytest.approx(damaged["picp"])
    published = protocol == "published"
    # the published noise is on what is trained on; otherwise the judged targets have it too
    others = replace(plain, keep=("intervals",)).run()["intervals"]
    same = sorted(kept["y"]) == sorted(others["y"])
    assert same == published


def test_cell_key_changes_with_every_field(monkeypatch: pytest.MonkeyPatch) -> None:
    base = Cell("basic", "qpignn", 0)
    others = [
        Cell("edge", "qpignn", 0),
        Cell("basic", "qpignn", 1),
        Cell("basic", "qpignn", 0, view="isolated"),
        Cell("basic", "qpignn", 0, confidence_level=0.8),
        Cell("basic", "qpignn", 0, settings=FAST),
        Cell("basic", "qpignn", 0, source="er"),
        Cell("basic", "qpignn", 0, options={"nodes": 50}),
        Cell("basic", "qpignn", 0, damage={"edge_dropout": 0.1}),
    ]
    assert len({base.key(), *(other.key() for other in others)}) == 9
    assert base.key() == Cell("basic", "qpignn", 0).key()
    before = base.key()
    monkeypatch.setattr(cells, "code_digest", lambda: "other code")
    assert base.key() != before


def test_grid_is_every_combination_in_order() -> None:
    made = grid(["basic", "er"], ["qpignn"], 2, confidence_levels=[0.8, 0.9])
    assert len(made) == 8
    assert [(c.dataset, c.confidence_level, c.seed) for c in made[:3]] == [
        ("basic", 0.8, 0),
        ("basic", 0.8, 1),
        ("basic", 0.9, 0),
    ]


def test_published_cells_have_the_published_view() -> None:
    (made,) = grid(["basic"], ["qpignn"], 1, protocol="published")
    assert (made.view, made.split) == ("isolated", "random")
    with pytest.raises(SettingError, match="expected isolated under the protocol published"):
        grid(["basic"], ["qpignn"], 1, protocol="published", view="inductive")


def test_names_given_twice_count_once() -> None:
    assert len(grid(["basic", "basic"], ["qpignn"], 2, confidence_levels=[0.9, 0.9])) == 2


def test_grid_with_unknown_names_or_invalid_settings_raises() -> None:
    with pytest.raises(UnknownNameError, match="unknown data set 'basics'"):
        grid(["basics"], ["qpignn"], 1)
    with pytest.raises(SettingError, match="epochs: expected"):
        grid(["basic"], ["qpignn"], 1, settings={"epochs": 0})
    with pytest.raises(UnknownNameError, match="unknown method 'qpi'"):
        grid(["basic"], ["qpi"], 1)
    with pytest.raises(UnknownNameError, match="unknown protocol 'public'"):
        grid(["basic"], ["qpignn"], 1, protocol="public")
    with pytest.raises(SettingError, match="has no setting 'colour'"):
        grid(["basic"], ["qpignn"], 1, settings={"colour": 1})
    with pytest.raises(SettingError, match="seeds: expected a whole number from 1 up, got 0"):
        grid(["basic"], ["qpignn"], 0)
