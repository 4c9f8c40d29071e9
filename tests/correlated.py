"""Graphs in which the errors of neighbours are alike, and fits on them.

Targets are a feature plus a smooth function of the place, which no feature contains: only the known
targets of nodes nearby tell about it.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from qpignn import Intervals, check_graph, make_method
from qpignn.methods.net import NetMethod
from qpignn.metrics import winkler_score

LABELLED, APART = 320, 30
NODES = LABELLED + APART
RADIUS = 0.1


def graph(seed: int = 0, *, alike: bool = True, ids: bool = True) -> Data:
    """Return random points joined to all nearby, and a ring of unlabelled nodes apart from them.

    Seven in ten of the labelled nodes are given. Unless ``alike``, the smooth part of the targets
    is divided at random among the nodes: the same law of targets, without a pattern.
    """
    draw = np.random.default_rng(seed)
    place = draw.random((LABELLED, 2))
    apart = np.linalg.norm(place[:, None] - place, axis=2)
    near = np.argwhere((apart < RADIUS) & ~np.eye(LABELLED, dtype=bool))
    ring = np.arange(LABELLED, NODES)
    ends = np.concatenate([near, np.stack([ring, np.roll(ring, 1)], axis=1)])
    ends = np.unique(np.concatenate([ends, ends[:, ::-1]]), axis=0)
    smooth = 2 * np.sin(7 * place[:, 0] + 1) * np.cos(6 * place[:, 1])
    x = draw.normal(size=(NODES, 3))
    hidden = smooth if alike else draw.permutation(smooth)
    y = np.full(NODES, np.nan)
    y[:LABELLED] = x[:LABELLED, 0] + hidden + 0.3 * draw.normal(size=LABELLED)
    given = np.zeros(NODES, dtype=bool)
    given[draw.permutation(LABELLED)[: 7 * LABELLED // 10]] = True
    data = Data(
        x=torch.from_numpy(x).float(),
        y=torch.from_numpy(y),
        edge_index=torch.from_numpy(ends.T.copy()),
        train_mask=torch.from_numpy(given),
        test_mask=torch.from_numpy(~given & ~np.isnan(y)),
    )
    if ids:
        data.node_id = [f"n{i}" for i in range(NODES)]
    return check_graph(data)


def changed(data: Data, **attributes: Any) -> Data:
    """Return a shallow copy with other attributes; None takes one out."""
    merged = {**data.to_dict(), **attributes}
    return Data(**{name: value for name, value in merged.items() if value is not None})


def make(name: str = "qpignn", **settings: Any) -> NetMethod:
    """Return a method that is quick to fit and uses known neighbours where they help."""
    quick = {"members": 5, "epochs": 60, "neighbours": "auto"}
    made = make_method(name, **{**quick, **settings})
    assert isinstance(made, NetMethod)
    return made


def with_and_without(model: NetMethod, data: Data, **options: Any) -> tuple[Intervals, Intervals]:
    """Return the intervals of all nodes, and those of the same fit without known neighbours."""
    plain = without_neighbours(model)
    return model.predict_interval(data, **options), plain.predict_interval(data, **options)


def without_neighbours(model: NetMethod) -> NetMethod:
    """Return the same fit without its second stage."""
    plain = copy.copy(model)
    plain.known_neighbours_ = None
    return plain


def score_on_test(intervals: Intervals, data: Data) -> float:
    """Return the Winkler score of the test nodes."""
    some = intervals.select(data.test_mask.numpy())
    y, level = data.y[data.test_mask].numpy(), intervals.confidence_level
    return float(winkler_score(y, some.lower, some.upper, confidence_level=level))


def same(one: Intervals, other: Intervals, nodes: Any = slice(None)) -> bool:
    """Whether predictions and bounds of some nodes are equal, bit for bit."""
    names = ("prediction", "lower", "upper")
    return all(np.array_equal(getattr(one, n)[nodes], getattr(other, n)[nodes]) for n in names)
