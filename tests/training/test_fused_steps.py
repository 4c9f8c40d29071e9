"""Written-out steps against autograd, in float64, for every method and shape of net."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import make_method
from qpignn.data.matrix import best_layout
from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.sparse import SparseMatrix
from qpignn.methods.net_training import measure, measured, prepare_training
from qpignn.methods.training_set import TrainingSet
from qpignn.tasks import FitInputs, NodeTask
from qpignn.training.weights import FlatWeights

UNITS = torch.tensor([30])  # that a fit trains on


def graph(sparse: bool = False, seed: int = 0) -> Data:
    draw = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, 40, (2, 150), generator=draw)
    x = torch.randn(40, 70 if sparse else 6, generator=draw, dtype=torch.float64)
    if sparse:  # words, and a column that is centred
        x *= torch.rand(x.shape, generator=draw) < 0.1
        x[:, 0] = 3 + torch.randn(40, generator=draw, dtype=torch.float64)
        x = x.to_sparse_csr()
    return Data(x=x, edge_index=edges, y=torch.randn(40, generator=draw, dtype=torch.float64))


def prepared(
    data: Data, settings: dict[str, Any], name: str = "qpignn", weighted: bool = True
) -> tuple[Any, TrainingSet]:
    method: Any = make_method(name, **{"dtype": "float64", "hidden": 8, "seed": 3, **settings})
    given = torch.arange(40) < 30
    data.x = best_layout(data.x)  # as a fit begins
    _, seen = prepare_training(method, FitInputs(data, given, NodeTask()))
    seen = replace(seen, held_out=seen.held_out & weighted)
    if name == "qpignn":
        method.lambda_width_ = 0.05 if method.calibrator() else float(method.lambda_width)
    method.noise_ = torch.ones((), dtype=torch.float64)  # MC dropout's, which a fit sets first
    method.net_ = method._new_net(seen.graph.columns).train()
    return method, seen


def by_autograd(encoder: SageEncoder, graph: GraphInputs) -> torch.Tensor:
    """Two layers in plain torch with dense matrices: every gradient is autograd's own."""
    mean = graph.matrix.multiply(torch.eye(40, dtype=torch.float64))
    x = graph.features
    if isinstance(x, SparseMatrix):
        x = x.multiply(torch.eye(x.shape[1], dtype=torch.float64))
    else:
        x = x[:, graph.columns :]
    act = {"silu": torch.nn.functional.silu, "relu": torch.relu}[encoder.activation_name]
    hidden = x
    for layer in encoder.layers:
        hidden = act(mean @ hidden @ layer.neighbour + hidden @ layer.root + layer.bias)
        rows = graph.rows if layer is encoder.layers[-1] else len(mean)
        hidden = hidden[:, :rows]
        kept = encoder.dropout_mask(hidden)
        hidden = hidden if kept is None else hidden * kept
    return hidden


def step(
    data: Data,
    settings: dict[str, Any],
    name: str = "qpignn",
    *,
    fused: bool,
    weighted: bool = True,
) -> tuple[float, torch.Tensor, Any]:
    method, seen = prepared(data, settings, name, weighted)
    weights = FlatWeights(method.net_.parameters(), 0.1, 0.0)
    weights.clear_gradient()
    if fused:
        result = measure(method, method.net_, seen, UNITS)()
        assert result.gradient is not None
    else:
        hidden = by_autograd(method.net_.encoder, seen.graph)
        weight = seen.weight * ~seen.held_out
        outputs = method.net_.head(hidden)
        loss = method.compute_loss(outputs, seen.y, weight)
        penalty = method.weight_penalty(method.net_, UNITS)
        loss = loss if penalty is None else loss + penalty
        result = measured(method, loss, outputs, seen.y, weight)
    result.backward()
    return result.loss.item(), weights.gradient, result.metrics()


def agree(fast: tuple[float, torch.Tensor, Any], plain: tuple[float, torch.Tensor, Any]) -> None:
    assert fast[0] == pytest.approx(plain[0], rel=1e-12)
    assert plain[1].abs().max() > 0
    torch.testing.assert_close(fast[1], plain[1], rtol=1e-10, atol=1e-13)
    assert fast[2] == pytest.approx(plain[2], rel=1e-12)


SHAPES = [
    {},
    {"activation": "relu"},
    {"dropout": 0.0},
    {"confidence_level": [0.6, 0.7, 0.95]},
    {"lambda_width": 0.05},
    {"lambda_width": 0.05, "activation": "relu", "half_width": "sigmoid", "members": 5},
    {"tails": "symmetric"},
]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_fused_step_equals_autograd(settings: dict[str, Any], sparse: bool) -> None:
    data = graph(sparse)
    agree(step(data, settings, fused=True), step(data, settings, fused=False))


OTHERS = ("sqr", "rqr", "mc_dropout", "bayesian", "evidential", "deep_ensemble", "quantile")


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("activation", ["silu", "relu"])
@pytest.mark.parametrize("name", OTHERS)
def test_fused_step_of_every_method_equals_autograd(
    name: str, activation: str, weighted: bool
) -> None:
    data, settings = graph(sparse=activation == "relu"), {"activation": activation, "dropout": 0.3}
    fast, plain = (
        step(data, settings, name, fused=fused, weighted=weighted) for fused in (True, False)
    )
    agree(fast, plain)


def test_repeated_step_gives_the_same_gradient() -> None:
    """What the first step left in memory is nothing to the second."""
    method, seen = prepared(graph(), {"dropout": 0.0}, "deep_ensemble")
    weights = FlatWeights(method.net_.parameters(), 0.1, 0.0)
    step, gradients = measure(method, method.net_, seen), []
    for _ in range(2):
        step().backward()
        gradients.append(weights.gradient.clone())
        weights.clear_gradient()
    assert torch.equal(*gradients)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_float32_gives_the_step_of_float64(settings: dict[str, Any], sparse: bool) -> None:
    """From the same weights and masks; sums of at most 40 nodes, 8 units and 12 features.

    A few hundred roundings of 2⁻²⁴ each, of numbers up to 1: below 1e-5 of the largest gradient.
    """
    double = step(graph(sparse), settings, fused=True)
    single = step(graph(sparse), {**settings, "dtype": "float32"}, fused=True)
    assert single[1].dtype == torch.float32
    assert single[0] == pytest.approx(double[0], rel=1e-5)
    largest = double[1].abs().max().item()
    torch.testing.assert_close(single[1].double(), double[1], rtol=0, atol=1e-5 * largest)
    assert single[2] == pytest.approx(double[2], rel=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("activation", ["silu", "relu"])
def test_fused_encoder_equals_autograd(activation: str, sparse: bool) -> None:
    method, seen = prepared(graph(sparse), {"activation": activation, "dropout": 0.3})
    encoder = method.net_.encoder
    results = []
    for run in (encoder, lambda operands: by_autograd(encoder, operands)):
        encoder.generator.manual_seed(1)
        hidden = run(seen.graph)
        upstream = torch.linspace(-1, 1, hidden.numel(), dtype=torch.float64).view_as(hidden)
        results.append([hidden, *torch.autograd.grad(hidden, list(encoder.parameters()), upstream)])
    for ours, wanted in zip(*results, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["qpignn", "quantile", "corrected", "evidential"])
def test_fit_with_fused_steps_equals_fit_without(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, settings = graph(), {"dtype": "float64", "epochs": 30}
    fast = make_method(name, **settings).fit(data).predict_interval(data)
    monkeypatch.setattr(SageEncoder, "fused", lambda *_: None)
    plain = make_method(name, **settings).fit(data).predict_interval(data)
    np.testing.assert_allclose(fast.lower, plain.lower, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fast.upper, plain.upper, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("settings", [{"layers": 3}, {"lambda_width": 0.1, "width": "l2"}])
def test_fused_step_of_unsupported_settings_is_none(settings: dict[str, Any]) -> None:
    method, seen = prepared(graph(), settings)
    assert method.fused_step(method.net_, seen, None) is None


@pytest.mark.parametrize("name", ["qpignn", "ensemble:sqr", "deep_ensemble", "ensemble:bayesian"])
def test_members_one_by_one_give_the_numbers_of_all_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = graph()
    settings = {"dtype": "float64", "epochs": 12, "dropout": 0.2}
    together = make_method(name, **settings).fit(data).predict_interval(data)
    monkeypatch.setattr("qpignn.nn.interval_net.TOGETHER", 0)
    apart = make_method(name, **settings).fit(data).predict_interval(data)
    np.testing.assert_allclose(apart.lower, together.lower, rtol=1e-7)
    np.testing.assert_allclose(apart.upper, together.upper, rtol=1e-7)
