"""Seeded damage, to see what intervals do under it: feature noise, target noise, lost edges."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.matrix import column_deviations, is_sparse, stored_values, with_values
from qpignn.errors import SettingError, check_choice, check_non_negative, check_number
from qpignn.runtime.randomness import torch_rng

PERTURBATIONS = ("feature_noise", "target_noise", "edge_dropout")


def damage(
    data: Data, amounts: Mapping[str, float], *, seed: int = 0, relative: bool = False
) -> Data:
    """Do several kinds of damage to a whole graph.

    Args:
        data: the graph.
        amounts: how much of each kind: ``feature_noise`` and ``target_noise`` (deviations),
            ``edge_dropout`` (share).
        seed: decides the draws.
        relative: feature noise in multiples of each column's deviation, not in its unit.
    """
    for kind, amount in amounts.items():
        check_choice("damage", kind, PERTURBATIONS)
        if kind == "edge_dropout":
            data = drop_edges(data, amount, seed=seed)
        elif kind == "target_noise":
            data = add_target_noise(data, amount, seed=seed)
        else:
            data = add_feature_noise(data, amount, seed=seed, relative=relative)
    return data


def add_feature_noise(
    data: Data,
    sigma: float,
    *,
    seed: int = 0,
    nodes: Tensor | None = None,
    relative: bool = False,
) -> Data:
    """Add N(0, σ²) to every stored feature value (zeros of a sparse ``x`` stay zeros).

    ``nodes``: restrict the noise to a boolean mask of nodes (dense ``x`` only). ``relative``: σ in
    multiples of each column's deviation over all nodes.
    """
    values = stored_values(data.x)
    noise = _normal(values, sigma, seed, "feature noise")
    if relative:
        size = column_deviations(data.x).to(values.dtype)
        noise = noise * (size[data.x.col_indices()] if is_sparse(data.x) else size)
    if nodes is not None:
        if values.dim() != 2:
            raise SettingError("nodes: expected dense features to restrict noise, got sparse ones")
        noise = noise * nodes.unsqueeze(1)
    out = Data(**data.to_dict())
    out.x = with_values(data.x, values + noise)
    return out


def add_target_noise(
    data: Data, sigma: float, *, seed: int = 0, nodes: Tensor | None = None
) -> Data:
    """Add N(0, σ²), in the target's own unit, to the targets; NaN stays NaN."""
    noise = _normal(data.y, sigma, seed, "target noise")
    out = Data(**data.to_dict())
    out.y = data.y + (noise if nodes is None else noise * nodes)
    return out


def drop_edges(data: Data, share: float, *, seed: int = 0) -> Data:
    """Remove each edge with probability ``share``; both directions of a pair go together."""
    if not 0 <= check_number("share", share) <= 1:
        raise SettingError(f"share: expected a number from 0 to 1, got {share!r}")
    ends = data.edge_index
    low, high = ends.min(dim=0).values, ends.max(dim=0).values
    _, pair = torch.unique(low * data.x.shape[0] + high, return_inverse=True)
    pairs = int(pair.max()) + 1 if len(pair) else 0
    kept = torch.rand(pairs, generator=torch_rng(seed, "edge dropout")) >= share
    out = Data(**data.to_dict())
    out.edge_index = ends[:, kept[pair]]
    if data.get("edge_weight") is not None:
        out.edge_weight = data.edge_weight[kept[pair]]
    return out


def _normal(like: Tensor, sigma: float, seed: int, purpose: str) -> Tensor:
    check_non_negative("sigma", sigma)
    draw = torch.randn(like.shape, generator=torch_rng(seed, purpose), dtype=torch.float64)
    return (sigma * draw).to(like.dtype)
