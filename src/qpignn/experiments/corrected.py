"""The protocol ``corrected``, the default: data sets, splits and methods as documented."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from qpignn.data.catalog import find_dataset, is_dataset, load_dataset
from qpignn.data.perturb import damage
from qpignn.data.settings import VIEWS, View, make_view
from qpignn.data.sources.dataset import Size
from qpignn.data.split import keep_labels, split_nodes
from qpignn.data.storage import load_graph
from qpignn.experiments.cell import TEST_SHARE, Cell
from qpignn.experiments.digest import data_digest
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import make_method
from qpignn.protocols import GENERAL, ExperimentProtocol

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Corrected(ExperimentProtocol):
    """The draw is fixed by the data set; the seed decides the split and the initial weights."""

    name = GENERAL
    views = (*VIEWS,)
    saved_graphs = True

    def load_dataset(self, name: str, **options: Any) -> Data:
        """Load a data set with undirected edges, without self-loops and repeats."""
        return load_dataset(name, **options)

    def declared_size(self, name: str) -> Size | None:
        """Return the declared counts of a data set, each undirected edge once."""
        return find_dataset(name).size

    def count(self, data: Data) -> Size:
        """Return the counts of a graph, each undirected edge once."""
        return Size.of(data)

    def make_method(self, name: str, **settings: Any) -> IntervalMethod:
        """Make a method of the catalog."""
        return make_method(name, **settings)

    def make_view(self, cell: Cell, dataset: str) -> View:
        """Load, perturb and split a data set or a saved graph."""
        data = _loaded(dataset, json.dumps(cell.options), data_digest(dataset, cell.options))
        data = damage(data, cell.damage, seed=cell.seed, relative=True)
        data = split_nodes(data, test=TEST_SHARE, by=cell.split, seed=cell.seed)
        if cell.label_fraction is not None:
            data = keep_labels(data, cell.label_fraction, seed=cell.seed)
        return make_view(data, cell.view)


CORRECTED = Corrected()


@lru_cache(maxsize=2)
def _loaded(dataset: str, options: str, digest: str) -> Data:
    """Load a data set once for cells that follow each other; it is never changed in place.

    ``digest`` is that of its files: it is loaded again when they change.
    """
    if is_dataset(dataset):
        return load_dataset(dataset, **json.loads(options))
    return load_graph(dataset)
