"""Hidden targets never reach a fit: a canary for every method, view, command and diagnosis.

That it would sing is shown by methods that cheat, and by taking away what hides the targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import canary
from canary import SECRET, plant, signs, watch
from qpignn import Conformal, check_graph, load_method, make_method, split_nodes
from qpignn.data.scaling import fit_target_scaler
from qpignn.experiments import corrected as cells
from qpignn.experiments.cell import Cell
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import CLASSES, METHODS
from qpignn.methods.quantile import QuantileGNN
from qpignn.paper.published import protocol as published
from qpignn.paper.published.methods import METHODS as PUBLISHED
from qpignn.tasks import FitInputs

FEW = {"correction_epochs": 3}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in METHODS},
    "corrected": ("corrected", FEW),
    "cfgnn": ("cfgnn", FEW),
    "cfgnn_tuned": ("cfgnn_tuned", {**FEW, "trials": 2}),
    **{f"conformal:{name}": (f"conformal:{name}", {}) for name in ("qpignn", "sqr", "evidential")},
    **{f"ensemble:{name}": (f"ensemble:{name}", {}) for name in ("rqr", "mc_dropout")},
    "boosting": ("boosting", {"max_iter": 5}),
    "boosting_quantiles": ("boosting_quantiles", {"max_iter": 5}),
    "λ tuned": ("qpignn", {"lambda_width": "tuned", "trials": 2}),
    "minibatches": ("qpignn", {"batch_size": 16, "fan_out": 3}),
    "logarithms": ("qpignn", {"target_transform": "log1p"}),
    "neighbourhoods": ("conformal:sqr", {"neighbourhood": True}),
    "degrees": ("conformal:sqr", {"groups": "degree"}),
    "communities": ("conformal:sqr", {"groups": "community"}),
}


@pytest.fixture(scope="module")
def graph() -> Data:
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(90, 3, generator=draw)
    ends = torch.randint(0, 90, (2, 150), generator=draw)
    y = torch.exp(2 * x[:, 0]).double() + 0.1 * torch.rand(90, generator=draw)
    data = Data(x=x, y=y, edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    return split_nodes(check_graph(data), test=0.3, validation=0.1)


def maker(name: str, **settings: Any) -> Callable[[], IntervalMethod]:
    few = {} if "max_iter" in settings else {"epochs": 3}
    return lambda: make_method(name, **{**few, **settings})


@pytest.fixture
def saw(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return watch(monkeypatch)


@pytest.mark.parametrize("case", CASES)
def test_no_method_uses_hidden_targets(case: str, graph: Data, saw: list[str]) -> None:
    name, settings = CASES[case]
    assert signs(maker(name, **settings), graph, graph.test_mask, saw) == set()


@pytest.mark.parametrize("name", PUBLISHED)
def test_no_published_method_uses_hidden_targets(name: str, graph: Data, saw: list[str]) -> None:
    settings = {**FEW, "trials": 2} if name == "cfgnn_tuned" else FEW if name == "cfgnn" else {}
    make = maker(name, protocol="published", **settings)
    assert signs(make, graph, graph.test_mask, saw) == set()


# ---- methods that cheat


class Peeking(QuantileGNN):
    """Scales by all targets it can lay hands on."""

    def fit(self, data: Data, train_mask: Any = None) -> Self:
        self.everything = data.y
        super().fit(data, train_mask)
        del self.everything
        return self

    def _fit(self, inputs: FitInputs) -> int | None:
        calibrated_on = super()._fit(inputs)
        scaler = fit_target_scaler(self.everything, ~self.everything.isnan())
        self.scalers_ = replace(self.scalers_, y=scaler)
        return calibrated_on


class Hoarding(QuantileGNN):
    """Fits honestly, and keeps the truth for later."""

    def fit(self, data: Data, train_mask: Any = None) -> Self:
        self.truth_ = {"by node": [data.y.clone()]}
        return super().fit(data, train_mask)


@pytest.mark.parametrize(("cheat", "sign"), [(Peeking, "another fit"), (Hoarding, "kept")])
def test_method_that_uses_hidden_targets_is_detected(
    cheat: type[QuantileGNN], sign: str, graph: Data, saw: list[str]
) -> None:
    assert sign in signs(lambda: cheat(epochs=3, novelty="off"), graph, graph.test_mask, saw)


@pytest.mark.parametrize("name", ["qpignn", "conformal:sqr"])
def test_library_that_hides_no_targets_is_detected(
    name: str, graph: Data, saw: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qpignn.tasks.node.hide_targets", lambda data, keep: data)
    assert "handed to _fit" in signs(maker(name), graph, graph.test_mask, saw)


def test_conformal_hides_calibration_targets_from_the_inner_method(
    graph: Data, saw: list[str]
) -> None:
    """The watch also fails where a given target is not blank outside the inner fit's nodes."""
    model = Conformal(QuantileGNN(epochs=3)).fit(graph)
    assert saw == []
    assert model.fitted_.calibrated_on == round(0.25 * int((~graph.test_mask).sum()))


# ---- comparisons


def planted_loader(load: Callable[..., Data], test: Tensor) -> Callable[..., Data]:
    return lambda *names, **options: plant(load(*names, **options), test)


@pytest.fixture(autouse=True)
def _nothing_loaded() -> Iterator[None]:
    """Cells keep what they loaded: no planted target may stay for other tests."""
    cells._loaded.cache_clear()
    yield
    cells._loaded.cache_clear()


def rows(
    cell: Cell,
    module: Any,
    test: Tensor,
    monkeypatch: pytest.MonkeyPatch,
    loader: str = "load_dataset",
) -> list[Any]:
    honest = cell.run()
    monkeypatch.setattr(module, loader, planted_loader(getattr(module, loader), test))
    cells._loaded.cache_clear()
    return [honest, cell.run()]


UNSEEN = ("mpiw", "mpiw_raw", "n_train", "n_test")
"""Figures of a row that the targets of test nodes do not enter."""
CELL = Cell("basic", "conformal:sqr", 1, settings={"epochs": 3}, options={"nodes": 100})


def hidden_in(cell: Cell) -> Tensor:
    data = cells.load_dataset(cell.dataset, **cell.options)
    test: Tensor = split_nodes(data, test=cells.TEST_SHARE, by=cell.split, seed=cell.seed).test_mask
    return test


@pytest.mark.parametrize("view", ["transductive", "inductive", "isolated"])
@pytest.mark.parametrize("method", ["qpignn", "conformal:sqr"])
def test_no_cell_uses_hidden_targets(
    view: str, method: str, saw: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = replace(CELL, view=view, method=method)
    honest, planted = rows(cell, cells, hidden_in(cell), monkeypatch)
    assert saw == []
    assert [planted[name] for name in UNSEEN] == [honest[name] for name in UNSEEN]
    assert planted["picp"] == 0  # it is the judged targets that were exchanged


@pytest.mark.parametrize("method", ["qpignn", "cfgnn"])  # on parts of the graph, and on the whole
def test_no_published_cell_uses_hidden_targets(
    method: str, saw: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = FEW if method == "cfgnn" else {}
    cell = Cell("basic", method, 1, protocol="published", settings={"epochs": 3, **few})
    drawn = torch.Generator().manual_seed(published.SEED)
    torch.randint(0, 1000, (2, 2000), generator=drawn)  # the data's edges come first
    test = torch.zeros(1000, dtype=torch.bool)
    test[torch.randperm(1000, generator=drawn)[:200]] = True
    honest, planted = rows(cell, published, test, monkeypatch, "load_published")
    assert saw == []
    assert [planted[name] for name in UNSEEN] == [honest[name] for name in UNSEEN]
    assert planted["picp"] == 0


def test_view_that_hides_no_targets_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "qpignn.data.settings.hide_targets", lambda data, keep: Data(**data.to_dict())
    )
    honest, planted = rows(CELL, cells, hidden_in(CELL), monkeypatch)
    assert planted["mpiw"] != honest["mpiw"]


# ---- commands


def tables(folder: Path, secret: float) -> tuple[object, ...]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(80), "a": rng.uniform(size=80), "b": rng.uniform(size=80)})
    frame["role"] = np.where(np.arange(80) % 4 == 0, "test", "train")
    honest = frame["a"] + 0.1 * rng.uniform(size=80)
    frame["y"] = honest.where(frame["role"] == "train", secret)
    folder.mkdir()
    frame.to_csv(folder / "nodes.csv", index=False)
    ends = pd.DataFrame({"from": range(79), "to": range(1, 80)})
    ends.to_csv(folder / "edges.csv", index=False)
    files = ("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv")
    return ("fit", *files, "--target", "y", "--split", "role", "--out", folder / "model")


def weights(folder: Path) -> bytes:
    return (folder / "model" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("method", ["qpignn", "conformal:sqr"])
def test_no_command_uses_hidden_targets(
    method: str, qpignn: Callable[..., Any], saw: list[str], tmp_path: Path
) -> None:
    kept, shown = [], []
    for name, secret in (("one", SECRET), ("other", -1.0)):
        folder = tmp_path / name
        arguments = (*tables(folder, secret), "--method", method, "--epochs", 3)
        assert qpignn(*arguments).code == 0
        kept.append(weights(folder))
        evaluation = qpignn("evaluate", folder / "model", "--json")
        assert evaluation.code == 0, evaluation.err
        assert '"picp": 0.0' in evaluation.out  # the judge does see them
        assert weights(folder) == kept[-1]
        out = folder / "intervals.csv"
        assert qpignn("predict", folder / "model", "--only", "all", "--out", out).code == 0
        shown.append(out.read_bytes())
    assert saw == []
    assert kept[0] == kept[1]
    assert shown[0] == shown[1]
    assert not canary.holds_secret(load_method(tmp_path / "one" / "model"))


def test_command_that_hides_no_targets_is_detected(
    qpignn: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CLASSES, "quantile", Peeking)
    monkeypatch.setattr("qpignn.data.settings.hide_targets", lambda data, keep: data)
    kept = []
    for name, secret in (("one", 5.0), ("other", -5.0)):
        arguments = (*tables(tmp_path / name, secret), "--method", "quantile", "--epochs", 3)
        assert qpignn(*arguments).code == 0
        kept.append(weights(tmp_path / name))
    assert kept[0] != kept[1]


# ---- diagnoses


def test_diagnosis_uses_hidden_targets_for_evaluation_only(graph: Data) -> None:
    model = make_method("qpignn", epochs=3).fit(graph)
    before = canary.learnt(model)
    honest = model.diagnose(graph, by={"a": graph.x[:, 0].numpy()})
    evaluated = model.diagnose(plant(graph, graph.test_mask), by={"a": graph.x[:, 0].numpy()})
    assert not canary.holds_secret(model)
    assert canary.learnt(model) == before
    assert evaluated.coverage is not None
    assert evaluated.coverage.covered == 0
    assert evaluated.shift == honest.shift
    for one, other in zip(evaluated.divisions, honest.divisions, strict=True):  # the same groups
        assert one.name == other.name
        assert [(g.description, g.coverage.nodes, g.width) for g in one.groups] == [
            (g.description, g.coverage.nodes, g.width) for g in other.groups
        ]
