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
    overall_findings,
    shift_findings,
    size_findings,
    unbounded_findings,
    width_findings,
)
from qpignn.diagnostics.two_sample import Shift
from qpignn.diagnostics.width_error import RankCorrelation


def counted(covered: int, nodes: int, level: float = 0.9) -> Coverage:
    return count_coverage(np.arange(nodes) < covered, level)


def only(findings: list[Finding]) -> tuple[str, str]:
    (one,) = findings
    return one.severity, one.text


@pytest.mark.parametrize(
    ("covered", "nodes", "severity", "words"),
    [
        (90, 100, "good", "in agreement with the wanted 90 %"),
        (75, 100, "warning", "below the wanted 90 %"),
        (883, 1000, "note", "a little below"),
        (940, 1000, "note", "above the wanted 90 %: wider than needed"),
        (18, 20, "note", "too few nodes to tell"),
        (12, 20, "warning", "below the wanted 90 %"),  # so few of 20 have a chance of 0.04 %
        (0, 2, "note", "too few nodes to tell"),
        (0, 1, "note", "1 held-out node is covered: too few"),
    ],
)
def test_overall_findings(covered: int, nodes: int, severity: str, words: str) -> None:
    found, text = only(overall_findings(counted(covered, nodes)))
    assert found == severity
    assert words in text


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (
            "lower",
            "targets are at or above their lower bound, above the wanted 90 %: the bounds are",
        ),
        (
            "upper",
            "targets are at or below their upper bound, above the wanted 90 %: the bounds are",
        ),
    ],
)
def test_overall_findings_of_one_bound_speak_of_bounds(side: str, words: str) -> None:
    _, text = only(overall_findings(counted(950, 1000), side))
    assert words in text
    assert "interval" not in text


def test_one_missed_node_of_a_high_level_is_no_warning() -> None:
    severity, _ = only(overall_findings(counted(0, 1, 0.99)))  # a chance of 1 %, but one node
    assert severity == "note"


@pytest.mark.parametrize(
    ("nodes", "share", "severity", "words"),
    [
        (400, 0.5, "good", "agree"),
        (400, 0.6, "note", "at the level 50 %, 60 % ± 5 % of held-out nodes are covered, more"),
        (400, 0.4, "note", "fewer than wanted"),
        (40, 0.5, "note", "too few held-out nodes"),
        (2, 0.5, "note", "too few held-out nodes"),
    ],
)
def test_level_findings(nodes: int, share: float, severity: str, words: str) -> None:
    levels = [counted(int(share * nodes), nodes, 0.5), counted(int(0.9 * nodes), nodes, 0.9)]
    found, text = only(level_findings(levels, 0.9))
    assert found == severity
    assert words in text


def test_level_findings_of_one_level_are_none() -> None:
    assert level_findings([counted(90, 100)], 0.9) == []


def division(*counts: Coverage) -> Division:
    groups = [Group(str(i), f"group {i}", one, 1.0, None, False) for i, one in enumerate(counts)]
    return Division("kind", True, groups)


def test_group_findings_of_small_groups_say_that_nothing_can_be_told() -> None:
    severity, text = only(group_findings([division(counted(1, 1), counted(1, 1))], 0.9))
    assert severity == "note"
    assert "too few held-out nodes" in text


def test_group_findings_count_the_groups_that_can_show_a_shortfall() -> None:
    found = [division(counted(80, 100), counted(46, 50), counted(4, 4))]
    severity, text = only(group_findings(found, 0.9))
    assert severity == "good"
    assert "2 of 3 groups have enough nodes to show a shortfall of 20 points" in text
    assert "furthest below it: group 0 with 80 %" in text
    _, text = only(group_findings([division(counted(95, 100), counted(46, 50))], 0.9))
    assert "all 2 groups" in text
    assert "furthest" not in text


def test_can_show_shortfall_by_hand() -> None:
    # 21 of 30 nodes at 90 %: P(X ≤ 21) = 0.0020; 7 of 10: P(X ≤ 7) = 0.0702
    assert can_show_shortfall(30, 0.9, 0.003)
    assert not can_show_shortfall(30, 0.9, 0.001)
    assert not can_show_shortfall(10, 0.9, 0.05)


@pytest.mark.parametrize(
    ("below", "above", "severity", "words"),
    [
        (20, 25, "good", "20 targets lie below the interval, 25 above"),
        (4, 17, "note", "mostly higher"),
        (9, 0, "note", "mostly lower"),
        (1, 2, "note", "1 target lies below the interval, 2 above: too few misses to tell"),
    ],
)
def test_miss_findings(below: int, above: int, severity: str, words: str) -> None:
    found, text = only(miss_findings(below, above, "both"))
    assert found == severity
    assert words in text


def test_miss_findings_need_two_sides_and_a_miss() -> None:
    assert miss_findings(0, 0, "both") == []
    assert miss_findings(0, 30, "upper") == []


@pytest.mark.parametrize(
    ("rank", "severity", "words"),
    [
        (RankCorrelation(120, 0.3, 0.0005, 0.44), "good", "wider intervals go with larger errors"),
        (RankCorrelation(9, 0.9, 0.0005, 0.99), "note", "too few held-out nodes (9)"),
        (RankCorrelation(30, 0.12, 0.26, 0.42), "note", "too few held-out nodes (30)"),
        (RankCorrelation(400, 0.02, 0.35, 0.10), "note", "hardly tell"),
        (RankCorrelation(4000, 0.06, 0.0001, 0.09), "note", "hardly tell"),
        (RankCorrelation(400, -0.5, 1.0, -0.4), "note", "hardly tell"),
        (RankCorrelation(400, None), "note", "equally wide"),
    ],
)
def test_width_findings(rank: RankCorrelation, severity: str, words: str) -> None:
    found, text = only(width_findings(rank))
    assert found == severity
    assert words in text


def shift(auc: float, error: float, p: float, *columns: tuple[str, float]) -> Shift:
    return Shift(600, 1500, auc, error, p, list(columns))


@pytest.mark.parametrize(
    ("found", "severity", "words"),
    [
        (
            shift(0.66, 0.01, 0.006, ("rent", 0.3), ("age", 0.2)),
            "warning",
            "differ from the labelled ones (most in rent and age; a classifier tells them apart "
            "with AUC 0.66 ± 0.02; p = 0.006): coverage",
        ),
        (
            shift(0.6, 0.01, 1e-9),
            "warning",
            "(in no single column, but in several together; a classifier tells them apart with "
            "AUC 0.60 ± 0.02; p < 0.001)",
        ),
        (shift(0.52, 0.01, 0.006, ("rent", 0.04)), "note", "differ slightly"),
        (shift(0.52, 0.01, 0.3), "good", "look like the labelled ones"),
        (shift(0.52, 0.08, 0.3), "note", "too few nodes to exclude one"),
        (None, "note", "at least 20 of each are needed"),
    ],
)
def test_shift_findings(found: Shift | None, severity: str, words: str) -> None:
    given, text = only(shift_findings(found, 600, 1500))
    assert given == severity
    assert words in text
    assert "1,500 unlabelled" in text


def test_shift_findings_of_a_fully_labelled_graph_are_none() -> None:
    assert shift_findings(None, 600, 0) == []


def test_graph_shift_findings_name_graph_and_column() -> None:
    severity, text = only(graph_shift_findings(shift(0.7, 0.01, 0.004, ("rent", 0.3))))
    assert severity == "warning"
    assert "the 1,500 nodes of this graph differ from those of the fit (most in rent;" in text
    assert graph_shift_findings(None) == []
    assert "look like those of the fit" in only(graph_shift_findings(shift(0.5, 0.01, 0.4)))[1]


@pytest.mark.parametrize(
    ("side", "words"),
    [
        ("both", "3 of 60 intervals have no end"),
        ("upper", "3 of 60 nodes have no upper bound"),
        ("lower", "3 of 60 nodes have no lower bound"),
    ],
)
def test_unbounded_findings(side: str, words: str) -> None:
    severity, text = only(unbounded_findings(3, 60, side))
    assert severity == "warning"
    assert words in text
    assert unbounded_findings(0, 60, side) == []


def test_size_findings_by_hand() -> None:
    assert only(size_findings(1, 0.9))[1].startswith("1 node is too few to calibrate")
    assert only(size_findings(8, 0.9))[0] == "warning"  # nine are needed
    severity, text = only(size_findings(50, 0.9))
    assert severity == "note"
    assert "± 4 %" in text  # sqrt(0.9·0.1/52) = 0.042
    assert size_findings(200, 0.9) == []
    assert size_findings(None, 0.9) == []
