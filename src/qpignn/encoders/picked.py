"""A graph of which every member of a net is asked for other nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from qpignn.encoders.sparse import Operands, SparseMatrix


@dataclass(frozen=True)
class Picked(Operands):
    """Operands of nets that only run, and of which every member gives outputs for its own nodes.

    The first of ``means`` has a row for every node of every member, over all members' nodes one
    after the other.

    Attributes:
        places: (members · rows,), where the wanted nodes stand among all members'.
    """

    places: Tensor = field(kw_only=True)

    def to(self, device: torch.device) -> Operands:
        """Bring the numbers to a device."""
        moved = super().to(device)
        assert isinstance(moved, Picked)
        return replace(moved, places=self.places.to(device))

    def last_inputs(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the last layer is applied to: means over neighbours, and own vectors."""
        everyone, shape = hidden.flatten(0, 1), (len(hidden), self.rows, hidden.shape[-1])
        return self.means[0].multiply(everyone).view(shape), everyone[self.places].view(shape)


def pick(graph: Operands, positions: Tensor) -> Picked:
    """Ask every member for nodes of its own, (members, rows), by their positions in the graph."""
    members, rows = positions.shape
    turn = torch.arange(members, device=positions.device).unsqueeze(1) * graph.nodes
    nodes, shifts = positions.flatten(), turn.expand(-1, rows).flatten()
    return Picked(
        graph.features,
        graph.columns,
        (_rows(graph.mean, nodes, shifts, members), graph.mean),
        rows,
        graph.own,
        places=nodes + shifts,
    )


def _rows(matrix: SparseMatrix, rows: Tensor, shifts: Tensor, copies: int) -> SparseMatrix:
    """Return rows of a matrix, each with its columns moved: one of several copies side by side."""
    first = matrix.starts[rows].long()
    counts = matrix.starts[rows + 1].long() - first
    starts = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    entries = torch.arange(int(starts[-1]), device=rows.device)
    entries += (first - starts[:-1]).repeat_interleave(counts)
    columns = matrix.columns[entries] + shifts.repeat_interleave(counts)
    return SparseMatrix(
        starts,
        columns,
        None if matrix.values is None else matrix.values[entries],
        (len(rows), copies * matrix.shape[1]),
        None if matrix.scale is None else matrix.scale[rows],
    )
