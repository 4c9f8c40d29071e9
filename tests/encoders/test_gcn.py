"""The same numbers as PyG's GCNConv, in outputs and gradients."""

from __future__ import annotations

import pytest
import torch
from tests.encoders.graphs import edges, features, make, prepared
from torch_geometric.nn import GCNConv

from qpignn.encoders.gcn import GcnEncoder, gcn_edges
from qpignn.encoders.inputs import aggregation_matrix


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_outputs_and_gradients_agree_with_pyg(layers: int, sparse: bool, weighted: bool) -> None:
    encoder, (ends, weight), x = make("gcn", layers), edges(), features()
    hidden = encoder(prepared("gcn", sparse=sparse, weighted=weighted))
    upstream = torch.linspace(-1, 1, hidden.numel(), dtype=torch.float64).view_as(hidden)
    hidden.backward(upstream)
    assert isinstance(encoder, GcnEncoder)
    for member in range(3):
        theirs, convs = x, []
        for layer in encoder._layers():
            conv = GCNConv(*layer.neighbour.shape[1:]).double()
            conv.lin.weight.data = layer.neighbour.data[member].t().clone()
            conv.bias.data = layer.bias.data[member, 0].clone()
            convs.append(conv)
            theirs = torch.nn.functional.silu(conv(theirs, ends, weight if weighted else None))
        torch.testing.assert_close(hidden[member], theirs, rtol=1e-5, atol=1e-5)
        theirs.backward(upstream[member])
        for layer, conv in zip(encoder._layers(), convs, strict=True):
            assert layer.neighbour.grad is not None
            assert layer.bias.grad is not None
            ours = (layer.neighbour.grad[member].t(), layer.bias.grad[member, 0])
            for got, expected in zip(ours, (conv.lin.weight.grad, conv.bias.grad), strict=True):
                torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_matrix_of_a_path_is_that_of_the_formula() -> None:
    """Nodes 0 — 1 — 2: degrees with self-loops are 2, 3, 2."""
    ends = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    matrix = aggregation_matrix(*gcn_edges(ends, None, 3), 3, dtype=torch.float64, kind="sum")
    dense = matrix.multiply(torch.eye(3).double())
    a, b = 1 / 2, 1 / 6**0.5
    wanted = torch.tensor([[a, b, 0], [b, 1 / 3, b], [0, b, a]], dtype=torch.float64)
    torch.testing.assert_close(dense, wanted)


def test_node_without_weight_gets_zeros() -> None:
    loop = torch.tensor([[0], [0]])
    matrix = aggregation_matrix(*gcn_edges(loop, torch.zeros(1), 2), 2, kind="sum")
    dense = matrix.multiply(torch.eye(2))
    assert dense.tolist() == [[0, 0], [0, 1]]
