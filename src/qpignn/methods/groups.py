"""Groups of nodes that are calibrated by themselves, and how difficult a neighbourhood is."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from qpignn.data.structure import communities, degrees
from qpignn.errors import SettingError, listed

if TYPE_CHECKING:
    from torch_geometric.data import Data

Labels = npt.NDArray[np.str_]
Floats = npt.NDArray[np.float64]
DEGREE_BINS = 4
STEADY = 2.0  # a neighbourhood counts as if so many average nodes were in it


def node_groups(
    data: Data,
    kind: str | None,
    *,
    state: Any = None,
    new: bool = False,
) -> tuple[Labels, Any]:
    """Return a label for every node, and what must be kept to label other graphs the same way.

    Args:
        data: the graph.
        kind: None (all in one), ``degree``, ``community``, a column of categories, or an attribute
            with one label a node.
        state: what an earlier call returned, when groups are found again.
        new: whether groups are made. Their edges must not depend on which nodes score.
    """
    nodes = data.x.shape[0]
    if kind is None:
        return np.full(nodes, "all"), None
    if kind == "degree":
        found = degrees(data).astype(np.float64)
        if new:
            shares = np.linspace(0, 1, DEGREE_BINS + 1)[1:-1]
            # of all nodes: edges between the scoring ones would make those unlike a new one
            state = sorted({float(edge) for edge in np.quantile(found, shares)})
        low = [0.0, *state]
        names = np.array([f"degree from {edge:g}" for edge in low])
        return names[np.searchsorted(state, found, side="right")], state
    if kind == "community":
        digest = hashlib.sha256(data.edge_index.numpy().tobytes()).hexdigest()
        if not new and state != digest:
            raise SettingError("groups: expected the graph of the fit, got other edges")
        return np.array([f"community {label}" for label in communities(data)]), digest
    coding = data.get("coding")
    columns = [] if coding is None else coding.category_columns
    if kind in columns:
        return np.array([str(label) for label in coding.categories_of(data.x, kind)]), None
    labels = data.get(kind)
    if labels is None or len(labels) != nodes:
        raise SettingError(
            f"groups: expected degree, community, a column of categories "
            f"({listed(columns) or 'it has none'}) or an "
            f"attribute of the graph with {nodes} labels, got {kind!r}"
        )
    plain = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return np.array([str(label) for label in plain]), None


def local_difficulty(edge_index: Tensor, residuals: Floats) -> Floats:
    """Return the mean residual of each node's known neighbours, steadied by that of all.

    ``residuals`` are NaN where unknown; the result is relative to the overall mean.
    """
    known = ~np.isnan(residuals)
    typical = float(residuals[known].mean()) if known.any() else 1.0
    if typical == 0:
        return np.ones(len(residuals))
    source, target = edge_index.numpy()
    told = known[source]
    nodes = len(residuals)
    total = np.bincount(target[told], weights=residuals[source[told]], minlength=nodes)
    count = np.bincount(target[told], minlength=nodes)
    found: Floats = (total + STEADY * typical) / (count + STEADY) / typical
    return found
