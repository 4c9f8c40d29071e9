"""A small graph for tests of encoders: directed, weighted, with self-loops and isolated nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from qpignn.encoders.base import Encoder
from qpignn.encoders.catalog import build_encoder, encoder_class
from qpignn.encoders.inputs import GraphInputs

NODES, COLUMNS = 40, 5


def features(dtype: torch.dtype = torch.float64) -> Tensor:
    draw = torch.Generator().manual_seed(3)
    x = torch.randn(NODES, COLUMNS, generator=draw, dtype=torch.float64)
    return (x * (torch.rand(x.shape, generator=draw) < 0.6)).to(dtype)


def edges() -> tuple[Tensor, Tensor]:
    """Edges among all nodes but the last four, some of them self-loops, and their weights."""
    draw = torch.Generator().manual_seed(1)
    ends = torch.randint(0, NODES - 4, (2, 180), generator=draw)
    ends[1, :3] = ends[0, :3] = torch.tensor([2, 7, 30])
    loops = ends[0] == ends[1]
    loops[:3] = False
    return ends[:, ~loops], torch.rand(int((~loops).sum()), generator=draw, dtype=torch.float64)


def prepared(
    name: Any,
    *,
    sparse: bool = False,
    weighted: bool = True,
    dtype: torch.dtype = torch.float64,
    **settings: Any,
) -> GraphInputs:
    x, (ends, weight) = features(dtype), edges()
    x = x.to_sparse_csr() if sparse else x
    return encoder_class(name).prepare(x, ends, weight.to(dtype) if weighted else None, **settings)


def make(name: Any, layers: int = 2, **settings: Any) -> Encoder:
    draw = torch.Generator().manual_seed(0)
    settings = {"members": 3, **settings}
    return build_encoder(name, COLUMNS, 8, layers, generator=draw, **settings).double()


def gradients(hidden: Tensor, encoder: Encoder) -> list[Tensor]:
    upstream = torch.linspace(-1, 1, hidden.numel(), dtype=hidden.dtype).view_as(hidden)
    return [*torch.autograd.grad(hidden, list(encoder.parameters()), upstream)]
