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


def test_diagnose_noisy_group_is_a_warning() -> None:
    data, label = blocks()
    diagnosis = diagnose(data, same_width(data, 1.645))  # right for the other three groups
    (community,) = [division for division in diagnosis.divisions if division.name == "community"]
    assert len(community.groups) == 4
    (short,) = [group for group in community.groups if group.below]
    held_out = data.test_mask.numpy() & (label == 0)
    inside = np.abs(data.y.numpy()[held_out]) <= 1.645
    assert short.coverage.covered == inside.sum()
    assert short.coverage.share == inside.mean()
    assert any(
        f"coverage for {short.description} is {short.coverage}" in finding.text
        and "below the nominal 90 %" in finding.text
        for finding in diagnosis.warnings
    )
    assert short.description in str(diagnosis)


def test_diagnose_correct_intervals_rarely_warns() -> None:
    with_warning = 0
    for seed in range(20):
        data, label = blocks(seed=seed)
        half = 1.645 * np.where(label == 0, 4, 1)
        diagnosis = diagnose(data, Intervals(0 * half, -half, half, 0.9))
        with_warning += bool(diagnosis.warnings)
    assert with_warning <= 4  # two tests at 5 % each


def test_diagnose_coverage_and_misses_hand_computed() -> None:
    data, _ = blocks()
    data.y = torch.arange(600, dtype=torch.float64)
    intervals = Intervals(data.y.numpy(), data.y.numpy() - 1, data.y.numpy() + 1, 0.9)
    held_out = np.flatnonzero(data.test_mask.numpy())
    lower = intervals.lower.copy()
    upper = intervals.upper.copy()
    upper[held_out[:20]] = lower[held_out[:20]] = -5.0  # 20 targets above their interval
    diagnosis = diagnose(data, Intervals(data.y.numpy(), lower, upper, 0.9))
    assert diagnosis.coverage is not None
    assert (diagnosis.coverage.nodes, diagnosis.coverage.covered) == (300, 280)
    assert (diagnosis.below, diagnosis.above) == (0, 20)
    assert any("mostly too high" in finding.text for finding in diagnosis.findings)


def test_diagnose_levels_has_every_level_once() -> None:
    data, _ = blocks()
    wide = {level: same_width(data, half, level) for level, half in ((0.5, 1), (0.8, 2), (0.9, 3))}
    diagnosis = diagnose(data, wide[0.8], [wide[0.9], wide[0.5], wide[0.8]])
    assert [one.level for one in diagnosis.levels] == [0.5, 0.8, 0.9]
    y = data.y.numpy()[data.test_mask.numpy()]
    assert [one.share for one in diagnosis.levels] == [
        (np.abs(y) <= half).mean() for half in (1, 2, 3)
    ]


def test_diagnose_uninformative_widths_are_a_note() -> None:
    data, label = blocks()
    flat = diagnose(data, same_width(data, 3.0))
    assert any("equally wide" in finding.text for finding in flat.findings)
    fitting = 1.645 * np.where(label == 0, 4.0, 1.0)
    good = diagnose(data, Intervals(0 * fitting, -fitting, fitting, 0.9))
    assert any("go with larger errors" in finding.text for finding in good.findings)
    first, last = good.errors[0], good.errors[-1]
    assert first.width < last.width
    assert first.error < last.error
    wrong = diagnose(data, Intervals(0 * fitting, fitting - 8, 8 - fitting, 0.9))
    assert any("say little about" in finding.text for finding in wrong.findings)


def test_diagnose_prefit_widths_equal_up_to_rounding_are_called_equal() -> None:
    data, _ = blocks()

    def net(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return 1000 * x[:, 0]  # large predictions have large errors, and are rounded more

    model = Conformal.prefit(net, data, ~data.test_mask, score="absolute")
    assert len(np.unique(model.predict_interval(data).width)) > 1
    diagnosis = model.diagnose(data)
    (width,) = [one for one in diagnosis.findings if one.kind == "width"]
    assert (width.severity, "equally wide" in width.text) == ("note", True)
    assert "width" not in [division.name for division in diagnosis.divisions]


def known_of(data: Data) -> np.ndarray:
    """Count the neighbours of every node that are neither held out nor unlabelled."""
    counts = np.zeros(data.x.shape[0])
    given = ~data.test_mask.numpy()
    for a, b in {(min(pair), max(pair)) for pair in data.edge_index.T.tolist()}:
        counts[a] += given[b]
        counts[b] += given[a]
    return counts


def test_diagnose_groups_by_known_neighbours_and_flags_low_coverage() -> None:
    data, _ = blocks()
    count = known_of(data)
    data.y = torch.from_numpy(np.random.default_rng(1).normal(size=600) * np.where(count > 4, 1, 4))
    value, half = np.zeros(600), np.full(600, 1.645)
    held_out = data.test_mask.numpy()
    without = np.where(held_out, 4 * half, 1e9)  # widths of given nodes do not count
    more = {"known_neighbours": count, "width_without": without}
    diagnosis = diagnose(data, Intervals(value, -half, half, 0.9, **more))
    (division,) = [one for one in diagnosis.divisions if one.name == "known neighbours"]
    groups = {group.label.split(" ")[0]: group for group in division.groups}
    assert not groups["5"].below
    assert groups["3"].below
    chosen = held_out & (count >= 3) & (count <= 4)
    assert groups["3"].coverage.nodes == chosen.sum()
    assert groups["3"].coverage.covered == (np.abs(data.y.numpy()[chosen]) <= 1.645).sum()
    assert groups["3"].width == pytest.approx(3.29)
    (warning,) = [one for one in diagnosis.warnings if "3 to 4" in one.text]
    assert warning.kind == "known neighbours"
    assert "coverage for nodes with 3 to 4 neighbours whose target is known is" in warning.text
    (finding,) = [one for one in diagnosis.findings if one.kind == "neighbours"]
    reached = int((count[held_out] > 0).sum())
    assert finding.severity == "note"
    assert finding.text == (
        "known targets of neighbours make intervals 50 % narrower on average: mean width 3.29 "
        f"instead of 6.58 (300 nodes without a given target, {reached} of them with a neighbour "
        "that has one)"
    )
    assert json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))


def test_diagnose_without_known_neighbours_does_not_mention_them() -> None:
    data, _ = blocks()
    diagnosis = diagnose(data, same_width(data, 1.645))
    assert "known neighbours" not in [division.name for division in diagnosis.divisions]
    assert "neighbours" not in [finding.kind for finding in diagnosis.findings]


def test_diagnose_one_sided_with_known_neighbours_has_groups_and_no_widths() -> None:
    data, _ = blocks()
    count, infinite = known_of(data), np.full(600, np.inf)
    more = {"known_neighbours": count, "width_without": infinite}
    diagnosis = diagnose(data, Intervals(np.zeros(600), -infinite, np.full(600, 2.0), 0.9, **more))
    (division,) = [one for one in diagnosis.divisions if one.name == "known neighbours"]
    assert {(group.width, group.bound) for group in division.groups} == {(None, 2.0)}
    assert "neighbours" not in [finding.kind for finding in diagnosis.findings]


def test_diagnose_without_held_out_nodes_still_compares_widths() -> None:
    data, _ = blocks()
    data.y[data.test_mask] = torch.nan
    data.test_mask = None
    more = {"known_neighbours": np.ones(600), "width_without": np.full(600, 4.0)}
    diagnosis = diagnose(data, Intervals(np.zeros(600), -np.ones(600), np.ones(600), 0.9, **more))
    assert "50 % narrower on average: mean width 2 instead of 4 (300 nodes" in str(diagnosis)


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_diagnose_few_held_out_nodes_gives_notes_only(nodes: int) -> None:
    data, _ = blocks()
    data.test_mask[data.test_mask.nonzero()[nodes:]] = False
    others = [same_width(data, 1.0, 0.5)]
    widths = np.random.default_rng(0).uniform(20, 30, 600)
    for intervals in (
        same_width(data, 20.0),
        Intervals(0 * widths, -widths, widths, 0.9),
        same_width(data, 1e-9),
    ):
        diagnosis = diagnose(data, intervals, others)
        assert {one.severity for one in diagnosis.findings} == {"note"}, str(diagnosis)


def test_diagnose_few_unlabelled_nodes_cannot_be_compared() -> None:
    data, _ = blocks()
    data.y[(~data.test_mask).nonzero()[:3]] = torch.nan
    findings = diagnose(data, same_width(data, 3.0)).findings
    (shift,) = [finding for finding in findings if finding.kind == "shift"]
    assert shift.severity == "note"
    assert "the 3 unlabelled nodes are like the 597 labelled ones" in shift.text


def test_diagnose_one_sided_mentions_bounds_only() -> None:
    data, _ = blocks()
    infinite = np.full(600, np.inf)
    for intervals, bound in (
        (Intervals(np.zeros(600), -infinite, np.full(600, 2.0), 0.9), "upper bound"),
        (Intervals(np.zeros(600), np.full(600, -2.0), infinite, 0.9), "lower bound"),
    ):
        diagnosis = diagnose(data, intervals)
        assert bound in str(diagnosis)
        assert "interval" not in str(diagnosis)


def test_diagnose_by_mapping_or_names_groups_by_column() -> None:
    data, label = blocks()
    region = np.array(["north", "south", "east", "west"])[label]
    diagnosis = diagnose(data, same_width(data, 1.645), by={"region": region})
    (division,) = [division for division in diagnosis.divisions if division.name == "region"]
    assert [group.label for group in division.groups if group.below] == ["north"]
    assert any("nodes with region = north" in finding.text for finding in diagnosis.warnings)
    by_name = diagnose(data, same_width(data, 1.645), by=["a"])
    assert len(by_name.divisions[-1].groups) == 5
    with pytest.raises(SettingError, match=r"'missing'.*it has 'a', 'b'"):
        diagnose(data, same_width(data, 1.0), by=["missing"])
    with pytest.raises(SettingError, match="list of columns"):
        diagnose(data, same_width(data, 1.0), by="a")


def test_diagnose_categorical_columns_are_always_included() -> None:
    rng = np.random.default_rng(0)
    kinds, y = rng.choice(["road", "rail"], 200), rng.normal(size=200)
    frame = pd.DataFrame({"id": range(200), "kind": kinds, "y": y})
    data = split_nodes(from_frames(frame, None, target="y"))
    diagnosis = diagnose(data, same_width(data, 2.0))
    (division,) = [division for division in diagnosis.divisions if division.name == "kind"]
    assert [group.label for group in division.groups] == ["rail", "road"]


def test_diagnose_csr_features_gives_the_groups_of_dense_ones() -> None:
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


def test_diagnose_without_held_out_nodes_gives_a_note() -> None:
    data, _ = blocks()
    data.test_mask = None
    diagnosis = diagnose(data, same_width(data, 1.0))
    assert diagnosis.coverage is None
    assert diagnosis.divisions == []
    assert "the coverage on new nodes is unknown" in str(diagnosis)


def test_diagnose_too_few_calibration_nodes_is_a_warning() -> None:
    data, _ = blocks()
    diagnosis = diagnose(data, same_width(data, 5.0), calibration_nodes=5)
    assert any("too few to calibrate" in finding.text for finding in diagnosis.warnings)


def test_diagnose_intervals_of_some_nodes_raises() -> None:
    data, _ = blocks()
    with pytest.raises(ArrayError, match="all 600 nodes"):
        diagnose(data, same_width(data, 1.0).select(slice(10)))


def test_diagnosis_to_dict_and_repr_html_have_all_findings() -> None:
    data, _ = blocks()
    infinite = np.full(600, np.inf)
    diagnosis = diagnose(data, Intervals(np.zeros(600), -infinite, infinite, 0.9))
    again = json.loads(json.dumps(json_safe(diagnosis.to_dict()), allow_nan=False))
    assert again["coverage"]["share"] == 1.0
    assert diagnosis._repr_html_().count("<li>") == len(diagnosis.findings)


@pytest.mark.parametrize("name", ["qpignn", "evidential"])
def test_method_diagnose_equals_its_predictions(name: str) -> None:
    data, _ = blocks(size=40)
    levels = [0.5, 0.9]
    model = make_method(name, confidence_level=levels, epochs=5).fit(data)
    diagnosis = model.diagnose(data)
    assert isinstance(diagnosis, Diagnosis)
    shown = [one.level for one in diagnosis.levels]
    assert shown == (
        sorted({*levels, *(i / 10 for i in range(1, 10))}) if model.any_level else levels
    )
    assert diagnosis.coverage is not None
    hits = model.predict_interval(data, data.test_mask).covers(data.y[data.test_mask])
    assert diagnosis.coverage.share == hits.mean()


def test_free_levels_keep_the_fitted_intervals() -> None:
    data, _ = blocks(size=40)
    one = QpiGNN(0.9, epochs=10)
    several = QpiGNN([*one.free_levels(), 0.9], epochs=10).fit(data)
    alone, nested = one.fit(data).predict_interval(data), several.predict_interval(data)
    np.testing.assert_array_equal(alone.prediction, nested.prediction)
    assert (nested.lower <= alone.lower).all()
    assert (nested.upper >= alone.upper).all()
    assert (nested.width == alone.width).mean() > 0.9


@pytest.mark.parametrize("name", ["{k}", "{}", "%s", "a=b", "speed {km/h}"])
def test_diagnose_names_with_braces_are_kept(name: str) -> None:
    data, label = blocks()
    categories = np.array([f"{{{i}}}" for i in label])
    diagnosis = diagnose(data, same_width(data, 1.645), by={name: categories})
    assert f"coverage for nodes with {name} = {{0}} is" in str(diagnosis)


def test_diagnose_by_target_raises() -> None:
    data, _ = blocks()
    with pytest.raises(SettingError, match="got the target itself as 'noise'"):
        diagnose(data, same_width(data, 1.645), by={"noise": data.y.numpy()})


def test_diagnose_by_column_of_wrong_length_raises() -> None:
    data, _ = blocks()
    with pytest.raises(ArrayError, match=r"for 'r' \(600\), got 10"):
        diagnose(data, same_width(data, 1.0), by={"r": ["a"] * 10})
    diagnosis = diagnose(data, same_width(data, 1.0), by={"r": ["a", np.nan] * 300})
    assert [group.label for group in diagnosis.divisions[-1].groups] == ["a", "blank"]


def test_diagnose_infinite_intervals_is_a_warning() -> None:
    data, _ = blocks()
    infinite = np.full(600, np.inf)
    diagnosis = diagnose(data, Intervals(np.zeros(600), -infinite, infinite, 0.9))
    assert diagnosis.unbounded == 600
    assert any("600 of 600 intervals are infinite" in one.text for one in diagnosis.warnings)
    assert diagnosis.errors == []


def test_diagnose_one_sided_has_bounds_and_no_widths() -> None:
    data, _ = blocks()
    infinite = np.full(600, np.inf)
    diagnosis = diagnose(data, Intervals(np.zeros(600), -infinite, np.full(600, 2.0), 0.9))
    assert (diagnosis.side, diagnosis.unbounded, diagnosis.below) == ("upper", 0, 0)
    assert diagnosis.above > 0
    assert not any(one.kind in ("misses", "unbounded", "width") for one in diagnosis.findings)
    groups = [group for division in diagnosis.divisions for group in division.groups]
    assert {(group.width, group.bound) for group in groups} == {(None, 2.0)}


def test_diagnose_bound_cut_at_a_limit_has_no_widths() -> None:
    """An upper bound of a target that is never below −9: the lower end is finite, but no bound."""
    data, _ = blocks()
    value = np.linspace(0, 1, 600)
    cut = Intervals(value, np.full(600, -9.0), value + 30, 0.9, side="upper")
    diagnosis = diagnose(data, cut)
    assert (diagnosis.side, diagnosis.errors) == ("upper", [])
    assert "width" not in [division.name for division in diagnosis.divisions]
    assert "width" not in str(diagnosis)
    assert "the bounds are higher than necessary" in str(diagnosis)


def test_diagnose_one_sided_counts_nodes_without_their_bound() -> None:
    data, _ = blocks()
    upper = np.where(np.arange(600) < 7, np.inf, 2.0)
    diagnosis = diagnose(data, Intervals(np.zeros(600), np.full(600, -np.inf), upper, 0.9))
    assert diagnosis.unbounded == 7
    assert any(
        "7 of 600 nodes have no finite upper bound" in one.text for one in diagnosis.warnings
    )


def test_diagnose_too_few_nodes_is_not_good() -> None:
    data, _ = blocks()
    data.test_mask[data.test_mask.nonzero()[12:]] = False
    diagnosis = diagnose(data, same_width(data, 6.0))
    assert not [
        one for one in diagnosis.findings if one.kind == "coverage" and one.severity == "good"
    ]
    assert "too few nodes to tell" in str(diagnosis)


def test_diagnose_large_targets_have_distinct_group_labels() -> None:
    data, _ = blocks()
    value = 1.7e9 + np.arange(600.0)
    diagnosis = diagnose(data, Intervals(value, value - 1, value + 1, 0.9))
    (division,) = [one for one in diagnosis.divisions if one.name == "prediction"]
    assert len({group.label for group in division.groups}) == 5
    assert division.groups[0].label.startswith("1,700,000,0")


def test_calibrated_on_is_none_without_calibration() -> None:
    data, _ = blocks(size=40)
    for name, wanted in (("conformal:sqr", 20), ("mc_dropout", None), ("qpignn", 80)):
        model = make_method(name, epochs=2).fit(data)
        assert model.fitted_.calibrated_on == wanted, name


def test_diagnose_by_unique_values_raises() -> None:
    data, _ = blocks()
    with pytest.raises(SettingError, match="'id' with 600 different ones on 600 nodes"):
        diagnose(data, same_width(data, 1.0), by={"id": [f"n{i}" for i in range(600)]})
