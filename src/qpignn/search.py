"""Bayesian optimisation of one number against a score the caller gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from qpignn.errors import SettingError


def minimise(
    score: Callable[[float], float], low: float, high: float, *, trials: int, seed: int
) -> float:
    """Return the number between ``low`` and ``high`` with the lowest score seen.

    Numbers are compared on a logarithmic scale, and proposed by Optuna's Gaussian-process sampler.
    """
    try:
        import optuna  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise SettingError(
            'a search needs Optuna: install it with pip install "qpignn[search]"'
        ) from error
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)
        study = optuna.create_study(sampler=sampler)
        study.optimize(
            lambda trial: score(trial.suggest_float("x", low, high, log=True)), n_trials=trials
        )
    finally:
        optuna.logging.set_verbosity(before)
    return float(study.best_params["x"])
