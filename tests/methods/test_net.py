"""What net-based methods share, seen through the plainest of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from qpignn import QpiGNN, load_dataset
from qpignn.errors import SettingError, SplitError


@pytest.fixture
def data() -> Data:
    return load_dataset("basic", nodes=100)


def test_patience_none_holds_out_no_node(data: Data) -> None:
    watched = QpiGNN(lambda_width=0.05, epochs=12).fit(data).history_
    assert [*watched.held_out] == [4, 9, 11]
    assert QpiGNN(lambda_width=0.05, epochs=3, patience=None).fit(data).history_.held_out == {}


def test_fit_with_validation_nodes_only_is_refused(data: Data) -> None:
    data.val_mask = torch.ones(100, dtype=torch.bool)
    with pytest.raises(SplitError, match="all in the val_mask; give train nodes too"):
        QpiGNN(lambda_width=0.05, epochs=3).fit(data)


def test_fit_with_initial_weights_starts_from_them(data: Data) -> None:
    first = QpiGNN(epochs=50, patience=None, dropout=0.0).fit(data)
    weights = {name: w.clone() for name, w in first.net_.state_dict().items()}
    second = QpiGNN(epochs=1, patience=None, dropout=0.0)
    started = second.fit(data, initial_weights=weights).history_.loss[0]
    assert started < 0.5 * first.history_.loss[0]
    assert second.fit(data).history_.loss[0] == pytest.approx(first.history_.loss[0], rel=1e-5)
    with pytest.warns(DeprecationWarning, match="initial_weights"):
        second.start_from(weights)
    assert second.fit(data).history_.loss[0] == started
    assert second.fit(data).history_.loss[0] == pytest.approx(first.history_.loss[0], rel=1e-5)


def test_weights_of_another_net_are_refused(data: Data) -> None:
    other = QpiGNN(epochs=1, hidden=8).fit(data).net_.state_dict()
    with pytest.raises(SettingError, match="initial_weights: the weights do not fit"):
        QpiGNN(epochs=1).fit(data, initial_weights=other)


def test_members_trained_together_are_the_nets_trained_apart(data: Data) -> None:
    """Nothing but the epoch to stop at is shared: with that fixed, a member is a net of its own."""
    settings: dict[str, Any] = {"lambda_width": 0.05, "patience": None, "dropout": 0.0}
    settings["epochs"] = 20
    start = QpiGNN(members=5, **settings).fit(data)
    weights = QpiGNN(members=5, **settings)._new_net(5).state_dict()
    third = {name: weight[2:3] for name, weight in weights.items()}
    alone = QpiGNN(**settings).fit(data, initial_weights=third)
    for name, weight in alone.net_.state_dict().items():
        torch.testing.assert_close(start.net_.state_dict()[name][2:3], weight, atol=1e-4, rtol=1e-3)


def test_range_scaling_maps_given_targets_to_zero_and_one(data: Data) -> None:
    method = QpiGNN(epochs=1, scaling="range", patience=None).fit(data)
    scaled = method.y_scaler_.transform(data.y)
    assert (scaled.min().item(), scaled.max().item()) == pytest.approx((0, 1), abs=1e-6)
    x = method.x_scaler_.transform(data.x)
    assert (x.min().item(), x.max().item()) == pytest.approx((0, 1), abs=1e-6)
    assert len(method.x_scaler_.scale.unique()) == 1  # one range for all columns
