from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from qpignn.diagnostics.shift import FEWEST, label_shift


def graph(nodes: int = 400, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, nodes, (2, 4 * nodes))
    both = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1))
    x = torch.from_numpy(rng.normal(size=(nodes, 3))).float()
    y = torch.from_numpy(rng.normal(size=nodes))
    return Data(x=x, y=y, edge_index=both, feature_names=["age", "rent", "noise"])


def test_labels_given_by_chance_are_no_shift() -> None:
    found = []
    for seed in range(10):
        data = graph(seed=seed)
        data.y[torch.from_numpy(np.random.default_rng(seed).permutation(400)[:150])] = torch.nan
        shift = label_shift(data)
        assert shift is not None
        assert (shift.labelled, shift.unlabelled) == (250, 150)
        found.append(shift.found)
    assert sum(found) <= 1


def test_labels_on_one_kind_of_node_are_found_and_named() -> None:
    data = graph()
    data.y[data.x[:, 1] > 0.3] = torch.nan
    shift = label_shift(data)
    assert shift is not None
    assert shift.found
    assert shift.auc > 0.95
    assert shift.columns[0][0] == "rent"


def test_labels_in_one_corner_of_the_graph_are_found() -> None:
    nodes = 400
    chain = torch.arange(nodes - 1)
    edges = torch.stack([torch.cat([chain, chain + 1]), torch.cat([chain + 1, chain])])
    data = graph(nodes)
    data.edge_index = edges
    data.y[nodes // 2 :] = torch.nan
    shift = label_shift(data)
    assert shift is not None
    assert shift.found
    assert shift.columns[0][0] == "share of labelled neighbours"


def test_too_few_of_a_kind_say_nothing() -> None:
    data = graph()
    data.y[: FEWEST - 1] = torch.nan
    assert label_shift(data) is None
    data.y[:FEWEST] = torch.nan
    assert label_shift(data) is not None


def test_sparse_features_are_counted() -> None:
    data = graph()
    many = torch.arange(400) % 2 == 0
    dense = torch.zeros(400, 30)
    dense[many] = 1.0
    dense[:, 0] = 1.0
    data.x, data.feature_names = dense.to_sparse_csr(), None
    data.y[many] = torch.nan
    shift = label_shift(data)
    assert shift is not None
    assert shift.columns[0][0] == "number of features"
    assert shift.auc > 0.99
