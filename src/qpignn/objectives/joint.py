r"""The joint loss of QpiGNN (Eq. 6): coverage + violation + λ·width.

What λ does
-----------
The coverage term (ĉ − (1−α))² counts hits with a hard indicator, so its gradient is zero: it is
reported, but what trains the net is violation + λ·width.

*Violation averaged over all nodes, as printed.* A node's half-width d costs 2λ per unit and saves
one unit of violation whenever |y − ŷ| > d. It rests where

    d/dd E[(|y − ŷ| − d)⁺ + 2λd] = −P(|y − ŷ| > d) + 2λ = 0,

so coverage settles at 1 − 2λ. **λ = α/2 is the calibrated value**: the loss is then α/2 times the
Winkler score, which is proper, and both bounds rest at the α/2 and 1 − α/2 quantiles. At λ ≥ 1/2
the cost exceeds any saving and intervals shrink to nothing.

*Violation averaged over violated nodes.* With V violated nodes, each
saves 1/V per unit of its own d, and all V together 1: moving every half-width by one common step
changes the loss by −1 + 2λ whenever V > 0, whatever the coverage. Below λ = 1/2 intervals grow
until next to nothing is violated, above it they shrink: a switch, not a dial.

*Product form (the paper's footnote).* (y − lower)(y − upper) is positive outside and equals the
missed distance times the distance to the far bound: not the same quantity, but zero in the same
places. Its pull grows with the width, so no λ has a fixed coverage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from qpignn.errors import ArrayError
from qpignn.intervals import covers

Nodes = Tensor
"""(…, nodes): one number a node; axes before the last are levels and members, each on its own."""


def same_shape(*columns: Tensor) -> None:
    """Raise unless columns have one shape: a broadcast would compare nodes with other nodes."""
    shapes = {tuple(column.shape) for column in columns}
    if len(shapes) > 1:
        raise ArrayError(
            f"expected columns of one shape, got {sorted(shapes)}; (N,) against (N, 1) would "
            f"silently compare every node with every other"
        )


def _fits(values: Tensor, weight: Tensor) -> None:
    """Raise unless weights are those of the nodes: of the last axis, and of axes before it."""
    same_shape(values[(0,) * (values.dim() - weight.dim())], weight)


def covered(lower: Nodes, upper: Nodes, y: Nodes) -> Nodes:
    """Whether each target lies in its closed interval."""
    same_shape(lower, upper, y)
    inside: Tensor = covers(y, lower, upper)
    return inside


def coverage_penalty(
    lower: Nodes,
    upper: Nodes,
    y: Nodes,
    confidence_level: float | Tensor,
    weight: Nodes | None = None,
) -> Tensor:
    """First term of Eq. 6: (ĉ − (1−α))². A hard count, without gradient."""
    hits = covered(lower, upper, y).to(y.dtype)
    return (mean_over_all(hits, weight) - confidence_level) ** 2


def violation(lower: Nodes, upper: Nodes, y: Nodes) -> Nodes:
    """How far y lies outside [lower, upper]; zero inside."""
    same_shape(lower, upper, y)
    return torch.relu(lower - y) + torch.relu(y - upper)


def violation_product(lower: Nodes, upper: Nodes, y: Nodes) -> Nodes:
    """Footnote form: max(0, (y − lower)·(y − upper))."""
    same_shape(lower, upper, y)
    return torch.relu((y - lower) * (y - upper))


def width(lower: Nodes, upper: Nodes) -> Nodes:
    """Upper minus lower, in scaled-target units (L1 width penalty)."""
    same_shape(lower, upper)
    return upper - lower


def width_squared(lower: Nodes, upper: Nodes) -> Nodes:
    """Squared width (L2 width penalty)."""
    return width(lower, upper) ** 2


def mean_over_all(values: Nodes, weight: Nodes | None = None) -> Tensor:
    """Mean over all nodes, weighted where weights are given."""
    if weight is None:
        return values.mean(dim=-1)
    _fits(values, weight)
    return (values * weight).sum(dim=-1) / weight.sum(dim=-1)


def mean_over_positive(values: Nodes, weight: Nodes | None = None) -> Tensor:
    """Mean over the nodes with a positive value only; zero where there are none."""
    if weight is None:
        weight = torch.ones_like(values)
    _fits(values, weight)
    total = (weight * (values > 0)).sum(dim=-1)
    return (values * weight).sum(dim=-1) / total.clamp_min(1e-12)


ViolationForm = Literal["all", "violated", "product"]
WidthForm = Literal["l1", "l2"]
VIOLATIONS: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "all": (violation, mean_over_all),
    "violated": (violation, mean_over_positive),
    "product": (violation_product, mean_over_all),
}
WIDTHS: dict[str, Callable[..., Tensor]] = {"l1": width, "l2": width_squared}


def joint_loss(
    lower: Nodes,
    upper: Nodes,
    y: Nodes,
    *,
    confidence_level: float | Tensor,
    lambda_width: float | Tensor,
    violation_form: str = "all",
    width_form: str = "l1",
    weight: Nodes | None = None,
) -> Tensor:
    """Eq. 6, summed over levels and members. The module's docstring derives what λ does.

    Args:
        lower, upper, y: bounds and targets in scaled units, (…, nodes).
        confidence_level: wanted coverage 1 − α; one number, or one for each level as (levels, 1).
        lambda_width: price of width, likewise; α/2 is calibrated for ``all`` with ``l1``.
        violation_form: ``all`` (as printed), ``violated`` or ``product``.
        width_form: ``l1`` or ``l2``.
        weight: how much each node counts, (nodes,) or (members, nodes).
    """
    if (violation_form, width_form) == ("all", "l1"):
        loss: Tensor = _PrintedForm.apply(  # type: ignore[no-untyped-call]
            lower, upper, y, confidence_level, lambda_width, weight
        )
        return loss
    missed, mean = VIOLATIONS[violation_form]
    terms: Tensor = (
        coverage_penalty(lower, upper, y, confidence_level, weight)
        + mean(missed(lower, upper, y), weight)
        + lambda_width * mean_over_all(WIDTHS[width_form](lower, upper), weight)
    )
    return terms.sum()


class _PrintedForm(torch.autograd.Function):
    """Eq. 6 as printed: the same numbers as the terms above, in far fewer steps.

    On a small graph a training step is mostly autograd's bookkeeping, and this gradient is known:
    per node, 1[lower > y] − λ for the lower bound and λ − 1[y > upper] for the upper.
    """

    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any,
        lower: Tensor,
        upper: Tensor,
        y: Tensor,
        level: float | Tensor,
        lam: float | Tensor,
        weight: Tensor | None,
    ) -> Tensor:
        same_shape(lower, upper, y)
        below, above = (lower > y).to(y.dtype), (y > upper).to(y.dtype)
        gap = (1 - mean_over_all(below + above, weight) - level).square_()
        lam = lam.unsqueeze(-1) if isinstance(lam, Tensor) else lam
        to_lower, to_upper = below.sub_(lam), above.neg_().add_(lam)
        if weight is None:
            to_lower, to_upper = to_lower.div_(y.shape[-1]), to_upper.div_(y.shape[-1])
        else:
            share = weight / weight.sum(dim=-1, keepdim=True)
            to_lower, to_upper = to_lower.mul_(share), to_upper.mul_(share)
        # the terms with a gradient are linear in it: Σ (lower − y)·to_lower + (upper − y)·to_upper
        priced = torch.dot((lower - y).flatten(), to_lower.flatten())
        priced += torch.dot((upper - y).flatten(), to_upper.flatten())
        ctx.save_for_backward(to_lower, to_upper)
        return gap.sum() + priced

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        to_lower, to_upper = ctx.saved_tensors
        return to_lower * gradient, to_upper * gradient, None, None, None, None
