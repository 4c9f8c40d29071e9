"""What net-based methods share, seen through the plainest of them."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from qpignn import QpiGNN, load_dataset
from qpignn.errors import SettingError, SplitError


@pytest.fixture
def data() -> Data:
    return load_dataset("basic", nodes=100)


def test_without_patience_every_given_node_carries_loss(data: Data) -> None:
    watched = QpiGNN(epochs=3).fit(data).history_
    assert len(watched.held_out) == 3
    assert QpiGNN(epochs=3, patience=None).fit(data).history_.held_out == []


def test_validation_nodes_alone_are_not_enough(data: Data) -> None:
    data.val_mask = torch.ones(100, dtype=torch.bool)
    with pytest.raises(SplitError, match="all in the val_mask; give train nodes too"):
        QpiGNN(epochs=3).fit(data)


def test_a_fit_can_begin_at_given_weights_once(data: Data) -> None:
    first = QpiGNN(epochs=50, patience=None, dropout=0.0).fit(data)
    weights = {name: w.clone() for name, w in first.net_.state_dict().items()}
    second = QpiGNN(epochs=1, patience=None, dropout=0.0).start_from(weights)
    assert second.fit(data).history_.loss[0] < 0.5 * first.history_.loss[0]
    assert second.fit(data).history_.loss[0] == pytest.approx(first.history_.loss[0], rel=1e-5)


def test_weights_of_another_net_are_refused(data: Data) -> None:
    other = QpiGNN(epochs=1, hidden=8).fit(data).net_.state_dict()
    with pytest.raises(SettingError, match="start_from: the weights do not fit"):
        QpiGNN(epochs=1).start_from(other).fit(data)


def test_range_scaling_maps_given_targets_to_zero_and_one(data: Data) -> None:
    method = QpiGNN(epochs=1, scaling="range", patience=None).fit(data)
    scaled = method.y_scaler_.transform(data.y)
    assert (scaled.min().item(), scaled.max().item()) == pytest.approx((0, 1), abs=1e-6)
    x = method.x_scaler_.transform(data.x)
    assert (x.min().item(), x.max().item()) == pytest.approx((0, 1), abs=1e-6)
    assert len(method.x_scaler_.scale.unique()) == 1  # one range for all columns
