"""Warnings about graphs that are valid but may have a mistake in their data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from qpignn.data.columns import Floats, Mask
from qpignn.data.graph import labelled, node_ids
from qpignn.data.ids import same_name
from qpignn.data.matrix import column, is_sparse
from qpignn.data.structure import components, isolated_nodes
from qpignn.errors import plural, quoted
from qpignn.runtime.memory import row_chunks

if TYPE_CHECKING:
    from torch_geometric.data import Data

MOST_EDGES = 5_000_000
"""Edges up to which connected components are computed: more would take time and memory."""
FEW = 0.01
"""Smallest share of the nodes to predict that gives a warning."""
ENOUGH = 20
"""Smallest number of labels whose values are checked."""
FAR = 1000
"""How many times as far from the median as all others a single target must lie to be reported."""
SENTINEL = re.compile(r"-9|-99|-?9{3,9}")
"""Numbers that files use for a missing value."""
CODES = re.compile(
    r"(?:^|_)(?:code|codes|zip|zipcode|postcode|postal|plz|fips|geoid|naics|sic|isic)(?:$|_)"
)
"""Words in names of columns whose numbers are codes, not amounts."""
EXPECTED = 10
"""Smallest expected number of labelled nodes among those where a column is blank."""


def data_warnings(data: Data, given: Tensor, *, edge_features: bool = False) -> list[str]:
    """Return warnings about a graph to fit on.

    Args:
        data: a checked graph.
        given: boolean, (nodes,), whose targets are given; the others are to be predicted.
        edge_features: whether the encoder uses ``edge_attr``.

    Returns:
        One sentence per warning, with a count and what to do; usually none.
    """
    is_given = given.numpy()
    return [
        *isolation_warnings(data, ~is_given),
        *_unlabelled_parts(data, is_given),
        *_targets(data, is_given),
        *_missing_as_numbers(data, is_given),
        *_codes(data),
        *(() if edge_features else _edge_features(data)),
        *_informative_blanks(data, labelled(data).numpy()),
    ]


def isolation_warnings(data: Data, asked: Mask) -> list[str]:
    """Return a warning where many of the nodes to predict have no edges.

    Args:
        data: a checked graph.
        asked: boolean, (nodes,), which are to be predicted.

    Returns:
        One sentence, or none.
    """
    if not asked.any():
        return []
    if not data.edge_index.shape[1]:
        return [
            "the graph has no edges: intervals depend on each node's own features only; give the "
            "edges, if there are any"
        ]
    return _if_many(
        asked & isolated_nodes(data),
        asked,
        "have no edges: their intervals depend on their own features only; check that no edges are "
        "missing",
    )


def _unlabelled_parts(data: Data, given: Mask) -> list[str]:
    if given.all() or not 0 < data.edge_index.shape[1] <= MOST_EDGES:
        return []
    part = components(data)
    return _if_many(
        ~given & ~np.isin(part, part[given]) & ~isolated_nodes(data),
        ~given,
        "are in parts of the graph where no target is given: intervals cannot be checked there; "
        "label some nodes of each part",
    )


def _targets(data: Data, given: Mask) -> Iterator[str]:
    values = data.y.double().numpy()[given]
    if len(values) < ENOUGH:
        return
    different = np.unique(values)
    whole = bool((values == np.round(values)).all())
    if len(different) == 2:
        low, high = different
        yield (
            f"the {len(values):,} given targets are all {low:g} or {high:g}: they look like two "
            f"classes, for which intervals are of little use; use a classifier, or another target"
        )
    elif whole and len(different) == len(values) and values.max() - values.min() < len(given):
        yield (
            f"the {len(values):,} given targets are whole numbers from {values.min():g} to "
            f"{values.max():g}, each once: they look like row numbers or ids; check the target "
            f"column"
        )
    with np.errstate(over="ignore"):
        distance = np.abs(values - np.median(values))
    first, second = np.sort(distance)[-1:-3:-1]
    if second > 0 and first > FAR * second:  # likely a mistake
        place = int(np.argmax(distance))
        node = node_ids(data)[np.flatnonzero(given)[place]]
        yield (
            f"the target {values[place]:g} of node {quoted([node])} is over {FAR:,} times as far "
            f"from the median as any other: it determines the scale of all of them; check it"
        )


def _if_many(some: Mask, asked: Mask, message: str) -> list[str]:
    """Return a message about some of the nodes to predict, unless they are few."""
    count, total = int(some.sum()), int(asked.sum())
    few = total == 0 or count < FEW * total
    return [] if few else [f"{count:,} of {total:,} nodes to predict {message}"]


def _missing_as_numbers(data: Data, given: Mask) -> Iterator[str]:
    """Warn of numbers such as -999 that stand for missing values."""
    names = data.get("feature_names") or [f"{i}" for i in range(data.x.shape[1])]
    features = (
        (f"feature column {names[place]!r}", column(data.x, place).double().numpy())
        for place in ([] if is_sparse(data.x) else _extreme_columns(data.x))
    )
    for what, values in (("the target", data.y.double().numpy()[given]), *features):
        if (number := _sentinel(values)) is not None:
            count = int((values == number).sum())
            yield (
                f"{what} is {number:g} on {plural(count, 'node')} and far from that elsewhere, as "
                f"if {number:g} stood for a missing value; leave such cells blank"
            )


def _extreme_columns(x: Tensor) -> list[int]:
    """Return the columns whose smallest or largest number looks like a missing value."""
    parts = [torch.aminmax(x[part], dim=0) for part in row_chunks(x.shape[0])]
    low = torch.stack([part.min for part in parts]).amin(dim=0).tolist()
    high = torch.stack([part.max for part in parts]).amax(dim=0).tolist()
    ends = zip(low, high, strict=True)
    return [i for i, pair in enumerate(ends) if any(SENTINEL.fullmatch(f"{v:g}") for v in pair)]


def _sentinel(values: Floats) -> float | None:
    """Return the minimum or maximum if it looks like a missing value and lies far off.

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


def _codes(data: Data) -> Iterator[str]:
    """Warn of columns that have names of codes and are used as numbers."""
    names = data.get("feature_names") or ()
    codes = []
    for place, name in enumerate(() if is_sparse(data.x) else names):
        if CODES.search(same_name(name)):
            values = column(data.x, place)
            if bool((values == values.round()).all()) and len(torch.unique(values)) > 2:
                codes.append(name)
    if codes:
        yield (
            f"feature {'column' if len(codes) == 1 else 'columns'} {quoted(codes)}: codes are used "
            f"as numbers, as if their order had a meaning; treat them as categories with "
            f"categorical=[...] (--categorical) or leave them out with ignore=[...] (--ignore)"
        )


def _edge_features(data: Data) -> Iterator[str]:
    """Warn of edge features that the encoder does not use."""
    if data.get("edge_attr") is not None:
        weighted = data.get("edge_weight") is not None
        yield (
            "edge_attr: features of edges are not used by this encoder, only edge_weight; use "
            "encoder='gat' for both, or leave edge_attr out"
            if weighted
            else "edge_attr: features of edges are not used by this encoder; use encoder='gat', or "
            "give one weight from 0 up per edge as edge_weight"
        )


def _informative_blanks(data: Data, has_label: Mask) -> Iterator[str]:
    """Warn of columns that are blank where the target is blank.

    Were blanks independent of labels, the share of labelled nodes would be the same among blank
    nodes as among all. A column is reported if at least ten labelled nodes are expected among its
    blank nodes and at most a twentieth of these are there.
    """
    coding = data.get("coding")
    if coding is None or coding.missing != "impute":
        return
    names = coding.feature_names
    columns = []
    for coded in coding.columns:
        if coded.blank and len(names) == data.x.shape[1]:
            blank = column(data.x, names.index(coded.feature_names[-1])).numpy() > 0.5
            expected = blank.sum() * has_label.mean()
            if expected >= EXPECTED and (blank & has_label).sum() <= expected / 20:
                columns.append(f"{coded.name!r} ({int(blank.sum()):,})")
    if columns:
        yield (
            f"{'column' if len(columns) == 1 else 'columns'} {', '.join(columns)}: blank on so "
            f"many nodes, hardly any of which is labelled, so that the blanks show which nodes are "
            f"unlabelled and nothing is learnt about them; leave it out with ignore=[...] "
            f"(--ignore), or fill it from another source"
        )
