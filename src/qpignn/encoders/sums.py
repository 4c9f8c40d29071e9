"""Sums over neighbours: one sparse product, right also where a node has a million of them.

A float32 sum that runs through a million numbers in one go forgets what is small beside it: the
mean of equal numbers comes out a hundredth off. Long rows are added up by pieces, then the pieces.
"""

from __future__ import annotations

import torch
from torch import Tensor

PIECE = 1024
"""Numbers added up in one go: up to so many, a float32 sum is good to a hundred-thousandth."""


def pieces_of(starts: Tensor) -> tuple[Tensor, Tensor] | None:
    """Cut long rows: where each piece starts, and the first piece of each row.

    Both end with a count, of all entries and of all pieces. None where no row is long.
    """
    counts = starts.diff()
    if len(counts) == 0 or int(counts.max()) <= PIECE:
        return None
    needed = (counts + PIECE - 1) // PIECE
    first = torch.nn.functional.pad(needed.cumsum(0), (1, 0))
    turn = torch.arange(int(first[-1]), device=starts.device) - first[:-1].repeat_interleave(needed)
    cuts = starts[:-1].repeat_interleave(needed) + PIECE * turn
    return torch.cat([cuts, starts[-1:]]).to(starts.dtype), first


def sum_rows(
    dense: Tensor,
    starts: Tensor,
    columns: Tensor,
    values: Tensor | None,
    pieces: tuple[Tensor, Tensor] | None,
) -> Tensor:
    """Multiply CSR arrays with a dense matrix; float64 has digits enough to need no pieces."""
    if pieces is None or dense.dtype == torch.float64:
        return _bag(dense, starts, columns, values)
    cuts, first = pieces
    parts = _bag(dense, cuts, columns, values)
    everyone = torch.arange(len(parts), device=parts.device)
    return sum_rows(parts, first, everyone, None, pieces_of(first))


def _bag(dense: Tensor, starts: Tensor, columns: Tensor, values: Tensor | None) -> Tensor:
    """Multiply: for ``embedding_bag``, a sparse product is a bag of weighted rows."""
    product: Tensor = torch.embedding_bag(
        dense.contiguous(),
        columns,
        starts,
        mode=0,  # sum
        per_sample_weights=None if values is None else values.to(dense.dtype),
        include_last_offset=True,
    )[0]
    return product
