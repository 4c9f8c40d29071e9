from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from qpignn.paper import find_spec
from qpignn.paper.plan import Plan, make_plan
from qpignn.paper.spec import Condition, Spec, Variant
from qpignn.paper.tables import (
    against_paper,
    agreement,
    difference_table,
    frame_of,
    make_table,
)
from qpignn.reports.render import to_json, to_latex, to_markdown
from qpignn.reports.tables import Shown, Table

SPEC = Spec(
    name="small",
    title="A small table",
    place="nowhere",
    datasets=("er", "ba"),
    variants=(Variant("SQR", "sqr"), Variant("RQR", "rqr"), Variant("CF-GNN", "cfgnn")),
    seeds=2,
    facts="main",
)


def rows(plan: Plan, figures: dict[tuple[str, str], tuple[float, float]]) -> dict[str, Any]:
    """Two seeds, a hundredth apart in coverage."""
    results = {}
    for planned in plan.cells:
        picp, mpiw = figures[planned.dataset, planned.variant]
        results[planned.cell.key()] = {
            "seed": planned.cell.seed,
            "confidence_level": planned.cell.confidence_level,
            "picp": picp + 0.01 * planned.cell.seed,
            **{"mpiw": mpiw, "mpiw_raw": 10 * mpiw, "winkler": 2.0, "winkler_one": 1.0},
            **{"mpe": 0.1, "sharpness": 0.1},
        }
    return results


FIGURES = {
    ("er", "SQR"): (0.95, 0.4),
    ("er", "RQR"): (0.92, 0.3),
    ("er", "CF-GNN"): (0.5, 0.1),  # the narrowest, but it does not cover
    ("ba", "SQR"): (0.7, 0.2),
    ("ba", "RQR"): (0.8, 0.3),
    ("ba", "CF-GNN"): (0.93, 0.5),
}


def table_of(spec: Spec, protocol: str = "corrected") -> tuple[Plan, pd.DataFrame, Table]:
    plan = make_plan(spec, protocol)
    frame = frame_of(plan, rows(plan, FIGURES))
    return plan, frame, make_table(plan, frame)


def test_table_means_deviations_and_marks_hand_computed() -> None:
    _, _, table = table_of(SPEC)
    assert table.headings == ("dataset", "SQR", "RQR", "CF-GNN")
    er, ba = table.rows
    assert er[0] == "er"
    picp, mpiw = er[2]
    assert picp == Shown("picp", pytest.approx(0.925), pytest.approx(0.005**0.5 / 10), strong=True)
    assert (mpiw.mean, mpiw.best) == (0.3, True)
    assert [place[0].strong for place in er[1:]] == [True, True, False]
    assert [place[1].best for place in er[1:]] == [False, True, False]
    assert [place[1].best for place in ba[1:]] == [False, False, True]
    assert "2 seeds" in table.title
    published = table_of(SPEC, "published")[2]  # there CF-GNN is in another unit
    assert [place[1].best for place in published.rows[1][1:]] == [False, False, False]


def test_table_of_one_method_marks_no_narrowest() -> None:
    _, _, table = table_of(replace(SPEC, variants=SPEC.variants[:1]))
    assert not table.rows[0][1][1].best


def test_table_with_conditions_has_a_column_for_them() -> None:
    spec = replace(SPEC, conditions=(Condition("a"), Condition("b", {"split": "degree"})))
    _, _, table = table_of(spec)
    assert table.headings[:2] == ("dataset", "condition")
    assert [row[:2] for row in table.rows] == [("er", "a"), ("er", "b"), ("ba", "a"), ("ba", "b")]


def test_rows_that_are_missing_leave_a_gap() -> None:
    plan = make_plan(SPEC)
    some = rows(plan, FIGURES)
    for planned in plan.cells:
        if (planned.dataset, planned.variant) == ("ba", "SQR"):
            del some[planned.cell.key()]
    table = make_table(plan, frame_of(plan, some))
    assert table.rows[1][1] == ()
    assert "| ba | – |" in to_markdown(table)


def test_beside_the_paper_in_the_papers_units() -> None:
    plan, frame, _ = table_of(SPEC, "published")
    table = against_paper(plan, frame).set_index(["variant", "dataset", "metric"])
    # the paper: SQR on er 0.75 / 0.60, CF-GNN on er 0.90 / 17.15 in the target's own unit
    assert table.loc[("SQR", "er", "picp"), "difference"] == pytest.approx(0.955 - 0.75)
    assert table.loc[("CF-GNN", "er", "mpiw"), "difference"] == pytest.approx(1.0 - 17.15)
    near = agreement(table.reset_index()).set_index(["variant", "metric"])
    # er: |0.4 − 0.60|, ba: |0.2 − 0.72|
    assert near.loc[("SQR", "mpiw"), "median"] == pytest.approx((0.2 + 0.52) / 2)
    assert near.loc[("SQR", "mpiw"), "max"] == pytest.approx(0.52)
    shown = difference_table(plan, frame)
    assert "SQR MPIW 0.360 (largest 0.520, 2 figures)" in shown.note


def test_table_published_winkler_score_counts_a_miss_once() -> None:
    spec = replace(SPEC, metrics=("winkler",), facts=None)
    assert table_of(spec)[2].rows[0][1][0].mean == 2.0
    assert table_of(spec, "published")[2].rows[0][1][0].mean == 1.0


def test_all_of_cf_gnns_published_figures_are_in_the_targets_unit() -> None:
    spec = replace(SPEC, metrics=("mpiw", "winkler", "mpe", "sharpness"), facts=None)
    sqr, _, cfgnn = table_of(spec, "published")[2].rows[0][1:]
    assert [part.mean for part in sqr] == pytest.approx([0.4, 1.0, 0.1, 0.1])
    assert [part.mean for part in cfgnn] == pytest.approx([1.0, 10.0, 1.0, 10.0])
    assert [part.mean for part in table_of(spec)[2].rows[0][3]] == pytest.approx([0.1, 2, 0.1, 0.1])


def headline(protocol: str) -> dict[str, tuple[Any, ...]]:
    variants = (*SPEC.variants, Variant("QpiGNN λ tuned", "qpignn"))
    plan = make_plan(replace(SPEC, variants=variants, table="headline"), protocol)
    figures = {
        **FIGURES,
        ("er", "QpiGNN λ tuned"): (0.9, 0.1),
        ("ba", "QpiGNN λ tuned"): (0.9, 0.1),
    }
    table = make_table(plan, frame_of(plan, rows(plan, figures)))
    assert table.headings[:2] == ("against", "QpiGNN λ tuned")
    return {str(row[0]): row[1:] for row in table.rows}


def test_headline_is_a_ratio_of_averages() -> None:
    lines = headline("corrected")
    # 0.1 against averages of 0.3 (SQR: 0.4 and 0.2) and 0.3 (RQR), CF-GNN in no mean
    assert [lines[name][0].split(" / ")[1] for name in ("SQR", "RQR")] == ["−67 %", "−67 %"]
    assert lines["their mean, CF-GNN apart"][0].endswith("/ −67 %")
    assert lines["CF-GNN"][0].endswith("/ −67 %")


def test_headline_published_uses_the_bayesian_baseline() -> None:
    variants = tuple(Variant(name, "sqr") for name in ("SQR", "RQR", "Bayesian", "MC dropout"))
    spec = replace(SPEC, variants=(*variants, Variant("QpiGNN λ tuned", "qpignn")))
    plan = make_plan(replace(spec, table="headline"), "published")
    figures = {(d, v.label): (0.9, 0.1) for d in spec.datasets for v in spec.variants}
    table = make_table(plan, frame_of(plan, rows(plan, figures)))
    lines = {row[0]: row[2] for row in table.rows}
    assert lines["their mean, CF-GNN apart"] == "+20 % / −51 %"  # the paper: 22 and 50
    assert lines["the same without the widest"] == "+31 % / +55 %"


def test_tables_of_counts_and_baselines_need_no_rows() -> None:
    sizes = make_table(make_plan(find_spec("datasets"), "published"), pd.DataFrame())
    lines = {row[0]: [place[0].mean for place in row[1:]] for row in sizes.rows}
    assert lines["twitch"] == [1912, 31299, 3169]
    plan = make_plan(find_spec("datasets"), "published")
    beside = against_paper(plan, pd.DataFrame()).set_index(["dataset", "metric"])
    assert beside.loc[("anaheim", "edges"), "difference"] == 0
    assert beside.loc[("tree", "nodes"), "difference"] == 511 - 1000
    baselines = make_table(make_plan(find_spec("baselines")), pd.DataFrame())
    assert baselines.headings[0] == "method"


TABLE = Table(
    "50 % | of λ",
    ("data_set", "A"),
    (("er", (Shown("picp", 0.914, 0.0123, strong=True), Shown("mpiw", 12.3456, best=True))),),
    "A note.",
)


def test_to_markdown_writes_headings_marks_and_notes() -> None:
    lines = to_markdown(TABLE).splitlines()
    assert lines[2] == "| data_set | A |"
    assert lines[4] == "| er | **0.914** ± 0.012 / <u>12.3</u> |"
    assert lines[-1] == "A note."


def test_latex_escapes_and_marks() -> None:
    text = to_latex(TABLE)
    assert r"\caption{50 \% $|$ of $\lambda$}" in text
    assert r"data\_set & A \\" in text
    assert r"er & \textbf{0.914} $\pm$ 0.012 / \underline{12.3} \\" in text
    assert text.count(r"\begin{tabular}{ll}") == 1


def test_latex_of_any_label() -> None:
    table = Table("t", tuple(f"x^{i}" for i in range(7)), (("$a\\b{",) * 7,))
    text = to_latex(table)
    assert r"x\textasciicircum{}0 & " in text
    assert r"\$a\textbackslash{}b\{ & " in text
    assert r"\resizebox{\textwidth}{!}{%" in text
    assert r"\end{tabular}}" in text


def test_infinite_figures_are_null_in_json() -> None:
    table = Table("t", ("a",), (((Shown("mpiw", math.inf),),),))
    assert json.loads(to_json(table))["rows"][0][0][0]["mean"] is None


def test_json_keeps_all_digits() -> None:
    document = json.loads(to_json(TABLE))
    assert document["rows"][0][1][1]["mean"] == 12.3456
    assert document["rows"][0][1][0]["strong"] is True
