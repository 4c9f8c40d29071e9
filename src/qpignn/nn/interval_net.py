"""An encoder and a head, and how they run on graphs that are too large to run at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.sparse import Operands
from qpignn.runtime.memory import CHUNK_ROWS

TOGETHER = 2**28  # bytes of one layer's hidden vectors up to which members run together


class IntervalNet(nn.Module):
    """An encoder and a head. Outputs are whatever the method's ``_bounds`` understands.

    Every weight has the members in its first axis; every output has them in its last but one, and
    the nodes in its last.
    """

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, graph: Operands) -> Any:
        """Run encoder and head; nodes by nodes, where the graph is large and nobody trains."""
        encoder = self.encoder
        calm = not (encoder.training or torch.is_grad_enabled())
        if calm and graph.nodes > CHUNK_ROWS and isinstance(encoder, SageEncoder):
            return _joined([self.head(part) for part in encoder.in_chunks(graph)], dim=-1)
        return self.head(encoder(graph))

    def by_members(self, graph: Operands) -> Any:
        """Run one member after the other: the memory of one, the numbers of all at once."""
        weights = dict(self.named_parameters())
        members = len(next(iter(weights.values())))
        parts = [
            functional_call(self, {name: w[i : i + 1] for name, w in weights.items()}, (graph,))
            for i in range(members)
        ]
        return _joined(parts, dim=-2)


def run_apart(graph: Operands, members: int, hidden: int) -> bool:
    """Whether the hidden vectors of all members would take much memory."""
    return members > 1 and 4 * members * hidden * graph.nodes > TOGETHER


def runs_at_once(graph: Operands, members: int, hidden: int) -> bool:
    """Whether a net that only runs does so on all nodes and for all members at the same time."""
    return graph.nodes <= CHUNK_ROWS and not run_apart(graph, members, hidden)


def _joined(parts: Sequence[Any], dim: int) -> Any:
    if isinstance(parts[0], Tensor):
        return torch.cat([*parts], dim=dim)
    return tuple(torch.cat(column, dim=dim) for column in zip(*parts, strict=True))


def each(outputs: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change every tensor of a net's outputs."""
    return change(outputs) if isinstance(outputs, Tensor) else tuple(map(change, outputs))
