"""Narrowest widths against closed forms and against draws of the noise itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from qpignn import load_dataset
from qpignn.data.sources.noise import NOISE, narrowest_width


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
def test_narrowest_width_equals_closed_forms(coverage: float) -> None:
    assert narrowest_width("basic", coverage) == pytest.approx(0.1 * coverage, rel=1e-3)
    normal = 0.2 * stats.norm.ppf((1 + coverage) / 2)
    assert narrowest_width("tree", coverage) == pytest.approx(normal, rel=1e-3)
    # 95 % of outlier's noise, and a little of the rest, is U(0, 0.1)
    if coverage < 0.95:
        assert narrowest_width("outlier", coverage) == pytest.approx(
            0.1 * coverage / 0.95, rel=2e-3
        )


def test_narrowest_width_at_full_coverage() -> None:
    assert narrowest_width("basic", 1.0) == pytest.approx(0.1, rel=1e-3)
    assert narrowest_width("uniform", 1.0) == pytest.approx(0.7, rel=1e-3)
    assert narrowest_width("er", 1.0) == narrowest_width("outlier", 1.0) == np.inf


@pytest.mark.parametrize("name", NOISE)
def test_draws_of_the_noise_agree(name: str) -> None:
    rng = np.random.default_rng(0)
    size = 400_000
    base = 0.1 * rng.random(size)
    noise = {
        "gaussian": base + rng.normal(0, 0.3, size),
        "uniform": base + rng.uniform(-0.3, 0.3, size),
        "outlier": base + (rng.random(size) < 0.05) * rng.normal(3, 1, size),
        "basic": base,
        "edge": base,
    }.get(name, 0.1 * rng.normal(size=size))
    noise.sort()
    held = int(0.9 * size)
    drawn = (noise[held:] - noise[: size - held]).min()
    assert narrowest_width(name, 0.9) == pytest.approx(drawn, rel=0.01)


def test_narrowest_width_of_the_published_draw_equals_reference_values() -> None:
    """In units of the target's range, as they were computed beforehand."""
    limits = {"basic": 0.084, "gaussian": 0.403, "uniform": 0.330, "outlier": 0.015}
    limits |= {"ba": 0.136, "er": 0.134, "grid": 0.565}
    for name, limit in limits.items():
        y = load_dataset(name, "published").y
        span = float(y.max() - y.min())
        assert narrowest_width(name, 0.9) / span == pytest.approx(limit, abs=0.0015)
