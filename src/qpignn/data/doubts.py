"""What is legal in a graph to fit on, but deserves a second look: sentences for warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from torch import Tensor

from qpignn.data.structure import components

if TYPE_CHECKING:
    from torch_geometric.data import Data

MOST_EDGES = 5_000_000
"""Edges up to which connected parts are looked for: more would take time and memory."""
FEW = 0.01
"""Share of the nodes to predict from which it is worth a warning."""
ENOUGH = 20
"""Labels from which their values are judged."""

Mask = npt.NDArray[np.bool_]


def doubts(data: Data, given: Tensor) -> list[str]:
    """Say what deserves a second look before a fit is relied on.

    Args:
        data: a checked graph.
        given: boolean, the nodes whose targets are given; the others are to be predicted.

    Returns:
        One sentence each, with a count and what to do; none in the usual case.
    """
    known = given.numpy()
    return [*lonely_nodes(data, ~known), *_unlabelled_parts(data, known), *_targets(data, known)]


def lonely_nodes(data: Data, asked: Mask) -> list[str]:
    """Say how many of the nodes to predict have no edges, where they are many."""
    if not asked.any():
        return []
    if not data.edge_index.shape[1]:
        return [
            "the graph has no edges: intervals rest on each node's own features; give the edges, "
            "if there are any"
        ]
    alone = asked & _alone(data)
    if not _many(alone, asked):
        return []
    return [
        f"{_share(alone, asked)} have no edges: their intervals rest on their own features; are "
        f"all edges there?"
    ]


def _unlabelled_parts(data: Data, known: Mask) -> list[str]:
    if known.all() or not 0 < data.edge_index.shape[1] <= MOST_EDGES:
        return []
    part = components(data)
    told = np.zeros(int(part.max()) + 1, dtype=bool)
    told[part[known]] = True
    apart = ~known & ~told[part] & ~_alone(data)
    if not _many(apart, ~known):
        return []
    return [
        f"{_share(apart, ~known)} are in parts of the graph where no target is given: nothing "
        f"shows how well intervals fit there; label some nodes of each part"
    ]


def _targets(data: Data, known: Mask) -> list[str]:
    values = data.y.double().numpy()[known]
    if len(values) < ENOUGH:
        return []
    different = np.unique(values)
    if len(different) == 2:
        low, high = different
        return [
            f"the {len(values):,} given targets are all {low:g} or {high:g}: they look like two "
            f"classes, for which an interval says little; use a classifier, or another target"
        ]
    whole = bool((values == np.round(values)).all())
    if whole and len(different) == len(values) and values.max() - values.min() < len(known):
        return [
            f"the {len(values):,} given targets are whole numbers from {values.min():g} to "
            f"{values.max():g}, each once: they look like row numbers or ids; is the target column "
            f"the right one?"
        ]
    return []


def _alone(data: Data) -> Mask:
    """Which nodes no edge leads to or from."""
    alone: Mask = np.ones(data.x.shape[0], dtype=bool)
    alone[data.edge_index.numpy().ravel()] = False
    return alone


def _many(some: Mask, asked: Mask) -> bool:
    return int(some.sum()) > 0 and some.sum() >= FEW * asked.sum()


def _share(some: Mask, asked: Mask) -> str:
    return f"{int(some.sum()):,} of {int(asked.sum()):,} nodes to predict"
