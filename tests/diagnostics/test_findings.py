from __future__ import annotations

import numpy as np
import pytest

from qpignn.diagnostics.coverage import (
    Coverage,
    Division,
    Group,
    can_show_shortfall,
    count_coverage,
)
from qpignn.diagnostics.findings import (
    Finding,
    graph_shift_findings,
    group_findings,
    level_findings,
    miss_findings,
    neighbour_findings,
    overall_findings,
    shift_findings,
    size_findings,
    unbounded_findings,
    width_findings,
)
from qpignn.diagnostics.two_sample import Shift
from qpignn.diagnostics.width_error import RankCorrelation
from qpignn.intervals import Intervals


def counted(covered: int, nodes: int, level: float = 0.9) -> Coverage:
    return count_coverage(np.arange(nodes) < covered, level)


def only(findings: list[Finding]) -> tuple[str, str]:
    (one,) = findings
    return one.severity, one.text


@pytest.mark.parametrize(
    ("covered", "nodes", "severity", "phrase"),
    [
        (90, 100, "good", "consistent with the nominal 90 %"),
        (75, 100, "warning", "below the nominal 90 %"),
        (883, 1000, "note", "slightly below"),
        (940, 1000, "note", "above the nominal 90 %: the intervals are wider than necessary"),
        (18, 20, "note", "too few nodes to tell"),
        (12, 20, "warning", "below the nominal 90 %"),  # so few of 20 have a chance of 0.04 %
        (0, 2, "note", "too few nodes to tell"),
        (0, 1, "note", "1 held-out node is covered: too few"),
    ],
)
def test_overall_findings_have_severity_and_text(
    covered: int, nodes: int, severity: str, phrase: str
) -> None:
    severity_shown, text = only(overall_findings(counted(covered, nodes)))
    assert severity_shown == severity
    assert phrase in text


@pytest.mark.parametrize(
    ("side", "phrase"),
    [
        (
            "lower",
            "targets are at or above their lower bounds, above the nominal 90 %: the bounds are",
        ),
        (
            "upper",
            "targets are at or below their upper bounds, above the nominal 90 %: the bounds are",
        ),
    ],
)
def test_overall_findings_one_sided_mention_bounds_only(side: str, phrase: str) -> None:
    _, text = only(overall_findings(counted(950, 1000), side))
    assert phrase in text
    assert "interval" not in text


def test_overall_findings_one_missed_node_is_not_a_warning() -> None:
    severity, _ = only(overall_findings(counted(0, 1, 0.99)))  # a chance of 1 %, but one node
    assert severity == "note"


def with_widths(width: list[float], without: list[float] | None, **more: object) -> Intervals:
    """Intervals from 0 up, the first node without a known neighbour."""
    end = np.array(width)
    counts = np.arange(len(end))
    columns = {"known_neighbours": counts, "width_without": without, **more}
    return Intervals(0 * np.minimum(end, 0), 0 * np.minimum(end, 0), end, 0.9, **columns)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("width", "without", "text"),
    [
        (
            [0.2, 0.1, 0.15],
            [0.2, 0.2, 0.2],
            "known targets of neighbours make intervals 25 % narrower on average: mean width 0.15 "
            "instead of 0.2 (3 nodes without a given target, 2 of them with a neighbour that has "
            "one)",
        ),
        ([2.0, 4.0], [2.0, 2.0], "make intervals 50 % wider on average: mean width 3 instead of 2"),
        ([2.0, 2.0], [2.0, 2.0], "hardly change the mean width: 2 instead of 2 (2 nodes"),
        ([2.0, 2.0], [2.01, 2.01], "hardly change the mean width: 2 instead of 2.01 (2 nodes"),
        (
            [1.0, 1.0, 28.0],
            [2.0, 2.0, 20.0],
            "make intervals 25 % wider on average: mean width 10 instead of 8, but median width 1 "
            "instead of 2 (3 nodes",
        ),
        (
            [1.0, 1.0, 22.0],
            [2.0, 2.0, 20.0],
            "hardly change the mean width: 8 instead of 8, but median width 1 instead of 2 (3",
        ),
        ([1.0, np.inf], [2.0, np.inf], "50 % narrower on average: mean width 1 instead of 2 (1 of"),
    ],
)
def test_neighbour_findings_compare_widths(
    width: list[float], without: list[float], text: str
) -> None:
    severity, sentence = only(neighbour_findings(with_widths(width, without)))
    assert severity == "note"
    assert text in sentence


def test_neighbour_findings_leave_out_nodes_beyond_what_was_learnt() -> None:
    widened = with_widths([1.0, 1.0, 99.0], [2.0, 2.0, 2.0], novelty=[0.5, 1.0, 1.5])
    _, text = only(neighbour_findings(widened))
    assert "50 % narrower on average: mean width 1 instead of 2 (2 of 3 nodes" in text


@pytest.mark.parametrize(
    "intervals",
    [
        Intervals([1.0], [0.0], [2.0], 0.9),
        with_widths([1.0, 1.0], None),  # the count alone, as Conformal has it
        with_widths([1.0, 1.0], [2.0, 2.0], side="upper"),
        with_widths([np.inf, 1.0], [2.0, np.inf]),
        with_widths([0.0, 0.0], [0.0, 0.0]),
        with_widths([], []),
    ],
    ids=["not used", "no widths to compare", "one-sided", "infinite", "widths of 0", "no nodes"],
)
def test_neighbour_findings_without_widths_to_compare_are_none(intervals: Intervals) -> None:
    assert neighbour_findings(intervals) == []


@pytest.mark.parametrize(
    ("nodes", "share", "severity", "phrase"),
    [
        (400, 0.5, "good", "at the other levels (50 %) is consistent"),
        (400, 0.6, "note", "at level 50 %, 60 % ± 5 % of held-out nodes are covered, above"),
        (400, 0.4, "note", "below the nominal value"),
        (40, 0.5, "note", "too few held-out nodes"),
        (2, 0.5, "note", "too few held-out nodes"),
    ],
)
def test_level_findings_have_severity_and_text(
    nodes: int, share: float, severity: str, phrase: str
) -> None:
    levels = [counted(int(share * nodes), nodes, 0.5), counted(int(0.9 * nodes), nodes, 0.9)]
    severity_shown, text = only(level_findings(levels, 0.9))
    assert severity_shown == severity
    assert phrase in text


def test_level_findings_of_one_level_are_none() -> None:
    assert level_findings([counted(90, 100)], 0.9) == []


def division(*counts: Coverage) -> Division:
    groups = [Group(str(i), f"group {i}", one, 1.0, None, False) for i, one in enumerate(counts)]
    return Division("kind", True, groups)


def test_group_findings_small_groups_give_a_note() -> None:
    severity, text = only(group_findings([division(counted(1, 1), counted(1, 1))], 0.9))
    assert severity == "note"
    assert "too few held-out nodes" in text


def test_group_findings_count_the_groups_that_can_show_a_shortfall() -> None:
    divisions = [division(counted(80, 100), counted(46, 50), counted(4, 4))]
    severity, text = only(group_findings(divisions, 0.9))
    assert severity == "good"
    assert "2 of 3 groups have enough nodes to detect a shortfall of 20 percentage points" in text
    assert "the largest shortfall is for group 0: 80 %" in text
    _, text = only(group_findings([division(counted(95, 100), counted(46, 50))], 0.9))
    assert "all 2 groups" in text
    assert "largest" not in text


def test_can_show_shortfall_hand_computed() -> None:
    # 21 of 30 nodes at 90 %: P(X ≤ 21) = 0.0020; 7 of 10: P(X ≤ 7) = 0.0702
    assert can_show_shortfall(30, 0.9, 0.003)
    assert not can_show_shortfall(30, 0.9, 0.001)
    assert not can_show_shortfall(10, 0.9, 0.05)


@pytest.mark.parametrize(
    ("below", "above", "severity", "phrase"),
    [
        (20, 25, "good", "20 targets lie below their intervals and 25 above"),
        (4, 17, "note", "mostly too high"),
        (9, 0, "note", "mostly too low"),
        (1, 2, "note", "1 target lies below its interval and 2 above: too few misses to tell"),
    ],
)
def test_miss_findings_have_severity_and_text(
    below: int, above: int, severity: str, phrase: str
) -> None:
    severity_shown, text = only(miss_findings(below, above, "both"))
    assert severity_shown == severity
    assert phrase in text


def test_miss_findings_need_two_sides_and_a_miss() -> None:
    assert miss_findings(0, 0, "both") == []
    assert miss_findings(0, 30, "upper") == []


@pytest.mark.parametrize(
    ("rank", "severity", "phrase"),
    [
        (RankCorrelation(120, 0.3, 0.0005, 0.44), "good", "wider intervals go with larger errors"),
        (RankCorrelation(9, 0.9, 0.0005, 0.99), "note", "too few held-out nodes (9)"),
        (RankCorrelation(30, 0.12, 0.26, 0.42), "note", "too few held-out nodes (30)"),
        (RankCorrelation(400, 0.02, 0.35, 0.10), "note", "say little about"),
        (RankCorrelation(4000, 0.06, 0.0001, 0.09), "note", "say little about"),
        (RankCorrelation(400, -0.5, 1.0, -0.4), "note", "say little about"),
        (RankCorrelation(400, None), "note", "equally wide"),
    ],
)
def test_width_findings_have_severity_and_text(
    rank: RankCorrelation, severity: str, phrase: str
) -> None:
    severity_shown, text = only(width_findings(rank))
    assert severity_shown == severity
    assert phrase in text


def shift_of(auc: float, error: float, p: float, *columns: tuple[str, float]) -> Shift:
    return Shift(600, 1500, auc, error, p, list(columns))


@pytest.mark.parametrize(
    ("shift", "severity", "phrase"),
    [
        (
            shift_of(0.66, 0.01, 0.006, ("rent", 0.3), ("age", 0.2)),
            "warning",
            "differ from the labelled nodes (most in rent and age; classifier AUC 0.66 ± 0.02; "
            "p = 0.006): the coverage",
        ),
        (
            shift_of(0.6, 0.01, 1e-9),
            "warning",
            "(in no single column, but in several together; classifier AUC 0.60 ± 0.02; p < 0.001)",
        ),
        (shift_of(0.52, 0.01, 0.006, ("rent", 0.04)), "note", "differ slightly"),
        (shift_of(0.52, 0.01, 0.3), "good", "are like the labelled nodes"),
        (shift_of(0.52, 0.08, 0.3), "note", "too few nodes to rule one out"),
        (None, "note", "at least 20 of each are needed"),
    ],
)
def test_shift_findings_have_severity_and_text(
    shift: Shift | None, severity: str, phrase: str
) -> None:
    severity_shown, text = only(shift_findings(shift, 600, 1500))
    assert severity_shown == severity
    assert phrase in text
    assert "1,500 unlabelled" in text


def test_shift_findings_of_a_fully_labelled_graph_are_none() -> None:
    assert shift_findings(None, 600, 0) == []


def test_graph_shift_findings_name_graph_and_column() -> None:
    severity, text = only(graph_shift_findings(shift_of(0.7, 0.01, 0.004, ("rent", 0.3))))
    assert severity == "warning"
    assert (
        "the 1,500 nodes of this graph differ from those of the training graph (most in rent;"
        in text
    )
    assert graph_shift_findings(None) == []
    assert (
        "are like those of the training graph"
        in only(graph_shift_findings(shift_of(0.5, 0.01, 0.4)))[1]
    )


@pytest.mark.parametrize(
    ("side", "phrase"),
    [
        ("both", "3 of 60 intervals are infinite on one or both sides"),
        ("upper", "3 of 60 nodes have no finite upper bound"),
        ("lower", "3 of 60 nodes have no finite lower bound"),
    ],
)
def test_unbounded_findings_have_severity_and_text(side: str, phrase: str) -> None:
    severity, text = only(unbounded_findings(3, 60, side))
    assert severity == "warning"
    assert phrase in text
    assert unbounded_findings(0, 60, side) == []


def test_size_findings_hand_computed() -> None:
    assert only(size_findings(1, 0.9))[1].startswith("1 node is too few to calibrate")
    assert only(size_findings(8, 0.9))[0] == "warning"  # nine are needed
    severity, text = only(size_findings(50, 0.9))
    assert severity == "note"
    assert "± 4 %" in text  # sqrt(0.9·0.1/52) = 0.042
    assert size_findings(200, 0.9) == []
    assert size_findings(None, 0.9) == []


def test_group_old_name_of_description_warns_and_has_its_value() -> None:
    (group,) = division(counted(90, 100)).groups
    with pytest.warns(DeprecationWarning, match="who is deprecated, use description"):
        assert group.who == group.description  # type: ignore[attr-defined]
