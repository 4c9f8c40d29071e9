"""Groups of nodes that are calibrated separately, and the difficulty of a neighbourhood."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from qpignn.data.graph import node_ids
from qpignn.data.matrix import select_rows, to_csr
from qpignn.data.structure import communities, degrees
from qpignn.errors import SettingError, quoted
from qpignn.io.tensors import pack_json, unpack_json

if TYPE_CHECKING:
    from torch_geometric.data import Data

Labels = npt.NDArray[np.str_]
Floats = npt.NDArray[np.float64]
DEGREE_BINS = 4
STEADY = 2.0  # number of average nodes that are added to each neighbourhood


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
            with one label per node.
        state: what an earlier call returned, for the same groups in another graph.
        new: whether groups are made. Their limits must not depend on which nodes are scored.

    Raises:
        SettingError: if the graph has no such groups.
    """
    nodes = data.x.shape[0]
    if kind is None:
        return np.full(nodes, "all"), None
    if kind == "degree":
        degree = degrees(data).astype(np.float64)
        if new:
            shares = np.linspace(0, 1, DEGREE_BINS + 1)[1:-1]
            # of all nodes: limits fitted on scored nodes would make these unlike a new one
            state = sorted({float(edge) for edge in np.quantile(degree, shares)})
        names = np.array([f"degree from {edge:g}" for edge in (0.0, *state)])
        return names[np.searchsorted(state, degree, side="right")], state
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
            f"({quoted(columns) or 'it has none'}) or an "
            f"attribute of the graph with {nodes} labels, got {kind!r}"
        )
    plain = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return np.array([str(label) for label in plain]), None


@dataclass(frozen=True)
class KnownResiduals:
    """Residuals of the nodes a method was fitted on, to be found again in other graphs.

    Attributes:
        keys: of each node, its ``node_id`` as text, or its row in a graph without ids.
        residuals: of each node, in the same order.
        features: digest of the nodes' features in a graph without ids; empty with ids.
    """

    keys: list[str]
    residuals: Floats
    features: str

    @classmethod
    def of(cls, data: Data, nodes: Tensor, residuals: Floats) -> Self:
        """Keep the residuals of some nodes of a graph.

        Args:
            data: a checked graph.
            nodes: boolean, the nodes whose residuals are known.
            residuals: (nodes,), one number per node.

        Returns:
            The residuals with the keys of their nodes.
        """
        chosen = nodes.numpy()
        keys = _keys(data)[chosen].tolist()
        features = _digest(data, nodes) if data.get("node_id") is None else ""
        return cls(keys, residuals[chosen], features)

    def on(self, data: Data) -> Floats:
        """Return the residuals of a graph's nodes, NaN where unknown.

        Args:
            data: a checked graph.

        Raises:
            SettingError: if the nodes of the fit cannot be identified in the graph.
        """
        graph_has_ids = data.get("node_id") is not None
        if graph_has_ids == bool(self.features):
            kinds = {True: "a graph with node_id", False: "a graph without node_id"}
            raise SettingError(
                f"neighbourhood: expected {kinds[not graph_has_ids]}, as in the fit, got "
                f"{kinds[graph_has_ids]}; its nodes cannot be identified"
            )
        keys = _keys(data)
        places = keys.get_indexer(pd.Index(self.keys, dtype=object))
        present = places >= 0
        if not present.any():
            raise SettingError(
                f"neighbourhood: expected a graph with nodes of the fit ({quoted(self.keys)}), got "
                f"none of them; use neighbourhood=False for other graphs"
            )
        if self.features:
            nodes = torch.zeros(len(keys), dtype=torch.bool)
            nodes[torch.from_numpy(places[present])] = True
            if not present.all() or _digest(data, nodes) != self.features:
                raise SettingError(
                    "neighbourhood: expected the graph of the fit, its nodes in the same order, "
                    "got other features in the rows of the fit; give both graphs node_id, by "
                    "which nodes are recognised in any order"
                )
        residuals = np.full(len(keys), np.nan)
        residuals[places[present]] = self.residuals[present]
        return residuals

    def state(self) -> dict[str, Tensor]:
        """Return the contents as tensors, to be saved beside a model."""
        nodes = pack_json({"keys": self.keys, "features": self.features})
        return {"residuals": torch.from_numpy(self.residuals), "residual_nodes": nodes}

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> Self:
        """Return what :meth:`state` described.

        Args:
            state: as read from a file; unchecked.

        Raises:
            ValueError: if the tensors are not those of residuals.
        """
        if "residual_nodes" not in state:
            raise ValueError(
                "neighbourhood: expected the ids of the fitted nodes, got a model saved by a "
                "version that did not keep them; fit again"
            )
        nodes, residuals = unpack_json(state["residual_nodes"]), state["residuals"]
        keys, features = nodes["keys"], nodes["features"]
        right = (
            isinstance(keys, list)
            and all(isinstance(key, str) for key in keys)
            and isinstance(features, str)
            and (residuals.dtype, residuals.shape) == (torch.float64, (len(keys),))
        )
        if not right:
            raise ValueError("residuals: expected one number and one id per node, got others")
        return cls(keys, residuals.numpy(), features)


def _keys(data: Data) -> pd.Index:
    """Return the ids of all nodes as text, or their rows in a graph without ids."""
    keys: pd.Index = pd.Index([str(key) for key in node_ids(data)], dtype=object)
    if not keys.is_unique:
        raise SettingError(
            "neighbourhood: expected node ids that differ as text, got some that are the same, "
            "such as 1 and '1'; rename them"
        )
    return keys


def _digest(data: Data, nodes: Tensor) -> str:
    """Return a digest of the features of some nodes, the same for dense and CSR storage."""
    rows = to_csr(select_rows(data.x, nodes))
    digest = hashlib.sha256()
    for part in (rows.crow_indices(), rows.col_indices(), rows.values().double()):
        digest.update(part.numpy().tobytes())
    return digest.hexdigest()


def local_difficulty(edge_index: Tensor, residuals: Floats) -> Floats:
    """Return the mean residual of each node's known neighbours, shrunk towards that of all.

    Args:
        edge_index: (2, edges).
        residuals: (nodes,), NaN where unknown.

    Returns:
        (nodes,), relative to the overall mean.
    """
    available = ~np.isnan(residuals)
    typical = float(residuals[available].mean()) if available.any() else 1.0
    if typical == 0:
        return np.ones(len(residuals))
    source, target = edge_index.numpy()
    counted = available[source]
    nodes = len(residuals)
    total = np.bincount(target[counted], weights=residuals[source[counted]], minlength=nodes)
    count = np.bincount(target[counted], minlength=nodes)
    return (total + STEADY * typical) / (count + STEADY) / typical
