"""How given units are divided into training steps: all at once, or some at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from qpignn.errors import SettingError, check_integer
from qpignn.nn.interval_net import TOGETHER
from qpignn.runtime import distributed
from qpignn.runtime.memory import free_memory
from qpignn.runtime.randomness import numpy_rng

LEAST = 16  # units in a batch: fewer might all be held out by one member
USUAL = 8192  # units in a batch by default
SHARE = 0.7  # of the free memory that a step on all units may take


def check_batch_size(size: int | None) -> None:
    """Check the setting ``batch_size``.

    Args:
        size: number of units in a step, or None for the default.

    Raises:
        SettingError: if it is neither None nor a whole number from 16 up.
    """
    if size is not None and check_integer("batch_size", size) < LEAST:
        raise SettingError(f"batch_size: expected a whole number from {LEAST} up, got {size}")


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
