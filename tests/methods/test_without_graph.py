from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import Conformal, make_method, split_nodes
from qpignn.errors import SettingError, SplitError
from qpignn.methods.without_graph import fit_without_graph
from qpignn.reports.results import examine


@pytest.fixture(scope="module")
def noise_of_neighbours() -> Data:
    """The target is the mean of a feature over neighbours: without edges nothing can be known."""
    draw = torch.Generator().manual_seed(0)
    nodes = 400
    x = torch.randn(nodes, 3, generator=draw)
    edges = torch.randint(nodes, (2, 3 * nodes), generator=draw)
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    degree = torch.bincount(edges[1], minlength=nodes).clamp(min=1)
    total = torch.zeros(nodes).index_add_(0, edges[1], x[edges[0], 0])
    return split_nodes(Data(x=x, edge_index=edges, y=total / degree), seed=0)


@pytest.mark.parametrize("name", ["qpignn", "conformal:quantile"])
def test_fit_without_graph_ignores_edges(name: str, noise_of_neighbours: Data) -> None:
    data = noise_of_neighbours
    model = make_method(name, epochs=10).fit(data)
    plain = fit_without_graph(model, data)
    other = data.clone()
    other.edge_index = other.edge_index[:, :10]
    first, second = (plain.predict_interval(graph) for graph in (data, other))
    assert np.array_equal(first.lower, second.lower)
    assert type(plain) is type(model)


def test_examine_targets_of_neighbours_finds_that_the_graph_helps(
    noise_of_neighbours: Data,
) -> None:
    model = make_method("qpignn", epochs=150).fit(noise_of_neighbours)
    findings = examine(model, noise_of_neighbours, without_graph=True).diagnosis.findings
    (finding,) = [one for one in findings if one.kind == "graph"]
    assert finding.severity == "good"
    assert finding.text.startswith("the graph helps: Winkler score -")


def test_fit_without_graph_of_a_model_without_edges_raises(noise_of_neighbours: Data) -> None:
    model = make_method("qpignn", encoder="mlp", epochs=2).fit(noise_of_neighbours)
    with pytest.raises(SettingError, match="uses edges"):
        fit_without_graph(model, noise_of_neighbours)
    with pytest.raises(SettingError, match="uses edges"):
        fit_without_graph(Conformal(model), noise_of_neighbours)


def test_examine_without_held_out_nodes_raises(noise_of_neighbours: Data) -> None:
    whole = noise_of_neighbours
    data = Data(x=whole.x, edge_index=whole.edge_index, y=whole.y)
    model = make_method("qpignn", epochs=2).fit(data)
    with pytest.raises(SplitError, match="held-out nodes to compare"):
        examine(model, data, without_graph=True)
