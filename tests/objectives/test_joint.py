"""Hand-computed terms, and what λ does to coverage, as the module's docstring derives it."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from qpignn import metrics
from qpignn.errors import ArrayError
from qpignn.objectives import joint

# inside; on the bound; 1 below; 2 above
Y = torch.tensor([1.0, 3.0, -1.0, 9.0])
LOWER = torch.tensor([0.0, 1.0, 0.0, 3.0])
UPPER = torch.tensor([2.0, 3.0, 4.0, 7.0])


def test_forms_that_settings_may_name_are_those_there_are() -> None:
    assert get_args(joint.ViolationForm) == tuple(joint.VIOLATIONS)
    assert get_args(joint.WidthForm) == tuple(joint.WIDTHS)


def test_terms_hand_computed() -> None:
    assert joint.covered(LOWER, UPPER, Y).tolist() == [True, True, False, False]
    assert joint.coverage_penalty(LOWER, UPPER, Y, 0.9).item() == pytest.approx(0.16)
    assert joint.violation(LOWER, UPPER, Y).tolist() == [0.0, 0.0, 1.0, 2.0]
    assert joint.violation_product(LOWER, UPPER, Y).tolist() == [0.0, 0.0, 5.0, 12.0]
    assert joint.width(LOWER, UPPER).tolist() == [2.0, 2.0, 4.0, 4.0]
    assert joint.width_squared(LOWER, UPPER).tolist() == [4.0, 4.0, 16.0, 16.0]


@pytest.mark.parametrize(
    ("violation_form", "width_form", "wanted"),
    [
        ("all", "l1", 0.16 + 3 / 4 + 0.5 * 3),
        ("violated", "l1", 0.16 + 3 / 2 + 0.5 * 3),
        ("product", "l1", 0.16 + 17 / 4 + 0.5 * 3),
        ("all", "l2", 0.16 + 3 / 4 + 0.5 * 10),
    ],
)
def test_joint_loss_hand_computed(violation_form: str, width_form: str, wanted: float) -> None:
    got = joint.joint_loss(
        LOWER,
        UPPER,
        Y,
        confidence_level=0.9,
        lambda_width=0.5,
        violation_form=violation_form,
        width_form=width_form,
    )
    assert got.item() == pytest.approx(wanted)


def test_weights_count_nodes_more_or_less() -> None:
    weight = torch.tensor([0.0, 0.0, 3.0, 1.0])
    options = {"confidence_level": 0.9, "lambda_width": 0.5, "weight": weight}
    for form in ("all", "violated"):  # nothing that counts is covered, so the gap is 0.9
        got = joint.joint_loss(LOWER, UPPER, Y, violation_form=form, **options)  # type: ignore[arg-type]
        assert got.item() == pytest.approx(0.81 + (3 * 1 + 1 * 2) / 4 + 0.5 * 4)
    half = torch.tensor([1.0, 1.0, 0.0, 0.0])  # covered, and narrow
    got = joint.joint_loss(LOWER, UPPER, Y, **{**options, "weight": half})  # type: ignore[arg-type]
    assert got.item() == pytest.approx(0.01 + 0.5 * 2)


@pytest.mark.parametrize("form", ["all", "violated", "product"])
def test_weights_are_relative(form: str) -> None:
    few = torch.tensor([0.001, 0.003, 0.002, 0.001])
    small, large = (
        joint.joint_loss(
            LOWER,
            UPPER,
            Y,
            confidence_level=0.9,
            lambda_width=0.5,
            violation_form=form,
            weight=weight,
        )
        for weight in (few, 1000 * few)
    )
    assert small.item() == pytest.approx(large.item())


def bounds(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    y, middle, half = rng.normal(size=15), rng.normal(size=15), rng.exponential(size=15)
    lower, upper = (torch.from_numpy(middle + sign * half) for sign in (-1, 1))
    return lower.requires_grad_(), upper.requires_grad_(), torch.from_numpy(y)


def sum_of_terms(lower: Tensor, upper: Tensor, y: Tensor, lam: float, weight: Tensor) -> Tensor:
    hits = joint.coverage_penalty(lower, upper, y, 0.9, weight)
    missed = joint.mean_over_all(joint.violation(lower, upper, y), weight)
    return hits + missed + lam * joint.mean_over_all(joint.width(lower, upper), weight)


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0), st.booleans())
def test_joint_loss_equals_the_sum_of_terms(seed: int, lam: float, weighted: bool) -> None:
    lower, upper, y = bounds(seed)
    weight = torch.from_numpy(np.random.default_rng(seed).random(15)) if weighted else None
    fast = joint.joint_loss(lower, upper, y, confidence_level=0.9, lambda_width=lam, weight=weight)
    plain = sum_of_terms(lower, upper, y, lam, torch.ones_like(y) if weight is None else weight)
    torch.testing.assert_close(fast, plain)
    fast_gradients = torch.autograd.grad(fast, (lower, upper))
    torch.testing.assert_close(fast_gradients, torch.autograd.grad(plain, (lower, upper)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["all", "violated"])
def test_levels_and_members_add_up(form: str, weighted: bool) -> None:
    """Two levels of three members at once cost what the six cost one by one."""
    levels, prices = torch.tensor([[0.5], [0.9]]).double(), torch.tensor([[0.25], [0.05]]).double()
    single = [[bounds(3 * k + m) for m in range(3)] for k in range(2)]
    lower, upper, y = (
        torch.stack([torch.stack([cell[i].detach() for cell in row]) for row in single])
        for i in range(3)
    )
    weight = torch.rand(3, 15, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    together = joint.joint_loss(
        lower,
        upper,
        y,
        confidence_level=levels,
        lambda_width=prices,
        violation_form=form,
        weight=weight if weighted else None,
    )
    apart = sum(
        joint.joint_loss(
            *single[k][m],
            confidence_level=levels[k].item(),
            lambda_width=prices[k].item(),
            violation_form=form,
            weight=weight[m] if weighted else None,
        ).item()
        for k in range(2)
        for m in range(3)
    )
    assert together.item() == pytest.approx(apart)


def test_at_half_alpha_the_loss_is_half_alpha_times_the_winkler_score() -> None:
    lower, upper, y = (column.detach() for column in bounds(1))
    loss = joint.joint_loss(lower, upper, y, confidence_level=0.8, lambda_width=0.1)
    hits = joint.coverage_penalty(lower, upper, y, 0.8)
    winkler = metrics.winkler_score(y, lower, upper, confidence_level=0.8)
    assert (loss - hits).item() == pytest.approx(0.1 * winkler)


def test_coverage_penalty_has_no_gradient() -> None:
    lower, upper, y = bounds(2)
    term = joint.coverage_penalty(lower, upper, y, 0.9)
    assert not term.requires_grad


QUANTILES = torch.from_numpy(stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000))


@pytest.mark.parametrize("lam", [0.025, 0.05, 0.1, 0.25])
def test_printed_form_converges_to_coverage_one_minus_two_lambda(lam: float) -> None:
    half = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([half], lr=0.02)
    for _ in range(600):
        adam.zero_grad()
        lower, upper = -half.expand(20_000), half.expand(20_000)
        joint.joint_loss(lower, upper, QUANTILES, confidence_level=0.9, lambda_width=lam).backward()
        adam.step()
    settled = half.item()
    coverage = metrics.picp(
        QUANTILES, torch.full((20_000,), -settled), torch.full((20_000,), settled)
    )
    assert coverage == pytest.approx(1 - 2 * lam, abs=0.005)


@pytest.mark.parametrize("half_width", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("lam", [0.1, 0.5, 0.7])
def test_published_form_pulls_by_two_lambda_minus_one_at_any_coverage(
    half_width: float, lam: float
) -> None:
    half = torch.tensor(half_width, dtype=torch.float64, requires_grad=True)
    lower, upper = -half.expand(20_000), half.expand(20_000)
    loss = joint.joint_loss(
        lower,
        upper,
        QUANTILES,
        confidence_level=0.9,
        lambda_width=lam,
        violation_form="violated",
    )
    (gradient,) = torch.autograd.grad(loss, half)
    assert gradient.item() == pytest.approx(2 * lam - 1, abs=1e-6)


def test_joint_loss_without_violations_is_the_coverage_penalty() -> None:
    wide = torch.full((4,), 100.0)
    loss = joint.joint_loss(
        -wide, wide, Y, confidence_level=0.9, lambda_width=0.0, violation_form="violated"
    )
    assert loss.item() == pytest.approx(0.01)


@pytest.mark.parametrize("column", range(3))
def test_shapes_that_differ_raise(column: int) -> None:
    columns = [LOWER, UPPER, Y]
    columns[column] = columns[column].unsqueeze(1)
    for function in (joint.covered, joint.violation, joint.violation_product):
        with pytest.raises(ArrayError, match=r"one shape, got \[\(4,\), \(4, 1\)\]"):
            function(*columns)
    for form in joint.VIOLATIONS:
        with pytest.raises(ArrayError, match="one shape"):
            joint.joint_loss(*columns, confidence_level=0.9, lambda_width=0.1, violation_form=form)


def test_widths_and_weights_of_other_shapes_raise() -> None:
    with pytest.raises(ArrayError, match="one shape"):
        joint.width(LOWER, UPPER[:2])
    for mean in (joint.mean_over_all, joint.mean_over_positive):
        for wrong in (torch.ones(4, 1), torch.ones(1), torch.ones(2)):
            with pytest.raises(ArrayError, match="one shape"):
                mean(Y, wrong)


def test_one_member_takes_the_weights_of_the_nodes() -> None:
    values, weight = torch.tensor([[1.0, 0.0, 5.0]]), torch.tensor([3.0, 1.0, 0.0])
    assert joint.mean_over_all(values, weight).tolist() == [0.75]
    assert joint.mean_over_positive(values, weight).tolist() == [1.0]


def test_bounds_belong_to_the_interval() -> None:
    """Targets on the lower and on the upper bound are covered: the gap to 1 is nothing."""
    for form in joint.VIOLATIONS:
        loss = joint.joint_loss(
            torch.tensor([1.0, 0.0]),
            torch.tensor([2.0, 1.0]),
            torch.tensor([1.0, 1.0]),
            confidence_level=1.0,
            lambda_width=0.5,
            violation_form=form,
        )
        assert loss.item() == pytest.approx(0.5)


def test_joint_loss_times_three_has_three_times_the_gradient() -> None:
    lower, upper, y = bounds(4)
    loss = joint.joint_loss(lower, upper, y, confidence_level=0.9, lambda_width=0.1)
    once = torch.autograd.grad(loss, (lower, upper), retain_graph=True)
    thrice = torch.autograd.grad(3 * loss, (lower, upper))
    torch.testing.assert_close(thrice, tuple(3 * gradient for gradient in once))
