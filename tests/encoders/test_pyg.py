"""Modules of the user's own: each member has its own weights, and nothing global changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from tests.encoders.graphs import COLUMNS, NODES, edges, features, prepared
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv

from qpignn.encoders.pyg import PygEncoder, reset_parameters
from qpignn.errors import GraphError, SettingError


class TwoConvs(nn.Module):
    """A user's module as one writes it, with dropout, batch norm and a shared layer."""

    def __init__(self, in_channels: int = COLUMNS, hidden: int = 8) -> None:
        super().__init__()
        self.first, self.second = GCNConv(in_channels, hidden), GCNConv(hidden, hidden)
        self.shared = nn.Linear(hidden, hidden)
        self.again = self.shared
        self.norm, self.drop = nn.BatchNorm1d(hidden), nn.Dropout(0.5)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        hidden = self.drop(self.norm(self.first(x, edge_index, edge_weight)).relu())
        return self.again(self.shared(self.second(hidden, edge_index, edge_weight)))


def make(source: Any, seed: int = 0, **settings: Any) -> PygEncoder:
    draw = torch.Generator().manual_seed(seed)
    settings = {"members": 3, **settings}
    return PygEncoder(source, COLUMNS, 8, generator=draw, **settings).double()


def member_of(encoder: PygEncoder, member: int) -> nn.Module:
    """The module that a member is, as a user would run it."""
    module = TwoConvs().double()
    state = {name: tensor[member] for name, tensor in encoder.module.state_dict().items()}
    module.load_state_dict(state)
    return module


@pytest.mark.parametrize("source", [TwoConvs, TwoConvs()], ids=["class", "module"])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_member_is_the_module_with_its_own_weights(source: Any, sparse: bool) -> None:
    encoder, (ends, weight) = make(source).eval(), edges()
    hidden = encoder(prepared(TwoConvs, sparse=sparse))
    assert hidden.shape == (3, NODES, 8)
    for member in range(3):
        wanted = member_of(encoder, member).eval()(features(), ends, weight)
        torch.testing.assert_close(hidden[member], wanted)
    assert not torch.equal(hidden[0], hidden[1])


def test_gradients_reach_the_weights_of_each_member() -> None:
    encoder, (ends, weight) = make(TwoConvs).eval(), edges()
    encoder(prepared(TwoConvs)).square().sum().backward()
    for member in range(3):
        module = member_of(encoder, member).eval()
        module(features(), ends, weight).square().sum().backward()
        ours = dict(encoder.module.named_parameters())
        for name, parameter in module.named_parameters():
            assert ours[name].grad is not None
            torch.testing.assert_close(ours[name].grad[member], parameter.grad)  # type: ignore[index]


@pytest.mark.parametrize("source", [TwoConvs, TwoConvs()], ids=["class", "module"])
def test_weights_depend_on_the_seed_only(source: Any) -> None:
    torch.manual_seed(1)
    one = make(source).state_dict()
    torch.manual_seed(2)
    same, other = make(source).state_dict(), make(source, seed=5).state_dict()
    name = "module.first.lin.weight"
    assert torch.equal(one[name], same[name])
    assert not torch.equal(one[name], other[name])


def test_pyg_encoder_changes_neither_module_nor_global_generator() -> None:
    source = TwoConvs()
    weights, state = copy.deepcopy(source.state_dict()), torch.get_rng_state()
    encoder = make(source, dropout=0.3).train()
    encoder(prepared(TwoConvs))
    assert torch.equal(state, torch.get_rng_state())
    for name, tensor in source.state_dict().items():
        assert torch.equal(tensor, weights[name])


def test_dropout_of_the_module_repeats_by_seed_and_differs_by_pass() -> None:
    inputs = prepared(TwoConvs)
    one, other = make(TwoConvs).train(), make(TwoConvs).train()
    first = one(inputs)
    assert torch.equal(first, other(inputs))
    assert not torch.equal(first, one(inputs))


def test_running_statistics_belong_to_members() -> None:
    encoder = make(TwoConvs).train()
    encoder(prepared(TwoConvs))
    mean = dict(encoder.named_buffers())["module.norm.running_mean"]
    assert mean.shape == (3, 8)
    assert not torch.equal(mean[0], mean[1])
    assert mean.abs().min() > 0


def test_frozen_parameters_are_not_trained() -> None:
    def frozen(in_channels: int, hidden: int) -> nn.Module:
        module = TwoConvs(in_channels, hidden)
        module.first.lin.weight.requires_grad_(False)
        return module

    names = [name for name, _ in make(frozen).named_parameters()]
    assert "module.first.lin.weight" not in names
    assert "module.first.bias" in names


def test_edge_features_are_passed_where_forward_takes_them() -> None:
    class Edges(nn.Module):
        def __init__(self, in_channels: int, hidden: int) -> None:
            super().__init__()
            self.linear = nn.Linear(in_channels, hidden)

        def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
            total = torch.zeros(len(x), 1, dtype=x.dtype).index_add(0, edge_index[1], edge_attr)
            out: Tensor = self.linear(x) * 0 + total
            return out

    ends, weight = edges()
    inputs = PygEncoder.prepare(features(), ends, edge_attr=weight)
    total = torch.zeros(NODES).double().index_add(0, ends[1], weight)
    torch.testing.assert_close(make(Edges)(inputs)[1], total.unsqueeze(1).expand(-1, 8))


def test_weights_that_the_module_cannot_take_are_refused() -> None:
    with pytest.raises(GraphError, match="forward of SAGEConv has no argument edge_weight"):
        make(SAGEConv)(prepared(SAGEConv, weighted=True))
    make(SAGEConv)(prepared(SAGEConv, weighted=False))


class NoReset(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(COLUMNS, 8))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (NoReset(), "NoReset without it; add the method, or give a class"),
        (nn.Sequential(nn.Linear(3, 3), NoReset()), "NoReset without it"),
        (nn.ReLU(), "expected a module with parameters"),
        (lambda *_: 3, "expected a torch.nn.Module from"),
        (SAGEConv(-1, 8), "lazy"),
    ],
    ids=["own weight", "inside", "no weights", "no module", "lazy"],
)
def test_module_whose_weights_cannot_be_drawn_is_refused(source: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (TwoConvs(in_channels=3), r"to run on x of shape \(40, 5\)"),
        (TwoConvs(hidden=4), r"to return \(nodes, hidden\) = \(40, 8\), got \(40, 4\)"),
    ],
    ids=["inputs", "outputs"],
)
def test_module_of_other_sizes_is_refused(source: nn.Module, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make(source)(prepared(TwoConvs))


def test_reset_parameters_trusts_the_outermost_one() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def reset_parameters(self) -> None:
            nn.init.constant_(self.inner.weight, 7)

    module = Own()
    reset_parameters(module)
    assert (module.inner.weight == 7).all()
