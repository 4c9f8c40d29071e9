"""Independent random streams from one seed: the purpose of a stream is part of its seed.

Splitting the nodes, initial weights and noise must not share a stream, or a change in one would
silently change the others. Nothing here touches the global generators.
"""

from __future__ import annotations

import random
import zlib

import numpy as np
import torch

from qpignn.errors import check_integer

SEED_BITS = 512  # more than random seeds have in practice


def _sequence(seed: int, purpose: str) -> np.random.SeedSequence:
    entropy = check_integer("seed", seed, 0, SEED_BITS)
    return np.random.SeedSequence([entropy, zlib.crc32(purpose.encode())])


def numpy_rng(seed: int, purpose: str) -> np.random.Generator:
    """Return the NumPy generator of a seed and a purpose.

    Args:
        seed: non-negative.
        purpose: name of the stream.
    """
    return np.random.default_rng(_sequence(seed, purpose))


def torch_rng(seed: int, purpose: str) -> torch.Generator:
    """Return the torch generator of a seed and a purpose.

    Args:
        seed: non-negative.
        purpose: name of the stream.
    """
    state = _sequence(seed, purpose).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))  # torch takes signed seeds


class LegacyStreams:
    """The three generators that older code seeds globally, kept together but not global.

    Drawing from them gives the numbers that Python's, NumPy's (legacy) and torch's global
    generators would give after being seeded alike.

    Args:
        seed: of all three.

    Attributes:
        python: the stream of ``random``.
        numpy: the stream of ``numpy.random``.
        torch: the stream of torch.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.python = seed, random.Random(seed)
        self.restart_arrays()

    def restart_arrays(self) -> None:
        """Seed the NumPy and torch streams again, leaving Python's where it is."""
        self.numpy = np.random.RandomState(self.seed)
        self.torch = torch.Generator().manual_seed(self.seed)
