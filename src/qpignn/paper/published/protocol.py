"""The protocol ``published``: the authors' split and start, mistakes included.

One draw of the data and one split serve all runs. 80 % of the nodes and 20 % become two separate
graphs. Each graph's edges are renumbered by a random order of its nodes while features and targets
stay in index order, so **edges connect the wrong nodes**. Runs differ in their initial weights
only, which go on drawing from the same random stream; since the published loss has no common
gradient in the half-widths at λ = 0.5, where a run starts decides where it ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.catalog import find_dataset
from qpignn.data.matrix import select_rows
from qpignn.data.perturb import damage
from qpignn.data.settings import View, make_view
from qpignn.data.sources.dataset import Size
from qpignn.data.sources.synthetic import SEED
from qpignn.data.split import split_nodes
from qpignn.experiments.cell import TEST_SHARE, Cell
from qpignn.methods.base import IntervalMethod
from qpignn.methods.qpignn import QpiGNN
from qpignn.paper.published.data import SIZES, load_published
from qpignn.paper.published.methods import METHODS, make_published
from qpignn.paper.published.weights import initial_weights
from qpignn.protocols import ExperimentProtocol
from qpignn.runtime.randomness import LegacyStreams

WHOLE_GRAPH = ("cfgnn", "cfgnn_tuned")  # inferred: its printed coverage is that of whole graphs


class Published(ExperimentProtocol):
    """Runs as the authors' code ran them; a cell's seed counts runs, from 0."""

    name = "published"
    views = ("isolated",)
    saved_graphs = False

    def load_dataset(self, name: str, **options: Any) -> Data:
        """Load a data set as the authors' code stored it."""
        return load_published(name, **options)

    def declared_size(self, name: str) -> Size | None:
        """Return the declared counts of a data set, edges as stored."""
        return SIZES.get(name)

    def count(self, data: Data) -> Size:
        """Return the counts of a graph, edges as stored."""
        return Size.of(data, undirected=False)

    def make_method(self, name: str, **settings: Any) -> IntervalMethod:
        """Make a method in its published form."""
        return make_published(name, settings)

    def method_classes(self) -> tuple[type[IntervalMethod], ...]:
        """Return the classes of the published baselines."""
        return tuple(form.method for form in METHODS.values())

    def make_view(self, cell: Cell, dataset: str) -> View:
        """Return the published split; only the graph that is fitted on is perturbed."""
        view, _ = published_view(
            dataset, cell.split, cell.options, whole=cell.method in WHOLE_GRAPH
        )
        return replace(view, fit=damage(view.fit, cell.damage, seed=cell.seed))

    def initial_weights(
        self, cell: Cell, method: IntervalMethod, view: View
    ) -> Mapping[str, Tensor] | None:
        """Return the initial weights of the cell's run.

        Only QpiGNN's start is imitated bit for bit; the baselines draw their own from the seed.
        """
        if not isinstance(method, QpiGNN):
            return None
        _, stream = published_view(cell.source or cell.dataset)
        return initial_weights(stream, cell.seed, view.fit.x.shape[1], method.hidden)


PUBLISHED = Published()


def published_view(
    dataset: str,
    split: str = "random",
    options: Mapping[str, Any] | None = None,
    *,
    whole: bool = False,
) -> tuple[View, torch.Generator]:
    """Return the published split, the same for all runs.

    Args:
        dataset: name of the data set.
        split: how test nodes are chosen (:mod:`qpignn.data.split`).
        options: options of the data set.
        whole: leave the graph in one piece, with its edges where they belong.

    Returns:
        What is fitted on and what is predicted, and the random stream after the split.
    """
    streams = LegacyStreams(SEED)
    drawn = find_dataset(dataset).origin == "synthetic"
    # the split goes on drawing where the data stopped
    own = {**({"streams": streams} if drawn else {}), **(options or {})}
    data = load_published(dataset, **own)
    nodes = data.x.shape[0]
    order = torch.randperm(nodes, generator=streams.torch)
    if split != "random":  # those chosen for test first, each part still in random order
        is_test = split_nodes(data, test=TEST_SHARE, by=split, seed=SEED).test_mask
        order = torch.cat([order[is_test[order]], order[~is_test[order]]])
    test, train = order[: int(TEST_SHARE * nodes)], order[int(TEST_SHARE * nodes) :]
    if whole:
        data.test_mask = torch.zeros(nodes, dtype=torch.bool)
        data.test_mask[test] = True
        data.train_mask = ~data.test_mask
        return make_view(data), streams.torch
    fit, predict = (_part(data, part) for part in (train, test))
    y_test = predict.y
    predict.y = torch.full_like(y_test, float("nan"))
    return View(fit, predict, torch.ones(len(test), dtype=torch.bool), y_test), streams.torch


def _part(data: Data, nodes: Tensor) -> Data:
    inside = torch.zeros(data.x.shape[0], dtype=torch.bool)
    inside[nodes] = True
    number = torch.full_like(inside, 0, dtype=torch.long)
    number[nodes] = torch.arange(len(nodes))  # edges: by the random order
    kept = inside[data.edge_index[0]] & inside[data.edge_index[1]]
    return Data(
        x=select_rows(data.x, inside),  # features and targets: by index
        y=data.y[inside],
        edge_index=number[data.edge_index[:, kept]],
    )
