"""Every method with every encoder: fit, predict, save, load; beyond a covering set marked slow."""

from __future__ import annotations

import copy
import json
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from qpignn import check_graph, load_method, make_method, split_nodes
from qpignn.encoders.catalog import ENCODERS
from qpignn.errors import GraphError, ModelFileError, QpignnWarning, SettingError
from qpignn.methods.catalog import METHODS, setting_names


class Mine(nn.Module):
    """A user's module."""

    def __init__(self, in_channels: int = 4, hidden: int = 8) -> None:
        super().__init__()
        self.conv = GCNConv(in_channels, hidden)
        self.linear = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.linear(self.conv(x, edge_index, edge_weight).relu())
        return out


FAST = {"correction_epochs": 4}
SETTINGS: dict[str, dict[str, Any]] = {
    "corrected": FAST,
    "cfgnn": FAST,
    "cfgnn_tuned": {**FAST, "trials": 1},
    "mc_dropout": {"passes": 4},
}
VARIANTS: list[dict[str, Any]] = [
    *({"encoder": name} for name in ENCODERS),
    {"encoder": Mine},
    {"encoder": Mine()},
    {"encoder": "sage", "aggregation": "sum", "residual": True},
    {"encoder": "sage", "aggregation": "max", "norm": "layer"},
    {"encoder": "gin", "norm": "layer", "layers": 3},
]
NAMES = (
    *(name for name in METHODS if "encoder" in setting_names(name)),
    "conformal:sqr",
    "ensemble:rqr",
)
TURNS = cycle(VARIANTS)
PAIRS = [(name, next(TURNS)) for _ in range(2) for name in NAMES]  # each variant at least twice
PAIRS += [("qpignn", variant) for variant in VARIANTS]
OTHER_PAIRS = [(name, v) for name in NAMES for v in VARIANTS if (name, v) not in PAIRS]


@pytest.fixture(scope="module")
def graph() -> Data:
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(80, 4, generator=draw)
    ends = torch.randint(0, 80, (2, 160), generator=draw)
    y = torch.sin(3 * x[:, 0]) + 0.1 * torch.rand(80, generator=draw)
    return split_nodes(check_graph(Data(x=x, y=y, edge_index=ends)), test=0.3)


def make(name: str, **settings: Any) -> Any:
    small = {"epochs": 4, "hidden": 8, "members": None if name == "qpignn" else 1}
    if name in ("deep_ensemble", "ensemble:rqr", "qpignn_single"):
        small.pop("members")
    return make_method(name, **{**small, **SETTINGS.get(name, {}), **settings})


def given_back(encoder: Any) -> Any:
    return None if isinstance(encoder, str) else encoder


def shown(pair: Any) -> str:
    if not isinstance(pair, dict):
        return str(pair)
    return "-".join(
        value if isinstance(value, str) else type(value).__name__ for value in pair.values()
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [*PAIRS, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in OTHER_PAIRS)],
    ids=shown,
)
def test_method_trains_predicts_saves_and_loads(
    name: str, settings: dict[str, Any], graph: Data, tmp_path: Path
) -> None:
    state = torch.get_rng_state()
    fitted = make(name, **settings).fit(graph)
    assert torch.equal(state, torch.get_rng_state())
    intervals = fitted.predict_interval(graph)
    assert (intervals.lower <= intervals.upper).all()
    assert np.isfinite(intervals.prediction).all()
    again = clone(fitted).fit(graph).predict_interval(graph)
    assert np.array_equal(intervals.lower, again.lower)
    fitted.save(tmp_path)
    loaded = load_method(tmp_path, encoder=given_back(settings["encoder"]))
    assert np.array_equal(loaded.predict_interval(graph).upper, intervals.upper)


def test_covering_set_has_every_method_and_every_encoder() -> None:
    assert {name for name, _ in PAIRS} == {*NAMES}
    assert all(sum(other is variant for _, other in PAIRS) >= 2 for variant in VARIANTS)


@pytest.mark.parametrize("encoder", [Mine(), Mine], ids=["module", "class"])
def test_users_encoder_is_stored_by_name_and_asked_for(
    encoder: Any, graph: Data, tmp_path: Path
) -> None:
    fitted = make("cqr", encoder=encoder).fit(graph)
    fitted.save(tmp_path)
    stored = json.loads((tmp_path / "model.json").read_text())["settings"]["method"]["settings"]
    assert stored["encoder"].endswith(":Mine")
    for load in (load_method, type(fitted).load):
        with pytest.raises(ModelFileError, match=r"expected the encoder .*Mine.* got none"):
            load(tmp_path)
    with pytest.raises(ModelFileError, match="does not fit the weights"):
        load_method(tmp_path, encoder=nn.Linear(4, 8))


def test_object_path_in_a_model_file_is_not_imported(graph: Data, tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text("from torch_geometric.nn import GCNConv as Mine\n")
    path = f"{source}:Mine"
    make("sqr", encoder=path).fit(graph).save(tmp_path / "model")
    source.write_text("raise RuntimeError('imported')\n")
    with pytest.raises(ModelFileError, match="a model folder holds weights and no code"):
        load_method(tmp_path / "model")
    source.write_text("from torch_geometric.nn import GCNConv as Mine\n")
    load_method(tmp_path / "model", encoder=path)


def test_every_encoder_gives_other_widths(graph: Data) -> None:
    widths = [
        make("sqr", encoder=encoder).fit(graph).predict_interval(graph).width.mean()
        for encoder in (*ENCODERS, Mine)
    ]
    assert len(set(widths)) == len(ENCODERS) + 1


def test_perceptron_ignores_edges(graph: Data) -> None:
    fitted = make("sqr", encoder="mlp").fit(graph)
    bare = Data(x=graph.x, edge_index=torch.empty(2, 0, dtype=torch.int64))
    both = [fitted.predict_interval(data).lower for data in (graph, bare)]
    assert np.array_equal(*both)


@pytest.mark.parametrize("encoder", ["gcn", "gin", "mlp"])
def test_minibatches_of_sampling_encoders_train(encoder: str, graph: Data) -> None:
    fitted = make("sqr", encoder=encoder, batch_size=16, fan_out=2).fit(graph)
    assert np.isfinite(fitted.predict_interval(graph).width).all()


@pytest.mark.parametrize("encoder", ["gat", Mine], ids=["gat", "module"])
def test_minibatches_of_other_encoders_are_refused(encoder: Any) -> None:
    with pytest.raises(SettingError, match="batch_size: expected None"):
        make("sqr", encoder=encoder, batch_size=16)


def test_encoder_without_sampling_runs_on_the_whole_graph_when_memory_is_short(
    graph: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qpignn.methods.training_set.free_memory", lambda: 0)
    fitted = make("sqr", encoder="gat").fit(graph)
    assert np.isfinite(fitted.predict_interval(graph).width).all()


def with_edge_features(graph: Data) -> Data:
    out = copy.copy(graph)
    draw = torch.Generator().manual_seed(4)
    out.edge_attr = torch.rand(graph.edge_index.shape[1], 2, generator=draw)
    return out


def test_edge_features_are_used_by_gat_and_survive_a_save(graph: Data, tmp_path: Path) -> None:
    data = with_edge_features(graph)
    fitted = make("conformal:sqr", encoder="gat").fit(data)
    plain = make("conformal:sqr", encoder="gat").fit(graph)
    intervals = fitted.predict_interval(data)
    assert not np.array_equal(intervals.lower, plain.predict_interval(graph).lower)
    fitted.save(tmp_path)
    assert np.array_equal(load_method(tmp_path).predict_interval(data).lower, intervals.lower)
    with pytest.raises(GraphError, match="expected 2 numbers per edge, as in the fit, got 0"):
        fitted.predict_interval(graph)


def test_edge_features_are_warned_of_only_where_they_are_not_used(
    graph: Data, recwarn: pytest.WarningsRecorder
) -> None:
    data = with_edge_features(graph)
    make("conformal:sqr", encoder="gat").fit(data)
    assert not any("edge_attr" in str(w.message) for w in recwarn)
    with pytest.warns(QpignnWarning, match="edge_attr: features of edges are not used"):
        make("sqr", encoder="gcn").fit(data)
    with pytest.warns(QpignnWarning, match="edge_attr: features of edges are not used"):
        make("sqr", encoder=Mine).fit(data)  # its forward has no argument edge_attr


@pytest.mark.parametrize("encoder", ["sage", "gcn", "gin", "gat", Mine], ids=str)
def test_edge_weights_and_directions_are_used(encoder: Any, graph: Data) -> None:
    weighted, turned = copy.copy(graph), copy.copy(graph)
    draw = torch.Generator().manual_seed(5)
    weighted.edge_weight = torch.rand(graph.edge_index.shape[1], generator=draw)
    turned.edge_index = graph.edge_index.flip(0)
    lower = [
        make("sqr", encoder=encoder).fit(data).predict_interval(data).lower
        for data in (graph, weighted, turned)
    ]
    assert not np.array_equal(lower[0], lower[1])
    assert not np.array_equal(lower[0], lower[2])
