"""An encoder and a head, and how they run on graphs that are too large to run at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from qpignn.encoders.base import Encoder, named_tensors
from qpignn.encoders.inputs import GraphInputs
from qpignn.runtime.memory import CHUNK_ROWS

TOGETHER = 2**28  # bytes of one layer's hidden vectors up to which members run together


class IntervalNet(nn.Module):
    """An encoder and a head, whose outputs the method's ``compute_bounds`` interprets.

    Every weight has the members in its first axis; every output has them in its last but one, and
    the nodes in its last.

    Args:
        encoder: from a graph to hidden vectors.
        head: from hidden vectors to outputs.
    """

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, inputs: GraphInputs) -> Any:
        """Return the head's outputs; large graphs are evaluated in chunks.

        Args:
            inputs: of the graph.
        """
        is_inference = not (self.encoder.training or torch.is_grad_enabled())
        if is_inference and inputs.nodes > CHUNK_ROWS:
            chunks = self.encoder.in_chunks(inputs)
            if chunks is not None:
                return _concatenate([self.head(chunk) for chunk in chunks], dim=-1)
        return self.head(self.encoder(inputs))

    def by_members(self, inputs: GraphInputs) -> Any:
        """Run one member after the other: the memory of one, the numbers of all at once.

        Args:
            inputs: of the graph.

        Returns:
            The outputs of all members.
        """
        tensors = named_tensors(self)
        parts = []
        for i in range(len(next(iter(tensors.values())))):
            own = {name: tensor[i : i + 1] for name, tensor in tensors.items()}
            parts.append(functional_call(self, own, (inputs,), tie_weights=False))
        return _concatenate(parts, dim=-2)


def run_apart(inputs: GraphInputs, members: int, hidden: int) -> bool:
    """Return whether the hidden vectors of all members would take much memory.

    Args:
        inputs: of the graph.
        members: number of members.
        hidden: length of the hidden vectors.

    Returns:
        True if members should run one after the other.
    """
    return members > 1 and 4 * members * hidden * inputs.nodes > TOGETHER


def runs_at_once(inputs: GraphInputs, members: int, hidden: int) -> bool:
    """Return whether evaluation covers all nodes and all members in one pass.

    Args:
        inputs: of the graph.
        members: number of members.
        hidden: length of the hidden vectors.

    Returns:
        True if neither nodes nor members are divided.
    """
    return inputs.nodes <= CHUNK_ROWS and not run_apart(inputs, members, hidden)


def _concatenate(parts: Sequence[Any], dim: int) -> Any:
    if isinstance(parts[0], Tensor):
        return torch.cat([*parts], dim=dim)
    return tuple(torch.cat(column, dim=dim) for column in zip(*parts, strict=True))


def each(outputs: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to every tensor of a net's outputs.

    Args:
        outputs: a tensor, or a tuple of tensors.
        change: the function.

    Returns:
        The results, in the same structure.
    """
    return change(outputs) if isinstance(outputs, Tensor) else tuple(map(change, outputs))
