"""What the second net of CF-GNN minimises: by hand, and its gradient against differences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from qpignn.encoders.sage import SageEncoder
from qpignn.methods.cfgnn import _Correction
from qpignn.training.fused_steps import with_gradient

NODES = torch.arange(12)


def correction() -> _Correction:
    graph = SageEncoder.prepare(torch.ones(12, 1), torch.empty(2, 0, dtype=torch.long))
    bounds = torch.tensor([-1.0, 1.0], dtype=torch.float64).view(2, 1, 1).repeat(1, 2, 12)
    y = torch.arange(-6, 6, dtype=torch.float64) + 0.1 * torch.arange(12)
    return _Correction(graph, bounds, y, [0.5, 0.9])


def test_correction_size_hand_computed() -> None:
    """Six nodes widen: |y| − 1 = 5, 3.9, 2.8, 1.7, 0.6, −0.5.

    Ranks from below are ⌈7·0.5⌉ = 4, and ⌈7·0.9⌉ = 7, of which there are but six.
    """
    size, _ = correction().size(torch.zeros(4, 1, 12, dtype=torch.float64), NODES[:6], NODES[6:])
    assert size.item() == pytest.approx(2 + 2 * 2.8 + 2 + 2 * 5.0)


def test_correction_size_passes_gradcheck() -> None:
    draw = torch.Generator().manual_seed(0)
    moves = 0.1 * torch.rand(4, 1, 12, generator=draw, dtype=torch.float64)
    given = correction()

    def size(moves: Tensor) -> Tensor:
        with torch.no_grad():
            size_and_gradient = given.size(moves, NODES[::2], NODES[1::2])
        return with_gradient(moves, *size_and_gradient)

    assert torch.autograd.gradcheck(size, (moves.requires_grad_(),))
