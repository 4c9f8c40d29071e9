from __future__ import annotations

import math
import sys

import optuna
import pytest

from qpignn.errors import SettingError
from qpignn.search import minimise


def test_it_finds_the_bottom_of_a_valley_on_a_logarithmic_scale() -> None:
    seen: list[float] = []

    def score(x: float) -> float:
        seen.append(x)
        return (math.log(x) - math.log(0.05)) ** 2

    found = minimise(score, 0.005, 0.5, trials=15, seed=0)
    assert found == pytest.approx(0.05, rel=0.1)
    assert len(seen) == 15
    assert found in seen
    assert all(0.005 <= x <= 0.5 for x in seen)


def test_same_seed_same_answer_and_optuna_is_left_as_it_was() -> None:
    before = optuna.logging.get_verbosity()
    first, second = (minimise(abs, 0.1, 1.0, trials=5, seed=3) for _ in range(2))
    assert first == second
    assert optuna.logging.get_verbosity() == before


def test_without_optuna_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(SettingError, match=r'pip install "qpignn\[search\]"'):
        minimise(abs, 0.1, 1.0, trials=5, seed=0)
