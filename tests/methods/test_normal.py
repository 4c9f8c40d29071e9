"""Methods that say a mean and a variance: what each counts, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch_geometric.data import Data

from qpignn import make_method, split_nodes
from qpignn.methods.net_training import encoder_inputs

NORMAL = ("mc_dropout", "bayesian", "deep_ensemble")
SIGMA = 0.5


@pytest.fixture(scope="module")
def noisy() -> Data:
    """y = 2·x₀ plus normal noise of a known deviation."""
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(1500, 2, generator=draw)
    y = 2 * x[:, 0] + SIGMA * torch.randn(1500, generator=draw)
    data = Data(x=x, y=y, edge_index=torch.randint(0, 1500, (2, 1500), generator=draw))
    data = split_nodes(data, test=0.2)
    data.val_mask = data.train_mask & (torch.arange(1500) % 4 == 0)
    data.train_mask = data.train_mask & ~data.val_mask
    return data


@pytest.mark.parametrize("name", NORMAL)
def test_widths_at_two_levels_have_the_ratio_of_normal_quantiles(name: str, noisy: Data) -> None:
    fitted = make_method(name, epochs=5).fit(noisy)
    narrow, wide = (fitted.predict_interval(noisy, confidence_level=c) for c in (0.5, 0.95))
    np.testing.assert_allclose(
        wide.width / narrow.width, norm.ppf(0.975) / norm.ppf(0.75), rtol=1e-5
    )


@pytest.mark.parametrize("name", NORMAL)
def test_normal_methods_estimate_the_noise_of_the_targets(name: str, noisy: Data) -> None:
    intervals = make_method(name).fit(noisy).predict_interval(noisy, noisy.test_mask)
    deviation = intervals.width / 2 / norm.ppf(0.95)
    assert np.median(deviation) == pytest.approx(SIGMA, rel=0.15)


def test_mc_dropout_adds_the_error_on_held_out_nodes(noisy: Data) -> None:
    """Without dropout all passes agree, and that error is the whole width."""
    fitted = make_method("mc_dropout", epochs=20, dropout=0.0, passes=2, novelty="off").fit(noisy)
    held_out = noisy.val_mask.numpy()
    error = (noisy.y.numpy() - fitted.predict(noisy))[held_out]
    wanted = 2 * norm.ppf(0.95) * np.sqrt((error**2).mean())
    np.testing.assert_allclose(fitted.predict_interval(noisy).width, wanted, rtol=1e-4)


def test_mc_dropout_as_in_the_paper_is_the_spread_of_passes_only(noisy: Data) -> None:
    paper = {"include_noise": False, "epochs": 20, "passes": 5}
    spread = make_method("mc_dropout", **paper).fit(noisy).predict_interval(noisy)
    assert (spread.width > 0).all()
    np.testing.assert_allclose(spread.epistemic, spread.width, rtol=1e-5)
    certain = make_method("mc_dropout", **paper, dropout=0.0).fit(noisy).predict_interval(noisy)
    np.testing.assert_allclose(certain.width, 0, atol=1e-6)


def test_bayesian_variance_is_that_over_drawn_weights(noisy: Data) -> None:
    fitted = make_method("bayesian", epochs=20).fit(noisy)
    head = fitted.net_.head
    graph = encoder_inputs(fitted, noisy)
    with torch.no_grad():
        units = fitted.net_.encoder(graph)[0, :10]
        _, doubt, log_noise = (part[0, :10] for part in fitted.net_(graph))
        law = torch.distributions.Normal(head.mean.weight[0], (head.log_variance[0] / 2).exp())
        torch.manual_seed(0)
        drawn = torch.stack([units @ law.sample().flatten() for _ in range(20_000)])
        deviation = (doubt + log_noise.exp()).sqrt() * fitted.y_scaler_.scaler.scale.float()
    torch.testing.assert_close(drawn.var(dim=0), doubt, rtol=0.05, atol=0)
    intervals = fitted.predict_interval(noisy).select(np.arange(1500) < 10)
    np.testing.assert_allclose(intervals.width / 2, norm.ppf(0.95) * deviation, rtol=1e-4)


def test_deep_ensemble_variance_is_that_of_the_mixture(noisy: Data) -> None:
    fitted = make_method("deep_ensemble", epochs=20, novelty="off").fit(noisy)
    with torch.no_grad():
        mean, log_variance = fitted.net_(encoder_inputs(fitted, noisy)).double().numpy()
    assert mean.shape == (5, 1500)
    # a mixture's variance: second moment of all members, less the square of the mean
    second = (np.exp(log_variance) + mean**2).mean(axis=0)
    deviation = np.sqrt(second - mean.mean(axis=0) ** 2) * fitted.y_scaler_.scaler.scale.item()
    intervals = fitted.predict_interval(noisy)
    np.testing.assert_allclose(intervals.width / 2, norm.ppf(0.95) * deviation, rtol=1e-4)
