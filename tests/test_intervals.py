import numpy as np
import pytest
import torch

from qpignn import Intervals
from qpignn.errors import ArrayError, SettingError


@pytest.fixture
def three() -> Intervals:
    return Intervals([1.0, 2.0, 3.0], [0.0, 1.0, 2.5], [2.0, 2.0, 4.0], 0.9, ["a", "b", "c"])


def test_bounds_are_closed(three: Intervals) -> None:
    assert three.covers([0.0, 2.0, 4.0]).tolist() == [True, True, True]
    assert three.covers([-0.001, 2.001, 2.4]).tolist() == [False, False, False]


def test_width_and_frame(three: Intervals) -> None:
    assert three.width.tolist() == [2.0, 1.0, 1.5]
    frame = three.to_frame()
    assert list(frame.columns) == ["id", "prediction", "lower", "upper"]
    assert frame.loc[1].tolist() == ["b", 2.0, 1.0, 2.0]


def test_select_keeps_order_and_ids(three: Intervals) -> None:
    assert three.select([2, 0]).node_id.tolist() == ["c", "a"]
    assert three.select(np.array([False, True, False])).lower.tolist() == [1.0]


def test_tensors_and_missing_ids_are_welcome() -> None:
    got = Intervals(torch.tensor([1.0]), torch.tensor([0.5]), torch.tensor([np.inf]), 0.5)
    assert got.node_id.tolist() == [0]
    assert "1 nodes at 0.5" in repr(got)


def test_ids_of_any_kind_are_one_each() -> None:
    bounds = ([1.0, 2.0], [0.0, 0.0], [3.0, 3.0], 0.9)
    pairs = Intervals(*bounds, [(0, 1), (1, 0)])
    assert pairs.to_frame()["id"].tolist() == [(0, 1), (1, 0)]
    assert Intervals(*bounds, ["a", 0]).node_id.tolist() == ["a", 0]
    assert Intervals(*bounds, torch.tensor([7, 8])).node_id.tolist() == [7, 8]


def test_no_nodes_is_a_valid_answer() -> None:
    assert len(Intervals([], [], [], 0.9)) == 0


@pytest.mark.parametrize("level", [0, 1, -0.1, 90, float("nan"), "0.9", None])
def test_confidence_is_strictly_between_zero_and_one(level: object) -> None:
    with pytest.raises(SettingError, match=r"confidence_level: expected .* got"):
        Intervals([0.0], [0.0], [0.0], level)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0.0], [0.0], [0.0, 1.0]), "one length"),
        (([[0.0]], [[0.0]], [[0.0]]), r"one dimension.*\(1, 1\)"),
        (([0.0], [1.0], [0.0]), "lower ≤ upper, got the reverse on 1"),
        (([0.0], [np.nan], [0.0]), "lower: .* NaN for 1 of 1"),
    ],
)
def test_columns_that_make_no_interval_raise(
    columns: tuple[list[float], ...], message: str
) -> None:
    with pytest.raises(ArrayError, match=message):
        Intervals(*columns, 0.9)


def test_targets_of_another_length_raise(three: Intervals) -> None:
    with pytest.raises(ArrayError, match="expected 3 targets, got 1"):
        three.covers([1.0])
    with pytest.raises(ArrayError, match="got NaN; select labelled nodes"):
        three.covers([1.0, float("nan"), 1.0])
