from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qpignn.paper.plan import Plan, make_plan
from qpignn.paper.spec import Condition, Spec, Variant
from qpignn.paper.table_pictures import (
    beside_paper,
    conditions,
    damage,
    levels,
    matrix,
    models,
)
from qpignn.paper.tables import frame_of

SPEC = Spec(
    name="small",
    title="A small table",
    place="nowhere",
    datasets=("er", "ba"),
    variants=(Variant("SQR", "sqr"), Variant("QpiGNN", "qpignn")),
    seeds=2,
    facts="main",
)
WIDTHS = {("SQR", "er"): 0.2, ("SQR", "ba"): 0.4, ("QpiGNN", "er"): 0.1, ("QpiGNN", "ba"): 0.1}


def made(spec: Spec, **figures: Any) -> tuple[Plan, pd.DataFrame]:
    """Return a plan and its rows: widths by variant and data set, coverage as wanted."""
    plan = make_plan(spec)
    rows = {}
    for planned in plan.cells:
        width = WIDTHS[planned.variant, planned.dataset]
        level = planned.cell.confidence_level
        rows[planned.cell.key()] = {
            **{"seed": planned.cell.seed, "confidence_level": level, "picp": level},
            **{"mpiw": width, "mpiw_raw": width, "source": planned.cell.source},
            **figures,
        }
    return plan, frame_of(plan, rows)


def dots(axes: Any, size: float) -> list[Any]:
    """Return what is drawn as marks of one size, without lines between them."""
    lines = (line for line in axes.lines if line.get_linestyle() == "None")
    return [line for line in lines if line.get_markersize() == size]


def test_models_are_drawn_over_the_default_on_a_line_each() -> None:
    left, right = models(*made(SPEC)).axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["SQR", "QpiGNN"]
    sqr, own = dots(right, 9)
    # twice and four times as wide: √8 in the geometric mean
    assert float(sqr.get_xdata()[0]) == pytest.approx(8**0.5)
    assert float(own.get_xdata()[0]) == pytest.approx(1)
    assert dots(right, 4)[0].get_xdata().tolist() == pytest.approx([2, 4])
    first_only = replace(SPEC, variants=SPEC.variants[:1])
    assert "SQR" in models(*made(first_only)).axes[1].get_xlabel()  # no default to compare with


def test_damage_is_drawn_by_kind_against_its_strength() -> None:
    strengths = (0.1, 0.3)
    spec = replace(
        SPEC,
        datasets=("er",),
        conditions=tuple(
            Condition(f"{kind} {value}", {"damage": {kind.replace(" ", "_"): value}})
            for kind in ("feature noise", "edge dropout")
            for value in strengths
        ),
    )
    axes = damage(*made(spec)).axes
    assert [panel.get_title() for panel in axes[:2]] == ["feature noise", "edge dropout"]
    lines = [line for line in axes[2].lines if len(line.get_xdata()) == 2]  # widths
    assert {tuple(line.get_xdata()) for line in lines} == {strengths}
    assert {tuple(line.get_ydata()) for line in lines} >= {(0.2, 0.2), (0.1, 0.1)}


def test_conditions_are_marks_beside_each_other_for_every_data_set() -> None:
    spec = replace(
        SPEC,
        variants=SPEC.variants[1:],
        conditions=tuple(Condition(by, {"split": by}) for by in ("random", "degree")),
    )
    left, right = conditions(*made(spec)).axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["er", "ba"]
    for mark in dots(right, 6):
        assert mark.get_xdata().tolist() == [0.1, 0.1]
    heights = [mark.get_ydata()[0] for mark in dots(left, 6)]
    assert len({*heights}) == 2


def test_matrix_shows_every_pair_in_figures() -> None:
    spec = replace(
        SPEC,
        variants=SPEC.variants[:1],
        conditions=tuple(Condition(f"from {name}", {"source": name}) for name in ("er", "ba")),
    )
    coverage, width = matrix(*made(spec)).axes
    assert [text.get_text() for text in coverage.texts] == ["0.90"] * 4
    assert [text.get_text() for text in width.texts] == ["0.20", "0.40"] * 2
    assert [text.get_text() for text in width.get_xticklabels()] == ["on er", "on ba"]


def test_levels_shows_coverage_attained_minus_wanted() -> None:
    spec = replace(
        SPEC,
        conditions=tuple(Condition(f"{x}", {"confidence_level": x}) for x in (0.8, 0.95)),
    )
    (axes,) = levels(*made(spec, picp=0.85)).axes
    for mean in dots(axes, 9):
        assert mean.get_ydata() == pytest.approx([0.05, -0.10])
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert labels == ["80 % wanted", "95 % wanted"]


def test_beside_paper_draws_ours_against_the_printed_figures() -> None:
    coverage, width = beside_paper(*made(SPEC)).axes
    (sqr,) = dots(coverage, 5)
    # the paper: SQR covers 0.81 on ba and 0.75 on er
    assert sorted(sqr.get_xdata()) == pytest.approx([0.75, 0.81])
    assert set(sqr.get_ydata()) == {0.9}
    (widths,) = dots(width, 5)
    assert sorted(zip(widths.get_xdata(), widths.get_ydata(), strict=True)) == [
        (0.6, pytest.approx(0.2)),
        (0.72, pytest.approx(0.4)),
    ]
    diagonal = next(line for line in coverage.lines if line.get_linestyle() != "None")
    assert np.array_equal(diagonal.get_xdata(), diagonal.get_ydata())
