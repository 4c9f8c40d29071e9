from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from qpignn.data.perturb import add_feature_noise, add_target_noise, damage, drop_edges
from qpignn.errors import SettingError, UnknownNameError


@pytest.fixture
def large() -> Data:
    nodes = 4000
    ring = torch.arange(nodes)
    ends = torch.stack([ring, (ring + 1) % nodes])
    return Data(
        x=torch.zeros(nodes, 3),
        y=torch.zeros(nodes),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        edge_weight=torch.cat([ring, ring]).float(),
    )


def test_add_noise_has_sigma_and_repeats_by_seed(large: Data) -> None:
    noisy = add_feature_noise(large, 0.3, seed=1)
    assert noisy.x.std().item() == pytest.approx(0.3, abs=0.01)
    assert torch.equal(noisy.x, add_feature_noise(large, 0.3, seed=1).x)
    assert not torch.equal(noisy.x, add_feature_noise(large, 0.3, seed=2).x)
    assert add_target_noise(large, 0.2).y.std().item() == pytest.approx(0.2, abs=0.01)
    assert large.x.any().item() is False  # the input is left as it was


def test_add_target_noise_nan_stays_nan(large: Data) -> None:
    large.y[0] = float("nan")
    assert add_target_noise(large, 1.0).y[:2].isnan().tolist() == [True, False]


def test_add_feature_noise_sparse_keeps_pattern() -> None:
    x = torch.eye(50).to_sparse_csr()
    noisy = add_feature_noise(Data(x=x), 0.5).x
    assert torch.equal(noisy.col_indices(), x.col_indices())
    assert (noisy.values() != 1).all()


def test_drop_edges_removes_both_directions(large: Data) -> None:
    kept = drop_edges(large, 0.4)
    pairs = {tuple(pair) for pair in kept.edge_index.t().tolist()}
    assert all((b, a) in pairs for a, b in pairs)
    assert len(pairs) / large.num_edges == pytest.approx(0.6, abs=0.03)  # 3.9 standard errors
    assert all(
        w in pair
        for w, pair in zip(kept.edge_weight.tolist(), kept.edge_index.t().tolist(), strict=True)
    )


def test_drop_edges_share_zero_and_one(large: Data) -> None:
    assert drop_edges(large, 0.0).num_edges == large.num_edges
    assert drop_edges(large, 1.0).num_edges == 0
    assert drop_edges(drop_edges(large, 1.0), 0.5).num_edges == 0
    assert torch.equal(add_feature_noise(large, 0.0).x, large.x)


def test_perturb_invalid_amounts_raise(large: Data) -> None:
    with pytest.raises(SettingError, match=r"share: expected a number from 0 to 1, got 1\.5"):
        drop_edges(large, 1.5)
    with pytest.raises(SettingError, match="sigma: expected a number from 0 up, got -1"):
        add_target_noise(large, -1)


@pytest.mark.parametrize("sparse", [False, True])
def test_add_feature_noise_relative_scales_with_deviation(sparse: bool) -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(20_000, 2, generator=draw) * torch.tensor([1.0, 100.0]) + 1
    data = Data(x=x.to_sparse_csr() if sparse else x)
    noisy = add_feature_noise(data, 0.5, relative=True).x
    change = (noisy.to_dense() - x).double()
    ratio = change.std(dim=0) / x.double().std(dim=0)
    assert ratio.tolist() == pytest.approx([0.5, 0.5], rel=0.03)


def test_damage_several_kinds_applied_and_unknown_raises(large: Data) -> None:
    worse = damage(large, {"target_noise": 0.2, "edge_dropout": 0.5}, seed=3)
    assert worse.y.std().item() == pytest.approx(0.2, abs=0.02)
    assert worse.edge_index.shape[1] == pytest.approx(4000, rel=0.1)
    assert torch.equal(worse.x, large.x)
    assert damage(large, {}) is large
    with pytest.raises(UnknownNameError, match="unknown damage 'noise'"):
        damage(large, {"noise": 1.0})
