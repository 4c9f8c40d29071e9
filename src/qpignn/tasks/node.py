"""Nodes as units: every node of a graph gets an interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from torch import Tensor

from qpignn.data.graph import (
    check_graph,
    check_labels,
    given_nodes,
    labelled,
    node_ids,
    test_nodes,
)
from qpignn.data.settings import hide_targets
from qpignn.data.warnings import data_warnings
from qpignn.errors import GraphError, SplitError
from qpignn.tasks.base import Task, unit_mask

if TYPE_CHECKING:
    from torch_geometric.data import Data


class NodeTask(Task):
    """Units are nodes; see :class:`qpignn.tasks.base.Task`."""

    unit: str = "node"

    def check(self, data: Data, *, need_target: bool = True) -> Data:
        """Return the graph in canonical form; see :func:`qpignn.data.graph.check_graph`."""
        return check_graph(data, need_target=need_target)

    def check_targets(self, data: Data) -> None:
        """Raise GraphError unless some nodes are labelled, with targets that vary."""
        check_labels(data.get("y"))

    def warnings(self, data: Data, given: Tensor, *, edge_features: bool = False) -> Iterable[str]:
        """Return messages about unusual data; see :mod:`qpignn.data.warnings`."""
        return data_warnings(data, given, edge_features=edge_features)

    def count(self, data: Data) -> int:
        """Return the number of nodes."""
        return int(data.x.shape[0])

    def ids(self, data: Data) -> npt.NDArray[Any]:
        """Return the user's ids, or row numbers where the graph has none."""
        return node_ids(data)

    def targets(self, data: Data) -> Tensor:
        """Return ``data.y``."""
        y: Tensor = data.y
        return y

    def weights(self, data: Data) -> Tensor | None:
        """Return ``data.node_weight``."""
        weight: Tensor | None = data.get("node_weight")
        return weight

    def given(self, data: Data, train_mask: Any = None) -> Tensor:
        """Return the labelled nodes whose targets may be used.

        Args:
            data: a checked graph.
            train_mask: boolean, (nodes,); default the graph's own ``train_mask`` and ``val_mask``,
                or every labelled node outside its ``test_mask``.

        Raises:
            SplitError: if there is none, or one is also in the graph's ``test_mask``.
            GraphError: if all of them have a weight of 0.
        """
        if train_mask is None:
            given = given_nodes(data)
        else:
            given = unit_mask(train_mask, self.count(data)) & labelled(data)
            shared = int((given & test_nodes(data)).sum())
            if shared:
                raise SplitError(
                    f"expected a train_mask apart from the graph's test_mask, got {shared} nodes "
                    f"in both; leave them out of one"
                )
        if not bool(given.any()):
            raise SplitError(
                f"expected labelled nodes to learn from, got none: {int(labelled(data).sum())} "
                f"nodes are labelled, but the mask gives none of them"
            )
        weight = self.weights(data)
        if weight is not None:
            given = given & (weight > 0)  # nodes of weight 0 must not influence anything
            if not bool(given.any()):
                raise GraphError("node_weight: expected weight on the given nodes, got zeros only")
        return given

    def test_units(self, data: Data) -> Tensor:
        """Return the labelled nodes of the graph's ``test_mask``."""
        return test_nodes(data)

    def validation_units(self, data: Data) -> Tensor | None:
        """Return the graph's ``val_mask``."""
        mask: Tensor | None = data.get("val_mask")
        return mask

    def fold_groups(self, data: Data) -> Tensor | None:
        """Return None: each node is held out by itself."""
        return None

    def message_graph(self, data: Data, hidden: Tensor) -> Data:
        """Return the graph with the targets of hidden nodes set to NaN."""
        return hide_targets(data, ~hidden)

    def readout(self, data: Data, units: Tensor) -> None:
        """Return None: hidden vectors of nodes are those of units."""
        return
