"""Running nets that stand side by side one after the other, where all at once would not fit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from qpignn.nn.propagate import Operands

TOGETHER = 2**28  # bytes of one layer's hidden vectors up to which members run together


def run_apart(graph: Operands, members: int, hidden: int) -> bool:
    """Whether the hidden vectors of all members would take much memory."""
    return members > 1 and 4 * members * hidden * graph.mean.shape[0] > TOGETHER


def run_members(net: nn.Module, graph: Operands, members: int) -> Any:
    """Return a net's outputs, computed member by member; it must be in eval mode.

    Every weight has the members in its first axis, and every output in its last but one.
    """
    weights = dict(net.named_parameters())
    parts = [
        functional_call(net, {name: w[i : i + 1] for name, w in weights.items()}, (graph,))
        for i in range(members)
    ]
    if isinstance(parts[0], Tensor):
        return torch.cat(parts, dim=-2)
    return tuple(torch.cat(column, dim=-2) for column in zip(*parts, strict=True))
