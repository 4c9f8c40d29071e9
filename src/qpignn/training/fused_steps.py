"""Training steps with a hand-written gradient, of the whole net or of a part of it.

:func:`joint_steps` is the step of nets under the joint loss, QpiGNN's default among them, without
autograd. Encoder, head and loss are those of the plain path, and keep what the gradient needs. With
r = y − ŷ, half-widths d₋ and d₊, B = 1[r < −d₋], A = 1[r > d₊] and a node's share s of the mean,
the gradient of the joint loss (as printed) is s·(B − A) with respect to ŷ, s·(λ − B) with respect
to d₋ and s·(λ − A) with respect to d₊; its terms with a gradient add up to these times −r, d₋ and
d₊.

:func:`step_of` is the step of all other nets: the encoder, and the head where it is linear, use the
encoder's fused form if it has one, and autograd does the rest. ``tests/training`` compares both
with the plain path and with autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from qpignn.encoders.fused import FusedLayers
from qpignn.encoders.inputs import GraphInputs
from qpignn.nn.heads import POSITIVE, IntervalHead, LinearHead
from qpignn.nn.interval_net import IntervalNet, run_apart
from qpignn.training.loop import StepResult

HeadOutputs = tuple[Tensor, Tensor, Tensor]
"""Value, half-widths below and above."""
FusedResult = tuple[Tensor, HeadOutputs, Callable[[], None]]
"""A loss, the head's outputs, and a function that fills in the gradients."""


class FusedNet:
    """A net's forward and backward pass without autograd, for some of its members.

    The weights' gradients must be allocated at the first forward pass.

    Args:
        layers: the encoder's fused form.
        head: a linear map that follows it; None to return hidden vectors.
    """

    def __init__(self, layers: FusedLayers, head: LinearHead | None) -> None:
        self.layers, self.head, self.part = layers, head, layers.part
        self._bound = False

    def forward(self) -> Tensor:
        """Return the head's outputs, (outputs, members, nodes), or without one hidden vectors."""
        if not self._bound and self.head is not None:  # weights are where the optimiser has them
            weights = (self.head.weight, self.head.bias)
            self.weight, self.bias = (weight[self.part] for weight in weights)
            self.to_weight, self.to_bias = (cast(Tensor, w.grad)[self.part] for w in weights)
            self._bound = True
        self.hidden = self.layers.forward()
        if self.head is None:
            return self.hidden
        return torch.baddbmm(self.bias, self.weight, self.hidden.mT).transpose(0, 1)

    def backward(self, gradient: Tensor) -> None:
        """Write the gradients of all weights.

        Args:
            gradient: of what :meth:`forward` returned.
        """
        if self.head is not None:
            by_member = gradient.transpose(0, 1)
            torch.bmm(by_member, self.hidden, out=self.to_weight)
            torch.sum(by_member, 2, keepdim=True, out=self.to_bias)
            gradient = torch.bmm(by_member.mT, self.weight)
        self.layers.backward(gradient)

    def release(self) -> None:
        """Free the memory of the last pass."""
        del self.hidden
        self.layers.release()


def step_of(
    net: IntervalNet, inputs: GraphInputs, cost: Callable[[Any], StepResult]
) -> Callable[[], StepResult]:
    """Return a training step that uses the encoder's fused form where there is one.

    Args:
        net: the net.
        inputs: of the graph.
        cost: returns the loss from the head's outputs; autograd differentiates it.
    """
    head = net.head
    linear = head if type(head) is LinearHead else None
    layers = net.encoder.fused(inputs, slice(None))
    if layers is None:
        return lambda: cost(net(inputs))
    fused = FusedNet(layers, linear)

    def step() -> StepResult:
        with torch.no_grad():
            outputs = fused.forward().detach()
        outputs.requires_grad_()
        measured = cost(head(outputs) if linear is None else outputs)

        def gradient() -> None:
            measured.backward()
            with torch.inference_mode():
                fused.backward(cast(Tensor, outputs.grad))

        return replace(measured, gradient=gradient)

    return step


class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, outputs: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None, None


def with_gradient(outputs: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
    """Return a number with a given gradient for autograd.

    Args:
        outputs: what it was computed from.
        value: the number.
        gradient: of the number with respect to ``outputs``.

    Returns:
        The number.
    """
    result: Tensor = _WithGradient.apply(outputs, value, gradient)  # type: ignore[no-untyped-call]
    return result


class JointStep:
    """Joint loss and its gradient, of nets on one graph.

    Args:
        net: the net; its head gives a value and half-widths.
        y: (rows,) targets, in the net's units.
        weight: (members, rows), or None for equal weights.
        levels: (levels, 1), wanted coverages.
        prices: (levels, 1), λ of each level.
        anchored: whether the value also counts as the interval of level 0, at λ = 1/2.
    """

    def __init__(
        self,
        net: FusedNet,
        y: Tensor,
        weight: Tensor | None,
        *,
        levels: Tensor,
        prices: Tensor,
        anchored: bool,
    ) -> None:
        head = net.head
        assert isinstance(head, IntervalHead)
        self.net, self.sides = net, head.sides
        self.y, self.levels, self.anchored = y, levels, anchored
        # the axes of the head's outputs: outputs, members, nodes
        share = torch.full((1, len(y)), 1 / len(y), dtype=y.dtype)
        if weight is not None:
            share = (weight / weight.sum(dim=-1, keepdim=True))[net.part]
        self.share, self.weighted_price = share, prices.unsqueeze(-1) * share
        self.positive, self.positive_backward = POSITIVE[head.positive_name]

    def forward(self) -> tuple[Tensor, HeadOutputs]:
        """Return the loss and the head's outputs; gradient mode must be off."""
        share = self.share
        self.raw = self.net.forward()
        self.steps = self.positive(self.raw[1:])
        sides = [_running_sum(part) for part in self.steps.chunk(self.sides)]
        value, below, above = self.raw[0], sides[0], sides[-1]
        off = self.y - value
        under, over = torch.empty_like(below), torch.empty_like(above)
        torch.lt(off, below.neg(), out=under)
        torch.gt(off, above, out=over)
        under, over = under.mul_(share), over.mul_(share)
        missed = under.sum(dim=-1).add_(over.sum(dim=-1))
        self.to_value = (under - over).sum(dim=0)
        self.to_below = torch.sub(self.weighted_price, under, out=under)
        self.to_above = torch.sub(self.weighted_price, over, out=over)
        loss = (1 - missed).sub_(self.levels).square_().sum()
        if self.anchored:
            moved = off.sign().mul_(share)
            loss += (1 - moved.abs().sum(dim=-1)).square_().sum()
            self.to_value.sub_(moved)
        loss -= torch.dot(off.view(-1), self.to_value.view(-1))
        loss += torch.dot(below.reshape(-1), self.to_below.view(-1))
        loss += torch.dot(above.reshape(-1), self.to_above.view(-1))
        return loss, (value, below, above)

    def backward(self) -> None:
        """Fill in the gradients of all weights; gradient mode must be off."""
        to_raw = torch.empty_like(self.raw)
        to_raw[0] = self.to_value
        if self.sides == 1:
            to_steps = _running_sum_backward(self.to_below.add_(self.to_above))
        else:
            sides = (self.to_below, self.to_above)
            to_steps = torch.cat([_running_sum_backward(side) for side in sides])
        to_raw[1:] = self.positive_backward(to_steps, self.raw[1:], self.steps)
        self.net.backward(to_raw)

    def release(self) -> None:
        """Free the memory of the last pass."""
        del self.raw, self.steps, self.to_value, self.to_below, self.to_above
        self.net.release()


def _running_sum(steps: Tensor) -> Tensor:
    """Running sum over levels, which are few: additions in a loop are faster than ``cumsum``."""
    if len(steps) == 1:
        return steps
    sums = steps.clone(memory_format=torch.contiguous_format)
    for i in range(1, len(sums)):
        sums[i] += sums[i - 1]
    return sums


def _running_sum_backward(gradient: Tensor) -> Tensor:
    """Gradient of a running sum, in place: each level also gets that of all later ones."""
    for i in reversed(range(1, len(gradient))):
        gradient[i - 1] += gradient[i]
    return gradient


def joint_steps(
    net: IntervalNet,
    inputs: GraphInputs,
    y: Tensor,
    weight: Tensor | None,
    *,
    levels: Tensor,
    prices: Tensor,
    anchored: bool,
) -> Callable[[], FusedResult] | None:
    """Return the step of a net under the joint loss; None for nets without a fused form.

    Members run one after the other where all at once would take much memory.

    Args:
        net: the net.
        inputs: of the graph.
        y: (rows,) targets, in the net's units.
        weight: (members, rows), or None for equal weights.
        levels: (levels, 1), wanted coverages.
        prices: (levels, 1), λ of each level.
        anchored: whether the value also counts as the interval of level 0, at λ = 1/2.
    """
    encoder, head = net.encoder, net.head
    if not isinstance(head, IntervalHead):
        return None
    members = len(head.weight)
    apart = run_apart(inputs, members, head.weight.shape[-1])
    parts = [slice(i, i + 1) for i in range(members)] if apart else [slice(None)]
    levels, prices = levels.to(y.device), prices.to(y.device)
    steps = [
        JointStep(
            FusedNet(layers, head), y, weight, levels=levels, prices=prices, anchored=anchored
        )
        for layers in (encoder.fused(inputs, part) for part in parts)
        if layers is not None
    ]
    if not steps:
        return None
    if apart:
        return lambda: (*step_apart(steps, encoder.generator), lambda: None)

    def backward() -> None:
        with torch.inference_mode():
            steps[0].backward()

    def forward() -> FusedResult:
        with torch.inference_mode():
            return (*steps[0].forward(), backward)

    return forward


@torch.inference_mode()
def step_apart(
    steps: Sequence[JointStep], generator: torch.Generator
) -> tuple[Tensor, HeadOutputs]:
    """Run forward and backward passes member by member, in the memory of one.

    Args:
        steps: one per member.
        generator: draws dropout's masks, which members share: each starts from the same state.

    Returns:
        The sum of the losses, and the outputs of all members.
    """
    before = generator.get_state()
    losses, outputs = [], []
    for step in steps:
        generator.set_state(before)
        loss, own = step.forward()
        step.backward()
        step.release()
        losses.append(loss)
        outputs.append([part.clone() for part in own])  # not views of memory that is reused
    value, below, above = (torch.cat(column, dim=-2) for column in zip(*outputs, strict=True))
    return torch.stack(losses).sum(), (value, below, above)
