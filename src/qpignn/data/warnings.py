"""What is legal in a graph to fit on, but deserves a second look: sentences for warnings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from qpignn.data.graph import labelled, node_ids
from qpignn.data.matrix import column, is_sparse
from qpignn.data.structure import components
from qpignn.errors import plural, quoted
from qpignn.runtime.memory import row_chunks

if TYPE_CHECKING:
    from torch_geometric.data import Data

MOST_EDGES = 5_000_000
"""Edges up to which connected parts are looked for: more would take time and memory."""
FEW = 0.01
"""Share of the nodes to predict from which it is worth a warning."""
ENOUGH = 20
"""Labels from which their values are judged."""
FAR = 1000
"""How many times as far from the median as all others a single target must lie to be reported."""
SENTINEL = re.compile(r"-9|-99|-?9{3,9}")
"""Numbers that files write for a value that is missing."""
CODES = re.compile(
    r"(?:^|_)(?:code|codes|zip|zipcode|postcode|postal|plz|fips|geoid|naics|sic|isic)(?:$|_)"
)
"""Words in names of columns whose numbers are codes, not amounts."""
EXPECTED = 10
"""Labelled nodes that chance would put among those where a column is blank."""

Floats = npt.NDArray[np.float64]

Mask = npt.NDArray[np.bool_]


def data_warnings(data: Data, given: Tensor) -> list[str]:
    """Say what deserves a second look before a fit is relied on.

    Args:
        data: a checked graph.
        given: boolean, the nodes whose targets are given; the others are to be predicted.

    Returns:
        One sentence each, with a count and what to do; none in the usual case.
    """
    known = given.numpy()
    return [
        *isolation_warnings(data, ~known),
        *_unlabelled_parts(data, known),
        *_targets(data, known),
        *_far_target(data, known),
        *_missing_as_numbers(data, known),
        *_codes(data),
        *_edge_features(data),
        *informative_blanks(data, labelled(data).numpy()),
    ]


def isolation_warnings(data: Data, asked: Mask) -> list[str]:
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


def _far_target(data: Data, known: Mask) -> list[str]:
    """Warn of a single target that is so far from all others that it must be a mistake."""
    values = data.y.double().numpy()[known]
    if len(values) < ENOUGH:
        return []
    with np.errstate(over="ignore"):
        distance = np.abs(values - np.median(values))
    first, second = np.sort(distance)[-1:-3:-1]
    if not (second > 0 and first > FAR * second):
        return []
    place = int(np.argmax(distance))
    node = node_ids(data)[np.flatnonzero(known)[place]]
    return [
        f"the target {values[place]:g} of node {quoted([node])} is over {FAR:,} times as far from "
        f"the median as any other: it decides the scale of all of them; is it a typing error?"
    ]


def _missing_as_numbers(data: Data, known: Mask) -> list[str]:
    """Warn of numbers such as -999 that stand for missing values."""
    found = []
    targets = data.y.double().numpy()[known]
    if (number := _sentinel(targets)) is not None:
        found.append(("the target", number, int((targets == number).sum())))
    if not is_sparse(data.x):
        names = data.get("feature_names") or [f"{i}" for i in range(data.x.shape[1])]
        for place in _extreme_columns(data.x):
            values = column(data.x, place).double().numpy()
            if (number := _sentinel(values)) is not None:
                count = int((values == number).sum())
                found.append((f"feature column {names[place]!r}", number, count))
    return [
        f"{what} is {number:g} on {plural(count, 'node')} and far from that elsewhere, as where "
        f"a file writes {number:g} for a missing value; leave such cells blank"
        for what, number, count in found
    ]


def _extreme_columns(x: Tensor) -> list[int]:
    """Return the columns whose smallest or largest number is written as missing values are."""
    parts = [torch.aminmax(x[part], dim=0) for part in row_chunks(x.shape[0])]
    low = torch.stack([part.min for part in parts]).amin(dim=0).tolist()
    high = torch.stack([part.max for part in parts]).amax(dim=0).tolist()
    ends = zip(low, high, strict=True)
    return [i for i, pair in enumerate(ends) if any(SENTINEL.fullmatch(f"{v:g}") for v in pair)]


def _sentinel(values: Floats) -> float | None:
    """Return the end of some numbers that is written as missing values are and lies far off.

    Far off: further from the nearest other number than those are from each other.
    """
    if len(values) < ENOUGH:
        return None
    for end in (values.min(), values.max()):
        rest = values[values != end]
        if not SENTINEL.fullmatch(f"{end:.12g}") or len(np.unique(rest)) < 2:
            continue
        if np.abs(rest - end).min() > np.ptp(rest):
            return float(end)
    return None


def _codes(data: Data) -> list[str]:
    """Warn of columns that are named as codes and taken as numbers."""
    names = [str(name) for name in data.get("feature_names") or ()]
    if is_sparse(data.x) or len(names) != data.x.shape[1]:
        return []
    found = []
    for place, name in enumerate(names):
        if CODES.search(re.sub(r"[\s\-]+", "_", name.strip().lower())):
            values = column(data.x, place)
            if bool((values == values.round()).all()) and len(torch.unique(values)) > 2:
                found.append(name)
    if not found:
        return []
    return [
        f"feature {'column' if len(found) == 1 else 'columns'} {quoted(found)}: codes are taken as "
        f"numbers, as if a larger one were more; take them as categories with "
        f"categorical=[...] (--categorical) or leave them out with ignore=[...] (--ignore)"
    ]


def _edge_features(data: Data) -> list[str]:
    """Warn of edge features, which no method uses."""
    if data.get("edge_attr") is None or data.get("edge_weight") is not None:
        return []
    return [
        "edge_attr: features of edges are not used; a number from 0 up per edge that says how much "
        "it counts is, as edge_weight"
    ]


def informative_blanks(data: Data, known: Mask) -> list[str]:
    """Warn of columns that are blank where the target is blank.

    Were blanks independent of labels, as many of the blank nodes would be labelled as of all. A
    column is reported if that would be at least ten nodes and not one in twenty of them is.

    Args:
        data: a checked graph, with the ``coding`` of its table where it has one.
        known: boolean, the labelled nodes.
    """
    coding = data.get("coding")
    if coding is None or coding.missing != "impute":
        return []
    names = coding.feature_names
    found = []
    for coded in coding.columns:
        if coded.blank and len(names) == data.x.shape[1]:
            blank = column(data.x, names.index(coded.feature_names[-1])).numpy() > 0.5
            expected = blank.sum() * known.mean()
            if expected >= EXPECTED and (blank & known).sum() <= expected / 20:
                found.append(f"{coded.name!r} ({int(blank.sum()):,})")
    if not found:
        return []
    return [
        f"{'column' if len(found) == 1 else 'columns'} {', '.join(found)}: blank on so many nodes, "
        f"hardly any of which is labelled, so that the column tells who is unlabelled and nothing "
        f"is learnt about such nodes; leave it out with ignore=[...] (--ignore), or fill it from "
        f"another source"
    ]
