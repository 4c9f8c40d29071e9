"""Seeded perturbations of a graph: feature noise, target noise and edge dropout."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.graph import select_edges
from qpignn.data.matrix import column_deviations, is_sparse, stored_values, with_values
from qpignn.errors import SettingError, check_choice, check_non_negative, check_number
from qpignn.runtime.randomness import torch_rng

PERTURBATIONS = ("feature_noise", "target_noise", "edge_dropout")


def damage(
    data: Data, amounts: Mapping[str, float], *, seed: int = 0, relative: bool = False
) -> Data:
    """Apply several kinds of perturbation to a whole graph.

    Args:
        data: the graph.
        amounts: how much of each kind: ``feature_noise`` and ``target_noise`` (standard
            deviations), ``edge_dropout`` (share).
        seed: of the random numbers.
        relative: feature noise in multiples of each column's standard deviation, not in its unit.

    Returns:
        A perturbed copy.
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


def add_feature_noise(data: Data, sigma: float, *, seed: int = 0, relative: bool = False) -> Data:
    """Add N(0, σ²) to every stored feature value (zeros of a sparse ``x`` stay zeros).

    Args:
        data: the graph.
        sigma: standard deviation σ of the noise.
        seed: of the random numbers.
        relative: σ in multiples of each column's standard deviation over all nodes.

    Returns:
        A perturbed copy.

    Raises:
        SettingError: if σ is negative.
    """
    values = stored_values(data.x)
    noise = _normal(values, sigma, seed, "feature noise")
    if relative:
        size = column_deviations(data.x).to(values.dtype)
        noise = noise * (size[data.x.col_indices()] if is_sparse(data.x) else size)
    out = Data(**data.to_dict())
    out.x = with_values(data.x, values + noise)
    return out


def add_target_noise(data: Data, sigma: float, *, seed: int = 0) -> Data:
    """Add N(0, σ²), in the target's own unit, to the targets; NaN stays NaN.

    Args:
        data: the graph.
        sigma: standard deviation σ of the noise.
        seed: of the random numbers.

    Returns:
        A perturbed copy.
    """
    out = Data(**data.to_dict())
    out.y = data.y + _normal(data.y, sigma, seed, "target noise")
    return out


def drop_edges(data: Data, share: float, *, seed: int = 0) -> Data:
    """Remove each edge with a given probability, both directions of a pair together.

    Args:
        data: the graph.
        share: the probability, from 0 to 1.
        seed: of the random numbers.

    Returns:
        A perturbed copy.

    Raises:
        SettingError: if ``share`` is not from 0 to 1.
    """
    if not 0 <= check_number("share", share) <= 1:
        raise SettingError(
            f"share: expected a number from 0 to 1, got {share!r}; 0 keeps all edges"
        )
    ends = data.edge_index
    low, high = ends.min(dim=0).values, ends.max(dim=0).values
    pairs, pair = torch.unique(low * data.x.shape[0] + high, return_inverse=True)
    kept = torch.rand(len(pairs), generator=torch_rng(seed, "edge dropout")) >= share
    return select_edges(data, kept[pair])


def _normal(like: Tensor, sigma: float, seed: int, purpose: str) -> Tensor:
    check_non_negative("sigma", sigma)
    draw = torch.randn(like.shape, generator=torch_rng(seed, purpose), dtype=torch.float64)
    return (sigma * draw).to(like.dtype)
