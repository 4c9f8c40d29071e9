from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import load_dataset, split_nodes
from qpignn.data.matrix import is_sparse
from qpignn.data.reorder import reorder_nodes


def edges_by_id(data: Data) -> set[tuple[str, str, float]]:
    ids = np.asarray(data.node_id)
    pairs = zip(data.edge_index.t().tolist(), data.edge_weight.tolist(), strict=True)
    return {(ids[a], ids[b], weight) for (a, b), weight in pairs}


@pytest.mark.parametrize("sparse", [False, True])
def test_reorder_nodes_graph_isomorphic_by_id(sparse: bool) -> None:
    data = split_nodes(load_dataset("ba", nodes=80))
    data.node_id = [f"n{i}" for i in range(80)]
    data.edge_weight = torch.arange(data.edge_index.shape[1]).float()
    if sparse:
        data.x = data.x.clamp(min=0).to_sparse_csr()
    reordered = reorder_nodes(data)
    assert is_sparse(reordered.x) == sparse
    assert sorted(reordered.node_id) == sorted(data.node_id)
    assert list(reordered.node_id) != list(data.node_id)
    assert edges_by_id(reordered) == edges_by_id(data)
    before = {i: k for k, i in enumerate(data.node_id)}
    order = torch.tensor([before[i] for i in reordered.node_id])
    dense = (reordered.x.to_dense(), data.x.to_dense()[order])
    assert torch.equal(*dense)
    for name in ("y", "train_mask", "test_mask"):
        assert torch.equal(reordered[name], data[name][order])


def test_reorder_nodes_shuffled_path_becomes_consecutive() -> None:
    shuffled = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    ends = torch.stack([shuffled[:-1], shuffled[1:]])
    path = Data(x=torch.ones(200, 1), edge_index=torch.cat([ends, ends.flip(0)], dim=1))
    reordered = reorder_nodes(path).edge_index
    assert int((reordered[0] - reordered[1]).abs().max()) == 1
