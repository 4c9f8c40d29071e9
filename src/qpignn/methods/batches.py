"""Which given nodes make a step: all at once, or some at a time."""

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

LEAST = 16  # nodes in a batch: fewer might all be held out by one member
USUAL = 8192  # nodes in a batch, where nobody says how many
SHARE = 0.7  # of the free memory that a step on all nodes may take


def check_batch_size(size: int | None) -> None:
    """Raise unless it is a batch size, or None for a choice of our own."""
    if size is not None and check_integer("batch_size", size) < LEAST:
        raise SettingError(f"batch_size: expected a whole number from {LEAST} up, got {size}")


def chosen_size(
    wanted: int | None, *, nodes: int, given: int, hidden: int, members: int
) -> int | None:
    """Return how many nodes make a step, or None for all at once.

    All at once, unless told otherwise, as long as what a step keeps for its gradient fits in
    memory and one process does it.
    """
    if wanted is not None:
        return wanted
    layer = 4 * hidden * nodes
    side_by_side = members if members * layer <= TOGETHER else 1
    step = side_by_side * 4 * hidden * (4 * nodes + 6 * given)
    return USUAL if distributed.world_size() > 1 or step > SHARE * free_memory() else None


def deal(nodes: int, size: int, seed: int, epoch: int) -> Iterator[Tensor]:
    """Yield this rank's part of every batch of an epoch: positions among the given nodes.

    Batches are equally large, up to one node, and the same whatever the number of ranks.
    """
    order = numpy_rng(seed, f"batches {epoch}").permutation(nodes)
    for batch in np.array_split(order, -(-nodes // size)):
        yield torch.from_numpy(np.array_split(batch, distributed.world_size())[distributed.rank()])
