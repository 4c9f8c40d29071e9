"""What a fit sees: the graph's constants, targets in the net's units, and who holds out what."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from qpignn.encoders.picked import pick
from qpignn.encoders.sparse import Operands
from qpignn.nn.interval_net import runs_at_once
from qpignn.runtime.randomness import numpy_rng

FOLDS = 5  # a member holds out one fifth of the given nodes


@dataclass(frozen=True)
class Seen:
    """What a fit sees: the graph's constants, and the given nodes' targets in the net's units.

    Attributes:
        graph: its first rows are the given nodes, if they are trained on all at once.
        y, weight: (given,), nodes that no member is trained on last; or (members, nodes), where
            every member has nodes of its own.
        held_out: (members, given), the nodes a member is not trained on.
        batch: how many nodes make a step, and where the given ones stand in the graph; None where
            a step is on all of them.
    """

    graph: Operands
    y: Tensor
    weight: Tensor
    held_out: Tensor
    batch: Batch | None = None

    def trained(self) -> Seen:
        """Leave out the nodes that no member is trained on."""
        idle = self.held_out.all(dim=0)
        count = len(idle) - int(idle.sum())
        if count == len(idle) or bool(idle[:count].any()):
            return self
        y, weight, held_out = self.y[:count], self.weight[:count], self.held_out[:, :count]
        if self.batch is None:
            return Seen(self.graph.first(count), y, weight, held_out)
        batch = Batch(self.batch.size, self.batch.positions[:count])
        return Seen(self.graph, y, weight, held_out, batch)

    def watched(self, hidden: int) -> Seen:
        """Leave to every member the nodes it holds out: targets become (members, nodes).

        ``hidden`` is the width of the layers. Graphs on which nets do not run at once stay whole.
        """
        if self.batch is not None or not runs_at_once(self.graph, len(self.held_out), hidden):
            return self
        counts = self.held_out.sum(dim=1)
        most = int(counts.max())
        # a member's own come first in its row; the rest of a row that is too long counts nothing
        positions = self.held_out.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        positions, there = positions[:, :most], torch.arange(most) < counts.unsqueeze(1)
        graph = pick(self.graph, positions.to(self.graph.features.device))
        return Seen(graph, self.y[positions], self.weight[positions], there)

    def to(self, device: torch.device) -> Seen:
        """Bring what a step computes with to a device."""
        if device.type == "cpu":
            return self
        y, weight, held_out = (part.to(device) for part in (self.y, self.weight, self.held_out))
        graph = self.graph.to(device)
        return replace(self, graph=graph, y=y, weight=weight, held_out=held_out)


@dataclass(frozen=True)
class Batch:
    """So many nodes make a step; the given ones stand at these positions."""

    size: int
    positions: Tensor


def fold_turns(nodes: int, members: int, seed: int) -> Tensor:
    """Deal nodes into fifths, anew for every five members; each member holds out one fifth.

    Fewer than five nodes are not divided.
    """
    held_out = torch.zeros(members, nodes, dtype=torch.bool)
    if nodes < FOLDS:
        return held_out
    for member in range(members):
        deal, fold = divmod(member, FOLDS)
        order = numpy_rng(seed, f"folds {deal}").permutation(nodes)
        held_out[member, torch.from_numpy(order[fold::FOLDS])] = True
    return held_out
