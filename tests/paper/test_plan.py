from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qpignn.errors import SettingError, UnknownNameError
from qpignn.paper.plan import make_plan, shared_cells
from qpignn.paper.spec import SEED, Condition, Spec, Variant

SPEC = Spec(
    name="small",
    title="A small table",
    place="nowhere",
    datasets=("basic", "er"),
    variants=(
        Variant("one", "qpignn", {"lambda_width": {"basic": 0.1, "er": 0.2}}, None),
        Variant("other", "sqr", seeds=1),
    ),
    conditions=(Condition("calm"), Condition("rough", {"damage": {"edge_dropout": 0.5}})),
    seeds=2,
)


def test_every_combination_is_a_cell_in_its_place() -> None:
    plan = make_plan(SPEC)
    assert len(plan.cells) == 2 * 2 * (2 + 1)
    first, *_, last = plan.cells
    assert (first.dataset, first.variant, first.condition) == ("basic", "one", "calm")
    assert first.cell.settings == {"lambda_width": 0.1}
    assert last.cell.damage == {"edge_dropout": 0.5}
    assert {p.cell.settings["lambda_width"] for p in plan.cells if p.variant == "one"} == {0.1, 0.2}
    assert len(make_plan(SPEC, seeds=5).cells) == 2 * 2 * (5 + 1)


def test_protocols_are_never_mixed() -> None:
    plan = make_plan(SPEC, "published")
    assert {p.variant for p in plan.cells} == {"other"}
    assert {(p.cell.protocol, p.cell.view) for p in plan.cells} == {("published", "isolated")}


def test_rows_may_be_where_the_data_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qpignn.paper.plan.missing_message", lambda entry: "not here")
    nothing = make_plan(SPEC)
    assert (nothing.cells, nothing.missing) == ((), ("basic (not here)", "er (not here)"))
    assert len(make_plan(SPEC, everywhere=True).cells) == 12


def test_tables_that_share_cells_share_the_work() -> None:
    wider = replace(SPEC, name="wider", seeds=3)
    both = shared_cells([make_plan(SPEC), make_plan(wider)])
    assert len(both) == len(make_plan(wider).cells)


def test_quick_is_one_seed_of_two_epochs_on_two_data_sets() -> None:
    wide = replace(SPEC, datasets=("basic", "er", "ba"))
    plan = make_plan(wide, quick=True)
    assert {p.cell.seed for p in plan.cells} == {0}
    assert {p.dataset for p in plan.cells} == {"basic", "er"}
    assert {p.cell.settings["epochs"] for p in plan.cells} == {2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"datasets": ("basics",)}, "unknown data set 'basics': did you mean basic"),
        ({"metrics": ("picpp",)}, "unknown metric 'picpp': did you mean picp"),
        ({"variants": (Variant("x", "sqrr"),)}, "unknown method 'sqrr': did you mean sqr"),
        (
            {"variants": (Variant("x", "sqr", {"epoch": 3}),)},
            "unknown setting of sqr 'epoch': did you mean epochs",
        ),
        (
            {"conditions": (Condition("x", {"splits": "degree"}),)},
            "unknown field of a condition 'splits': did you mean split",
        ),
        (
            {"conditions": (Condition("x", {"seed": 3}),)},
            "unknown field of a condition 'seed'",
        ),
        (
            {"conditions": (Condition("x", {"split": "degre"}),)},
            "unknown split 'degre': did you mean degree",
        ),
        (
            {"conditions": (Condition("x", {"damage": {"edge_dropot": 1}}),)},
            "unknown damage 'edge_dropot': did you mean edge_dropout",
        ),
        ({"conditions": (Condition("x", {"source": "eer"}),)}, "unknown data set 'eer'"),
        (
            {"conditions": (Condition("x", {"options": {"node": 9}}),)},
            "unknown option of basic 'node': did you mean nodes",
        ),
        ({"metrics": ("picp", "nodes")}, "unknown metric 'nodes'"),
        ({"keep": ("interval",)}, "unknown thing to keep 'interval': did you mean intervals"),
        ({"rows": "datasets"}, "unknown axis 'datasets': did you mean dataset"),
    ],
)
def test_make_plan_unknown_names_raise(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        make_plan(replace(SPEC, **change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"variants": (Variant("x", "sqr"), Variant("x", "rqr"))},
            "different labels of variants, got 'x', 'x'",
        ),
        (
            {"conditions": (Condition("x"), Condition("x", {"split": "degree"}))},
            "different labels of conditions, got 'x', 'x'",
        ),
        ({"datasets": ("er", "er")}, "different data sets, got 'er', 'er'"),
        ({"rows": "variant"}, "expected other rows than columns, got variant twice"),
        ({"variants": ()}, "expected data sets and variants, got none"),
    ],
)
def test_make_plan_ambiguous_or_empty_spec_raises(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make_plan(replace(SPEC, **change))


def test_make_plan_seed_option_draws_the_data_per_seed() -> None:
    drawn = Condition("x", {"options": {"nodes": 50, "draw": SEED}})
    plan = make_plan(replace(SPEC, conditions=(drawn,), datasets=("basic",)))
    options = [p.cell.options for p in plan.cells if p.variant == "one"]
    assert options == [{"nodes": 50, "draw": 0}, {"nodes": 50, "draw": 1}]
