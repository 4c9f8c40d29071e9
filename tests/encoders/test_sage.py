"""The same numbers as PyG's own layers, in outputs and in one step's gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv
from torch_geometric.nn.resolver import aggregation_resolver

from qpignn.encoders.inputs import aggregation_matrix
from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.stack import AffineLayer, _AffineStep
from qpignn.errors import GraphError


def graph(nodes: int = 60, columns: int = 7) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(3)
    x = torch.randn(nodes, columns, generator=draw)
    x[torch.rand(nodes, columns, generator=draw) < 0.6] = 0
    edges = torch.randint(0, nodes - 5, (2, 4 * nodes), generator=draw)  # five nodes stand alone
    return x, edges


class Pyg(nn.Module):
    def __init__(self, ours: SageEncoder, member: int = 0) -> None:
        super().__init__()
        self.activation = ours.activation
        self.layers = nn.ModuleList()
        for layer in ours.layers:
            assert isinstance(layer, AffineLayer)
            theirs = SAGEConv(*layer.neighbour.shape[1:])
            theirs.lin_l.weight.data = layer.neighbour.data[member].t().clone()
            theirs.lin_l.bias.data = layer.bias.data[member, 0].clone()
            theirs.lin_r.weight.data = layer.root.data[member].t().clone()
            self.layers.append(theirs)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.activation(layer(x, edges))
        return x


def encoder_of(layers: int = 2, **settings: Any) -> SageEncoder:
    return SageEncoder(7, 16, layers, generator=torch.Generator().manual_seed(0), **settings)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize(("members", "activation"), [(1, "relu"), (3, "silu")])
def test_outputs_and_gradients_of_pyg(
    sparse: bool, layers: int, part: bool, members: int, activation: str
) -> None:
    x, edges = graph()
    wanted = torch.tensor([50, 3, 58, 7]) if part else torch.arange(60)
    encoder = encoder_of(layers, members=members, activation=activation)
    ours = encoder(
        SageEncoder.prepare(
            x.to_sparse_csr() if sparse else x, edges, first=wanted if part else None
        )
    )
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(1))
    (ours * weights).sum().backward()
    for member in range(members):  # each is a net of its own
        pyg = Pyg(encoder, member)
        theirs = pyg(x, edges)[wanted]
        torch.testing.assert_close(ours[member], theirs, atol=1e-5, rtol=1e-5)
        (theirs * weights[member]).sum().backward()
        for mine, other in zip(encoder.layers, pyg.layers, strict=True):
            for got, expected in (
                (mine.neighbour.grad[member], other.lin_l.weight.grad.t()),
                (mine.bias.grad[member, 0], other.lin_l.bias.grad),
                (mine.root.grad[member], other.lin_r.weight.grad.t()),
            ):
                torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)


def test_affine_step_gradient_passes_gradcheck() -> None:
    _, edges = graph(12)
    mean = aggregation_matrix(edges, None, 12, dtype=torch.float64).some(0, 5)
    draw = torch.Generator().manual_seed(2)
    shapes = ((2, 12, 4), (2, 4, 3), (2, 1, 3), (2, 4, 3))
    inputs = [
        torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    ]
    assert torch.autograd.gradcheck(lambda *tensors: _AffineStep.apply(*tensors, mean), inputs)


def test_renaming_nodes_renames_outputs() -> None:
    x, edges = graph()
    encoder = encoder_of().eval()
    order = torch.randperm(60, generator=torch.Generator().manual_seed(5))
    position = torch.empty_like(order)
    position[order] = torch.arange(60)
    moved = encoder(SageEncoder.prepare(x[order], position[edges]))
    torch.testing.assert_close(
        moved, encoder(SageEncoder.prepare(x, edges))[:, order], atol=1e-5, rtol=1e-5
    )


def test_dropout_acts_in_training_only_and_repeats_by_seed() -> None:
    x, edges = graph()
    operands = SageEncoder.prepare(x, edges)
    first, second = (encoder_of(dropout=0.5, activation="relu") for _ in range(2))
    a = first(operands)
    assert torch.equal(a, second(operands))
    assert not torch.equal(a, first(operands))  # another epoch, another mask
    assert (a == 0).float().mean() > 0.4
    first.eval()
    assert torch.equal(first(operands), first(operands))


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    encoder = encoder_of(1, dropout=0.25, activation="relu")
    both = encoder.dropped(torch.ones(2, 1, 200_000))
    assert torch.equal(*both)  # members share their masks
    dropped = both[0, 0]
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.004)  # 4 errors
    assert dropped.mean().item() == pytest.approx(1, abs=0.006)
    together = (dropped.reshape(-1, 8) == 0).float().mean(dim=0)  # every byte of a word alike
    assert together.tolist() == pytest.approx([0.25] * 8, abs=0.011)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_dropout_passes_equal_forward_passes(layers: int, sparse: bool, dropout: float) -> None:
    x, edges = graph()
    operands = SageEncoder.prepare(
        x.to_sparse_csr() if sparse else x, edges, first=torch.tensor([50, 3, 7])
    )
    encoder = encoder_of(layers, dropout=dropout)
    passes = [*encoder.dropout_passes(operands, 3, torch.Generator().manual_seed(4))]
    assert not encoder.drop_whole_units
    encoder.drop_whole_units = True
    with torch.no_grad():
        encoder.generator.manual_seed(4)
        wanted = [encoder(operands) for _ in range(3)]
    for one, other in zip(passes, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
    assert torch.equal(passes[0], passes[1]) == (dropout == 0)


def test_initial_weights_have_the_default_bounds() -> None:
    layer = AffineLayer(2, 100, 50, torch.Generator().manual_seed(0))
    for weight in layer.parameters():
        assert 0.09 < weight.abs().max() <= 0.1  # 1/√100
        assert weight.mean().abs() < 0.02


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gradients_agree_with_differences(layers: int, sparse: bool) -> None:
    x, edges = graph(10, 3)
    x = x.double()
    operands = SageEncoder.prepare(
        x.to_sparse_csr() if sparse else x, edges, first=torch.tensor([7, 2, 9])
    )
    draw = torch.Generator().manual_seed(0)
    encoder = SageEncoder(3, 4, layers, generator=draw, members=2).double()
    names, weights = zip(*encoder.named_parameters(), strict=True)

    def hidden(*values: Tensor) -> Tensor:
        swapped = dict(zip(names, values, strict=True))
        outputs: Tensor = torch.func.functional_call(encoder, swapped, operands)
        return outputs

    assert torch.autograd.gradcheck(hidden, weights)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("aggregation", ["sum", "max"])
def test_other_aggregations_have_the_outputs_and_gradients_of_pyg(
    aggregation: str, sparse: bool
) -> None:
    x, edges = graph()
    encoder = encoder_of(2, members=2)
    inputs = SageEncoder.prepare(x.to_sparse_csr() if sparse else x, edges, aggregation=aggregation)
    ours = encoder(inputs)
    ours.square().sum().backward()
    for member in range(2):
        pyg = Pyg(encoder, member)
        for layer in pyg.layers:
            layer.aggr_module = aggregation_resolver(aggregation)
        theirs = pyg(x, edges)
        torch.testing.assert_close(ours[member], theirs, atol=1e-5, rtol=1e-5)
        theirs.square().sum().backward()
        for mine, other in zip(encoder.layers, pyg.layers, strict=True):
            expected = other.lin_l.weight.grad.t()
            torch.testing.assert_close(mine.neighbour.grad[member], expected, atol=1e-3, rtol=1e-4)


def test_maximum_with_weights_is_refused() -> None:
    x, edges = graph()
    weight = torch.rand(edges.shape[1], generator=torch.Generator().manual_seed(0))
    with pytest.raises(GraphError, match="expected edges without weights for max"):
        SageEncoder.prepare(x, edges, weight, aggregation="max")
