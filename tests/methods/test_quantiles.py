"""Methods that say bounds themselves: what each does that the others do not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import t as student
from torch_geometric.data import Data

from qpignn import load_dataset, make_method, split_nodes
from qpignn.methods.net_training import encoder_inputs


@pytest.fixture(scope="module")
def data() -> Data:
    return split_nodes(load_dataset("gaussian", nodes=400), test=0.3)


def test_sqr_answers_any_level_as_if_fitted_for_it(data: Data) -> None:
    settings = {
        "epochs": 40,
        "patience": None,
        "novelty": "off",
    }  # stopping looks at the level, the loss does not
    asked = make_method("sqr", **settings).fit(data).predict_interval(data, confidence_level=0.6)
    fitted = make_method("sqr", confidence_level=0.6, **settings).fit(data).predict_interval(data)
    np.testing.assert_array_equal(asked.lower, fitted.lower)
    np.testing.assert_array_equal(asked.upper, fitted.upper)


def test_sqr_reports_crossings_and_sorts_bounds(data: Data) -> None:
    fitted = make_method("sqr", epochs=1, lr=1.0, confidence_level=0.01).fit(data)
    low, high, _ = fitted.net_(encoder_inputs(fitted, data))[:, 0]
    crossed = (low > high)[data.train_mask].double().mean().item()
    assert crossed > 0  # otherwise this shows nothing
    assert fitted.crossing_rate_ == pytest.approx(crossed)
    assert (fitted.predict_interval(data).width >= 0).all()


@pytest.mark.parametrize("name", ["sqr", "rqr", "quantile"])
def test_training_nodes_are_covered_as_wanted(name: str, data: Data) -> None:
    """What the losses move about, where nothing stops them early; one epoch alone is luck."""
    settings = {"epochs": 400, "patience": None, "dropout": 0.0, "lr": 0.003}
    fitted = make_method(name, confidence_level=0.8, **settings).fit(data)
    assert np.mean(fitted.history_.coverage[-200:]) == pytest.approx(0.8, abs=0.05)


def test_evidential_bounds_are_those_of_the_student_law(data: Data) -> None:
    fitted = make_method("evidential", epochs=20, novelty="off").fit(data)
    with torch.no_grad():
        outputs = fitted.net_(encoder_inputs(fitted, data))
        gamma, nu, a, b = (part[0].double().numpy() for part in fitted._law(outputs))
    law = student(df=2 * a, loc=gamma, scale=np.sqrt(b * (1 + nu) / (nu * a)))
    scale, shift = fitted.y_scaler_.scaler.scale.item(), fitted.y_scaler_.scaler.shift.item()
    for level in (0.5, 0.9):
        intervals = fitted.predict_interval(data, confidence_level=level)
        for bound, share in ((intervals.lower, 1 - level), (intervals.upper, 1 + level)):
            np.testing.assert_allclose(bound, law.ppf(share / 2) * scale + shift, rtol=1e-3)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_evidential_survives_extreme_targets(size: float, data: Data) -> None:
    far = Data(**data.to_dict())
    far.y = data.y.double() * size
    far.y[data.train_mask.nonzero()[0]] *= 1e4  # and one that is far from all others
    intervals = make_method("evidential", epochs=30).fit(far).predict_interval(far)
    assert np.isfinite(intervals.width).all()
    assert (intervals.width > 0).all()


def test_correction_reduces_the_size_and_is_skipped_for_few_nodes(data: Data) -> None:
    fitted = make_method("corrected", epochs=60, correction_lr=1e-2).fit(data)
    sizes = fitted.second_history_.width
    assert np.mean(sizes[-20:]) < np.mean(sizes[:20])
    few = data.train_mask & (torch.arange(400) < 20)
    plain, none = (
        make_method(name, epochs=20).fit(data, few) for name in ("quantile", "corrected")
    )
    a, b = (method.predict_interval(data) for method in (plain, none))
    np.testing.assert_allclose(a.lower, b.lower, rtol=1e-5)
    np.testing.assert_allclose(a.upper, b.upper, rtol=1e-5)
