"""What a conformal step promises, by Monte Carlo: coverage from the level to 1/(n + 1) above it.

For scores without ties coverage is rank/(n + 1) exactly, over draws of the calibration nodes and
the new one together. Every draw judges one new node, so hits are independent and their number is
binomial; limits are where chance alone would go once in a thousand tests.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch_geometric.data import Data

from qpignn import Conformal, Intervals
from qpignn.data.structure import communities

RARE = 1e-3
DRAWS = 1200


def first_columns(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    """A net that is wrong about value and width: its first three columns."""
    return x[:, :3]


def drawn(rng: np.random.Generator, nodes: int) -> Data:
    """Nodes whose noise is skewed and differs from node to node; the net guesses how much."""
    spread = rng.uniform(0.5, 2.0, nodes)
    guess = spread * rng.uniform(0.5, 1.5, nodes)
    middle = rng.normal(size=nodes)
    x = np.column_stack([middle - guess, middle, middle + 2 * guess])
    y = middle + spread * (rng.exponential(size=nodes) - 0.7)
    edges = torch.empty(2, 0, dtype=torch.long)
    return Data(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=edges)


def calibrated(data: Data, scoring: Any, **settings: Any) -> Intervals:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # groups too small for the level are meant to be
        return Conformal.prefit(first_columns, data, scoring, **settings).predict_interval(data)


def check_coverage(hits: int, draws: int, nodes: int, level: float) -> None:
    """Fail unless hits are those of rank/(n + 1), and so of the promise on both sides."""
    rank = math.ceil((nodes + 1) * level - 1e-9)
    exact = min(rank, nodes + 1) / (nodes + 1)
    assert level - 1e-9 <= exact <= level + 1 / (nodes + 1)
    low, high = binom.ppf([RARE / 2, 1 - RARE / 2], draws, exact)
    assert low <= hits <= high, (hits / draws, exact)


@pytest.mark.parametrize("score", ["cqr", "normalised", "absolute"])
@pytest.mark.parametrize(("level", "sizes"), [(0.9, (24, 9)), (0.5, (1, 4))])
def test_every_score_covers_at_the_level_in_every_group(
    score: str, level: float, sizes: tuple[int, ...]
) -> None:
    """At 90 % groups of 24 and 9 nodes: 23/25 and 9/10; at 50 % groups of 1 and 4: 1/2 and 3/5.

    Every group is calibrated by itself, so each is one draw; noise is a hundred times as loud in
    groups of one size as in those of the other, which one widening for all would not survive.
    """
    kinds = np.repeat(np.arange(2), DRAWS)
    counts = np.array(sizes)[kinds] + 1
    group = np.repeat(np.arange(2 * DRAWS), counts)
    new = counts.cumsum() - 1  # the last node of each group
    data = drawn(np.random.default_rng(0), len(group))
    middle, loud = data.x[:, 1], torch.tensor([1.0, 100.0])[kinds[group]]
    data.y = middle + (data.y - middle) * loud
    data.part = group
    scoring = np.ones(len(group), dtype=bool)
    scoring[new] = False
    intervals = calibrated(data, scoring, score=score, groups="part", confidence_level=level)
    hits = intervals.covers(data.y)[new]
    for kind, size in enumerate(sizes):
        check_coverage(int(hits[kinds == kind].sum()), DRAWS, size, level)


def cliques(count: int, size: int) -> Data:
    """Complete graphs side by side, which are communities; the first node of each is labelled."""
    parts = [range(i * size, (i + 1) * size) for i in range(count)]
    ends = [(a, b) for part in parts for a in part for b in part if a != b]
    data = drawn(np.random.default_rng(2), count * size)
    data.edge_index = torch.tensor(ends).t().contiguous()
    data.y[torch.arange(count * size) % size > 0] = float("nan")
    return data


def test_one_labelled_node_in_each_community() -> None:
    """At 50 % a community has the score of its one node; at 90 % one node says nothing."""
    data = cliques(6, 5)
    assert len(set(communities(data))) == 6
    first = np.arange(30) % 5 == 0
    settings = {"groups": "community", "score": "absolute"}
    intervals = calibrated(data, first, **settings, confidence_level=0.5)
    own = (data.y - data.x[:, 1]).abs()[::5].repeat_interleave(5)
    np.testing.assert_allclose(intervals.upper - intervals.prediction, own, rtol=1e-12)
    with pytest.warns(UserWarning, match="too few calibration nodes for a level of 0.9 in the gro"):
        model = Conformal.prefit(
            first_columns, data, first, **settings, confidence_level=[0.5, 0.9]
        )
    wide = model.predict_interval(data)
    assert np.isinf(wide.lower).all()
    assert np.isinf(wide.upper).all()
    assert np.isfinite(wide.prediction).all()


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
def test_normalised_scores_of_a_net_without_widths_are_finite(size: float) -> None:
    """All half-widths are alike (none), so a normalised score is an absolute one: rank 18 of 19."""
    data = drawn(np.random.default_rng(3), 19)
    data.x = torch.zeros(19, 3, dtype=torch.float64)
    data.y = size * torch.arange(1.0, 20.0, dtype=torch.float64)
    intervals = calibrated(data, np.ones(19, bool), score="normalised")
    np.testing.assert_allclose(intervals.upper, 18 * size, rtol=1e-12)
    np.testing.assert_allclose(intervals.lower, -18 * size, rtol=1e-12)


@pytest.mark.parametrize(("level", "wanted"), [(0.5, 6), (0.8, 10), (0.9, 11)])
def test_bins_of_degree_do_not_favour_the_nodes_that_score(level: float, wanted: int) -> None:
    """Exactly ⌈12·level⌉ of the twelve nodes of each quarter are covered when it is their turn.

    48 nodes with 0 to 47 edges, and scores that are the degree itself: bins that end where the
    scoring nodes do would move with them, and cover all twelve of a quarter at 90 %.
    """
    degree = np.arange(48)
    centre = torch.from_numpy(np.repeat(degree, degree))
    data = Data(x=torch.zeros(48, 3).double(), edge_index=torch.stack([centre, centre]))
    data.y = torch.from_numpy(degree.astype(np.float64))
    covered = []
    for new in range(48):
        scoring = degree != new
        settings = {"score": "absolute", "groups": "degree", "confidence_level": level}
        covered.append(calibrated(data, scoring, **settings).covers(data.y)[new])
    assert np.reshape(covered, (4, 12)).sum(axis=1).tolist() == [wanted] * 4
