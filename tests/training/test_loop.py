from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from qpignn.errors import SettingError, TrainingError
from qpignn.training.loop import StepResult, once, train
from qpignn.training.state import TrainingSettings

Y = torch.zeros(4)


class Point(nn.Module):
    """One weight; intervals are ±1 around it."""

    def __init__(self, start: float = 3.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([start]))

    def measure(self) -> StepResult:
        middle = self.weight.expand(4)
        return StepResult(
            (middle - Y).square().mean(), lambda: ((middle.abs() <= 1).float().mean().item(), 2.0)
        )


def test_train_minimises_and_records_history() -> None:
    net = Point()
    history = train(net, once(net.measure), TrainingSettings(epochs=200, lr=0.1))
    assert net.weight.item() == pytest.approx(0, abs=0.05)
    frame = history.to_frame()
    assert frame.shape == (200, 3)
    assert frame["loss"].iloc[0] == 9.0
    assert frame["coverage"].iloc[[0, -1]].tolist() == [0.0, 1.0]
    assert frame["width"].tolist() == pytest.approx([2.0] * 200)
    assert (history.stopped, history.best_epoch) == ("epochs", 199)
    assert not net.training


def scores(values: list[float]) -> Callable[[], float]:
    waiting = iter(values)
    return lambda: next(waiting)


def test_patience_stops_and_the_best_weights_return() -> None:
    net, seen = Point(), []

    def score() -> float:
        seen.append(net.weight.item())
        return [5.0, 4.0, 6.0, 6.0, 6.0, 0.0][len(seen) - 1]

    history = train(net, once(net.measure), TrainingSettings(50, 0.1, patience=3), score)
    assert history.stopped == "patience"
    assert history.best_epoch == 1
    assert len(history) == 5
    assert net.weight.item() == seen[1]
    assert history.to_frame()["held_out"].tolist() == [5.0, 4.0, 6.0, 6.0, 6.0]


def test_train_held_out_score_without_patience_keeps_the_best_epoch() -> None:
    net = Point()
    settings = TrainingSettings(4, 0.1)
    history = train(net, once(net.measure), settings, scores([3.0, 1.0, 2.0, 4.0]))
    assert (history.best_epoch, history.stopped, len(history)) == (1, "epochs", 4)


def test_train_evaluates_every_n_epochs_and_at_the_end() -> None:
    net = Point()
    settings = TrainingSettings(7, 0.1, patience=3, evaluate_every=3)
    history = train(net, once(net.measure), settings, scores([3.0, 2.0, 1.0]))
    assert history.held_out == {2: 3.0, 5: 2.0, 6: 1.0}
    assert history.to_frame()["held_out"].notna().tolist() == [False, False, True] * 2 + [True]
    late = train(net, once(net.measure), settings, scores([3.0, 4.0]))
    assert (late.stopped, len(late), late.best_epoch) == ("patience", 6, 2)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_train_non_finite_loss_raises_with_advice(value: float) -> None:
    net = Point()
    calls = 0

    def measure() -> StepResult:
        nonlocal calls
        calls += 1
        measured = net.measure()
        return measured if calls < 4 else replace(measured, loss=measured.loss * value)

    with pytest.raises(
        TrainingError, match=r"became (nan|inf) at epoch 3\. Try a lower .*lr is 0.1"
    ):
        train(net, once(measure), TrainingSettings(epochs=9, lr=0.1))


def test_train_non_finite_held_out_score_raises() -> None:
    net = Point()
    with pytest.raises(TrainingError, match="the held-out score became nan at epoch 0"):
        train(net, once(net.measure), TrainingSettings(3, 0.1), lambda: float("nan"))


def test_train_interrupted_keeps_the_weights() -> None:
    net = Point()
    calls = 0

    def measure() -> StepResult:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return net.measure()

    history = train(net, once(measure), TrainingSettings(epochs=100, lr=0.1))
    assert (history.stopped, len(history)) == ("interrupted", 5)
    assert net.weight.item() < 3.0
    assert not net.training


def test_train_interrupted_before_the_first_loss_raises() -> None:
    def measure() -> StepResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(Point(), once(measure), TrainingSettings(epochs=9, lr=0.1))


def test_train_interrupted_before_the_first_step_raises() -> None:
    net = Point()

    class Stop(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            raise KeyboardInterrupt

    def measure() -> StepResult:
        measured = net.measure()
        return replace(measured, loss=Stop.apply(measured.loss))

    with pytest.raises(KeyboardInterrupt):
        train(net, once(measure), TrainingSettings(epochs=9, lr=0.1))


def test_train_progress_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    net = Point()
    train(net, once(net.measure), TrainingSettings(epochs=3, lr=0.1, verbose=True))
    out, err = capsys.readouterr()
    assert out == ""
    assert "training" in err
    assert "3/3" in err
    assert "coverage" in err


@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": 0},
        {"epochs": 2.5},
        {"lr": 0},
        {"lr": float("nan")},
        {"weight_decay": -1},
        {"patience": 0},
        {"evaluate_every": 0},
    ],
)
def test_training_settings_invalid_values_raise(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=f"{next(iter(settings))}: expected"):
        TrainingSettings(**{"epochs": 1, "lr": 0.1, **settings})
