from __future__ import annotations

import math
import sys

import optuna
import pytest

from qpignn.errors import SettingError
from qpignn.training.search import minimise

RANGE = {"a": (0.1, 1.0)}


def first_of(tried: dict[str, float]) -> float:
    return tried["a"]


def test_minimise_finds_the_minimum_on_a_logarithmic_scale() -> None:
    seen: list[dict[str, float]] = []

    def score(tried: dict[str, float]) -> float:
        seen.append(tried)
        return math.log(tried["a"] / 0.05) ** 2 + math.log(tried["b"] / 3) ** 2

    minimum = minimise(score, {"a": (0.005, 0.5), "b": (1, 10)}, trials=25, seed=0)
    assert minimum == pytest.approx({"a": 0.05, "b": 3}, rel=0.15)
    assert len(seen) == 25
    assert minimum in seen
    assert all(0.005 <= tried["a"] <= 0.5 and 1 <= tried["b"] <= 10 for tried in seen)


def test_minimise_repeats_by_seed_and_restores_optuna_logging() -> None:
    before = optuna.logging.get_verbosity()
    first, second = (minimise(first_of, RANGE, trials=5, seed=3) for _ in range(2))
    assert first == second
    assert optuna.logging.get_verbosity() == before


def test_minimise_without_optuna_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(SettingError, match=r'pip install "qpignn\[search\]"'):
        minimise(first_of, RANGE, trials=5, seed=0)
