"""Running a net nodes by nodes and members by members, against running it at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sage import SageEncoder
from qpignn.nn.heads import BayesianHead, IntervalHead, LinearHead, QuantileHead
from qpignn.nn.interval_net import IntervalNet, each

HEADS: dict[str, Any] = {
    "linear": lambda draw: LinearHead(6, 2, generator=draw, members=3),
    "interval": lambda draw: IntervalHead(6, "softplus", generator=draw, levels=2, members=3),
    "quantile": lambda draw: QuantileHead(6, [0.5], generator=draw, members=3),
    "bayesian": lambda draw: BayesianHead(6, generator=draw, members=3),
}


def graph(sparse: bool, part: bool) -> GraphInputs:
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(40, 4, generator=draw, dtype=torch.float64)
    edges = torch.randint(0, 38, (2, 200), generator=draw)
    first = torch.randperm(40, generator=draw)[:17] if part else None
    return SageEncoder.prepare((x * (x > 0)).to_sparse_csr() if sparse else x, edges, first=first)


def tensors(outputs: Any) -> list[Tensor]:
    results: list[Tensor] = []
    each(outputs, lambda part: results.append(part) or part)  # type: ignore[func-returns-value]
    return results


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("head", HEADS)
def test_forward_in_chunks_and_by_members_gives_the_same_outputs(
    head: str, layers: int, part: bool, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = torch.Generator().manual_seed(0)
    encoder = SageEncoder(4, 6, layers, generator=draw, dropout=0.5, members=3)
    net: nn.Module = IntervalNet(encoder, HEADS[head](draw)).double().eval()
    operands = graph(sparse, part)
    with torch.no_grad():
        wanted = tensors(net(operands))
        monkeypatch.setattr("qpignn.runtime.memory.CHUNK_ROWS", 7)
        monkeypatch.setattr("qpignn.nn.interval_net.CHUNK_ROWS", 7)
        chunked = tensors(net(operands))
        apart = tensors(net.by_members(operands))
    assert wanted[0].shape[-2:] == (3, 17 if part else 40)
    for outputs in (chunked, apart):
        for ours, whole in zip(outputs, wanted, strict=True):
            torch.testing.assert_close(ours, whole, rtol=1e-12, atol=1e-12)
