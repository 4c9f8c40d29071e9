"""Sparse columns centred implicitly, against a dense matrix that was centred explicitly."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from qpignn.data.scaling import fit_feature_scaler
from qpignn.encoders.held_out import member_inputs
from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.sampling import Sampler

NODES, COLUMNS = 60, 9
CLOSE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-10}


def features() -> Tensor:
    """Columns with a third of zeros, rare ones, one that is constant, and one far from zero."""
    draw = torch.Generator().manual_seed(3)
    x = torch.randn(NODES, COLUMNS, generator=draw, dtype=torch.float64) + 2
    x[torch.rand(NODES, COLUMNS, generator=draw) < 0.33] = 0
    x[:, 5] = (torch.arange(NODES) % 10 == 0).double()
    x[:, 6] = 4.5
    x[:, 7] = 2000 + torch.arange(NODES) % 3
    x[:, 8] = 0
    return x


def both(weighted: bool, first: Tensor | None = None) -> tuple[GraphInputs, GraphInputs]:
    """The same standardised features, implicitly and explicitly; some nodes have no neighbours."""
    draw = torch.Generator().manual_seed(1)
    edges = torch.randint(0, NODES - 4, (2, 5 * NODES), generator=draw)
    weight = None
    if weighted:
        weight = torch.rand(5 * NODES, generator=draw, dtype=torch.float64)
        weight[edges[1] < 3] = 0  # neighbours that all count nothing
    x = features()
    scaler = fit_feature_scaler(x, torch.arange(NODES) < 40)
    assert (scaler.shift != 0).sum() >= 5
    stored, offset = scaler.transform_sparse(x.to_sparse_csr(), torch.float64)
    assert offset is not None
    dense = (x - scaler.shift) / scaler.scale
    implicit = SageEncoder.prepare(stored, edges, weight, first=first, offset=offset)
    return implicit, SageEncoder.prepare(dense, edges, weight, first=first)


def encoder(layers: int = 2, **settings: Any) -> SageEncoder:
    draw = torch.Generator().manual_seed(2)
    return SageEncoder(COLUMNS, 6, layers, generator=draw, members=3, **settings).double()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", [None, torch.tensor([57, 3, 0, 30])])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_forward_and_gradients_agree_with_explicit_centring(
    layers: int, first: Tensor | None, weighted: bool
) -> None:
    net = encoder(layers)
    results = []
    for graph in both(weighted, first):
        hidden = net(graph)
        upstream = torch.linspace(-1, 1, hidden.numel(), dtype=torch.float64).view_as(hidden)
        gradients = torch.autograd.grad(hidden, list(net.parameters()), upstream)
        results.append([hidden, *gradients])
    for ours, wanted in zip(*results, strict=True):
        assert wanted.abs().max() > 0
        torch.testing.assert_close(ours, wanted, **CLOSE)


@pytest.mark.parametrize("part", [slice(None), slice(1, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_written_out_layers_agree_with_explicit_centring(weighted: bool, part: slice) -> None:
    results = []
    for graph in both(weighted, torch.tensor([57, 3, 0, 30])):
        net = encoder()
        for weight in net.parameters():
            weight.grad = torch.zeros_like(weight)
        with torch.no_grad():
            layers = net.fused(graph, part)
            assert layers is not None
            hidden = layers.forward().clone()
            layers.backward(torch.linspace(-1, 1, hidden.numel()).double().view_as(hidden))
        results.append([hidden, *(weight.grad for weight in net.parameters())])
    for ours, wanted in zip(*results, strict=True):
        torch.testing.assert_close(ours, wanted, **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_weights_pass_gradcheck(weighted: bool) -> None:
    implicit, _ = both(weighted, torch.tensor([57, 3, 0]))
    net = encoder()
    names = [name for name, _ in net.named_parameters()]

    def run(*weights: Tensor) -> Tensor:
        outputs: Tensor = torch.func.functional_call(
            net, dict(zip(names, weights, strict=True)), (implicit,)
        )
        return outputs

    assert torch.autograd.gradcheck(run, tuple(net.parameters()))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_prediction_in_chunks_agrees_with_explicit_centring(
    layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    implicit, explicit = both(weighted=False)
    net = encoder(layers).eval()
    with torch.no_grad():
        wanted = net(explicit)
        monkeypatch.setattr("qpignn.runtime.memory.CHUNK_ROWS", 7)
        outputs = torch.cat([*net.in_chunks(implicit)], dim=1)
    torch.testing.assert_close(outputs, wanted, **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
def test_minibatches_agree_with_explicit_centring(weighted: bool) -> None:
    implicit, explicit = both(weighted)
    seeds, net = torch.tensor([7, 59, 0, 21]), encoder()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        outputs = net(Sampler(implicit, 2, fan_out=1000).batch(seeds, draw))
        torch.testing.assert_close(outputs, net(explicit)[:, seeds], **CLOSE)


def test_picked_nodes_and_passes_agree_with_explicit_centring() -> None:
    positions = torch.tensor([[3, 0, 16], [7, 7, 2], [59, 1, 2]])
    results = []
    for graph in both(weighted=True):
        net = encoder(dropout=0.5).train()
        net.drop_whole_units = True
        with torch.no_grad():
            passes = torch.stack([*net.dropout_passes(graph, 4, torch.Generator().manual_seed(7))])
            net.eval()
            results.append((net(member_inputs(graph, positions)), passes))
    for ours, wanted in zip(*results, strict=True):
        torch.testing.assert_close(ours, wanted, **CLOSE)


def test_node_without_neighbours_gets_no_offset_from_them() -> None:
    """By hand: one layer, one unit, x = (0, 2), standardised to (−1, 1); an edge from 1 to 0."""
    x = torch.tensor([[0.0], [2.0]], dtype=torch.float64).to_sparse_csr()
    scaler = fit_feature_scaler(x, torch.tensor([True, True]))
    assert (scaler.shift.item(), scaler.scale.item()) == (1, 1)
    stored, offset = scaler.transform_sparse(x, torch.float64)
    graph = SageEncoder.prepare(stored, torch.tensor([[1], [0]]), offset=offset)
    net = SageEncoder(1, 1, 1, generator=torch.Generator(), activation="relu").double()
    layer: Any = net.layers[0]
    with torch.no_grad():
        layer.neighbour.fill_(10)
        layer.root.fill_(3)
        layer.bias.fill_(100)
        # node 0: 10·1 + 3·(−1) + 100; node 1 has no neighbour: 3·1 + 100
        assert net(graph).flatten().tolist() == [107, 103]
