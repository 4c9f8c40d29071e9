"""The interface between graphs and methods: units, their targets, and what encoders may see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from qpignn.errors import ArrayError, brief

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Task(Protocol):
    """What a unit is: a row that has a target and gets an interval.

    A method asks its task for everything that differs between nodes, edges and whole graphs.
    Masks over units are boolean tensors of shape (units,). All methods but :meth:`check` take a
    graph that :meth:`check` returned.

    Attributes:
        unit: the name of a unit in messages, such as ``node``.
    """

    unit: str

    def check(self, data: Data, *, need_target: bool = True) -> Data:
        """Return the graph in canonical form, or raise an error that names the broken rule.

        Args:
            data: the graph.
            need_target: whether labelled units are required (yes to fit, no to predict).
        """

    def check_targets(self, data: Data) -> None:
        """Raise unless some units have targets, and these vary.

        Args:
            data: the graph.
        """

    def warnings(self, data: Data, given: Tensor, *, edge_features: bool = False) -> Iterable[str]:
        """Return messages about what is legal but may be a mistake.

        Args:
            data: the graph.
            given: (units,), units whose targets may be used.
            edge_features: whether the method uses ``edge_attr``.
        """

    def count(self, data: Data) -> int:
        """Return the number of units.

        Args:
            data: the graph.
        """

    def ids(self, data: Data) -> npt.NDArray[Any]:
        """Return the id of each unit, (units,).

        Args:
            data: the graph.
        """

    def targets(self, data: Data) -> Tensor:
        """Return the targets, (units,), NaN where unlabelled.

        Args:
            data: the graph.
        """

    def weights(self, data: Data) -> Tensor | None:
        """Return the weight of each unit in training, (units,); None if all count the same.

        Args:
            data: the graph.
        """

    def given(self, data: Data, train_mask: Any = None) -> Tensor:
        """Return the units whose targets may be used, as a mask.

        Args:
            data: the graph.
            train_mask: the caller's choice; default that of the graph's own masks.
        """

    def test_units(self, data: Data) -> Tensor:
        """Return the labelled units that a method is evaluated on, as a mask.

        Args:
            data: the graph.
        """

    def validation_units(self, data: Data) -> Tensor | None:
        """Return the units that the user wants to be held out of training, as a mask, or None.

        Args:
            data: the graph.
        """

    def fold_groups(self, data: Data) -> Tensor | None:
        """Return a group number per unit; units of a group are held out together.

        Two directions of an edge belong to one group, for example.

        Args:
            data: the graph.

        Returns:
            (units,), or None where each unit is a group of its own.
        """

    def message_graph(self, data: Data, hidden: Tensor) -> Data:
        """Return the graph that encoders may see: no target of a hidden unit is left in it.

        Args:
            data: the graph.
            hidden: (units,), units whose targets must not be used.
        """

    def readout(self, data: Data, units: Tensor) -> Tensor | tuple[Tensor, ...] | None:
        """Return how hidden vectors of nodes become those of units.

        This is for tasks whose units are not nodes. No method calls it yet: the only task of the
        package is that of nodes, for which it returns None.

        Args:
            data: the graph.
            units: positions of the wanted units.

        Returns:
            A sparse (units, nodes) matrix, several of them, or None where units are nodes.
        """


@dataclass(frozen=True)
class FitInputs:
    """Everything that a fit is given.

    Attributes:
        data: a checked graph.
        given: (units,), the units whose targets may be used.
        task: what a unit is.
        initial_weights: weights that training starts from, named as in ``net_``; None draws them.
    """

    data: Data
    given: Tensor
    task: Task
    initial_weights: Mapping[str, Tensor] | None = None

    def without_hidden_targets(self) -> FitInputs:
        """Return the inputs with the targets of all units removed that are not given.

        Raises:
            GraphError: if the given targets do not vary.
        """
        data = self.task.message_graph(self.data, ~self.given)
        self.task.check_targets(data)
        return replace(self, data=data)

    @property
    def targets(self) -> Tensor:
        """The targets of the given units, in their order."""
        return self.task.targets(self.data)[self.given]


def unit_mask(mask: Any, units: int, unit: str = "node") -> Tensor:
    """Return a boolean mask over units as a tensor.

    Args:
        mask: an array, a list or a tensor.
        units: number of units.
        unit: the name of a unit in the message.

    Raises:
        ArrayError: if it is not a boolean mask of that length.
    """
    try:
        values = np.asarray(mask)
    except (TypeError, ValueError, RuntimeError):  # lists of different lengths, odd tensors
        values = np.empty(0, dtype=object)
    if values.dtype != np.bool_ or values.shape != (units,):
        raise ArrayError(
            f"mask: expected {units} booleans, one per {unit}, got {values.shape} of "
            f"{values.dtype} ({brief(mask)}); a list of positions becomes a mask by "
            f"np.isin(np.arange({units}), positions)"
        )
    return torch.as_tensor(values)
