"""Experiment protocols: how a cell of an experiment loads, splits, and fits.

A protocol is found by its name: the built-in ones of :data:`qpignn.names.PROTOCOLS`, and those that
installed packages declare as entry points of the group ``qpignn.protocols``. The general parts of
the library hand a protocol's name over to :func:`find_protocol` and never look at it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qpignn.errors import check_choice
from qpignn.names import PROTOCOLS
from qpignn.runtime.entry_points import installed, load_installed
from qpignn.runtime.plugins import load_object

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from qpignn.data.settings import View
    from qpignn.data.sources.dataset import Size
    from qpignn.experiments.cell import Cell
    from qpignn.methods.base import IntervalMethod

GROUP = "qpignn.protocols"
GENERAL = next(iter(PROTOCOLS))
"""The default protocol: data sets, splits and methods as the library documents them."""


class ExperimentProtocol(ABC):
    """How experiments are run under one protocol.

    Attributes:
        name: its name.
        views: views of the data it allows (:mod:`qpignn.data.settings`), the default first.
        saved_graphs: whether it can be run on graphs of the user's own.
    """

    name: str
    views: tuple[str, ...]
    saved_graphs: bool

    @abstractmethod
    def load_dataset(self, name: str, **options: Any) -> Data:
        """Load a data set of the catalog in this protocol's form.

        Args:
            name: its name in the catalog.
            **options: options of the data set.

        Returns:
            The graph.
        """

    @abstractmethod
    def declared_size(self, name: str) -> Size | None:
        """Return the declared counts of a data set, or None where none are declared.

        Args:
            name: name of the data set.
        """

    @abstractmethod
    def count(self, data: Data) -> Size:
        """Return the counts of a loaded graph, as :meth:`declared_size` counts.

        Args:
            data: the graph.
        """

    @abstractmethod
    def make_method(self, name: str, **settings: Any) -> IntervalMethod:
        """Make a method by name.

        Args:
            name: its name in the catalog.
            **settings: settings that differ from this protocol's defaults.

        Returns:
            The method, not fitted.
        """

    @abstractmethod
    def make_view(self, cell: Cell, dataset: str) -> View:
        """Load, perturb and split one data set of a cell.

        Args:
            cell: the cell.
            dataset: which of its data sets: the one to predict on or the one to fit on.

        Returns:
            What is fitted on and what is predicted.
        """

    def initial_weights(
        self, cell: Cell, method: IntervalMethod, view: View
    ) -> Mapping[str, Tensor] | None:
        """Return the weights that a fit starts from; by default None, random weights.

        Args:
            cell: the cell.
            method: the unfitted method.
            view: what it is fitted on and what it predicts.
        """
        return None

    def method_classes(self) -> tuple[type[IntervalMethod], ...]:
        """Return classes of its own that saved models may be of."""
        return ()


def protocol_names() -> tuple[str, ...]:
    """Return the names of all protocols, those of installed packages included."""
    return (*PROTOCOLS, *(name for name in installed(GROUP) if name not in PROTOCOLS))


def find_protocol(name: str) -> ExperimentProtocol:
    """Return a protocol by its name.

    Args:
        name: one of :func:`protocol_names`.

    Returns:
        The protocol.

    Raises:
        UnknownNameError: if there is no such protocol.

    Example:
        >>> find_protocol("corrected").views[0]
        'transductive'
    """
    check_choice("protocol", name, protocol_names())
    path = PROTOCOLS.get(name)
    protocol: ExperimentProtocol
    protocol = load_object(path) if path else load_installed(GROUP, name, ExperimentProtocol)
    return protocol
