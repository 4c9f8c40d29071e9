"""Training steps with the gradient written out, in whole or in part.

:func:`joint_steps` is the step of nets under the joint loss, QpiGNN's default among them, without
autograd at all. Encoder, head and loss are those of the plain path, in an order that keeps what the
gradient needs. With r = y − ŷ, half-widths d₋ and d₊, B = 1[r < −d₋], A = 1[r > d₊] and a node's
share s of the mean, the joint loss (as printed) moves ŷ by s·(B − A), d₋ by s·(λ − B) and d₊ by
s·(λ − A), and its terms with a gradient add up to those moves times −r, d₋ and d₊.

:func:`encoder_step` is that of all other nets of two layers: head and loss are left to autograd.
``tests/training`` holds both to the numbers of the plain path and of autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from qpignn.nn.encoders import SageEncoder
from qpignn.nn.heads import IntervalHead
from qpignn.nn.interval_net import IntervalNet, run_apart
from qpignn.nn.propagate import Operands
from qpignn.nn.two_layers import TwoLayers
from qpignn.training.loop import Measured

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


def encoder_step(
    net: IntervalNet, graph: Operands, cost: Callable[[Any], Measured]
) -> Callable[[], Measured]:
    """Return a step whose encoder goes without autograd, where it has two layers.

    ``cost`` says from the head's outputs what is to be minimised. The weights' gradients must have
    their places when the step is first taken.
    """
    encoder = two_layers(net)
    if encoder is None:
        return lambda: cost(net(graph))
    layers: list[TwoLayers] = []

    def step() -> Measured:
        with torch.no_grad():
            if not layers:
                layers.append(encoder.written_out(graph))
            hidden = layers[0].forward().detach()
        measured = cost(net.head(hidden.requires_grad_()))

        def backward() -> None:
            measured.backward()
            with torch.inference_mode():
                layers[0].backward(cast(Tensor, hidden.grad))

        return replace(measured, gradient=backward)

    return step


class ByHand:
    """Loss and gradient of nets on one graph.

    Args:
        encoder, head: the net; two layers.
        graph: its operands.
        y: (rows,) targets, in the net's units.
        weight: (members, rows), or None for all alike.
        levels, prices: (levels, 1): wanted coverages, and λ of each.
        anchored: whether the value also counts as the interval of level 0, at λ = 1/2.
        members: those of the net that this step is for.
    """

    def __init__(
        self,
        encoder: SageEncoder,
        head: IntervalHead,
        graph: Operands,
        y: Tensor,
        weight: Tensor | None,
        *,
        levels: Tensor,
        prices: Tensor,
        anchored: bool,
        members: slice,
    ) -> None:
        self.encoder, self.head, self.graph = encoder, head, graph
        self.y, self.levels, self.anchored = y, levels, anchored
        self.members = members
        self.layers: TwoLayers | None = None
        # the axes of what the head says: outputs, members, nodes
        self.prices = prices.unsqueeze(-1)
        share = torch.full((1, len(y)), 1 / len(y), dtype=y.dtype)
        if weight is not None:
            share = (weight / weight.sum(dim=-1, keepdim=True))[self.members]
        self.share, self.dear = share, self.prices * share
        self.positive, self.positive_backward = POSITIVE[head.positive_name]

    @torch.inference_mode()
    def forward(self) -> tuple[Tensor, Said]:
        """Return the loss, and what the head says."""
        head, share = self.head, self.share
        if self.layers is None:  # now that the weights are where the optimiser wants them
            self.layers = self.encoder.written_out(self.graph, self.members)
            self.weight, self.bias = head.weight[self.members], head.bias[self.members]
            self.to_weight, self.to_bias = (
                cast(Tensor, weight.grad)[self.members] for weight in (head.weight, head.bias)
            )
        self.hidden = self.layers.forward()
        self.raw = torch.baddbmm(self.bias, self.weight, self.hidden.mT).transpose(0, 1)
        self.steps = self.positive(self.raw[1:])
        parts = self.steps.chunk(head.sides)
        sides = [part.cumsum(dim=0) if len(part) > 1 else part for part in parts]
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
        head = self.head
        to_raw = torch.empty_like(self.raw)
        to_raw[0] = self.to_value
        if head.sides == 1:
            to_steps = _undo_cumsum(self.to_below.add_(self.to_above))
        else:
            to_steps = torch.cat([_undo_cumsum(self.to_below), _undo_cumsum(self.to_above)])
        to_raw[1:] = self.positive_backward(to_steps, self.raw[1:], self.steps)
        by_member = to_raw.transpose(0, 1)
        torch.bmm(by_member, self.hidden, out=self.to_weight)
        torch.sum(by_member, 2, keepdim=True, out=self.to_bias)
        assert self.layers is not None
        self.layers.backward(torch.bmm(by_member.mT, self.weight))

    def forget(self) -> None:
        """Give back the memory of the last pass."""
        del self.hidden, self.raw, self.steps, self.to_value, self.to_below, self.to_above
        if self.layers is not None:
            self.layers.forget()


def _undo_cumsum(gradient: Tensor) -> Tensor:
    """Gradient of a running sum over levels: what all later ones get."""
    return gradient.flip(0).cumsum(dim=0).flip(0) if len(gradient) > 1 else gradient


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
    settings = {"levels": levels.to(y.device), "prices": prices.to(y.device), "anchored": anchored}
    steps = [ByHand(encoder, head, graph, y, weight, **settings, members=part) for part in parts]

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
