"""Bayesian optimisation of a few numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from threadpoolctl import threadpool_limits

from qpignn.errors import import_optional

Ranges = dict[str, tuple[float, float]]


def minimise(
    score: Callable[[dict[str, float]], float], ranges: Ranges, *, trials: int, seed: int
) -> dict[str, float]:
    """Search numbers for the lowest score, with Optuna's Gaussian-process sampler.

    Args:
        score: lower is better.
        ranges: lowest and highest value of each number; the search is on a logarithmic scale.
        trials: how many times the score is computed.
        seed: of the sampler.

    Returns:
        The numbers with the lowest score.
    """
    optuna = import_optional("optuna", "a search")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)
        study = optuna.create_study(sampler=sampler)

        def objective(trial: Any) -> float:
            return score(
                {name: trial.suggest_float(name, *ends, log=True) for name, ends in ranges.items()}
            )

        # the sampler's matrices are tiny: threads would only wait for each other
        with threadpool_limits(1, user_api="blas"):
            study.optimize(objective, n_trials=trials)
    finally:
        optuna.logging.set_verbosity(before)
    return {name: float(value) for name, value in study.best_params.items()}
