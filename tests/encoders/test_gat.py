"""The same numbers as PyG's GATConv; edge features and weights take part in the attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.encoders.graphs import edges, features, make
from torch import Tensor
from torch_geometric.nn import GATConv

from qpignn.encoders.gat import GatEncoder
from qpignn.errors import GraphError


def attributes() -> Tensor:
    count = edges()[0].shape[1]
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(6)).double()


def pyg_layer(layer: Any, member: int, edge_columns: int) -> GATConv:
    inputs, outputs = layer.weight.shape[1:]
    conv = GATConv(inputs, outputs // 4, 4, edge_dim=edge_columns or None).double()
    conv.lin.weight.data = layer.weight.data[member].t().clone()
    conv.att_src.data = layer.source.data[member].unsqueeze(0).clone()
    conv.att_dst.data = layer.target.data[member].unsqueeze(0).clone()
    conv.bias.data = layer.bias.data[member, 0].clone()
    if edge_columns:
        conv.lin_edge.weight.data = layer.edge_weight.data[member].t().clone()
        conv.att_edge.data = layer.edge.data[member].unsqueeze(0).clone()
    return conv


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("attr", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_outputs_and_gradients_agree_with_pyg(weighted: bool, attr: bool, sparse: bool) -> None:
    (ends, weight), x = edges(), features()
    parts = [attributes()] * attr + [weight.unsqueeze(1)] * weighted
    columns = sum(part.shape[1] for part in parts)
    encoder = make("gat", edge_columns=columns)
    inputs = GatEncoder.prepare(
        x.to_sparse_csr() if sparse else x,
        ends,
        weight if weighted else None,
        edge_attr=attributes() if attr else None,
    )
    assert inputs.edge_columns == columns
    hidden = encoder(inputs)
    upstream = torch.linspace(-1, 1, hidden.numel(), dtype=torch.float64).view_as(hidden)
    hidden.backward(upstream)
    layers: Any = encoder.layers
    for member in range(3):
        theirs, convs = x, []
        for layer in layers:
            convs.append(pyg_layer(layer, member, columns))
            edge_attr = torch.cat(parts, dim=1) if parts else None
            theirs = torch.nn.functional.silu(convs[-1](theirs, ends, edge_attr))
        torch.testing.assert_close(hidden[member], theirs, rtol=1e-5, atol=1e-5)
        theirs.backward(upstream[member])
        for layer, conv in zip(layers, convs, strict=True):
            got = [layer.weight.grad[member].t(), layer.source.grad[member].unsqueeze(0)]
            expected = [conv.lin.weight.grad, conv.att_src.grad]
            if columns:
                got.append(layer.edge_weight.grad[member].t())
                expected.append(conv.lin_edge.weight.grad)
            for one, other in zip(got, expected, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_other_edge_features_than_those_of_the_fit_are_refused() -> None:
    (ends, weight), x = edges(), features()
    with pytest.raises(GraphError, match="expected 0 numbers per edge, as in the fit, got 1"):
        make("gat")(GatEncoder.prepare(x, ends, weight))


@pytest.mark.parametrize("attr", [torch.ones(3, 2), torch.full((177, 1), torch.nan)])
def test_edge_features_of_another_shape_or_not_finite_are_refused(attr: Tensor) -> None:
    (ends, _), x = edges(), features()
    with pytest.raises(GraphError, match="edge_attr: expected a tensor of finite numbers of shape"):
        GatEncoder.prepare(x, ends, edge_attr=attr)


@pytest.mark.parametrize("hidden", [6, 7])
def test_any_hidden_length_has_heads(hidden: int) -> None:
    (ends, _), x = edges(), features()
    draw = torch.Generator().manual_seed(0)
    encoder = GatEncoder(5, hidden, 2, generator=draw, norm="layer", residual=True).double()
    assert encoder(GatEncoder.prepare(x, ends)).shape == (1, 40, hidden)
