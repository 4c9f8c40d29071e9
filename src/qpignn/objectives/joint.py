r"""The joint loss of QpiGNN (Eq. 6): coverage + violation + λ·width.

Effect of λ
-----------
The coverage term (ĉ − (1−α))² counts covered targets with a hard indicator, so its gradient is
zero: it is part of the reported loss, but the net is trained by violation + λ·width.

*Violation averaged over all nodes, as printed.* A node's half-width d costs 2λ per unit and saves
one unit of violation whenever |y − ŷ| > d. The optimum satisfies

    d/dd E[(|y − ŷ| − d)⁺ + 2λd] = −P(|y − ŷ| > d) + 2λ = 0,

so coverage settles at 1 − 2λ. **λ = α/2 is the calibrated value**: the loss is then α/2 times the
Winkler score, which is proper, and the optimal bounds are the α/2 and 1 − α/2 quantiles. At λ ≥ 1/2
the cost exceeds any saving and intervals shrink to width 0.

*Violation averaged over violated nodes.* With V violated nodes, each
saves 1/V per unit of its own d, and all V together 1: moving every half-width by one common step
changes the loss by −1 + 2λ whenever V > 0, whatever the coverage. Below λ = 1/2 intervals grow
until almost no target is violated, above it they shrink: coverage jumps at λ = 1/2.

*Product form (the paper's footnote).* (y − lower)(y − upper) is positive outside and equals the
violation times the distance to the far bound: another quantity, with the same zeros. Its gradient
grows with the width, so no λ corresponds to a fixed coverage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from qpignn.errors import ArrayError
from qpignn.intervals import covers

Nodes = Tensor
"""(…, nodes): one number per node; the axes before the last are levels and members."""


def same_shape(*columns: Tensor) -> None:
    """Check that tensors have one shape: a broadcast would compare nodes with other nodes.

    Args:
        columns: the tensors.

    Raises:
        ArrayError: if the shapes differ.
    """
    shapes = {tuple(column.shape) for column in columns}
    if len(shapes) > 1:
        raise ArrayError(
            f"expected columns of one shape, got {sorted(shapes)}; (N,) against (N, 1) would "
            f"silently compare every node with every other"
        )


def _fits(values: Tensor, weight: Tensor) -> None:
    """Raise unless weights have the shape of the values' last axes."""
    same_shape(values[(0,) * (values.dim() - weight.dim())], weight)


def covered(lower: Nodes, upper: Nodes, y: Nodes) -> Nodes:
    """Return whether each target lies in its closed interval, lower ≤ y ≤ upper.

    Args:
        lower: lower bounds, (…, nodes).
        upper: upper bounds, likewise.
        y: targets, likewise.
    """
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
    """Return the first term of Eq. 6, (ĉ − (1−α))², whose gradient is zero.

    Args:
        lower: lower bounds, (…, nodes).
        upper: upper bounds, likewise.
        y: targets, likewise.
        confidence_level: wanted coverage 1 − α, one number or broadcast over levels.
        weight: weights of the nodes; None for equal ones.
    """
    hits = covered(lower, upper, y).to(y.dtype)
    return (mean_over_all(hits, weight) - confidence_level) ** 2


def violation(lower: Nodes, upper: Nodes, y: Nodes) -> Nodes:
    """Return (lower − y)⁺ + (y − upper)⁺: how far y lies outside its interval.

    Args:
        lower: lower bounds, (…, nodes).
        upper: upper bounds, likewise.
        y: targets, likewise.
    """
    same_shape(lower, upper, y)
    return torch.relu(lower - y) + torch.relu(y - upper)


def violation_product(lower: Nodes, upper: Nodes, y: Nodes) -> Nodes:
    """Return the form of the paper's footnote, max(0, (y − lower)·(y − upper)).

    Args:
        lower: lower bounds, (…, nodes).
        upper: upper bounds, likewise.
        y: targets, likewise.
    """
    same_shape(lower, upper, y)
    return torch.relu((y - lower) * (y - upper))


def width(lower: Nodes, upper: Nodes) -> Nodes:
    """Return upper − lower, in scaled-target units (L1 width penalty).

    Args:
        lower: lower bounds, (…, nodes).
        upper: upper bounds, likewise.
    """
    same_shape(lower, upper)
    return upper - lower


def width_squared(lower: Nodes, upper: Nodes) -> Nodes:
    """Return (upper − lower)² (L2 width penalty).

    Args:
        lower: lower bounds, (…, nodes).
        upper: upper bounds, likewise.
    """
    return width(lower, upper) ** 2


def mean_over_all(values: Nodes, weight: Nodes | None = None) -> Tensor:
    """Return the weighted mean over all nodes, Σ wᵢvᵢ / Σ wᵢ.

    Args:
        values: (…, nodes).
        weight: (nodes,) or (members, nodes); None for equal weights.
    """
    if weight is None:
        return values.mean(dim=-1)
    _fits(values, weight)
    return (values * weight).sum(dim=-1) / weight.sum(dim=-1)


def mean_over_positive(values: Nodes, weight: Nodes | None = None) -> Tensor:
    """Return the weighted mean over the nodes with a positive value; 0 if there are none.

    Args:
        values: non-negative, (…, nodes).
        weight: (nodes,) or (members, nodes); None for equal weights.
    """
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
    """Return Eq. 6, summed over levels and members; the module's docstring derives the effect of λ.

    Args:
        lower, upper, y: bounds and targets in scaled units, (…, nodes).
        confidence_level: wanted coverage 1 − α; one number, or one per level as (levels, 1).
        lambda_width: λ, likewise; α/2 is calibrated for ``all`` with ``l1``.
        violation_form: ``all`` (as printed), ``violated`` or ``product``.
        width_form: ``l1`` or ``l2``.
        weight: weights of the nodes, (nodes,) or (members, nodes); None for equal ones.
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
    """Eq. 6 as printed: the same values as the terms above, with an explicit gradient.

    On a small graph most of a training step is autograd's overhead. The gradient is, per node,
    1[lower > y] − λ for the lower bound and λ − 1[y > upper] for the upper.
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
