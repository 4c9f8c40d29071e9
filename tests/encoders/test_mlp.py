"""The perceptron is torch's, and sees no edges."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.encoders.graphs import edges, features, make, prepared
from torch import nn


@pytest.mark.parametrize("sparse", [False, True])
def test_outputs_are_those_of_linear_layers(sparse: bool) -> None:
    encoder = make("mlp", 2)
    hidden = encoder(prepared("mlp", sparse=sparse))
    layers: Any = encoder.layers
    for member in range(3):
        wanted = features()
        for layer in layers:
            weight, bias = layer.neighbour[member].t(), layer.bias[member, 0]
            wanted = nn.functional.silu(nn.functional.linear(wanted, weight, bias))
        torch.testing.assert_close(hidden[member], wanted)


def test_mlp_ignores_edges() -> None:
    encoder, x = make("mlp"), features()
    none = torch.empty(2, 0, dtype=torch.int64)
    with_edges, without = (type(encoder).prepare(x, ends) for ends in (edges()[0], none))
    assert torch.equal(encoder(with_edges), encoder(without))
