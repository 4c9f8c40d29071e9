"""Test for distribution shift between labelled nodes and the nodes to predict.

Coverage measured on labelled nodes holds for other nodes only if both come from the same
population. Two sets of nodes are compared by their features and their position in the graph, never
by anything that depends on which nodes are labelled. If labels are missing at random, every choice
of labelled nodes is then equally likely, and the test of
:func:`qpignn.diagnostics.two_sample.compare_rows` has its nominal false-positive rate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from qpignn.data.graph import labelled, node_ids
from qpignn.data.matrix import is_sparse, to_scipy
from qpignn.data.structure import Integers, adjacency, communities, degrees
from qpignn.diagnostics.grouping import Mask
from qpignn.diagnostics.sequential_test import COLUMNS, Smoother
from qpignn.diagnostics.two_sample import FEWEST, Shift, compare_rows
from qpignn.errors import ArrayError, GraphError
from qpignn.intervals import Floats
from qpignn.runtime.randomness import numpy_rng

if TYPE_CHECKING:
    from torch_geometric.data import Data

MOST = 2_000  # nodes of each set in the test, at most
PAIRED = 20  # dense features that are compared in pairs, at most
STEPS, DECAY = 10, 0.8  # label smoothing: number of hops and weight per hop
Columns = list[tuple[str, npt.NDArray[Any]]]


def label_shift(data: Data, seed: int = 0, *, community: Integers | None = None) -> Shift | None:
    """Compare the nodes without a target with those that have one.

    The null hypothesis is that labels are missing completely at random, given features and edges.
    The test uses the features (dense tables of at most 20 columns also in pairs), the neighbours'
    mean features (dense tables of at most 50 columns), the degree, the Louvain community,
    coordinates (``pos``) and, for sparse features, their number; a further test checks whether
    nodes near unlabelled nodes tend to be unlabelled too.

    Args:
        data: the graph.
        seed: seed of the sample (2,000 nodes of each kind), the blocks and the relabellings.
        community: (nodes,), the community of each node, if it has been computed already.

    Returns:
        The comparison, or None if fewer than 20 nodes are labelled or unlabelled.
    """
    is_labelled = labelled(data).numpy()
    if min(is_labelled.sum(), (~is_labelled).sum()) < FEWEST:
        return None
    rng = numpy_rng(seed, "shift")
    nodes = [_sampled(mask, rng) for mask in (is_labelled, ~is_labelled)]
    both = np.concatenate(nodes)
    label = communities(data) if community is None else community
    sparse = is_sparse(data.x)
    columns = [("degree", degrees(data)[both])]
    columns += _feature_counts(data, both) if sparse else _neighbour_columns(data, both)
    columns += _place_columns(data, both, label)
    names, table = _table(data, both, sparse, columns)
    first, smooth, paired = len(nodes[0]), _smoother(data, both), _paired(data, sparse)
    shift = compare_rows(table[:first], table[first:], names, rng, paired=paired, smooth=smooth)
    counts = int(is_labelled.sum()), int((~is_labelled).sum())
    return shift and replace(shift, reference=counts[0], compared=counts[1])


def graph_shift(fit_data: Data, other_data: Data, nodes: Any = None, seed: int = 0) -> Shift | None:
    """Compare the nodes of another graph with the labelled nodes of the training graph.

    The test uses the features, the degree (each edge counted at one of its two ends, chosen at
    random) and, for sparse features, their number. The nominal false-positive rate holds for
    independent nodes; neighbours' means and communities are therefore left out. If features of
    neighbours depend on each other, two graphs differ more often than the p-value says.

    Args:
        fit_data: the training graph.
        other_data: the graph to predict on, with the same feature columns.
        nodes: mask of the nodes of ``other_data`` to compare; default all.
        seed: seed of the sample (2,000 nodes of each graph), the blocks and the relabellings.

    Returns:
        The comparison, or None if there are fewer than 20 nodes to compare on either side.

    Raises:
        GraphError: if the two graphs have different numbers of feature columns.
        ArrayError: if ``nodes`` is not a mask of the other graph's nodes.
    """
    widths = fit_data.x.shape[1], other_data.x.shape[1]
    if widths[0] != widths[1]:
        raise GraphError(
            f"expected a graph with the {widths[0]} feature columns of the training graph, got "
            f"{widths[1]}; give it the same columns"
        )
    is_labelled = labelled(fit_data).numpy()
    count = other_data.x.shape[0]
    chosen = np.ones(count, dtype=bool) if nodes is None else np.asarray(nodes)
    if chosen.shape != (count,) or chosen.dtype != np.bool_:
        raise ArrayError(
            f"nodes: expected {count} booleans, one per node of the other graph, got shape "
            f"{chosen.shape} of {chosen.dtype}"
        )
    if min(is_labelled.sum(), chosen.sum()) < FEWEST:
        return None
    rng = numpy_rng(seed, "shift")
    sparse = is_sparse(fit_data.x) or is_sparse(other_data.x)
    tables = []
    for data, mask in ((fit_data, is_labelled), (other_data, chosen)):
        sample = _sampled(mask, rng)
        columns = [("degree", _half_degrees(data, rng)[sample])]
        columns += _feature_counts(data, sample) if sparse else []
        tables.append(_table(data, sample, sparse, columns))
    (names, reference), (_, compared) = tables
    shift = compare_rows(reference, compared, names, rng, paired=_paired(fit_data, sparse))
    return shift and replace(shift, reference=int(is_labelled.sum()), compared=int(chosen.sum()))


def _sampled(mask: Mask, rng: np.random.Generator) -> Integers:
    nodes = np.flatnonzero(mask)
    return nodes if len(nodes) <= MOST else np.sort(rng.choice(nodes, MOST, replace=False))


def _paired(data: Data, sparse: bool) -> int:
    columns = int(data.x.shape[1])
    return columns if not sparse and columns <= PAIRED else 0


def _feature_names(data: Data) -> list[str]:
    names = data.get("feature_names")
    return list(names or (f"feature {i}" for i in range(data.x.shape[1])))


def _smoother(data: Data, nodes: Integers) -> Smoother:
    """Return a function that propagates labels along the edges, with less weight per hop."""
    links = adjacency(data)
    links = links.maximum(links.T)
    scale = 1 / np.sqrt(np.maximum(np.asarray(links.sum(axis=1)).ravel(), 1))

    def smooth(labels: Floats) -> Floats:
        start = np.zeros(data.x.shape[0])
        start[nodes] = labels
        spread = start
        for _ in range(STEPS):
            spread = start + DECAY * scale * (links @ (scale * spread))
        scores: Floats = spread[nodes]
        return scores

    return smooth


def _table(data: Data, nodes: Integers, sparse: bool, columns: Columns) -> tuple[list[str], Any]:
    """Return the features of nodes and further columns, with their names."""
    import scipy.sparse as sp

    names = [*_feature_names(data), *(name for name, _ in columns)]
    further = np.column_stack([column for _, column in columns])
    if not sparse:
        return names, np.column_stack([_dense_rows(data, nodes), further])
    rows = to_scipy(data.x)[nodes] if is_sparse(data.x) else _dense_rows(data, nodes)
    return names, sp.hstack([sp.csr_matrix(rows), sp.csr_matrix(further)]).tocsr()


def _dense_rows(data: Data, nodes: Integers) -> Floats:
    rows: Floats = data.x[torch.from_numpy(nodes)].double().numpy()
    return rows


def _feature_counts(data: Data, nodes: Integers) -> Columns:
    if is_sparse(data.x):
        counts = np.diff(data.x.crow_indices().numpy())[nodes]
    else:
        counts = np.count_nonzero(_dense_rows(data, nodes), axis=1)
    return [("number of features", counts)]


def _half_degrees(data: Data, rng: np.random.Generator) -> Integers:
    """Count each edge at one of its two ends, chosen at random.

    Unlike degrees, these counts do not depend on each other through the edges between nodes.
    """
    coin = rng.random(data.x.shape[0]) < 0.5
    source, target = data.edge_index.numpy()
    here = (coin[source] ^ coin[target]) == (target > source)
    return np.bincount(target[here], minlength=len(coin))


def _neighbour_columns(data: Data, nodes: Integers) -> Columns:
    """Return the mean features of the neighbours; without neighbours, the mean over the others."""
    if data.x.shape[1] > COLUMNS:
        return []
    import scipy.sparse as sp

    place = np.full(data.x.shape[0], -1)
    place[nodes] = np.arange(len(nodes))
    source, target = data.edge_index.numpy()
    inside = place[target] >= 0
    used, column = np.unique(source[inside], return_inverse=True)
    ends = (place[target[inside]], column)
    links = sp.csr_matrix((np.ones(len(column)), ends), shape=(len(nodes), len(used)))
    count = np.asarray(links.sum(axis=1))  # (nodes, 1)
    means: Floats = (links @ _dense_rows(data, used)) / np.maximum(count, 1)
    alone = count[:, 0] == 0
    means[alone] = means[~alone].mean(axis=0) if not alone.all() else 0.0
    names = (f"neighbours' mean of {name}" for name in _feature_names(data))
    return list(zip(names, means.T, strict=True))


def _place_columns(data: Data, nodes: Integers, community: Integers) -> Columns:
    """Return the coordinates, and an indicator column for every larger community."""
    columns: Columns = []
    places = data.get("pos")
    if places is not None and places.dim() == 2 and len(places) == len(community):
        chosen = places[torch.from_numpy(nodes)].double().numpy()
        if np.isfinite(chosen).all():
            columns += [(f"coordinate {i + 1}", place) for i, place in enumerate(chosen.T)]
    member = community[nodes]
    ids, degree = node_ids(data), degrees(data)
    for number in np.flatnonzero(np.bincount(member) >= FEWEST):
        inside = np.flatnonzero(community == number)
        hub = ids[inside[np.argmax(degree[inside])]]
        columns.append((f"community around {hub}", (member == number).astype(np.float64)))
    return columns
