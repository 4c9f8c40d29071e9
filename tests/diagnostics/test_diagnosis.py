from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from qpignn import Conformal, QpiGNN, diagnose, from_frames, make_method, split_nodes
from qpignn.diagnostics.diagnosis import Diagnosis
from qpignn.errors import ArrayError, SettingError
from qpignn.intervals import Intervals
from qpignn.io.files import json_safe


def blocks(groups: int = 4, size: int = 150, seed: int = 0) -> tuple[Data, np.ndarray]:
    """Densely joined groups; targets are noise, in group 0 of four times the size."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(groups), size)
    inside = rng.integers(0, size, (2, 4 * groups * size)) + size * np.tile(
        np.arange(groups), 4 * size
    )
    across = rng.integers(0, groups * size, (2, groups * size // 10))
    edges = np.concatenate([inside, across], axis=1)
    edges = edges[:, edges[0] != edges[1]]
    data = Data(
        x=torch.from_numpy(rng.normal(size=(len(label), 2))).float(),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1)),
        y=torch.from_numpy(rng.normal(size=len(label)) * np.where(label == 0, 4, 1)),
        feature_names=["a", "b"],
    )
    return split_nodes(data, test=0.5, seed=seed), label


def same_width(data: Data, half: float, level: float = 0.9) -> Intervals:
    value = np.zeros(data.x.shape[0])
    return Intervals(value, value - half, value + half, level)


def test_a_group_with_four_times_the_noise_is_named() -> None:
    data, label = blocks()
    found = diagnose(data, same_width(data, 1.645))  # right for the other three groups
    (community,) = [division for division in found.divisions if division.name == "community"]
    assert len(community.groups) == 4
    (short,) = [group for group in community.groups if group.below]
    judged = data.test_mask.numpy() & (label == 0)
    inside = np.abs(data.y.numpy()[judged]) <= 1.645
    assert short.coverage.covered == inside.sum()
    assert short.coverage.share == inside.mean()
    assert any(
        f"coverage on {short.who} is {short.coverage}" in finding.text
        and "below the wanted 90 %" in finding.text
        for finding in found.warnings
    )
    assert short.who in str(found)


def test_right_intervals_are_seldom_accused() -> None:
    accused = 0
    for seed in range(20):
        data, label = blocks(seed=seed)
        half = 1.645 * np.where(label == 0, 4, 1)
        found = diagnose(data, Intervals(0 * half, -half, half, 0.9))
        accused += bool(found.warnings)
    assert accused <= 4  # two tests at 5 % each


def test_overall_coverage_and_sides_by_hand() -> None:
    data, _ = blocks()
    data.y = torch.arange(600, dtype=torch.float64)
    intervals = Intervals(data.y.numpy(), data.y.numpy() - 1, data.y.numpy() + 1, 0.9)
    judged = np.flatnonzero(data.test_mask.numpy())
    lower = intervals.lower.copy()
    upper = intervals.upper.copy()
    upper[judged[:20]] = lower[judged[:20]] = -5.0  # 20 targets above their interval
    found = diagnose(data, Intervals(data.y.numpy(), lower, upper, 0.9))
    assert found.coverage is not None
    assert (found.coverage.nodes, found.coverage.covered) == (300, 280)
    assert (found.below, found.above) == (0, 20)
    assert any("mostly higher" in finding.text for finding in found.findings)


def test_the_calibration_curve_has_every_level_once() -> None:
    data, _ = blocks()
    wide = {level: same_width(data, half, level) for level, half in ((0.5, 1), (0.8, 2), (0.9, 3))}
    found = diagnose(data, wide[0.8], [wide[0.9], wide[0.5], wide[0.8]])
    assert [one.level for one in found.levels] == [0.5, 0.8, 0.9]
    y = data.y.numpy()[data.test_mask.numpy()]
    assert [one.share for one in found.levels] == [(np.abs(y) <= half).mean() for half in (1, 2, 3)]


def test_widths_that_tell_nothing_are_said_to() -> None:
    data, label = blocks()
    flat = diagnose(data, same_width(data, 3.0))
    assert any("equally wide" in finding.text for finding in flat.findings)
    telling = 1.645 * np.where(label == 0, 4.0, 1.0)
    good = diagnose(data, Intervals(0 * telling, -telling, telling, 0.9))
    assert any("go with larger errors" in finding.text for finding in good.findings)
    first, last = good.errors[0], good.errors[-1]
    assert first.width < last.width
    assert first.error < last.error
    wrong = diagnose(data, Intervals(0 * telling, telling - 8, 8 - telling, 0.9))
    assert any("hardly tell" in finding.text for finding in wrong.findings)


def test_diagnose_prefit_widths_equal_up_to_rounding_say_nothing_of_errors() -> None:
    data, _ = blocks()

    def net(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return 1000 * x[:, 0]  # large predictions have large errors, and are rounded more

    model = Conformal.prefit(net, data, ~data.test_mask, score="absolute")
    assert len(np.unique(model.predict_interval(data).width)) > 1
    found = model.diagnose(data)
    (width,) = [one for one in found.findings if one.kind == "width"]
    assert (width.severity, "equally wide" in width.text) == ("note", True)
    assert "width" not in [division.name for division in found.divisions]


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_diagnose_a_few_held_out_nodes_are_nothing_good(nodes: int) -> None:
    data, _ = blocks()
    data.test_mask[data.test_mask.nonzero()[nodes:]] = False
    others = [same_width(data, 1.0, 0.5)]
    widths = np.random.default_rng(0).uniform(20, 30, 600)
    for intervals in (
        same_width(data, 20.0),
        Intervals(0 * widths, -widths, widths, 0.9),
        same_width(data, 1e-9),
    ):
        found = diagnose(data, intervals, others)
        assert {one.severity for one in found.findings} == {"note"}, str(found)


def test_diagnose_few_unlabelled_nodes_cannot_be_compared() -> None:
    data, _ = blocks()
    data.y[(~data.test_mask).nonzero()[:3]] = torch.nan
    (found,) = [
        one for one in diagnose(data, same_width(data, 3.0)).findings if one.kind == "shift"
    ]
    assert found.severity == "note"
    assert "the 3 unlabelled look like the 597 labelled ones" in found.text


def test_diagnose_one_bound_is_called_a_bound() -> None:
    data, _ = blocks()
    infinite = np.full(600, np.inf)
    for intervals, bound in (
        (Intervals(np.zeros(600), -infinite, np.full(600, 2.0), 0.9), "upper bound"),
        (Intervals(np.zeros(600), np.full(600, -2.0), infinite, 0.9), "lower bound"),
    ):
        found = diagnose(data, intervals)
        assert bound in str(found)
        assert "interval" not in str(found)


def test_a_column_of_the_users() -> None:
    data, label = blocks()
    region = np.array(["north", "south", "east", "west"])[label]
    found = diagnose(data, same_width(data, 1.645), by={"region": region})
    (division,) = [division for division in found.divisions if division.name == "region"]
    assert [group.label for group in division.groups if group.below] == ["north"]
    assert any("nodes with region = north" in finding.text for finding in found.warnings)
    by_name = diagnose(data, same_width(data, 1.645), by=["a"])
    assert len(by_name.divisions[-1].groups) == 5
    with pytest.raises(SettingError, match=r"'missing'.*it has 'a', 'b'"):
        diagnose(data, same_width(data, 1.0), by=["missing"])
    with pytest.raises(SettingError, match="list of columns"):
        diagnose(data, same_width(data, 1.0), by="a")


def test_categories_of_a_table_are_looked_at_unasked() -> None:
    rng = np.random.default_rng(0)
    kinds, y = rng.choice(["road", "rail"], 200), rng.normal(size=200)
    frame = pd.DataFrame({"id": range(200), "kind": kinds, "y": y})
    data = split_nodes(from_frames(frame, None, target="y"))
    found = diagnose(data, same_width(data, 2.0))
    (division,) = [division for division in found.divisions if division.name == "kind"]
    assert [group.label for group in division.groups] == ["rail", "road"]


def test_diagnose_divides_csr_features_as_it_divides_dense_ones() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": np.arange(200),
            "kind": rng.choice(["road", "rail"], 200),
            "size": rng.normal(size=200),
            "y": rng.normal(size=200),
        }
    )
    data = split_nodes(from_frames(frame, None, target="y"))
    sparse = Data(**data.to_dict())
    sparse.x = data.x.to_sparse_csr()
    a, b = (diagnose(one, same_width(data, 2.0), by=["size"]) for one in (data, sparse))
    assert [division.name for division in b.divisions[-2:]] == ["kind", "size"]
    assert a.divisions == b.divisions


def test_no_held_out_nodes_is_said_not_raised() -> None:
    data, _ = blocks()
    data.test_mask = None
    found = diagnose(data, same_width(data, 1.0))
    assert found.coverage is None
    assert found.divisions == []
    assert "nothing is known of the coverage" in str(found)


def test_too_few_nodes_to_calibrate_with() -> None:
    data, _ = blocks()
    found = diagnose(data, same_width(data, 5.0), calibration_nodes=5)
    assert any("too few to calibrate" in finding.text for finding in found.warnings)


def test_intervals_of_other_nodes_are_refused() -> None:
    data, _ = blocks()
    with pytest.raises(ArrayError, match="all 600 nodes"):
        diagnose(data, same_width(data, 1.0).select(slice(10)))


def test_it_can_be_written_as_json_and_shown_in_a_notebook() -> None:
    data, _ = blocks()
    infinite = np.full(600, np.inf)
    found = diagnose(data, Intervals(np.zeros(600), -infinite, infinite, 0.9))
    again = json.loads(json.dumps(json_safe(found.to_dict()), allow_nan=False))
    assert again["coverage"]["share"] == 1.0
    assert found._repr_html_().count("<li>") == len(found.findings)


@pytest.mark.parametrize("name", ["qpignn", "evidential"])
def test_a_method_judges_itself(name: str) -> None:
    data, _ = blocks(size=40)
    levels = [0.5, 0.9]
    model = make_method(name, confidence_level=levels, epochs=5).fit(data)
    found = model.diagnose(data)
    assert isinstance(found, Diagnosis)
    shown = [one.level for one in found.levels]
    assert shown == (
        sorted({*levels, *(i / 10 for i in range(1, 10))}) if model.any_level else levels
    )
    assert found.coverage is not None
    hits = model.predict_interval(data, data.test_mask).covers(data.y[data.test_mask])
    assert found.coverage.share == hits.mean()


def test_free_levels_leave_the_wanted_intervals_alone() -> None:
    data, _ = blocks(size=40)
    one = QpiGNN(0.9, epochs=10)
    several = QpiGNN([*one.free_levels(), 0.9], epochs=10).fit(data)
    alone, nested = one.fit(data).predict_interval(data), several.predict_interval(data)
    np.testing.assert_array_equal(alone.prediction, nested.prediction)
    assert (nested.lower <= alone.lower).all()
    assert (nested.upper >= alone.upper).all()
    assert (nested.width == alone.width).mean() > 0.9


@pytest.mark.parametrize("name", ["{k}", "{}", "%s", "a=b", "speed {km/h}"])
def test_names_with_braces_are_only_names(name: str) -> None:
    data, label = blocks()
    words = np.array([f"{{{i}}}" for i in label])
    found = diagnose(data, same_width(data, 1.645), by={name: words})
    assert f"coverage on nodes with {name} = {{0}} is" in str(found)


def test_the_target_is_no_group() -> None:
    data, _ = blocks()
    with pytest.raises(SettingError, match="got the target itself as 'noise'"):
        diagnose(data, same_width(data, 1.645), by={"noise": data.y.numpy()})


def test_columns_of_another_length_are_named() -> None:
    data, _ = blocks()
    with pytest.raises(ArrayError, match=r"for 'r' \(600\), got 10"):
        diagnose(data, same_width(data, 1.0), by={"r": ["a"] * 10})
    found = diagnose(data, same_width(data, 1.0), by={"r": ["a", np.nan] * 300})
    assert [group.label for group in found.divisions[-1].groups] == ["a", "blank"]


def test_infinite_intervals_are_no_comfort() -> None:
    data, _ = blocks()
    infinite = np.full(600, np.inf)
    found = diagnose(data, Intervals(np.zeros(600), -infinite, infinite, 0.9))
    assert found.unbounded == 600
    assert any("600 of 600 intervals have no end" in one.text for one in found.warnings)
    assert found.errors == []


def test_one_bound_is_judged_as_one() -> None:
    data, _ = blocks()
    infinite = np.full(600, np.inf)
    found = diagnose(data, Intervals(np.zeros(600), -infinite, np.full(600, 2.0), 0.9))
    assert (found.side, found.unbounded, found.below) == ("upper", 0, 0)
    assert found.above > 0
    assert not any(one.kind in ("misses", "unbounded", "width") for one in found.findings)
    groups = [group for division in found.divisions for group in division.groups]
    assert {(group.width, group.bound) for group in groups} == {(None, 2.0)}


def test_diagnose_bound_cut_at_a_limit_has_no_widths() -> None:
    """An upper bound of a target that is never below −9: the lower end is finite, but no bound."""
    data, _ = blocks()
    value = np.linspace(0, 1, 600)
    cut = Intervals(value, np.full(600, -9.0), value + 30, 0.9, side="upper")
    found = diagnose(data, cut)
    assert (found.side, found.errors) == ("upper", [])
    assert "width" not in [division.name for division in found.divisions]
    assert "width" not in str(found)
    assert "the bounds are higher than needed" in str(found)


def test_diagnose_one_sided_counts_nodes_without_their_bound() -> None:
    data, _ = blocks()
    upper = np.where(np.arange(600) < 7, np.inf, 2.0)
    found = diagnose(data, Intervals(np.zeros(600), np.full(600, -np.inf), upper, 0.9))
    assert found.unbounded == 7
    assert any("7 of 600 nodes have no upper bound" in one.text for one in found.warnings)


def test_too_few_to_tell_is_not_good() -> None:
    data, _ = blocks()
    data.test_mask[data.test_mask.nonzero()[12:]] = False
    found = diagnose(data, same_width(data, 6.0))
    assert not [one for one in found.findings if one.kind == "coverage" and one.severity == "good"]
    assert "too few nodes to tell" in str(found)


def test_large_targets_have_groups_that_can_be_told_apart() -> None:
    data, _ = blocks()
    value = 1.7e9 + np.arange(600.0)
    found = diagnose(data, Intervals(value, value - 1, value + 1, 0.9))
    (division,) = [one for one in found.divisions if one.name == "prediction"]
    assert len({group.label for group in division.groups}) == 5
    assert division.groups[0].label.startswith("1,700,000,0")


def test_only_what_calibrates_is_said_to() -> None:
    data, _ = blocks(size=40)
    for name, wanted in (("conformal:sqr", 20), ("mc_dropout", None), ("qpignn", 80)):
        model = make_method(name, epochs=2).fit(data)
        assert model.fitted_.calibrated_on == wanted, name


def test_a_name_of_its_own_for_every_node_is_no_group() -> None:
    data, _ = blocks()
    with pytest.raises(SettingError, match="'id' with 600 different ones on 600 nodes"):
        diagnose(data, same_width(data, 1.0), by={"id": [f"n{i}" for i in range(600)]})
