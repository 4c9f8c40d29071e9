"""Inputs of which every member computes rows of its own: the nodes that it holds out."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sparse import SparseMatrix


@dataclass(frozen=True)
class MemberInputs(GraphInputs):
    """Inputs for evaluation in which every member has its own wanted nodes.

    The first of ``matrices`` has a row for every wanted node of every member, over the nodes of all
    members, one member after the other.

    Attributes:
        positions: (members · rows,), the wanted nodes among the nodes of all members.
    """

    positions: Tensor = field(kw_only=True)

    def last_inputs(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs of the last layer: aggregated, and own hidden vectors.

        Args:
            hidden: (members, nodes, width).
        """
        stacked, shape = hidden.flatten(0, 1), (len(hidden), self.rows, hidden.shape[-1])
        aggregated = self.matrices[0].multiply(stacked).view(shape)
        return aggregated, stacked[self.positions].view(shape)


def member_inputs(inputs: GraphInputs, positions: Tensor) -> MemberInputs:
    """Return inputs of which every member computes its own nodes.

    Args:
        inputs: those of all nodes.
        positions: (members, rows), each member's nodes by their positions in ``inputs``.

    Returns:
        Inputs for evaluation with as many members.
    """
    members, rows = positions.shape
    shift = torch.arange(members, device=positions.device).unsqueeze(1) * inputs.nodes
    nodes, shifts = positions.flatten(), shift.expand(-1, rows).flatten()
    return MemberInputs(
        inputs.features,
        inputs.columns,
        (_shifted_rows(inputs.matrix, nodes, shifts, members), inputs.matrix),
        rows,
        inputs.own,
        positions=nodes + shifts,
    )


def _shifted_rows(matrix: SparseMatrix, rows: Tensor, shifts: Tensor, copies: int) -> SparseMatrix:
    """Return rows of a matrix with shifted columns: rows of one of several copies side by side."""
    first = matrix.starts[rows].long()
    counts = matrix.starts[rows + 1].long() - first
    starts = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    entries = torch.arange(int(starts[-1]), device=rows.device)
    entries += (first - starts[:-1]).repeat_interleave(counts)
    columns = matrix.columns[entries] + shifts.repeat_interleave(counts)
    return type(matrix)(
        starts,
        columns,
        None if matrix.values is None else matrix.values[entries],
        (len(rows), copies * matrix.shape[1]),
        None if matrix.scale is None else matrix.scale[rows],
    )
