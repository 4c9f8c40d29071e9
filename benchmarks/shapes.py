"""The shapes of graph that are measured, and random graphs of them.

Half of the nodes carry loss. Sparse features are ones, as many in every row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

PYG, CSR, OURS = "PyG", "PyG CSR", "ours"
TEN, MINIBATCH = "ours, ten", "ours, minibatch"


@dataclass(frozen=True)
class Shape:
    """A shape, and what is measured on it.

    Attributes:
        ones: stored in a row of sparse features; None for dense ones.
        variants: the first is what the others are compared with.
        aims: how many times faster than that a variant is to be.
        rounds: of the interleaved measurement.
        peak_epochs: after which memory has its peak.
        seeds_aim: nodes a second that minibatches are to train on.
    """

    nodes: int
    edges: int
    features: int
    ones: int | None = None
    variants: tuple[str, ...] = (PYG, CSR, OURS)
    aims: dict[str, float] = field(default_factory=dict)
    rounds: int = 7
    peak_epochs: int = 3
    seeds_aim: float | None = None

    @property
    def messages(self) -> int:
        """Bytes of the features that PyG copies to every edge, where it has only edges."""
        return 4 * self.edges * self.features


TINY = Shape(50, 100, 3)
SHAPES = {
    "small": Shape(
        1_000, 6_000, 5, variants=(PYG, CSR, OURS, TEN), aims={OURS: 4, TEN: 6}, rounds=40
    ),
    "counties": Shape(3_234, 25_000, 6, variants=(PYG, CSR, OURS, TEN), aims={OURS: 5}, rounds=30),
    "chameleon": Shape(2_277, 72_000, 3_132, ones=21, aims={OURS: 150}),
    "crocodile": Shape(
        11_631, 360_000, 13_183, ones=60, variants=(CSR, OURS), aims={OURS: 75}, rounds=5
    ),
    "large": Shape(
        100_000, 2_000_000, 32, variants=(PYG, CSR, OURS, MINIBATCH), aims={OURS: 12}, rounds=5
    ),
    "huge": Shape(
        1_000_000,
        20_000_000,
        32,
        variants=(PYG, CSR, OURS, MINIBATCH),
        aims={OURS: 10},
        rounds=3,
        peak_epochs=1,
        seeds_aim=100_000,
    ),
}


def make_graph(shape: Shape) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw features, edges, targets, and which nodes carry loss."""
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(0, shape.nodes, (2, shape.edges), generator=draw)
    y = torch.randn(shape.nodes, generator=draw)
    carry_loss = torch.rand(shape.nodes, generator=draw) < 0.5
    if shape.ones is None:
        return torch.randn(shape.nodes, shape.features, generator=draw), edges, y, carry_loss
    size = (shape.nodes, shape.ones)
    columns = torch.randint(0, shape.features, size, generator=draw).sort(dim=1).values
    starts = torch.arange(0, shape.nodes * shape.ones + 1, shape.ones)
    ones = torch.ones(columns.numel())
    x = torch.sparse_csr_tensor(starts, columns.flatten(), ones, (shape.nodes, shape.features))
    return x, edges, y, carry_loss
