"""A synthetic example data set: a node table and an edge table, with missing targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree

from qpignn.errors import check_integer

TOWNS, NEIGHBOURS = 7, 4
KINDS = {"rural": (0.0, 1.0), "suburban": (3.0, 1.5), "urban": (6.0, 2.0), "industrial": (9.0, 4.0)}
"""Mean and standard deviation that a kind of place adds to the pollution."""


def example_tables(nodes: int = 800, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return synthetic measuring stations and the roads between them, as pandas tables.

    A station has an ``id``, a place (``lon``, ``lat``), its ``height``, its ``traffic``, the
    ``kind`` of place it is in, and its ``pollution``, which is blank for a quarter of them.
    Pollution depends on the traffic at the station and at its neighbours, falls with height, and
    its noise depends on the kind of place, so that widths of intervals should differ.

    Args:
        nodes: number of stations, at least 20.
        seed: of the random numbers.

    Returns:
        The node table and the edge table (``from``, ``to``).

    Example:
        >>> stations, roads = example_tables(nodes=100)
        >>> stations.columns.tolist()
        ['id', 'lon', 'lat', 'height', 'traffic', 'kind', 'pollution']
        >>> int(stations["pollution"].isna().sum())
        25
    """
    check_integer("nodes", nodes, 20)
    rng = np.random.default_rng(seed)
    towns = rng.uniform([6.2, 46.2], [11.8, 49.8], (TOWNS, 2))
    close = rng.uniform(size=nodes) < 0.6
    near_town = towns[rng.integers(TOWNS, size=nodes)] + rng.normal(scale=0.22, size=(nodes, 2))
    place = np.where(close[:, None], near_town, rng.uniform([6, 46], [12, 50], (nodes, 2)))
    far = cKDTree(towns).query(place)[0]
    busy = np.exp(-far / 0.35) + 0.15 * rng.uniform(size=nodes)
    chance = np.column_stack([np.full(nodes, 0.35), 0.4 * busy, busy**2, 0.3 * busy])
    steps = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)
    kind = np.minimum((rng.uniform(size=(nodes, 1)) > steps).sum(axis=1), len(KINDS) - 1)
    height = np.clip(350 + 500 * np.sin(place[:, 0]) * (50 - place[:, 1]) / 4, 5, None)
    height += rng.uniform(0, 60, nodes)
    traffic = 2 + 28 * busy * rng.lognormal(0, 0.3, nodes)
    ends = _roads(place)
    level, spread = np.array(list(KINDS.values())).T
    around = _mean_of_neighbours(traffic, ends)
    pollution = 8 + 0.25 * traffic + 0.45 * around + level[kind] - 0.006 * height
    pollution += spread[kind] * rng.normal(size=nodes)
    pollution[rng.permutation(nodes)[: nodes // 4]] = np.nan
    names = np.array([f"S{i:04d}" for i in range(nodes)])
    stations = pd.DataFrame(
        {
            "id": names,
            "lon": place[:, 0].round(4),
            "lat": place[:, 1].round(4),
            "height": height.round(),
            "traffic": traffic.round(2),
            "kind": np.array(list(KINDS))[kind],
            "pollution": pollution.round(2),
        }
    )
    return stations, pd.DataFrame({"from": names[ends[:, 0]], "to": names[ends[:, 1]]})


def _roads(place: np.ndarray) -> np.ndarray:
    """Connect every station to its nearest ones, each pair once."""
    near = cKDTree(place).query(place, NEIGHBOURS + 1)[1][:, 1:]
    pairs = np.column_stack([np.repeat(np.arange(len(place)), NEIGHBOURS), near.ravel()])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def _mean_of_neighbours(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    both = np.concatenate([ends, ends[:, ::-1]])
    total = np.bincount(both[:, 0], weights=values[both[:, 1]], minlength=len(values))
    return np.asarray(total / np.bincount(both[:, 0], minlength=len(values)))
