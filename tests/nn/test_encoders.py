"""The same numbers as PyG's own layers, in outputs and in one step's gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from qpignn.nn.encoders import SageEncoder, SageLayer, _SageStep
from qpignn.nn.propagate import SparseMatrix, mean_adjacency, prepare


def graph(nodes: int = 60, columns: int = 7) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(3)
    x = torch.randn(nodes, columns, generator=draw)
    x[torch.rand(nodes, columns, generator=draw) < 0.6] = 0
    edges = torch.randint(0, nodes - 5, (2, 4 * nodes), generator=draw)  # five nodes stand alone
    return x, edges


class Pyg(nn.Module):
    def __init__(self, ours: SageEncoder) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for layer in ours.layers:
            assert isinstance(layer, SageLayer)
            theirs = SAGEConv(*layer.neighbour.shape)
            theirs.lin_l.weight.data = layer.neighbour.data.t().clone()
            theirs.lin_l.bias.data = layer.bias.data.clone()
            theirs.lin_r.weight.data = layer.root.data.t().clone()
            self.layers.append(theirs)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, edges).relu()
        return x


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("part", [False, True])
def test_outputs_and_gradients_of_pyg(sparse: bool, layers: int, part: bool) -> None:
    x, edges = graph()
    wanted = torch.tensor([50, 3, 58, 7]) if part else torch.arange(60)
    encoder = SageEncoder(7, 16, layers, 0.0, torch.Generator().manual_seed(0))
    pyg = Pyg(encoder)
    ours = encoder(
        prepare(x.to_sparse_csr() if sparse else x, edges, first=wanted if part else None)
    )
    theirs = pyg(x, edges)[wanted]
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    weights = torch.randn(ours.shape, generator=torch.Generator().manual_seed(1))
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    for mine, other in zip(encoder.layers, pyg.layers, strict=True):
        for got, expected in (
            (mine.neighbour.grad, other.lin_l.weight.grad.t()),
            (mine.bias.grad, other.lin_l.bias.grad),
            (mine.root.grad, other.lin_r.weight.grad.t()),
        ):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)


def test_the_written_out_gradient() -> None:
    _, edges = graph(12)
    mean = SparseMatrix(mean_adjacency(edges, None, 12)[:5], torch.float64)
    draw = torch.Generator().manual_seed(2)
    shapes = ((12, 4), (4, 3), (4, 3), (3,))
    inputs = [
        torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    ]
    assert torch.autograd.gradcheck(lambda *tensors: _SageStep.apply(*tensors, mean), inputs)


def test_renaming_nodes_renames_outputs() -> None:
    x, edges = graph()
    encoder = SageEncoder(7, 16, 2, 0.0, torch.Generator().manual_seed(0)).eval()
    order = torch.randperm(60, generator=torch.Generator().manual_seed(5))
    position = torch.empty_like(order)
    position[order] = torch.arange(60)
    moved = encoder(prepare(x[order], position[edges]))
    torch.testing.assert_close(moved, encoder(prepare(x, edges))[order], atol=1e-5, rtol=1e-5)


def test_dropout_acts_in_training_only_and_repeats_by_seed() -> None:
    x, edges = graph()
    operands = prepare(x, edges)
    first, second = (SageEncoder(7, 16, 2, 0.5, torch.Generator().manual_seed(0)) for _ in range(2))
    a = first(operands)
    assert torch.equal(a, second(operands))
    assert not torch.equal(a, first(operands))  # another epoch, another mask
    assert (a == 0).float().mean() > 0.4
    first.eval()
    assert torch.equal(first(operands), first(operands))


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    encoder = SageEncoder(7, 16, 1, 0.25, torch.Generator().manual_seed(0))
    ones = torch.ones(200_000)
    dropped = encoder._activated(ones.clone())
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.004)  # 4 errors
    assert dropped.mean().item() == pytest.approx(1, abs=0.006)
    together = (dropped.reshape(-1, 8) == 0).float().mean(dim=0)  # every byte of a word alike
    assert together.tolist() == pytest.approx([0.25] * 8, abs=0.011)


def test_initial_weights_have_the_default_bounds() -> None:
    layer = SageLayer(100, 50, torch.Generator().manual_seed(0))
    for weight in layer.parameters():
        assert 0.09 < weight.abs().max() <= 0.1  # 1/√100
        assert weight.mean().abs() < 0.02
