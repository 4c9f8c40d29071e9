"""Training steps with the gradient written out, in whole or in part.

:func:`joint_steps` is the step of nets under the joint loss, QpiGNN's default among them, without
autograd at all. Encoder, head and loss are those of the plain path, in an order that keeps what the
gradient needs. With r = y − ŷ, half-widths d₋ and d₊, B = 1[r < −d₋], A = 1[r > d₊] and a node's
share s of the mean, the joint loss (as printed) moves ŷ by s·(B − A), d₋ by s·(λ − B) and d₊ by
s·(λ − A), and its terms with a gradient add up to those moves times −r, d₋ and d₊.

:func:`step_of` is that of all other nets: of two layers the encoder, and the head where it is
linear, are written out, and the rest is left to autograd.
``tests/training`` holds both to the numbers of the plain path and of autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from qpignn.encoders.fused import TwoLayers
from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.sparse import Operands
from qpignn.nn.heads import IntervalHead, LinearHead
from qpignn.nn.interval_net import IntervalNet, run_apart
from qpignn.training.loop import StepResult

aten = torch.ops.aten
POSITIVE: dict[str, tuple[Any, Any]] = {
    "softplus": (
        aten.softplus.default,
        lambda gradient, raw, _: aten.softplus_backward.default(gradient, raw, 1, 20),
    ),
    "sigmoid": (
        aten.sigmoid.default,
        lambda gradient, _, out: aten.sigmoid_backward.default(gradient, out),
    ),
}
Said = tuple[Tensor, Tensor, Tensor]
"""What the head says: value, half-widths below and above."""
Stepped = tuple[Tensor, Said, Callable[[], None]]
"""A loss, what the head said, and what fills in the gradients."""


def two_layers(net: IntervalNet) -> SageEncoder | None:
    """Return the encoder of a net whose gradient is written out; None for others."""
    encoder = net.encoder
    return encoder if isinstance(encoder, SageEncoder) and len(encoder.layers) == 2 else None


class NetByHand:
    """A net of two layers, forward and backward, for some of its members.

    The weights' gradients must have their places when it first goes forward.

    Args:
        encoder: the layers.
        head: what follows them; None where the caller sees to that.
        graph: what they run on.
        part: which members.
    """

    def __init__(
        self, encoder: SageEncoder, head: LinearHead | None, graph: Operands, part: slice
    ) -> None:
        self.encoder, self.head, self.graph, self.part = encoder, head, graph, part
        self.layers: TwoLayers | None = None

    def forward(self) -> Tensor:
        """Return what the head says, (outputs, members, nodes), or without one hidden vectors."""
        if self.layers is None:  # now that the weights are where the optimiser wants them
            self.layers = self.encoder.written_out(self.graph, self.part)
            if self.head is not None:
                weights = (self.head.weight, self.head.bias)
                self.weight, self.bias = (weight[self.part] for weight in weights)
                self.to_weight, self.to_bias = (cast(Tensor, w.grad)[self.part] for w in weights)
        self.hidden = self.layers.forward()
        if self.head is None:
            return self.hidden
        return torch.baddbmm(self.bias, self.weight, self.hidden.mT).transpose(0, 1)

    def backward(self, gradient: Tensor) -> None:
        """Write down the gradients of all weights, from that of what :meth:`forward` returned."""
        if self.head is not None:
            by_member = gradient.transpose(0, 1)
            torch.bmm(by_member, self.hidden, out=self.to_weight)
            torch.sum(by_member, 2, keepdim=True, out=self.to_bias)
            gradient = torch.bmm(by_member.mT, self.weight)
        assert self.layers is not None
        self.layers.backward(gradient)

    def forget(self) -> None:
        """Give back the memory of the last pass."""
        del self.hidden
        if self.layers is not None:
            self.layers.forget()


def step_of(
    net: IntervalNet, graph: Operands, cost: Callable[[Any], StepResult]
) -> Callable[[], StepResult]:
    """Return a step that leaves to autograd what is not written out.

    ``cost`` says from the head's outputs what is to be minimised.
    """
    encoder, head = two_layers(net), net.head
    if encoder is None:
        return lambda: cost(net(graph))
    linear = head if type(head) is LinearHead else None
    written = NetByHand(encoder, linear, graph, slice(None))

    def step() -> StepResult:
        with torch.no_grad():
            found = written.forward().detach()
        found.requires_grad_()
        measured = cost(head(found) if linear is None else found)

        def gradient() -> None:
            measured.backward()
            with torch.inference_mode():
                written.backward(cast(Tensor, found.grad))

        return replace(measured, gradient=gradient)

    return step


class _Known(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, outputs: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None, None


def with_gradient(outputs: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
    """Tell autograd the gradient of a number that was computed from a net's outputs."""
    told: Tensor = _Known.apply(outputs, value, gradient)  # type: ignore[no-untyped-call]
    return told


class ByHand:
    """Loss and gradient of nets on one graph, under the joint loss.

    Args:
        net: its head says a value and half-widths.
        y: (rows,) targets, in the net's units.
        weight: (members, rows), or None for all alike.
        levels, prices: (levels, 1): wanted coverages, and λ of each.
        anchored: whether the value also counts as the interval of level 0, at λ = 1/2.
    """

    def __init__(
        self,
        net: NetByHand,
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
        # the axes of what the head says: outputs, members, nodes
        share = torch.full((1, len(y)), 1 / len(y), dtype=y.dtype)
        if weight is not None:
            share = (weight / weight.sum(dim=-1, keepdim=True))[net.part]
        self.share, self.dear = share, prices.unsqueeze(-1) * share
        self.positive, self.positive_backward = POSITIVE[head.positive_name]

    @torch.inference_mode()
    def forward(self) -> tuple[Tensor, Said]:
        """Return the loss, and what the head says."""
        share = self.share
        self.raw = self.net.forward()
        self.steps = self.positive(self.raw[1:])
        sides = [_summed(part) for part in self.steps.chunk(self.sides)]
        value, below, above = self.raw[0], sides[0], sides[-1]
        off = self.y - value
        under, over = torch.empty_like(below), torch.empty_like(above)
        torch.lt(off, below.neg(), out=under)
        torch.gt(off, above, out=over)
        under, over = under.mul_(share), over.mul_(share)
        missed = under.sum(dim=-1).add_(over.sum(dim=-1))
        self.to_value = (under - over).sum(dim=0)
        self.to_below = torch.sub(self.dear, under, out=under)
        self.to_above = torch.sub(self.dear, over, out=over)
        loss = (1 - missed).sub_(self.levels).square_().sum()
        if self.anchored:
            moved = off.sign().mul_(share)
            loss += (1 - moved.abs().sum(dim=-1)).square_().sum()
            self.to_value.sub_(moved)
        loss -= torch.dot(off.view(-1), self.to_value.view(-1))
        loss += torch.dot(below.reshape(-1), self.to_below.view(-1))
        loss += torch.dot(above.reshape(-1), self.to_above.view(-1))
        return loss, (value, below, above)

    @torch.inference_mode()
    def backward(self) -> None:
        """Fill in the gradients of all weights."""
        to_raw = torch.empty_like(self.raw)
        to_raw[0] = self.to_value
        if self.sides == 1:
            to_steps = _undo_sum(self.to_below.add_(self.to_above))
        else:
            to_steps = torch.cat([_undo_sum(self.to_below), _undo_sum(self.to_above)])
        to_raw[1:] = self.positive_backward(to_steps, self.raw[1:], self.steps)
        self.net.backward(to_raw)

    def forget(self) -> None:
        """Give back the memory of the last pass."""
        del self.raw, self.steps, self.to_value, self.to_below, self.to_above
        self.net.forget()


def _summed(steps: Tensor) -> Tensor:
    """Running sum over levels, which are few: one by one is quicker than ``cumsum``."""
    if len(steps) == 1:
        return steps
    sums = steps.clone(memory_format=torch.contiguous_format)
    for i in range(1, len(sums)):
        sums[i] += sums[i - 1]
    return sums


def _undo_sum(gradient: Tensor) -> Tensor:
    """Gradient of a running sum, in place: each level gets what all later ones get, too."""
    for i in reversed(range(1, len(gradient))):
        gradient[i - 1] += gradient[i]
    return gradient


def joint_steps(
    net: IntervalNet,
    graph: Operands,
    y: Tensor,
    weight: Tensor | None,
    *,
    levels: Tensor,
    prices: Tensor,
    anchored: bool,
) -> Callable[[], Stepped] | None:
    """Return the step of a net under the joint loss; None for nets it is not written for.

    Where all members at once would take much memory they take turns. See :class:`ByHand`.
    """
    encoder, head = two_layers(net), net.head
    if encoder is None or not isinstance(head, IntervalHead):
        return None
    members = len(head.weight)
    apart = run_apart(graph, members, head.weight.shape[-1])
    parts = [slice(i, i + 1) for i in range(members)] if apart else [slice(None)]
    levels, prices = levels.to(y.device), prices.to(y.device)
    nets = [NetByHand(encoder, head, graph, part) for part in parts]
    steps = [
        ByHand(net, y, weight, levels=levels, prices=prices, anchored=anchored) for net in nets
    ]

    def together() -> Stepped:
        return *steps[0].forward(), steps[0].backward

    def one_by_one() -> Stepped:
        return *step_apart(steps, encoder.generator), lambda: None

    return one_by_one if apart else together


def step_apart(steps: Sequence[ByHand], generator: torch.Generator) -> tuple[Tensor, Said]:
    """Go forward and backward member by member: the memory of one, the numbers of all at once.

    ``generator`` draws dropout's masks, which members share: each begins where the first did.
    """
    before = generator.get_state()
    losses, said = [], []
    for step in steps:
        generator.set_state(before)
        loss, outputs = step.forward()
        step.backward()
        step.forget()
        losses.append(loss)
        said.append([part.clone() for part in outputs])  # not a view of what is given back
    value, below, above = (torch.cat(column, dim=-2) for column in zip(*said, strict=True))
    return torch.stack(losses).sum(), (value, below, above)
