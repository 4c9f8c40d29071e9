from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import MeanAggregation

from qpignn.data.matrix import from_scipy
from qpignn.nn.propagate import SparseMatrix, mean_matrix, prepare


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_products_agree_with_dense_ones(rows: int, columns: int, width: int, seed: int) -> None:
    matrix = sp.random(rows, columns, density=0.3, random_state=seed, format="csr")
    dense = torch.from_numpy(np.random.default_rng(seed).normal(size=(columns, width)))
    product = SparseMatrix.from_scipy(matrix, torch.float64) @ dense
    np.testing.assert_allclose(product, matrix.toarray() @ dense.numpy(), atol=1e-12)


def test_the_gradient_is_the_transposed_product() -> None:
    matrix = SparseMatrix.from_scipy(sp.random(6, 4, density=0.5, random_state=1), torch.float64)
    dense = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda d: matrix @ d, (dense,))


def test_a_matrix_without_entries() -> None:
    assert (SparseMatrix.from_scipy(sp.csr_matrix((3, 2))) @ torch.ones(2, 4)).tolist() == [
        [0.0] * 4
    ] * 3


def test_means_agree_with_pyg_also_over_repeated_edges() -> None:
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 30, (2, 200), generator=draw)
    x = torch.randn(40, 3, generator=draw)  # ten nodes have no neighbours
    wanted = torch.zeros(40, 3)
    target, order = edges[1].sort()
    wanted[:] = MeanAggregation()(x[edges[0]][order], target, dim_size=40)
    got = mean_matrix(edges, None, 40).multiply(x)
    torch.testing.assert_close(got, wanted)


def test_weighted_means_by_hand() -> None:
    edges = torch.tensor([[0, 1, 0], [2, 2, 1]])
    weight = torch.tensor([3.0, 1.0, 0.0])  # node 1's only weight is zero
    matrix = mean_matrix(edges, weight, 3).multiply(torch.eye(3))
    assert matrix.tolist() == [[0, 0, 0], [0, 0, 0], [0.75, 0.25, 0]]


@pytest.mark.parametrize("sparse", [False, True])
def test_wanted_nodes_come_first(sparse: bool) -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    edges = torch.tensor([[0, 1], [1, 2]])  # 0 → 1 → 2
    graph = prepare(
        from_scipy(sp.csr_matrix(x.numpy())) if sparse else x, edges, first=torch.tensor([2, 0])
    )
    assert graph.rows == 2
    assert graph.columns == 2
    order = [2, 0, 1]
    dense = torch.tensor([[0.0, 2.0], [0.0, 0.0], [1.0, 0.0]])  # means over neighbours, reordered
    if sparse:
        own = graph.features @ torch.eye(2)  # type: ignore[operator]
        assert torch.equal(own, x[order])
    else:
        assert torch.equal(graph.features, torch.cat([dense, x[order]], dim=1))  # type: ignore[arg-type]
    assert torch.equal(graph.mean.multiply(x[order]), dense)
    assert torch.equal(graph.mean_for(0).multiply(x[order]), dense[:2])


@pytest.mark.parametrize("sparse", [False, True])
def test_all_numbers_go_to_a_device(sparse: bool) -> None:
    """To torch's own device without memory: it is there on every machine."""
    x, edges = torch.eye(3), torch.tensor([[0, 1], [1, 2]])
    here = prepare(from_scipy(sp.csr_matrix(x.numpy())) if sparse else x, edges)
    there = here.to(torch.device("meta"))
    moved = [there.features, *there.means, *([] if there.own is None else [there.own])]
    assert len(moved) == 1 + len(here.means) + (here.own is not None)
    assert {part.device.type for part in moved} == {"meta"}
    assert [part.shape for part in there.means] == [part.shape for part in here.means]
    assert (there.rows, there.columns) == (here.rows, here.columns)
    for part in there.means:
        parts = (part.starts, part.columns, part.values, part.scale)
        assert {tensor.device.type for tensor in parts if tensor is not None} == {"meta"}
    assert here.to(torch.device("cpu")) is here  # nothing to do
