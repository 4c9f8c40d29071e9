import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from qpignn import Intervals
from qpignn.errors import ArrayError, SettingError, UnknownNameError
from qpignn.intervals import rounded_frame


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


def test_to_frame_with_known_neighbours_adds_the_column() -> None:
    bounds = ([1.0, 2.0, 3.0], [0.0, 1.0, 2.5], [2.0, 2.0, 4.0], 0.9)
    intervals = Intervals(*bounds, known_neighbours=[0, 3, 1], width_without=[2.0, 3.0, 1.5])
    frame = intervals.select([1, 0]).to_frame(known_neighbours=True)
    assert list(frame.columns) == ["id", "prediction", "lower", "upper", "known_neighbours"]
    assert frame["known_neighbours"].tolist() == [3.0, 0.0]
    assert "known_neighbours" not in intervals.to_frame()
    assert intervals.select([1, 0]).width_without.tolist() == [3.0, 2.0]  # type: ignore[union-attr]


def test_to_frame_without_known_neighbours_raises(three: Intervals) -> None:
    with pytest.raises(
        SettingError, match=r"known_neighbours: expected .*, got .*; fit with neigh"
    ):
        three.to_frame(known_neighbours=True)


@pytest.mark.parametrize(
    ("counts", "shown"), [([0.0, 3.0], [0, 3]), ([0.0, 2.123456789], [0.0, 2.123457])]
)
def test_rounded_frame_columns_without_a_unit_do_not_depend_on_widths(
    counts: list[float], shown: list[float]
) -> None:
    novelty = [0.123456789, 1.4]
    bounds = ([1e9, 2e9], [0.0, 1.0], [2e9, 3e9], 0.9)
    wide = Intervals(*bounds, novelty=novelty, known_neighbours=counts)
    frame = rounded_frame(wide.to_frame(novelty=True, known_neighbours=True))
    assert frame["novelty"].tolist() == [0.123457, 1.4]
    assert frame["known_neighbours"].tolist() == shown
    assert frame["known_neighbours"].dtype == np.asarray(shown).dtype


def test_select_keeps_order_and_ids(three: Intervals) -> None:
    assert three.select([2, 0]).node_id.tolist() == ["c", "a"]
    assert three.select(np.array([False, True, False])).lower.tolist() == [1.0]


def test_intervals_accepts_tensors_and_missing_ids() -> None:
    got = Intervals(torch.tensor([1.0]), torch.tensor([0.5]), torch.tensor([np.inf]), 0.5)
    assert got.node_id.tolist() == [0]
    assert "1 nodes at 0.5" in repr(got)


def test_ids_of_any_kind_are_one_each() -> None:
    bounds = ([1.0, 2.0], [0.0, 0.0], [3.0, 3.0], 0.9)
    pairs = Intervals(*bounds, [(0, 1), (1, 0)])
    assert pairs.to_frame()["id"].tolist() == [(0, 1), (1, 0)]
    assert Intervals(*bounds, ["a", 0]).node_id.tolist() == ["a", 0]
    assert Intervals(*bounds, torch.tensor([7, 8])).node_id.tolist() == [7, 8]


def test_intervals_of_no_nodes_are_valid() -> None:
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


@pytest.mark.parametrize(
    ("lower", "upper", "side"),
    [
        ([0.0, -np.inf], [1.0, 2.0], "both"),
        ([-np.inf, -np.inf], [1.0, np.inf], "upper"),
        ([0.0, 1.0], [np.inf, np.inf], "lower"),
        ([-np.inf, -np.inf], [np.inf, np.inf], "both"),  # no bound at all
    ],
)
def test_side_is_read_from_which_bounds_are_finite(
    lower: list[float], upper: list[float], side: str
) -> None:
    intervals = Intervals([0.5, 1.0], lower, upper, 0.9)
    assert intervals.side == side
    assert intervals.select([0]).side == side  # a part of a result is of the same kind
    wanted = {"both": None, "lower": lower, "upper": upper}[side]
    assert (None if intervals.bound is None else intervals.bound.tolist()) == wanted


def test_side_unknown_raises() -> None:
    with pytest.raises(UnknownNameError, match="side"):
        Intervals([0.0], [0.0], [0.0], 0.9, side="left")


def test_repr_one_sided_names_the_bound_and_no_width() -> None:
    upper = Intervals([1.0, 2.0], [-np.inf] * 2, [2.0, 3.0], 0.9)
    assert repr(upper) == "Intervals(2 nodes at 0.9, mean upper bound 2.5)"
    assert "inf" not in upper._repr_html_()
    assert "<th>upper</th>" in upper._repr_html_()


def test_plot_with_targets_is_sorted_by_prediction() -> None:
    """Even perfect intervals miss extreme targets more often: the order must not use targets."""
    intervals = Intervals([3.0, 1.0, 2.0], [2.0, 0.0, 1.0], [4.0, 2.0, 3.0], 0.5)
    (axes,) = intervals.plot([2.5, 9.0, 1.5]).axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn["prediction"] == [[0, 1.0], [1, 2.0], [2, 3.0]]
    assert drawn["target, missed"] == [[0, 9.0]]  # of the node with the smallest prediction
    assert axes.get_xlabel() == "nodes, by prediction"


@pytest.mark.parametrize(("side", "within"), [("upper", "below"), ("lower", "above")])
def test_plot_one_sided_draws_and_labels_bounds(side: str, within: str) -> None:
    bounds = {"upper": ([-np.inf] * 3, [2.0, 3.0, 4.0]), "lower": ([0.0, 1.0, 2.0], [np.inf] * 3)}
    intervals = Intervals([1.0, 2.0, 3.0], *bounds[side], 0.9)
    (axes,) = intervals.plot([1.0, 2.0, 9.0 if side == "upper" else -9.0]).axes
    assert axes.get_title() == f"90 % {side} bounds: 66.7 % of targets {within}"
    drawn = {line.get_label(): line for line in axes.lines}
    assert drawn[f"{side} bound"].get_ydata().tolist() == [*bounds[side][side == "upper"]]
    assert len(drawn[f"target, {within}"].get_xdata()) == 2
    assert not any("interval" in text.get_text() for text in axes.get_legend().get_texts())


def test_plot_marks_covered_and_missed_targets_by_shape(three: Intervals) -> None:
    figure = three.plot([1.0, 1.5, 5.0])
    (axes,) = figure.axes
    drawn = {line.get_label(): line for line in axes.lines}
    inside, missed = drawn["target, inside"], drawn["target, missed"]
    assert (len(inside.get_xdata()), len(missed.get_xdata())) == (2, 1)
    assert missed.get_ydata().tolist() == [5.0]
    assert inside.get_marker() != missed.get_marker()
    assert "66.7 % of targets inside" in axes.get_title()
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_plot_without_targets_is_sorted_by_prediction() -> None:
    intervals = Intervals([3.0, 1.0, 2.0], [2.0, 0.0, 1.0], [4.0, 2.0, 3.0], 0.5)
    (axes,) = intervals.plot(title="mine").axes
    assert axes.lines[-1].get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert axes.get_title() == "mine"
    again = Figure().add_subplot()
    assert intervals.plot(axes=again) is again
    with pytest.raises(ArrayError, match="expected 3 targets, got 2"):
        intervals.plot([1.0, 2.0])


def test_repr_html_shows_ten_nodes_and_escapes_ids() -> None:
    many = Intervals(np.zeros(12), -np.ones(12), np.ones(12), 0.9, ["<b>bold</b>"] * 12)
    page = many._repr_html_()
    assert page.count("<tr") == 11  # a head and ten nodes
    assert "and 2 more" in page
    assert "<b>" not in page


def test_plot_infinite_bound_is_drawn_to_the_edge() -> None:
    upper = Intervals([1.0, 2.0], [-np.inf, -np.inf], [2.0, 3.0], 0.9)
    (axes,) = upper.plot([0.0, 5.0]).axes
    ends = np.concatenate(axes.collections[0].get_segments())
    assert np.isfinite(ends).all()
    assert ends[:, 1].min() < 0
