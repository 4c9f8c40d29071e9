"""Batches against whole graphs: exact with all neighbours, right on average with some."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.sampling import Sampler


def graph(sparse: bool = False, weighted: bool = False, nodes: int = 50) -> GraphInputs:
    draw = torch.Generator().manual_seed(1)
    edges = torch.randint(0, nodes - 4, (2, 6 * nodes), generator=draw)  # four nodes stand alone
    x = torch.randn(nodes, 5, generator=draw, dtype=torch.float64)
    if sparse:
        x = (x * (x > 0)).to_sparse_csr()
    weight = torch.rand(6 * nodes, generator=draw, dtype=torch.float64) if weighted else None
    return SageEncoder.prepare(x, edges, weight)


def encoder(layers: int) -> SageEncoder:
    draw = torch.Generator().manual_seed(2)
    return SageEncoder(5, 7, layers, generator=draw, members=2).double()


def draws() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_all_neighbours_give_the_outputs_and_gradients_of_the_whole_graph(
    layers: int, sparse: bool, weighted: bool
) -> None:
    whole, net = graph(sparse, weighted), encoder(layers)
    seeds = torch.tensor([7, 49, 0, 21])
    batch = Sampler(whole, layers, fan_out=1000).batch(seeds, draws())
    assert batch.rows == 4
    upstream = torch.linspace(-1, 1, 2 * 4 * 7, dtype=torch.float64).view(2, 4, 7)
    results: list[list[Tensor]] = []
    for hidden in (net(batch), net(whole)[:, seeds]):
        results.append([hidden, *torch.autograd.grad(hidden, list(net.parameters()), upstream)])
    for ours, wanted in zip(*results, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_sampler_draws_neighbours_uniformly_without_repetition(sparse: bool) -> None:
    whole = graph(sparse)
    sampler, draw = Sampler(whole, 1 if sparse else 2, fan_out=3), draws()
    node = int(whole.matrix.starts.diff().argmax())
    there = whole.matrix.columns[whole.matrix.starts[node] : whole.matrix.starts[node + 1]]
    counts = dict.fromkeys(range(len(there)), 0)
    for _ in range(3000):
        places, parent, share = sampler._neighbours(torch.tensor([node]), draw)
        assert len(places) == 3
        assert parent.tolist() == [0, 0, 0]
        assert share.tolist() == pytest.approx([1 / 3] * 3)
        for one in places.tolist():
            counts[there.tolist().index(one)] += there.tolist().count(one) == 1
    expected = 3000 * 3 / len(there)
    alone = [i for i, one in enumerate(there.tolist()) if there.tolist().count(one) == 1]
    assert len(alone) > 4
    for i in alone:
        assert abs(counts[i] - expected) < 5 * expected**0.5


def test_sampled_mean_is_unbiased() -> None:
    whole, draw = graph(), draws()
    sampler = Sampler(whole, 2, fan_out=2)
    seeds = torch.arange(50)
    x = whole.features[:, 5:]  # type: ignore[index]
    total = torch.zeros(50, 5, dtype=torch.float64)
    for _ in range(4000):
        batch = sampler.batch(seeds, draw)
        total += batch.matrix_for(0).multiply(batch.features[:, 5:].contiguous())  # type: ignore[index]
    torch.testing.assert_close(total / 4000, whole.matrix.multiply(x), rtol=0, atol=0.08)


def test_repeated_neighbours_are_not_merged() -> None:
    edges = torch.tensor([[1, 1, 2], [0, 0, 0]])
    whole = SageEncoder.prepare(torch.eye(3), edges)
    batch = Sampler(whole, 2, fan_out=5).batch(torch.tensor([0]), draws())
    assert batch.matrix_for(0).multiply(batch.features[:, 3:].contiguous()).tolist() == [  # type: ignore[index]
        pytest.approx([0, 2 / 3, 1 / 3])
    ]


def test_batch_of_nodes_without_neighbours() -> None:
    whole = SageEncoder.prepare(torch.randn(3, 2), torch.empty(2, 0, dtype=torch.int64))
    batch = Sampler(whole, 3, fan_out=4).batch(torch.tensor([2, 1]), draws())
    assert batch.nodes == 2
    assert batch.matrix_for(0).multiply(torch.ones(2, 3)).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("sparse", [False, True])
def test_batch_moved_to_a_device_is_unchanged(sparse: bool) -> None:
    """Part by part: a whole batch that is there already is not touched."""
    batch = Sampler(graph(sparse, weighted=True), 2, fan_out=3).batch(torch.arange(9), draws())
    for mean in batch.matrices:
        dense = torch.randn(mean.shape[1], 4, generator=draws(), dtype=torch.float64)
        moved = mean.to(torch.device("cpu"))
        assert type(moved) is type(mean)
        assert moved.shape == mean.shape
        assert torch.equal(moved.multiply(dense), mean.multiply(dense))
