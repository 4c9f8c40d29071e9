"""Hand-computed ranks and forms, and coverage by Monte Carlo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qpignn import intervals
from qpignn.calibration import cross_fit
from qpignn.calibration.conformal import conformal_rank
from qpignn.calibration.cross_fit import CrossFit, Form, Tails
from qpignn.calibration.width_scaling import MemberOutputs, WidthScaling
from qpignn.intervals import Side


def outputs_of(count: int, half: float = 1.0) -> MemberOutputs:
    return MemberOutputs(np.zeros(count), np.full(count, half), np.full(count, half))


def choose_form(
    outputs: MemberOutputs,
    y: np.ndarray,
    level: float,
    side: Side = "both",
    tails: Tails = "free",
    **compared: Any,
) -> Form:
    return CrossFit(side, tails).choose_form(outputs, y, level, **compared)


Y = np.array([-9.0, -4.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0])  # nine nodes, value 0


@pytest.mark.parametrize(
    ("form", "level", "below", "above"),
    [
        (Form("both", None, 1.0), 0.5, 2.0, 2.0),  # rank 5 of |y| = 0 0.5 1 1 2 3 4 5 9
        (Form("both", None, 1.0), 0.7, 4.0, 4.0),  # rank 7
        (Form("both", 1.0, 1.0), 0.6, 1.0, 5.0),  # rank 6, one more: two are missed, both below
        (Form("both", 0.5, 1.0), 0.6, 4.0, 3.0),  # one below, one above
        (Form("both", 0.0, 1.0), 0.6, 9.0, 2.0),  # both above
        (Form("lower", None, 1.0), 0.7, 1.0, np.inf),  # rank 7 of −y = −5 −3 −2 −1 −0.5 0 1 4 9
        (Form("upper", None, 1.0), 0.7, np.inf, 2.0),
        (Form("both", None, 1.0), 0.9, 9.0, 9.0),  # rank 9, the last
        (Form("both", None, 1.0), 0.91, np.inf, np.inf),  # rank 10 of 9: too few
        (Form("lower", None, 1.0), 0.91, np.inf, np.inf),
        (Form("both", None, 0.0), 0.5, 2.0, 2.0),  # all half-widths are alike anyway
    ],
)
def test_form_fit_hand_computed(form: Form, level: float, below: float, above: float) -> None:
    scaling = form.fit(outputs_of(9), Y, level)
    assert (scaling.below, scaling.above) == pytest.approx((below, above))
    if form.power < 1:
        return
    twice = form.fit(outputs_of(9, half=2.0), Y, level)  # factors are in half-widths
    assert (twice.below, twice.above) == pytest.approx((below / 2, above / 2))


@given(
    st.integers(0, 2**32 - 1),
    st.floats(0.05, 0.95),
    st.sampled_from([None, 0.0, 0.1, 0.5, 1.0]),
    st.sampled_from(cross_fit.POWERS),
    st.integers(1, 60),
)
def test_every_form_reaches_the_level_and_contains_the_value(
    seed: int, level: float, share: float | None, power: float, count: int
) -> None:
    rng = np.random.default_rng(seed)
    outputs = MemberOutputs(
        rng.normal(size=count), rng.exponential(size=count), rng.exponential(size=count)
    )
    y = rng.normal(size=count)
    lower, upper = Form("both", share, power).fit(outputs, y, level).bounds(outputs)
    covered = int(((lower <= y + 1e-12) & (y - 1e-12 <= upper)).sum())
    ends = 1 if share is None else 2
    assert covered >= min(conformal_rank(count, level) + ends - 1, count)
    assert (lower <= outputs.value).all()
    assert (outputs.value <= upper).all()


@pytest.mark.parametrize(
    ("side", "share"),
    [("both", None), ("lower", None), ("upper", None), ("both", 0.5), ("both", 0.25)],
)
def test_coverage_of_new_nodes_by_monte_carlo(side: str, share: float | None) -> None:
    """Exchangeable scores: coverage of a fixed form is rank/(n+1) exactly, here 0.8."""
    rng = np.random.default_rng(0)
    draws, count = 4000, 24
    hits = 0
    for _ in range(draws):
        y = rng.standard_t(3, size=count + 1)
        scaling = Form(side, share, 1.0).fit(outputs_of(count), y[:-1], 0.8)
        lower, upper = scaling.bounds(outputs_of(1))
        hits += bool(lower[0] <= y[-1] <= upper[0])
    assert hits / draws == pytest.approx(0.8, abs=4 * (0.16 / draws) ** 0.5)


def test_evened_half_widths_keep_their_sides_apart() -> None:
    outputs = MemberOutputs(
        np.zeros(4), np.array([1.0, 1.0, 4.0, 4.0]), np.array([9.0, 9.0, 36.0, 36.0])
    )
    y = np.array([-5.0, 3.0, 5.0, 20.0])
    even = Form("both", None, 0.0).fit(outputs, y, 0.8)  # of means 2.5 and 22.5; the first is 2 off
    assert (even.below, even.above) == pytest.approx((5.0, 45.0))


def test_form_power_one_half_hand_computed() -> None:
    """Means 4 and 16, so units 2 and 4: the first node is 6 / (2 · √1) = 3 off, the other less."""
    outputs = MemberOutputs(np.zeros(2), np.array([1.0, 7.0]), np.array([4.0, 28.0]))
    fitted = Form("both", None, 0.5).fit(outputs, np.array([-6.0, 40.0]), 0.6)
    assert fitted == WidthScaling(pytest.approx(3 * 2), pytest.approx(3 * 4), 0.5)


def test_price_hand_computed() -> None:
    """Widths 2 and 4, one target 1 too high at 2 / 0.2 a unit: √(3 · (6 + 10) / 2)."""
    y, lower, upper = np.array([1.0, 5.0]), np.zeros(2), np.array([2.0, 4.0])
    assert cross_fit.price(y, lower, upper, level=0.8) == pytest.approx((3 * 8) ** 0.5)


def test_price_of_heavy_tailed_targets_takes_the_median_width() -> None:
    """Widths 1, 3, 8 and 100 of targets that are not 0, one of which is missed by 2.

    Their median is 5.5; scores at 90 % are 1, 3, 8 + 20·2 and 100.
    """
    y, lower = np.array([0.0, 1, 2, 10, 50]), np.zeros(5)
    upper = np.array([0.0, 1, 3, 8, 100])
    price = cross_fit.price(y, lower, upper, level=0.9, heavy_tailed=True)
    assert price == pytest.approx((5.5 * (1 * 3 * 48 * 100) ** 0.25) ** 0.5)
    plain = cross_fit.price(y, lower, upper, level=0.9)
    assert plain == pytest.approx((22.4 * (22.4 + 20 * 2 / 5)) ** 0.5)


def test_price_of_heavy_tailed_targets_is_robust_to_one_wide_interval() -> None:
    y = np.linspace(1, 2, 100)
    narrow, wide = (y - 0.1, y + 0.1), (y - 0.5, y + 0.5)
    narrow[1][-1] = 1e6  # one interval that exploded
    prices = [cross_fit.price(y, *b, level=0.9, heavy_tailed=True) for b in (narrow, wide)]
    assert prices[0] < 0.5 * prices[1]


def test_price_of_heavy_tailed_targets_is_finite_where_intervals_have_no_width() -> None:
    y = np.array([0.0, 1.0, 2.0])
    exact = cross_fit.price(y, y, y, level=0.9, heavy_tailed=True)
    assert exact == 0
    nothing = np.zeros(3)
    assert cross_fit.price(nothing, nothing, y, level=0.9, heavy_tailed=True) > 0


def outliers(below: int, count: int = 1000, level: float = 0.9) -> tuple[MemberOutputs, np.ndarray]:
    """Nodes between −1 and 1 but for as many as may be missed: so many far below, others above.

    The net thinks that the truth may lie ten times farther above than below.
    """
    y = np.linspace(-1, 1, count)
    far = count - conformal_rank(count, level) - 1
    y[:below], y[below:far] = -30.0, 30.0
    return MemberOutputs(np.zeros(count), np.full(count, 1.0), np.full(count, 10.0)), y


@pytest.mark.parametrize(
    ("share", "below"),
    [(0.0, 0), (0.1, 9), (0.25, 24), (0.5, 49), (0.75, 73), (0.9, 88), (1.0, 98)],
)
def test_choose_form_chooses_the_division_of_alpha_that_fits_the_tails(
    share: float, below: int
) -> None:
    """98 of 1,000 may be missed; any other share keeps some of the far ones."""
    outputs, y = outliers(below)
    assert choose_form(outputs, y, 0.9) == Form("both", share, 1.0)
    for tails in ("equal", "symmetric"):
        kept = choose_form(outputs, y, 0.9, tails=tails)
        assert kept == Form("both", None, 1.0)
    for side in ("lower", "upper"):
        assert choose_form(outputs, y, 0.9, side=side) == Form(side, None, 1.0)


def test_two_factors_need_a_node_more_than_one() -> None:
    y = np.linspace(-1, 1, 499)
    for count, free in ((249, False), (499, True)):  # the rank of 0.996 is 249 of 249, 498 of 499
        outputs = MemberOutputs(np.zeros(count), np.full(count, 1.0), np.full(count, 10.0))
        assert (choose_form(outputs, y[:count], 0.996).share is not None) == free


@pytest.mark.parametrize("tails", ["free", "equal", "symmetric"])
def test_calibrate_few_nodes_uses_form_that_depends_on_their_number_only(tails: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        half = np.exp(2 * rng.normal(size=100))
        outputs = MemberOutputs(rng.normal(size=100), half, rng.uniform(1, 9, 100))
        form = choose_form(outputs, rng.exponential(size=100), 0.9, tails=tails)
        assert form == Form("both", None, 0.5)  # 100 / (100 + 100)


def test_calibrate_few_nodes_covers_a_new_node_at_the_level() -> None:
    """Exact for exchangeable scores: rank 19 of 20 covers 19/21; the best of many forms less."""
    rng = np.random.default_rng(4)
    hits = []
    for _ in range(4000):
        half = np.exp(rng.normal(size=21))
        y = rng.standard_t(3, size=21)
        outputs = MemberOutputs(np.zeros(20), half[:20], half[:20])
        scaling = choose_form(outputs, y[:20], 0.9).fit(outputs, y[:20], 0.9)
        lower, upper = scaling.bounds(MemberOutputs(np.zeros(1), half[20:], half[20:]))
        hits.append(lower[0] <= y[20] <= upper[0])
    assert abs(np.mean(hits) - 19 / 21) < 4 * (19 / 21 * 2 / 21 / 4000) ** 0.5


@pytest.mark.parametrize("power", [0.5, 0.0])
def test_choose_form_chooses_the_power_of_the_noise(power: float) -> None:
    rng = np.random.default_rng(7)
    half = np.exp(2 * rng.normal(size=2000))
    outputs = MemberOutputs(np.zeros(2000), half, half)
    form = choose_form(outputs, half**power * rng.normal(size=2000), 0.9)
    assert form.power == power


def test_sides_and_tails_are_the_documented_names() -> None:
    """They stand in saved models and in scripts."""
    assert intervals.SIDES == ("both", "lower", "upper")
    assert cross_fit.TAILS == ("free", "equal", "symmetric")


def test_choose_form_one_sided_noise_divides_alpha_unequally() -> None:
    """5 % far above: the shortest 90 % interval gives that side most of the miss."""
    rng = np.random.default_rng(1)
    y = rng.uniform(0, 1, 1000)
    y[:50] += 30
    far = MemberOutputs(
        np.full(1000, 0.5), np.full(1000, 0.5), np.full(1000, 15.0)
    )  # equal-tailed words
    free = choose_form(far, y, 0.9)
    lower, upper = free.fit(far, y, 0.9).bounds(far)
    assert np.mean(upper - lower) < 1.05
    kept = choose_form(far, y, 0.9, tails="equal")
    lower, upper = kept.fit(far, y, 0.9).bounds(far)
    assert kept.share is None
    assert np.mean(upper - lower) > 1.05


def test_choose_form_symmetric_noise_keeps_the_form_of_the_nets() -> None:
    rng = np.random.default_rng(2)
    half = np.exp(rng.normal(size=1000))
    outputs = MemberOutputs(np.zeros(1000), half, half)
    own = choose_form(outputs, half * rng.normal(size=1000), 0.9)
    assert own == Form("both", None, 1.0)


def test_uninformative_half_widths_are_replaced_by_equal_ones() -> None:
    rng = np.random.default_rng(3)
    half = np.exp(2 * rng.normal(size=1000))
    outputs = MemberOutputs(np.zeros(1000), half, half)
    assert choose_form(outputs, rng.normal(size=1000), 0.9).power == 0.0


def test_widths_are_compared_in_the_unit_of_the_target() -> None:
    """What is even in logarithms is not in dollars."""
    rng = np.random.default_rng(4)
    outputs, y = outputs_of(1000), rng.normal(size=1000)
    plain = choose_form(outputs, y, 0.9).fit(outputs, y, 0.9)
    steep = choose_form(outputs, y, 0.9, unit=lambda z: np.exp(3 * z)).fit(outputs, y, 0.9)
    assert plain.above == plain.below
    assert steep.above < plain.above  # where a step costs more dollars, more misses go there


def test_members_are_scored_on_nodes_they_held_out_only() -> None:
    rng = np.random.default_rng(5)
    y = rng.normal(size=200)
    held_out = np.zeros((5, 200), dtype=bool)
    held_out[np.arange(200) % 5, np.arange(200)] = True
    held_out[:, :20] = False  # no member can be scored on these
    value = np.where(held_out, 0.0, y)  # members are exact on nodes they were trained on
    outputs = MemberOutputs(value, np.ones((5, 200)), np.ones((5, 200)))
    scaling, price = CrossFit().fit(outputs, held_out, y, 0.9)
    honest = cross_fit.Form("both", None, 1.0).fit(outputs_of(180), y[20:], 0.9)
    assert (scaling.below, scaling.above) == (honest.below, honest.above)
    assert price > 0
    changed = y.copy()
    changed[:20] = 1e6
    assert CrossFit().fit(outputs, held_out, changed, 0.9)[0] == scaling


def members(count: int, value: float = 0.0) -> tuple[MemberOutputs, np.ndarray]:
    """Two nets, each of which held every other node out, and say there as ``outliers`` do."""
    held_out = np.arange(count) % 2 == np.arange(2)[:, None]
    outputs = MemberOutputs(
        np.where(held_out, value, 1e6), np.full((2, count), 1.0), np.full((2, count), 10.0)
    )
    return outputs, held_out


def test_members_calibrate_as_one_net_that_held_all_nodes_out() -> None:
    alone, y = outliers(0)
    outputs, held_out = members(1000)
    scaling, price = CrossFit().fit(outputs, held_out, y, 0.9)
    assert scaling == Form("both", 0.0, 1.0).fit(alone, y, 0.9)
    assert price == pytest.approx(cross_fit.price(y, *scaling.bounds(alone), level=0.9))
    kept, higher = CrossFit(tails="equal").fit(outputs, held_out, y, 0.9)
    assert kept == Form("both", None, 1.0).fit(alone, y, 0.9)
    assert higher > 2 * price
    for side, open_side in (("lower", "above"), ("upper", "below")):
        single, nothing = CrossFit(side=side).fit(outputs, held_out, y, 0.9)
        assert single == Form(side, None, 1.0).fit(alone, y, 0.9)
        assert getattr(single, open_side) == np.inf
        assert nothing == 0.0  # a single bound has no width


def test_members_are_priced_in_the_unit_of_the_target() -> None:
    """Ten times the unit is ten times the price; where a unit is steep, more misses go there."""
    _, y = outliers(49)
    outputs, held_out = members(1000)
    scaling, price = CrossFit().fit(outputs, held_out, y, 0.9)
    tenfold = CrossFit().fit(outputs, held_out, y, 0.9, unit=lambda z: 10 * z)
    assert tenfold == (scaling, pytest.approx(10 * price))
    steep, _ = CrossFit().fit(outputs, held_out, y, 0.9, unit=lambda z: np.where(z > 0, 1e4 * z, z))
    assert steep.above < scaling.above
    assert steep.below > scaling.below


def test_cross_fit_node_held_out_by_fewest_nets_limits_the_extrapolation() -> None:
    """One node has a single net to judge it, so nothing is known about averages of more."""
    rng = np.random.default_rng(8)
    held_out = np.arange(200) % 2 == np.array([0, 0, 1, 1])[:, None]  # two nets a node
    held_out[1, 0] = False
    value, y, ones = rng.normal(size=(4, 200)), rng.normal(size=200), np.ones((4, 200))
    scaling, _ = CrossFit(tails="symmetric").fit(MemberOutputs(value, ones, ones), held_out, y, 0.9)
    averages = (value * held_out).sum(axis=0) / held_out.sum(axis=0)
    factor = np.sort(np.abs(y - averages))[180]  # rank ⌈201 · 0.9⌉ = 181
    assert (scaling.below, scaling.above) == (pytest.approx(factor), pytest.approx(factor))


def test_for_more_members_hand_computed() -> None:
    """Factors 3 for one net and 2 for two fall by 2 in 1/nets: 1 + 2/10 for ten, given nodes."""

    def carried(
        one: WidthScaling, several: WidthScaling, nodes: int, repeats: int = 2
    ) -> WidthScaling:
        return cross_fit.for_more_members(one, several, repeats=repeats, members=10, units=nodes)

    one, two = WidthScaling(3.0, np.inf, 0.5), WidthScaling(2.0, np.inf, 0.5)
    ten = carried(one, two, nodes=10**9)
    assert (ten.below, ten.above, ten.power) == (pytest.approx(1.2), np.inf, 0.5)
    assert carried(one, two, nodes=200).below == pytest.approx(1.6)  # half trusted
    assert carried(one, two, nodes=199) == two  # few nodes estimate the slope badly
    assert carried(one, two, nodes=10**9, repeats=1) == two
    assert (
        carried(WidthScaling(9.0, 9.0), WidthScaling(1.0, 1.0), 10**9).below == 0.5
    )  # never to nothing
    sides = carried(WidthScaling(3.0, 6.0), WidthScaling(2.0, 5.5), nodes=10**9)
    assert (sides.below, sides.above) == (pytest.approx(1.2), pytest.approx(5.1))


def test_cross_fit_ten_members_two_held_out_each_reaches_the_level() -> None:
    """Noise of the nets' own: two leave half of its variance, ten a tenth; ask both ways."""
    rng = np.random.default_rng(6)
    held_out = np.zeros((10, 4000), dtype=bool)
    for member in range(10):
        held_out[member] = np.arange(4000) // (1 if member < 5 else 5) % 5 == member % 5
    y = rng.normal(size=4000)
    outputs = MemberOutputs(rng.normal(size=(10, 4000)), np.ones((10, 4000)), np.ones((10, 4000)))
    scaling, _ = CrossFit().fit(outputs, held_out, y, 0.9)
    new = MemberOutputs(
        rng.normal(size=(10, 4000)), np.ones((10, 4000)), np.ones((10, 4000))
    ).mean()
    lower, upper = scaling.bounds(new)
    covered = np.mean((lower <= y) & (y <= upper))
    assert covered == pytest.approx(0.9, abs=0.02)
    plain = Form("both", None, 1.0).fit(outputs.mean(held_out), y, 0.9)
    lower, upper = plain.bounds(new)
    assert np.mean((lower <= y) & (y <= upper)) > 0.93


def test_price_of_heavy_tailed_targets_hand_computed() -> None:
    y, lower = np.array([3.0, 3.0, 9.0]), np.array([2.0, 1.0, 4.0])
    upper = np.array([4.0, 5.0, 8.0])
    # widths 2, 4, 4; scores at 0.9: 2, 4 and 4 + 20 · 1
    expected = np.sqrt(4.0) * np.sqrt((2 * 4 * 24) ** (1 / 3))
    price = cross_fit.price(y, lower, upper, level=0.9, heavy_tailed=True)
    assert price == pytest.approx(expected)


def test_price_of_heavy_tailed_targets_counts_no_score_below_a_thousandth_of_the_median() -> None:
    y = np.array([1.0, 1.0, 1.0])
    lower, upper = np.array([1.0, 0.5, 0.5]), np.array([1.0, 1.5, 1.5])
    expected = np.sqrt(1.0) * np.sqrt((0.001 * 1 * 1) ** (1 / 3))
    price = cross_fit.price(y, lower, upper, level=0.9, heavy_tailed=True)
    assert price == pytest.approx(expected)


def few_far_too_wide() -> tuple[MemberOutputs, np.ndarray]:
    """One node in twenty has hundred-fold noise and thousand-fold half-widths."""
    draw = np.random.default_rng(0)
    rare = np.arange(1000) % 20 == 0
    y = draw.normal(size=1000) * np.where(rare, 100, 1)
    half = np.where(rare, 1000.0, 1.0)
    return MemberOutputs(np.zeros(1000), half, half), y


def test_calibrate_heavy_tailed_targets_chooses_the_form_by_the_typical_node() -> None:
    outputs, y = few_far_too_wide()
    assert choose_form(outputs, y, 0.9, tails="equal", heavy_tailed=True).power == 1.0
    assert choose_form(outputs, y, 0.9, tails="equal").power == 0.0


def test_calibrate_members_heavy_tailed_targets_prices_the_typical_node() -> None:
    outputs, y = few_far_too_wide()
    members = MemberOutputs(*(part[None] for part in (outputs.value, outputs.below, outputs.above)))
    held_out = np.ones((1, len(y)), dtype=bool)
    scaling, price = CrossFit(tails="equal").fit(members, held_out, y, 0.9, heavy_tailed=True)
    assert scaling.power == 1.0  # of the typical node, not the one of the means
    assert CrossFit(tails="equal").fit(members, held_out, y, 0.9)[0].power < 1
    lower, upper = scaling.bounds(outputs)
    assert price == pytest.approx(cross_fit.price(y, lower, upper, level=0.9, heavy_tailed=True))


def test_calibrate_forms_compete_from_200_nodes_on() -> None:
    draw = np.random.default_rng(1)
    half = draw.uniform(0.5, 2, size=200)
    outputs = MemberOutputs(np.zeros(200), half, half)
    assert choose_form(outputs, half * draw.normal(size=200), 0.9).power == 1.0


def test_form_takes_the_ranked_score_among_many() -> None:
    y = np.random.default_rng(2).permutation(1001) + 1.0
    for level in (0.1, 0.5, 0.9):
        rank = conformal_rank(1001, level)
        assert Form("upper", None, 1.0).fit(outputs_of(1001), y, level).above == rank
