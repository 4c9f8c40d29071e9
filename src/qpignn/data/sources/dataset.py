"""What the catalog knows about a data set: its loader, its files and its size."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qpignn.data.matrix import stored_values
from qpignn.data.sources.files import SourceFile, find, identity
from qpignn.errors import check_setting_names

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Size:
    """Counts of a graph.

    Attributes:
        nodes: number of nodes.
        edges: number of edges.
        self_loops: number of edges that lead from a node to itself.
        features: number of feature columns.
    """

    nodes: int
    edges: int
    self_loops: int
    features: int

    @classmethod
    def of(cls, data: Data, *, undirected: bool = True) -> Size:
        """Count a graph.

        Args:
            data: the graph.
            undirected: count the two directions of an edge as one edge, not as stored.

        Returns:
            Its counts.
        """
        ends = data.edge_index
        stored, loops = ends.shape[1], int((ends[0] == ends[1]).sum())
        return cls(data.x.shape[0], stored // 2 if undirected else stored, loops, data.x.shape[1])


@dataclass(frozen=True)
class Dataset:
    """One entry of the catalog.

    Attributes:
        name: the name that ``load_dataset`` takes.
        origin: the family of data sets it belongs to.
        about: one line on nodes, edges and target.
        loader: returns the graph with its edges as stored; its parameters are the options of the
            data set. :func:`qpignn.data.catalog.load_dataset` makes the edges undirected.
        files: files it reads without options; none for data sets that are drawn.
        size: declared counts of the loaded graph.
        ones_per_node: mean number of stored features per node, for sparse 0/1 features.
        files_with: returns the files it reads with options, where options decide them.
        benchmark: whether ``all`` includes it.
    """

    name: str
    origin: str
    about: str
    loader: Callable[..., Data]
    files: tuple[SourceFile, ...] = ()
    size: Size | None = None
    ones_per_node: float | None = None
    files_with: Callable[..., tuple[SourceFile, ...]] | None = None
    benchmark: bool = True

    def missing(self) -> list[str]:
        """Return the files that are neither in the data folder nor in the cache."""
        return [file.path for file in self.files if find(file) is None]

    def digest(self, options: Mapping[str, Any] | None = None) -> str:
        """Return a digest of the files read under the given options; empty if none are read.

        It is that of the original files unless the user's folder holds others.

        Args:
            options: options of the data set.
        """
        files = self.files if self.files_with is None else self.files_with(**(options or {}))
        content = json.dumps([[file.path, identity(file)] for file in files])
        return hashlib.sha256(content.encode()).hexdigest() if files else ""

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise SettingError for an option that the loader does not have.

        Args:
            options: options by name.

        Raises:
            SettingError: for an option that it does not have.
        """
        parameters = inspect.signature(self.loader).parameters
        check_setting_names(f"data set {self.name!r}", options, parameters, "option")

    def differences(self, data: Data, declared: Size | None, counted: Size) -> list[str]:
        """Return where a loaded graph differs from the declared counts.

        Args:
            data: the graph.
            declared: the counts it should have; None where none are declared.
            counted: the counts it has.

        Returns:
            One line per difference.
        """
        lines = []
        if declared is not None and counted != declared:
            lines.append(f"{self.name}: declared {declared}, found {counted}")
        if self.ones_per_node is not None:
            ones = round(len(stored_values(data.x)) / counted.nodes, 1)
            if ones != self.ones_per_node:
                lines.append(f"{self.name}: declared {self.ones_per_node} ones, found {ones}")
        return lines
