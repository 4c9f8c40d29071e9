"""What is left of QpiGNN when a part is taken out."""

from __future__ import annotations

import numpy as np
import pytest
from torch_geometric.data import Data

from qpignn import load_dataset, make_method, split_nodes

PLAIN = {"epochs": 150, "patience": None, "dropout": 0.0}


@pytest.fixture(scope="module")
def data() -> Data:
    return split_nodes(load_dataset("gaussian", nodes=300), test=0.2)


def covered(data: Data, name: str, protocol: str = "corrected", **settings: object) -> float:
    intervals = (
        make_method(name, protocol, **{**PLAIN, **settings}).fit(data).predict_interval(data)
    )
    hit = intervals.covers(data.y.numpy())
    return float(hit[data.train_mask.numpy()].mean())


@pytest.mark.parametrize("margin", [0.05, 0.1])
def test_ablation_fixed_margin_is_a_share_of_the_given_range(margin: float, data: Data) -> None:
    settings = {"margin": margin, "epochs": 3, "novelty": "off"}
    method = make_method("ablation", head="fixed", **settings).fit(data)
    given = data.y[data.train_mask]
    wanted = 2 * margin * float(given.max() - given.min())
    np.testing.assert_allclose(method.predict_interval(data).width, wanted, rtol=1e-4)


def test_ablation_losses_cover_as_their_terms_imply(data: Data) -> None:
    assert covered(data, "ablation", loss="full") == pytest.approx(0.9, abs=0.06)
    assert covered(data, "ablation", head="single") == pytest.approx(0.9, abs=0.06)
    assert covered(data, "ablation", loss="coverage") > 0.97  # nothing holds the width back
    assert covered(data, "ablation", loss="width") < 0.1  # nothing holds it open
    assert covered(data, "ablation", loss="rqr", lambda_width=0.1) == pytest.approx(0.9, abs=0.08)


def test_without_a_loss_for_the_width_the_middle_is_the_least_squares_one(data: Data) -> None:
    method = make_method("ablation", loss="none", **PLAIN).fit(data)
    error = (data.y.numpy() - method.predict(data))[data.train_mask.numpy()]
    assert abs(error.mean()) < 0.1 * data.y.std()
    assert (error**2).mean() < 0.9 * float(data.y.var())


def test_ablation_published_rqr_loss_compares_all_pairs(data: Data) -> None:
    """At the same λ the right loss covers its own targets, the published one other nodes'."""
    same = {"loss": "rqr", "lambda_width": 0.1}
    right = make_method("ablation", **same, **PLAIN).fit(data).predict_interval(data)
    published = make_method("ablation", "published", **same, epochs=150).fit(data)
    wrong = published.predict_interval(data)
    middles = (wrong.lower + wrong.upper) / 2
    assert middles.std() < 0.3 * ((right.lower + right.upper) / 2).std()  # globally uniform
