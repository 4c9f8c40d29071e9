"""Callbacks: when they are called, what they may change, and how they are resumed."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from qpignn import QpiGNN, load_dataset, make_method
from qpignn.errors import ModelFileError, SettingError
from qpignn.training.callbacks import Callback, active_callbacks, use_callbacks
from qpignn.training.checkpoint import checkpoints, fit_key
from qpignn.training.loop import StepResult, once, train
from qpignn.training.state import TrainingSettings, TrainingState
from qpignn.training.weights import FlatWeights

SWA = Path(__file__).parents[2] / "examples" / "swa_callback.py"


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


class Parabola(nn.Module):
    """One weight w with the loss w²."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([3.0]))

    def step(self) -> StepResult:
        return StepResult(self.weight.square().sum(), lambda: (1.0, 2.0))


class Recorder(Callback):
    """Records every call, and the weight at that time."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.weights: list[float] = []

    def on_train_begin(self, state: TrainingState) -> None:
        self.calls.append(("begin", state.epoch))

    def on_epoch_end(self, state: TrainingState) -> None:
        self.calls.append(("epoch", state.epoch))
        self.weights.append(state.weights.vector.mean().item())

    def on_interrupt(self, state: TrainingState) -> None:
        self.calls.append(("interrupt", state.epoch))

    def on_train_end(self, state: TrainingState) -> None:
        self.calls.append(("end", state.epoch))


class StopAfter(Callback):
    """Stops after a number of epochs."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_epoch_end(self, state: TrainingState) -> None:
        if state.epoch + 1 == self.epochs:
            state.stop("enough")


@pytest.fixture(scope="module")
def graph() -> Data:
    return load_dataset("basic", nodes=60)


def quantile(**settings: Any) -> Any:
    return make_method("quantile", **{"epochs": 8, "hidden": 4, "patience": None, **settings})


def test_hooks_are_called_in_the_order_of_training() -> None:
    net, recorder = Parabola(), Recorder()
    train(net, once(net.step), TrainingSettings(3, 0.1), callbacks=[recorder])
    epochs = [("epoch", epoch) for epoch in range(3)]
    assert recorder.calls == [("begin", -1), *epochs, ("end", 2)]


def test_on_epoch_end_sees_the_weights_after_the_epoch() -> None:
    net, recorder = Parabola(), Recorder()
    train(net, once(net.step), TrainingSettings(3, 0.1), callbacks=[recorder])
    assert 3 > recorder.weights[0] > recorder.weights[1] > recorder.weights[2]
    assert net.weight.item() == recorder.weights[2]


def test_stop_ends_training_after_the_epoch_with_the_reason() -> None:
    net = Parabola()
    history = train(net, once(net.step), TrainingSettings(9, 0.1), callbacks=[StopAfter(4)])
    assert (len(history), history.stopped, history.best_epoch) == (4, "enough", 3)


def test_on_train_end_replaces_the_best_weights() -> None:
    class Zero(Callback):
        def on_train_end(self, state: TrainingState) -> None:
            state.weights.restore(torch.zeros_like(state.weights.vector))

    net = Parabola()
    train(net, once(net.step), TrainingSettings(3, 0.1), lambda: 1.0, callbacks=[Zero()])
    assert net.weight.item() == 0


def test_ctrl_c_calls_on_interrupt_and_then_on_train_end() -> None:
    net, recorder = Parabola(), Recorder()

    def step() -> StepResult:
        if len(recorder.calls) == 3:
            raise KeyboardInterrupt
        return net.step()

    history = train(net, once(step), TrainingSettings(9, 0.1), callbacks=[recorder])
    assert history.interrupted
    assert recorder.calls[-3:] == [("epoch", 1), ("interrupt", 1), ("end", 1)]


def test_use_callbacks_adds_to_enclosing_blocks_and_ends_with_its_own() -> None:
    first, second = Recorder(), Recorder()
    with use_callbacks([first]):
        with use_callbacks([second]):
            assert active_callbacks() == (first, second)
        assert active_callbacks() == (first,)
    assert active_callbacks() == ()


@pytest.mark.parametrize("wrong", [3, [3], [Recorder], Recorder()])
def test_fit_other_objects_as_callbacks_raises(wrong: Any, graph: Data) -> None:
    with pytest.raises(SettingError, match=r"callbacks: expected .*Callback.*, got .*; derive"):
        quantile().fit(graph, callbacks=wrong)


@pytest.mark.parametrize("name", ["quantile", "qpignn", "conformal:quantile", "ensemble:rqr"])
def test_fit_calls_callbacks_in_every_training(name: str, graph: Data) -> None:
    recorder = Recorder()
    make_method(name, epochs=3, hidden=4).fit(graph, callbacks=[recorder])
    calls = [call for call, _ in recorder.calls]
    one = ["begin", *["epoch"] * 3, "end"]
    assert calls == one * (len(calls) // 5)
    assert recorder.calls
    assert active_callbacks() == ()


def test_callback_that_only_watches_changes_no_bit(graph: Data) -> None:
    alone, watched = quantile().fit(graph), quantile().fit(graph, callbacks=[Recorder()])
    assert_same(watched, alone, graph)


# ---- stochastic weight averaging: one file outside the package


def averaging(start: int = 3) -> Any:
    specification = importlib.util.spec_from_file_location("swa_callback", SWA)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.WeightAveraging(start)


def assert_same(model: Any, other: Any, data: Data) -> None:
    ours, theirs = (m.predict_interval(data) for m in (model, other))
    for column in ("prediction", "lower", "upper"):
        np.testing.assert_array_equal(getattr(ours, column), getattr(theirs, column))
    assert model.history_ == other.history_


def test_weight_averaging_ends_with_the_mean_of_the_late_weights() -> None:
    net, recorder = Parabola(), Recorder()
    settings = TrainingSettings(8, 0.1)
    train(net, once(net.step), settings, callbacks=[recorder, averaging(start=5)])
    assert net.weight.item() == pytest.approx(np.mean(recorder.weights[5:]), rel=1e-6)
    assert net.weight.item() != pytest.approx(recorder.weights[-1], rel=1e-3)


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that lets a later step fail as if the process had been killed."""
    plain = FlatWeights.step

    def after(steps: float) -> None:
        left = steps

        def step(weights: FlatWeights) -> None:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            plain(weights)

        monkeypatch.setattr(FlatWeights, "step", step)

    return after


@pytest.mark.parametrize("epochs", [2, 5, 8, 9, 13])
def test_weight_averaging_killed_and_resumed_gives_the_same_bits(
    epochs: int, graph: Data, kill: Any, tmp_path: Path
) -> None:
    def fit(folder: Path | None) -> QpiGNN:
        model = QpiGNN(epochs=14, members=5, hidden=4, patience=None)
        if folder is None:
            return model.fit(graph, callbacks=[averaging()])
        with checkpoints(folder, fit_key(model, graph), 0):
            return model.fit(graph, callbacks=[averaging()])

    alone = fit(None)
    kill(epochs)
    with pytest.raises(Killed):
        fit(tmp_path)
    kill(math.inf)
    assert_same(fit(tmp_path), alone, graph)
    kill(0)  # a finished training is restored without another step
    assert_same(fit(tmp_path), alone, graph)


def test_finished_training_restores_the_state_of_callbacks(graph: Data, tmp_path: Path) -> None:
    first, second, key = averaging(), averaging(), fit_key(quantile(), graph)
    for callback in (first, second):
        with checkpoints(tmp_path, key, 0):
            quantile().fit(graph, callbacks=[callback])
    assert second.epochs == first.epochs == 5
    assert torch.equal(second.average, first.average)


def test_resuming_with_other_callbacks_is_refused(graph: Data, kill: Any, tmp_path: Path) -> None:
    key = fit_key(quantile(), graph)
    kill(5)
    with pytest.raises(Killed), checkpoints(tmp_path, key, 0):
        quantile().fit(graph, callbacks=[averaging()])
    kill(math.inf)
    message = r"expected .* the callbacks \[\], got .*WeightAveraging.*; pass the callbacks"
    with pytest.raises(ModelFileError, match=message), checkpoints(tmp_path, key, 0):
        quantile().fit(graph)


def test_state_that_json_cannot_hold_is_refused(graph: Data, tmp_path: Path) -> None:
    class Unsaved(Callback):
        def state_dict(self) -> dict[str, Any]:
            return {"epochs": {1, 2}}

    key = fit_key(quantile(), graph)
    with (
        pytest.raises(SettingError, match=r"expected tensors and JSON values .*, got .*set"),
        checkpoints(tmp_path, key, 0),
    ):
        quantile().fit(graph, callbacks=[Unsaved()])


def test_snapshot_keeps_the_state_of_its_epoch(
    graph: Data, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Epochs(Callback):
        def on_train_begin(self, state: TrainingState) -> None:
            self.seen: list[int] = []

        def on_epoch_end(self, state: TrainingState) -> None:
            self.seen.append(state.epoch)
            if state.epoch == 4 and self.interrupts:
                raise KeyboardInterrupt

        def state_dict(self) -> dict[str, Any]:
            return {"seen": self.seen}

        def load_state_dict(self, values: dict[str, Any]) -> None:
            self.seen = values["seen"]

    monkeypatch.setattr("qpignn.training.checkpoint.SNAPSHOT_EVERY", 0)
    callback, key = Epochs(), fit_key(quantile(), graph)
    callback.interrupts = True  # type: ignore[attr-defined]
    with checkpoints(tmp_path, key, 3600), pytest.warns(UserWarning, match="interrupted"):
        quantile().fit(graph, callbacks=[callback])
    callback.interrupts = False  # type: ignore[attr-defined]
    with checkpoints(tmp_path, key, 3600):
        quantile().fit(graph, callbacks=[callback])
    assert callback.seen == list(range(8))


def test_example_script_prints_both_scores() -> None:
    done = subprocess.run([sys.executable, str(SWA)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("last epoch  coverage 0.")
    assert second.startswith("average     coverage 0.")
