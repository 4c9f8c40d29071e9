"""A fit that is killed and resumed gives the same bits as one that was not interrupted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from qpignn import load_dataset, make_method
from qpignn.errors import ModelFileError, QpignnWarning
from qpignn.methods.base import IntervalMethod
from qpignn.training import checkpoint
from qpignn.training.checkpoint import (
    active_checkpointer,
    checkpoints,
    clear_checkpoints,
    fit_key,
    has_checkpoints,
)
from qpignn.training.loop import StepResult, once, train
from qpignn.training.state import TrainingSettings
from qpignn.training.weights import FlatWeights


class Killed(BaseException):
    """Stands for kill -9: it is never caught."""


@dataclass
class Steps:
    """Counts the steps of all trainings; raises in the place of step number ``stop``."""

    done: int = 0
    stop: float = math.inf
    error: type[BaseException] = Killed

    def restart(self, stop: float = math.inf, error: type[BaseException] = Killed) -> None:
        self.done, self.stop, self.error = 0, stop, error


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    counted, plain = Steps(), FlatWeights.step

    def step(weights: FlatWeights) -> None:
        if counted.done == counted.stop:
            counted.stop = math.inf
            raise counted.error
        counted.done += 1
        plain(weights)

    monkeypatch.setattr(FlatWeights, "step", step)
    return counted


@pytest.fixture(scope="module")
def graph() -> Data:
    return load_dataset("basic", nodes=60)


@pytest.fixture(scope="module")
def skewed() -> Data:
    """Targets with a heavy tail, enough of them that transforms compete: a fit trains twice."""
    data = load_dataset("basic", nodes=260)
    data.y = (-3 * (data.y - data.y.mean()) / data.y.std()).exp()
    return data


def make(name: str, settings: dict[str, Any]) -> IntervalMethod:
    return make_method(name, **{"epochs": 20, "hidden": 8, **settings})


def fit_kept(
    name: str, settings: dict[str, Any], data: Data, folder: Path, **options: Any
) -> IntervalMethod:
    """Fit as a new process would, with nothing but the folder to go by."""
    model = make(name, settings)
    with checkpoints(folder, fit_key(model, data), **{"every": 0, **options}):
        return model.fit(data)


def assert_same(model: IntervalMethod, other: IntervalMethod, data: Data) -> None:
    ours, theirs = (m.predict_interval(data) for m in (model, other))
    for column in ("prediction", "lower", "upper"):
        np.testing.assert_array_equal(getattr(ours, column), getattr(theirs, column))
    assert model.history_ == other.history_


FITS = {
    "default": ("qpignn", {"members": 5}),
    "patience": ("qpignn", {"members": 5, "epochs": 60, "patience": 5, "lr": 0.1}),
    "two transforms": ("qpignn", {"members": 5, "neighbours": "off"}),
    # of 60 nodes: four steps per epoch
    "batches": ("qpignn", {"members": 5, "batch_size": 16, "neighbours": "off"}),
    "single": ("qpignn", {"lambda_width": 0.05, "dropout": 0.5}),
    "three layers": ("qpignn", {"members": 5, "layers": 3}),
    "tuned": ("qpignn", {"lambda_width": "tuned", "trials": 3, "epochs": 10}),
    "drawn levels": ("sqr", {}),
    "deep ensemble": ("deep_ensemble", {"members": 5}),
    "ensemble": ("ensemble:rqr", {}),
    "dropout": ("mc_dropout", {"passes": 5}),
    "bayesian": ("bayesian", {"dtype": "float64"}),
    "conformal": ("conformal:quantile", {}),
    "two nets": ("cfgnn", {"correction_epochs": 20}),
    "tuned second net": ("cfgnn_tuned", {"correction_epochs": 10, "trials": 3}),
}


@pytest.mark.parametrize("share", [0.3, 0.8])
@pytest.mark.parametrize("fit", FITS)
def test_fit_killed_and_resumed_gives_the_same_bits(
    fit: str, share: float, skewed: Data, steps: Steps, tmp_path: Path
) -> None:
    name, settings = FITS[fit]
    alone = make(name, settings).fit(skewed)
    every = steps.done
    done = round(share * every)
    steps.restart(stop=done)
    with pytest.raises(Killed):
        fit_kept(name, settings, skewed, tmp_path)
    steps.restart()
    messages: list[str] = []
    resumed = fit_kept(name, settings, skewed, tmp_path, notify=messages.append)
    assert steps.done == every - done  # nothing was trained twice
    assert len(messages) == 1
    assert messages[0].startswith("resuming at epoch ")
    assert_same(resumed, alone, skewed)


def test_fit_killed_within_an_epoch_resumes_before_it(
    graph: Data, steps: Steps, tmp_path: Path
) -> None:
    name, settings = FITS["batches"]
    alone = make(name, settings).fit(graph)
    assert steps.done == 4 * 20
    steps.restart(stop=4 * 7 + 2)
    with pytest.raises(Killed):
        fit_kept(name, settings, graph, tmp_path)
    steps.restart()
    messages: list[str] = []
    assert_same(fit_kept(name, settings, graph, tmp_path, notify=messages.append), alone, graph)
    assert steps.done == 4 * 13
    assert messages == ["resuming at epoch 7 of training 1"]


def test_fit_killed_repeatedly_gives_the_same_bits(
    skewed: Data, steps: Steps, tmp_path: Path
) -> None:
    name, settings = FITS["two transforms"]
    alone = make(name, settings).fit(skewed)
    every, runs = steps.done, 0
    assert every == 40  # both transforms
    while True:
        steps.restart(stop=7)
        try:
            resumed = fit_kept(name, settings, skewed, tmp_path)
            break
        except Killed:
            runs += 1
    assert runs == 5
    assert_same(resumed, alone, skewed)


def test_resume_notifies_once_of_its_epoch(skewed: Data, steps: Steps, tmp_path: Path) -> None:
    name, settings = FITS["two transforms"]
    steps.restart(stop=25)  # twenty of the first training, five of the second
    messages: list[str] = []
    with pytest.raises(Killed):
        fit_kept(name, settings, skewed, tmp_path, notify=messages.append)
    assert messages == []
    fit_kept(name, settings, skewed, tmp_path, notify=messages.append)
    assert messages == ["resuming at epoch 5 of training 2"]
    fit_kept(name, settings, skewed, tmp_path, notify=messages.append)
    assert messages[1:] == ["all training was done already"]


def test_between_two_times_only_finished_trainings_are_kept(
    skewed: Data, steps: Steps, tmp_path: Path
) -> None:
    name, settings = FITS["two transforms"]
    alone = make(name, settings).fit(skewed)
    steps.restart(stop=25)
    with pytest.raises(Killed):
        fit_kept(name, settings, skewed, tmp_path, every=3600)
    assert [path.name for path in tmp_path.iterdir()] == ["training-1.safetensors"]
    steps.restart()
    assert_same(fit_kept(name, settings, skewed, tmp_path, every=3600), alone, skewed)
    assert steps.done == 20


def test_checkpoint_is_written_after_its_interval(
    graph: Data, steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: float(steps.done))
    name, settings = FITS["single"]
    steps.restart(stop=13)
    with pytest.raises(Killed):
        fit_kept(name, settings, graph, tmp_path, every=5)
    messages: list[str] = []
    fit_kept(name, settings, graph, tmp_path, notify=messages.append)
    assert messages == ["resuming at epoch 10 of training 1"]


def test_checkpoints_with_writes_false_writes_nothing(
    skewed: Data, steps: Steps, tmp_path: Path
) -> None:
    name, settings = FITS["two transforms"]
    folder = tmp_path / "kept"
    alone = fit_kept(name, settings, skewed, folder, writes=False)
    assert not folder.exists()
    steps.restart(stop=25)
    with pytest.raises(Killed):
        fit_kept(name, settings, skewed, folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    steps.restart()
    assert_same(fit_kept(name, settings, skewed, folder, writes=False), alone, skewed)
    assert steps.done == 15
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_active_checkpointer_ends_with_its_block(graph: Data, tmp_path: Path) -> None:
    with checkpoints(tmp_path, "key") as checkpointer:
        assert active_checkpointer() is checkpointer
        with checkpoints(tmp_path / "inner", "key") as inner:
            assert active_checkpointer() is inner
        assert active_checkpointer() is checkpointer
    assert active_checkpointer() is None
    with pytest.raises(Killed), checkpoints(tmp_path, "key"):
        raise Killed
    assert active_checkpointer() is None


class Drawn(nn.Module):
    """One weight, drawn at by a generator that is no part of the net."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([3.0]))

    def measured(self, draw: np.random.Generator | torch.Generator) -> Callable[[], StepResult]:
        def measure() -> StepResult:
            if isinstance(draw, np.random.Generator):
                noise = float(draw.normal())
            else:
                noise = float(torch.randn((), generator=draw))
            return StepResult((self.weight - noise).square().sum(), lambda: (math.nan, noise))

        return measure


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_generators_outside_the_net_are_kept_where_they_are_named(
    kind: str, steps: Steps, tmp_path: Path
) -> None:
    def run(*, named: bool = True) -> tuple[float, list[float]]:
        net = Drawn()
        numpy = kind == "numpy"
        draw = np.random.default_rng(0) if numpy else torch.Generator().manual_seed(0)
        generators = [draw] if named else []
        history = train(
            net, once(net.measured(draw)), TrainingSettings(9, 0.1), generators=generators
        )
        assert all(math.isnan(share) for share in history.coverage)
        return net.weight.item(), history.width

    alone = run()
    for named in (True, False):
        clear_checkpoints(tmp_path)
        steps.restart(stop=4)
        with pytest.raises(Killed), checkpoints(tmp_path, "key", 0):
            run(named=named)
        with checkpoints(tmp_path, "key", 0):
            assert (run(named=named) == alone) is named


def test_another_fit_is_refused(graph: Data, steps: Steps, tmp_path: Path) -> None:
    name, settings = FITS["single"]
    steps.restart(stop=5)
    with pytest.raises(Killed):
        fit_kept(name, settings, graph, tmp_path)
    with pytest.raises(ModelFileError, match=r"expected .* this very fit, got .*start anew"):
        fit_kept(name, {**settings, "lr": 0.02}, graph, tmp_path)
    assert steps.done == 5  # before anything was trained
    fit_kept(name, {**settings, "verbose": True}, graph, tmp_path)


def test_other_initial_weights_are_refused(graph: Data, steps: Steps, tmp_path: Path) -> None:
    model: Any = make("quantile", {})
    weights = make("quantile", {"seed": 1}).fit(graph).net_.state_dict()  # type: ignore[attr-defined]
    key = fit_key(model, graph)
    steps.restart(stop=5)
    with pytest.raises(Killed), checkpoints(tmp_path, key, 0):
        model.fit(graph)
    refused = pytest.raises(ModelFileError, match=r"began with these weights, got .*start anew")
    with refused, checkpoints(tmp_path, key, 0):
        model.fit(graph, initial_weights=weights)


def changed(data: Data, **parts: Any) -> Data:
    return Data(**{**data.to_dict(), **parts})


def other_graphs(data: Data) -> Iterator[Data]:
    x, y, edges = data.x.clone(), data.y.clone(), data.edge_index
    x[3, 0] += 1e-6
    y[7] += 1e-6
    yield changed(data, x=x)
    yield changed(data, y=y)
    yield changed(data, edge_index=edges[:, :-2])
    yield changed(data, train_mask=torch.arange(60) < 50)
    yield changed(data, train_mask=torch.arange(60) < 40)
    yield changed(data, edge_weight=torch.ones(edges.shape[1]))
    yield changed(data, x=data.x.double())
    yield changed(data, x=data.x.to_sparse_csr())
    yield changed(data, x=x.to_sparse_csr())


def test_fit_key_changes_with_settings_and_data(graph: Data) -> None:
    models = [
        make("quantile", {}),
        make("rqr", {}),
        make("quantile", {"seed": 1}),
        make("quantile", {"confidence_level": [0.8, 0.9]}),
        make("conformal:quantile", {}),
        make("conformal:quantile", {"epochs": 21}),
        make("conformal:rqr", {}),
        make("conformal:quantile", {"score": "absolute"}),
    ]
    keys = [fit_key(model, graph) for model in models]
    keys += [fit_key(models[0], other) for other in other_graphs(graph)]
    keys += [fit_key(models[0], graph, np.arange(60) < last) for last in (30, 40)]
    assert len(set(keys)) == len(keys) == 19
    again = load_dataset("basic", nodes=60)
    assert fit_key(make("quantile", {"verbose": True}), again) == keys[0]
    assert fit_key(make("conformal:quantile", {"verbose": True}), again) == keys[4]
    assert fit_key(make("quantile", {"confidence_level": np.float64(0.9)}), again) == keys[0]


def flipped(content: bytes) -> bytes:
    """One bit of the last tensor's last number is wrong."""
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:100],
        lambda content: content[:-1],
        lambda content: b"\0" * len(content),
        flipped,
        lambda content: b"not a checkpoint at all",
    ],
)
def test_resume_from_a_damaged_file_is_refused(
    damage: Callable[[bytes], bytes], graph: Data, steps: Steps, tmp_path: Path
) -> None:
    name, settings = FITS["single"]
    steps.restart(stop=5)
    with pytest.raises(Killed):
        fit_kept(name, settings, graph, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    message = r"training-1.safetensors: expected a whole checkpoint, got a damaged one .*start anew"
    with pytest.raises(ModelFileError, match=message):
        fit_kept(name, settings, graph, tmp_path)
    assert steps.done == 5


def test_resume_ignores_an_unfinished_temporary_file(
    graph: Data, steps: Steps, tmp_path: Path
) -> None:
    name, settings = FITS["single"]
    alone = make(name, settings).fit(graph)
    (tmp_path / ".training-1.safetensors.4711").write_bytes(b"half")
    assert not has_checkpoints(tmp_path)
    assert_same(fit_kept(name, settings, graph, tmp_path), alone, graph)
    assert clear_checkpoints(tmp_path)
    assert not tmp_path.exists()


def test_only_checkpoints_are_removed(graph: Data, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    assert not clear_checkpoints(folder)
    fit_kept(*FITS["single"], graph, folder)
    (folder / "my own.txt").write_text("keep me")
    assert has_checkpoints(folder)
    assert clear_checkpoints(folder)
    assert [path.name for path in folder.iterdir()] == ["my own.txt"]
    assert not has_checkpoints(folder)
    assert not clear_checkpoints(folder)


def test_resume_continues_an_interrupted_training(
    skewed: Data, steps: Steps, tmp_path: Path
) -> None:
    name, settings = FITS["default"]
    alone = make(name, settings).fit(skewed)
    steps.restart(stop=12, error=KeyboardInterrupt)
    model = fit_kept(name, settings, skewed, tmp_path)
    assert model.history_.stopped == "interrupted"
    messages: list[str] = []
    assert_same(fit_kept(name, settings, skewed, tmp_path, notify=messages.append), alone, skewed)
    assert messages == ["resuming at epoch 12 of training 1"]


def test_training_after_an_interrupted_one_is_not_stored(
    graph: Data, steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, settings = FITS["two nets"]
    alone = make(name, settings).fit(graph)
    steps.restart(stop=12, error=KeyboardInterrupt)
    fit_kept(name, settings, graph, tmp_path)  # the second net corrects half a first one
    assert [path.name for path in tmp_path.iterdir()] == ["training-1.safetensors"]
    assert_same(fit_kept(name, settings, graph, tmp_path), alone, graph)


def test_full_disk_warns_and_training_continues(
    graph: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    name, settings = FITS["single"]
    alone = make(name, settings).fit(graph)
    monkeypatch.setattr(checkpoint, "write_atomically", full)
    with pytest.warns(QpignnWarning, match=r"could not be written .*No space left.* continues"):
        model = fit_kept(name, settings, graph, tmp_path)
    assert_same(model, alone, graph)
