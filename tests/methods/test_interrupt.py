"""Ctrl-C during ``fit`` from Python: a warning and a marked model, or the exception."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qpignn import Conformal, load_dataset, make_method
from qpignn.errors import NotFittedError, QpignnWarning, UnknownNameError
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import load_method
from qpignn.training.weights import FlatWeights

EPOCHS = 20
SMALL: dict[str, Any] = {"epochs": EPOCHS, "hidden": 8, "patience": None}
METHODS: dict[str, tuple[str, dict[str, Any], int]] = {
    # name: method, settings, epochs of all trainings
    "one net": ("quantile", SMALL, EPOCHS),
    "calibrated": ("qpignn", {**SMALL, "members": 5, "target_transform": "none"}, EPOCHS),
    "conformal": ("conformal:sqr", SMALL, EPOCHS),
    "two nets": ("corrected", {**SMALL, "correction_epochs": 30}, EPOCHS + 30),
}


@pytest.fixture
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Return a function that makes this process get SIGINT in the place of a step."""
    plain, wanted, done = FlatWeights.step, 0, 0
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def step(weights: FlatWeights) -> None:
        nonlocal done
        done += 1
        if done == wanted:
            signal.raise_signal(signal.SIGINT)
        plain(weights)

    def at(number: int) -> None:
        nonlocal wanted
        wanted = number

    monkeypatch.setattr(FlatWeights, "step", step)
    yield at
    signal.signal(signal.SIGINT, before)


def messages(use: Callable[[], object]) -> list[str]:
    """Return the warnings of a call about interrupted training."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
    texts = [str(one.message) for one in caught if issubclass(one.category, QpignnWarning)]
    return [text for text in texts if "interrupted" in text]


@pytest.mark.parametrize("name", METHODS)
def test_fit_interrupted_keeps_a_model_that_warns_at_every_use(
    name: str, interrupt_at: Callable[[int], None], tmp_path: Path
) -> None:
    data = load_dataset("basic", nodes=120)
    method, settings, planned = METHODS[name]
    model = make_method(method, **settings)
    interrupt_at(8)
    expected = f"training was interrupted after 7 of at most {planned} epochs"
    for use in (
        lambda: model.fit(data),
        lambda: model.predict_interval(data),
        lambda: model.predict(data),
        lambda: model.predict_levels(data),
        lambda: model.diagnose(data),
        lambda: model.save(tmp_path / "model") or load_method(tmp_path / "model"),
        lambda: type(model).load(tmp_path / "model"),
    ):
        (message,) = messages(use)  # once, also where levels or methods are nested
        assert message.startswith(expected)
    assert model.history_.stopped == "interrupted"
    with pytest.warns(QpignnWarning, match="interrupted"):
        loaded = load_method(tmp_path / "model")
    assert (loaded.history_.done, loaded.history_.planned) == (7, planned)
    (message,) = messages(lambda: loaded.predict_interval(data))
    assert message.startswith(expected)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("step", [1, 8])
def test_fit_interrupted_with_raise_goes_through_and_leaves_no_fit(
    name: str, step: int, interrupt_at: Callable[[int], None]
) -> None:
    data = load_dataset("basic", nodes=120)
    method, settings, _ = METHODS[name]
    model = make_method(method, **settings)
    interrupt_at(step)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, on_interrupt="raise")
    with pytest.raises(NotFittedError):
        model.predict_interval(data)


def test_fit_again_after_an_interrupt_no_longer_warns(
    interrupt_at: Callable[[int], None],
) -> None:
    data = load_dataset("basic", nodes=120)
    model = make_method("sqr", **SMALL)
    interrupt_at(8)
    assert messages(lambda: model.fit(data))
    assert messages(lambda: model.fit(data)) == []
    assert messages(lambda: model.predict_interval(data)) == []


def test_fit_interrupted_in_the_second_net_is_marked(interrupt_at: Callable[[int], None]) -> None:
    data = load_dataset("basic", nodes=120)
    model = make_method("corrected", **SMALL, correction_epochs=30)
    interrupt_at(EPOCHS + 6)
    (message,) = messages(lambda: model.fit(data))
    assert message.startswith(f"training was interrupted after {EPOCHS + 5} of at most 50 epochs")


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("corrected", {"trials": 5, "correction_epochs": 30}),
        ("qpignn", {"lambda_width": "tuned", "trials": 5}),
    ],
)
def test_fit_interrupted_in_a_search_goes_through(
    method: str, settings: dict[str, Any], interrupt_at: Callable[[int], None]
) -> None:
    data = load_dataset("basic", nodes=120)
    model: IntervalMethod = make_method(method, **SMALL, **settings)
    interrupt_at(EPOCHS + 6)  # a trial, before anything was chosen
    with pytest.raises(KeyboardInterrupt):
        model.fit(data)


def test_fit_with_an_unknown_on_interrupt_is_refused() -> None:
    data = load_dataset("basic", nodes=60)
    model = Conformal(make_method("sqr", epochs=2))
    with pytest.raises(UnknownNameError, match="on_interrupt"):
        model.fit(data, on_interrupt="ignore")
