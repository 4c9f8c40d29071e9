"""Every objective's gradient against differences (float64), and its numbers in float32.

Targets are kept away from the bounds, where a loss has a corner or, counted hard, a jump.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from qpignn.objectives.evidential import evidential_nll, misplaced_evidence
from qpignn.objectives.gaussian import normal_kl, normal_nll
from qpignn.objectives.joint import VIOLATIONS, WIDTHS, joint_loss
from qpignn.objectives.pinball import pinball
from qpignn.objectives.rqr import rqr

NODES = 12
LEVELS = torch.tensor([[0.5], [0.9]], dtype=torch.float64)
WEIGHT = torch.linspace(0, 2, 2 * NODES, dtype=torch.float64).view(2, NODES)
MIDDLE, LOG, POSITIVE, ABOVE_ONE = "middle", "log", "positive", "above one"
Objective = Callable[..., Tensor]


def joint(violation: str, width: str, weight: Tensor | None) -> Objective:
    def loss(lower: Tensor, upper: Tensor, y: Tensor) -> Tensor:
        return joint_loss(
            lower,
            upper,
            y,
            confidence_level=LEVELS.to(y),
            lambda_width=(1 - LEVELS.to(y)) / 2,
            violation_form=violation,
            width_form=width,
            weight=None if weight is None else weight.to(y),
        )

    return loss


def relaxed(lower: Tensor, upper: Tensor, y: Tensor) -> Tensor:
    return rqr(lower, upper, y, wanted_coverage=0.9, lambda_width=0.7, gamma_order=1.3)


OBJECTIVES: dict[str, tuple[Objective, tuple[str, ...]]] = {
    **{
        f"joint {violation} {width}{'' if weight is None else ' weighted'}": (
            joint(violation, width, weight),
            ("lower", "upper", "y"),
        )
        for violation in VIOLATIONS
        for width in WIDTHS
        for weight in (None, WEIGHT)
    },
    "pinball": (lambda q, y: pinball(q, y, 0.3), ("lower", "y")),
    "rqr": (relaxed, ("lower", "upper", "y")),
    "rqr crossed": (relaxed, ("upper", "lower", "y")),
    "normal": (normal_nll, (MIDDLE, LOG, "y")),
    "normal with doubt": (normal_nll, (MIDDLE, LOG, "y", POSITIVE)),
    "divergence": (lambda m, v: normal_kl(m, v, 0.5), (MIDDLE, LOG)),
    "evidential": (evidential_nll, (MIDDLE, POSITIVE, ABOVE_ONE, POSITIVE, "y")),
    "misplaced evidence": (misplaced_evidence, (MIDDLE, POSITIVE, ABOVE_ONE, "y")),
}


def numbers(kind: str) -> Tensor:
    """Two levels of two members; some targets below, some inside, some above, none near."""
    draw = torch.Generator().manual_seed(sum(map(ord, kind)))
    noise = torch.rand(2, 2, NODES, generator=draw, dtype=torch.float64)
    place = torch.arange(NODES, dtype=torch.float64) % 3 - 1
    inputs = {
        "lower": -1.0 - 0.2 * noise,
        "upper": 1.0 + 0.2 * noise,
        "y": 2.0 * place + 0.2 * noise,
        MIDDLE: 0.5 + 0.1 * noise,
        LOG: noise - 0.5,
        POSITIVE: 0.2 + noise,
        ABOVE_ONE: 1.2 + noise,
    }
    return inputs[kind]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_agree_with_differences(name: str) -> None:
    objective, kinds = OBJECTIVES[name]
    inputs = [numbers(kind).requires_grad_(kind != "y") for kind in kinds]
    assert torch.autograd.gradcheck(objective, inputs)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_float32_agrees_with_float64(name: str) -> None:
    """A few dozen roundings of 2⁻²⁴ of numbers up to about 10."""
    objective, kinds = OBJECTIVES[name]
    answers: list[list[Any]] = []
    for dtype in (torch.float32, torch.float64):
        exact = [numbers(kind).float().to(dtype).requires_grad_(kind != "y") for kind in kinds]
        loss = objective(*exact)
        assert loss.dtype == dtype
        wanted = [given for given in exact if given.requires_grad]
        answers.append([loss.detach(), *torch.autograd.grad(loss.sum(), wanted)])
    for single, double in zip(*answers, strict=True):
        largest = double.abs().max().item()
        torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=1e-6 * largest)
