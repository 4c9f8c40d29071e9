"""What nets are trained on: graph, scaled targets, held-out units, and division into steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from qpignn.encoders.base import Encoder
from qpignn.encoders.inputs import GraphInputs
from qpignn.errors import SplitError
from qpignn.nn.interval_net import TOGETHER, each, runs_at_once
from qpignn.runtime import distributed
from qpignn.runtime.memory import free_memory
from qpignn.runtime.randomness import numpy_rng
from qpignn.tasks.base import FitInputs

FOLDS = 5  # a member holds out one fifth of the given units
LEAST = 16  # units in a batch: fewer might all be held out by one member
USUAL = 8192  # units in a batch by default
SHARE = 0.7  # of the free memory that a step on all units may take


@dataclass(frozen=True)
class TrainingSet:
    """The graph's constants, and the given units' targets in the nets' units.

    Attributes:
        graph: its first rows are the given units, if a step uses all of them.
        y: (given,), targets; units that no member is trained on come last. Or (members, units),
            where every member has units of its own.
        weight: of each unit in training, of the same shape.
        held_out: (members, given), the units a member is not trained on.
        batch: number of units in a step, and the positions of the given units in the graph; None
            where a step uses all given units.
    """

    graph: GraphInputs
    y: Tensor
    weight: Tensor
    held_out: Tensor
    batch: Batch | None = None

    def trained(self) -> TrainingSet:
        """Return the set without the units that no member is trained on."""
        idle = self.held_out.all(dim=0)
        count = len(idle) - int(idle.sum())
        if count == len(idle) or bool(idle[:count].any()):
            return self
        y, weight, held_out = self.y[:count], self.weight[:count], self.held_out[:, :count]
        if self.batch is None:
            return TrainingSet(self.graph.first(count), y, weight, held_out)
        batch = Batch(self.batch.size, self.batch.positions[:count])
        return TrainingSet(self.graph, y, weight, held_out, batch)

    def watched(self, encoder: Encoder) -> TrainingSet:
        """Return for every member only the units it holds out: targets become (members, units).

        Args:
            encoder: of the net; graphs on which it does not run at once, and encoders that compute
                the same units for all members, keep all units.
        """
        members = len(self.held_out)
        if self.batch is not None or not runs_at_once(self.graph, members, encoder.hidden):
            return self
        counts = self.held_out.sum(dim=1)
        most = int(counts.max())
        # a member's own units come first in its row; the padding of shorter rows has no weight
        positions = self.held_out.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
        positions, filled = positions[:, :most], torch.arange(most) < counts.unsqueeze(1)
        graph = encoder.member_inputs(self.graph, positions.to(self.graph.features.device))
        if graph is None:
            return self
        return TrainingSet(graph, self.y[positions], self.weight[positions], filled)

    def to(self, device: torch.device) -> TrainingSet:
        """Return the set on a device.

        Args:
            device: where the nets are.
        """
        if device.type == "cpu":
            return self
        y, weight, held_out = (part.to(device) for part in (self.y, self.weight, self.held_out))
        graph = self.graph.to(device)
        return replace(self, graph=graph, y=y, weight=weight, held_out=held_out)

    def of_given(self, outputs: Any) -> Any:
        """Return the outputs for the given units among those for all of the graph's.

        Args:
            outputs: of a net for :attr:`graph`.
        """
        if self.batch is None:
            return outputs
        positions = self.batch.positions
        return each(outputs, lambda numbers: numbers[..., positions])


@dataclass(frozen=True)
class Batch:
    """How given units are divided into steps.

    Attributes:
        size: number of units in a step.
        positions: of the given units in the graph.
    """

    size: int
    positions: Tensor


def hold_out(inputs: FitInputs, members: int, seed: int) -> Tensor:
    """Return (members, given units): the units that a member is not trained on.

    A single member holds out the graph's ``val_mask`` or a fifth; several take turns, a fifth each.

    Args:
        inputs: of the fit.
        members: number of nets.
        seed: decides which units.

    Raises:
        SplitError: if the ``val_mask`` leaves no unit to train on.
    """
    given = inputs.given
    chosen = inputs.task.validation_units(inputs.data)
    if members > 1 or chosen is None or not bool((chosen & given).any()):
        groups = inputs.task.fold_groups(inputs.data)
        return assign_folds(
            int(given.sum()), members, seed, None if groups is None else groups[given]
        )
    if bool((chosen & given == given).all()):
        raise SplitError(
            f"expected nodes to train on, got {int(given.sum())} given nodes that are all in "
            f"the val_mask; give train nodes too"
        )
    return chosen[given].unsqueeze(0)


def assign_folds(units: int, members: int, seed: int, groups: Tensor | None = None) -> Tensor:
    """Return (members, units): each member holds out one fifth, and five members all units.

    The division into fifths is drawn anew for every five members. Fewer than five units are not
    divided.

    Args:
        units: number of given units.
        members: number of nets.
        seed: of the random division.
        groups: (units,), units with the same number are held out together; default each by itself.
    """
    count, of_unit = units, torch.arange(units)
    if groups is not None:
        names, of_unit = torch.unique(groups, return_inverse=True)
        count = len(names)
    held_out = torch.zeros(members, count, dtype=torch.bool)
    if count >= FOLDS:
        for member in range(members):
            division, fold = divmod(member, FOLDS)
            order = numpy_rng(seed, f"folds {division}").permutation(count)
            held_out[member, torch.from_numpy(order[fold::FOLDS])] = True
    return held_out[:, of_unit]


def chosen_size(
    wanted: int | None, *, nodes: int, given: int, hidden: int, members: int
) -> int | None:
    """Return the number of units in a step, or None for all at once.

    By default all at once, if there is one process and what a step keeps for its gradient fits
    into memory.

    Args:
        wanted: the setting ``batch_size``.
        nodes: number of nodes of the graph.
        given: number of given units.
        hidden: number of hidden units per layer.
        members: number of nets.
    """
    if wanted is not None:
        return wanted
    layer = 4 * hidden * nodes
    side_by_side = members if members * layer <= TOGETHER else 1
    step = side_by_side * 4 * hidden * (4 * nodes + 6 * given)
    return USUAL if distributed.world_size() > 1 or step > SHARE * free_memory() else None


def batch_positions(units: int, size: int, seed: int, epoch: int) -> Iterator[Tensor]:
    """Yield this rank's part of every batch of an epoch: positions among the given units.

    Batches are equally large, up to one unit, and the same for any number of ranks.

    Args:
        units: number of given units.
        size: number of units in a batch, at most.
        seed: of the random order.
        epoch: whose batches are wanted.
    """
    order = numpy_rng(seed, f"batches {epoch}").permutation(units)
    for batch in np.array_split(order, -(-units // size)):
        yield torch.from_numpy(np.array_split(batch, distributed.world_size())[distributed.rank()])
