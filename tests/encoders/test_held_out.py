"""Nodes of its own for every member, against all nodes of all members."""

from __future__ import annotations

import pytest
import torch

from qpignn.encoders.held_out import member_inputs
from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sage import SageEncoder

POSITIONS = torch.tensor([[3, 0, 16], [7, 7, 2]])  # in the order of the graph, one of them twice


def graph(*, sparse: bool, part: bool, weighted: bool) -> GraphInputs:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(40, 4, generator=draw, dtype=torch.float64)
    edges = torch.randint(0, 38, (2, 200), generator=draw)  # two nodes have no neighbour
    first = torch.tensor([39, *range(5, 21)]) if part else None
    weight = torch.rand(200, generator=draw, dtype=torch.float64) if weighted else None
    return SageEncoder.prepare(
        (x * (x > 0)).to_sparse_csr() if sparse else x, edges, weight, first=first
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [2, 3])
def test_member_inputs_give_the_outputs_of_the_whole_graph(
    layers: int, sparse: bool, part: bool, weighted: bool
) -> None:
    draw = torch.Generator().manual_seed(0)
    encoder = SageEncoder(4, 6, layers, generator=draw, members=2).double().eval()
    whole = graph(sparse=sparse, part=part, weighted=weighted)
    with torch.no_grad():
        everywhere = encoder(whole)
        outputs = encoder(member_inputs(whole, POSITIONS))
    wanted = torch.stack([everywhere[member, POSITIONS[member]] for member in range(2)])
    torch.testing.assert_close(outputs, wanted, rtol=1e-12, atol=1e-14)
    assert not torch.equal(outputs[0], outputs[1])


def test_member_inputs_move_to_a_device() -> None:
    picked = member_inputs(graph(sparse=False, part=True, weighted=False), POSITIONS)
    moved = picked.to(torch.device("meta"))
    assert moved.positions.device.type == "meta"  # type: ignore[attr-defined]
    assert moved.matrices[0].device.type == "meta"
    assert moved.rows == 3
