"""Laws of all encoders that aggregate by one sparse product: every fast form is the plain form."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.encoders.graphs import NODES, edges, features, gradients, make, prepared
from torch import nn

from qpignn.encoders.activations import ACTIVATIONS, Activation
from qpignn.encoders.sampling import Sampler

NAMES = ("sage", "gcn", "gin", "mlp")
CLOSE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-11}
WANTED = torch.tensor([30, 3, 39, 7, 2])
EXTRAS: list[dict[str, Any]] = [{}, {"residual": True, "norm": "layer"}]


def fused_pass(name: str, part: slice, sparse: bool, layers: int, **settings: Any) -> Any:
    """Return hidden vectors and gradients, fused and by autograd, from the same masks."""
    results = []
    inputs = prepared(name, sparse=sparse, first=WANTED)
    for fused in (True, False):
        encoder = make(name, layers, **settings).train()
        for weight in encoder.parameters():
            weight.grad = torch.zeros_like(weight)
        if fused:
            passes = encoder.fused(inputs, part)
            assert passes is not None
            with torch.no_grad():
                hidden = passes.forward().clone()
                upstream = torch.linspace(-1, 1, hidden.numel()).double().view_as(hidden)
                passes.backward(upstream)
        else:
            hidden = encoder(inputs)[part]
            upstream = torch.linspace(-1, 1, hidden.numel()).double().view_as(hidden)
            hidden.backward(upstream)  # type: ignore[no-untyped-call]
        results.append([hidden, *(weight.grad for weight in encoder.parameters())])
    return zip(*results, strict=True)


@pytest.mark.parametrize("part", [slice(None), slice(1, 2)], ids=["all", "one member"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    ("name", "layers"), [("sage", 2), ("gcn", 2), ("gcn", 3), ("gin", 2), ("mlp", 1), ("mlp", 3)]
)
def test_fused_form_has_the_numbers_of_autograd(
    name: str, layers: int, activation: str, sparse: bool, part: slice
) -> None:
    for ours, wanted in fused_pass(name, part, sparse, layers, activation=activation, dropout=0.3):
        torch.testing.assert_close(ours, wanted, **CLOSE)


def test_new_activation_is_one_entry_that_works_in_both_forms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def backward(gradient: torch.Tensor, z: torch.Tensor) -> None:
        gradient.mul_(torch.sigmoid(z))

    monkeypatch.setitem(ACTIVATIONS, "softplus", Activation(nn.functional.softplus, backward))
    for ours, wanted in fused_pass("gin", slice(None), False, 2, activation="softplus"):
        torch.testing.assert_close(ours, wanted, **CLOSE)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gcn", {"residual": True}),
        ("gin", {"norm": "layer"}),
        ("sage", {"layers": 1}),
        ("sage", {"aggregation": "max"}),
    ],
    ids=str,
)
def test_fused_form_is_refused_for_what_it_does_not_cover(
    name: str, settings: dict[str, Any]
) -> None:
    aggregation = settings.get("aggregation", "mean")
    inputs = prepared(name, weighted=False, aggregation=aggregation)
    assert make(name, **settings).fused(inputs, slice(None)) is None


@pytest.mark.parametrize("extra", EXTRAS, ids=["plain", "residual and norm"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_chunks_are_the_rows_of_a_forward_pass(
    name: str, layers: int, sparse: bool, extra: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qpignn.runtime.memory.CHUNK_ROWS", 7)
    encoder = make(name, layers, dropout=0.5, **extra).eval()
    inputs = prepared(name, sparse=sparse, first=torch.arange(39, 3, -1))
    with torch.no_grad():
        chunks = encoder.in_chunks(inputs)
        assert chunks is not None
        parts = [*chunks]
        assert len(parts) > 1
        torch.testing.assert_close(torch.cat(parts, dim=1), encoder(inputs), **CLOSE)


@pytest.mark.parametrize("extra", EXTRAS, ids=["plain", "residual and norm"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_batch_of_all_neighbours_has_the_numbers_of_the_whole_graph(
    name: str, layers: int, sparse: bool, extra: dict[str, Any]
) -> None:
    whole, encoder = prepared(name, sparse=sparse), make(name, layers, **extra)
    sampler = encoder.sampler(whole, fan_out=1000)
    assert sampler is not None
    batch = sampler.batch(WANTED, torch.Generator().manual_seed(0))
    ours, wanted = encoder(batch), encoder(whole)[:, WANTED]
    torch.testing.assert_close(ours, wanted, **CLOSE)
    for one, other in zip(gradients(ours, encoder), gradients(wanted, encoder), strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("name", ["sage", "gcn", "gin"])
def test_sampled_sum_is_right_on_average_and_keeps_the_node_itself(name: str) -> None:
    whole = prepared(name, sparse=True, aggregation="sum" if name == "sage" else "mean")
    sampler, draw = Sampler(whole, 1, fan_out=2), torch.Generator().manual_seed(0)
    seeds, x = torch.arange(NODES), features()
    total = torch.zeros_like(x)
    for _ in range(3000):
        nodes, parents, shares = sampler._neighbours(seeds, draw)
        if whole.self_loops:
            itself = nodes[torch.searchsorted(parents, seeds)]
            assert torch.equal(itself, seeds)
        total.index_add_(0, parents, x[nodes] * shares.unsqueeze(1))
    exact = whole.matrix.multiply(x)
    torch.testing.assert_close(total / 3000, exact, rtol=0, atol=0.1 * exact.abs().max().item())


@pytest.mark.parametrize("extra", EXTRAS, ids=["plain", "residual and norm"])
@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("name", ["sage", "gcn", "gin"])
def test_members_compute_their_own_nodes(name: str, layers: int, extra: dict[str, Any]) -> None:
    encoder, inputs = make(name, layers, **extra).eval(), prepared(name)
    positions = torch.tensor([[3, 0], [7, 7], [39, 2]])
    with torch.no_grad():
        own = encoder.member_inputs(inputs, positions)
        assert own is not None
        hidden = encoder(inputs)
        wanted = torch.stack([hidden[member, positions[member]] for member in range(3)])
        torch.testing.assert_close(encoder(own), wanted, **CLOSE)


@pytest.mark.parametrize("extra", EXTRAS, ids=["plain", "residual and norm"])
@pytest.mark.parametrize("name", NAMES)
def test_dropout_passes_are_forward_passes_with_whole_units_dropped(
    name: str, extra: dict[str, Any]
) -> None:
    encoder, inputs = make(name, dropout=0.4, **extra).eval(), prepared(name, first=WANTED)
    passes = [*encoder.dropout_passes(inputs, 3, torch.Generator().manual_seed(4))]
    assert not encoder.training
    assert not torch.equal(passes[0], passes[1])
    encoder.train()
    encoder.drop_whole_units, encoder.generator = True, torch.Generator().manual_seed(4)
    with torch.no_grad():
        for one in passes:
            torch.testing.assert_close(one, encoder(inputs), **CLOSE)


@pytest.mark.parametrize("name", NAMES)
def test_residual_adds_the_inputs_of_a_layer(name: str) -> None:
    """With zero weights in the second layer and ReLU, outputs are those of the first layer."""
    one, two = make(name, 1, activation="relu"), make(name, 2, activation="relu", residual=True)
    two.load_state_dict({**two.state_dict(), **one.state_dict()})
    second: Any = two.layers
    for weight in second[1].parameters():
        weight.data.zero_()
    inputs = prepared(name)
    assert torch.equal(two(inputs), one(inputs))


def test_layer_norm_has_the_numbers_of_torch() -> None:
    plain, normed = make("mlp", 1, members=1), make("mlp", 1, members=1, norm="layer")
    theirs, act = nn.LayerNorm(8).double(), nn.functional.silu
    layer: Any = plain.layers[0]  # type: ignore[index]
    z = features() @ layer.neighbour[0] + layer.bias[0]
    torch.testing.assert_close(normed(prepared("mlp"))[0], act(theirs(z)), **CLOSE)


@pytest.mark.parametrize("name", [*NAMES, "gat"])
def test_renamed_nodes_give_renamed_outputs(name: str) -> None:
    encoder, (ends, weight), x = make(name, edge_columns=1), edges(), features()
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(5))
    place = torch.empty_like(order)
    place[order] = torch.arange(NODES)
    moved = encoder(type(encoder).prepare(x[order], place[ends], weight))
    torch.testing.assert_close(moved, encoder(prepared(name))[:, order], **CLOSE)


@pytest.mark.parametrize("name", [*NAMES, "gat"])
@pytest.mark.parametrize("sparse", [False, True])
def test_wanted_nodes_first_give_their_rows(name: str, sparse: bool) -> None:
    encoder = make(name, edge_columns=1)
    part, whole = prepared(name, sparse=sparse, first=WANTED), prepared(name, sparse=sparse)
    torch.testing.assert_close(encoder(part), encoder(whole)[:, WANTED], **CLOSE)
    torch.testing.assert_close(encoder(part.first(2)), encoder(whole)[:, WANTED[:2]], **CLOSE)
