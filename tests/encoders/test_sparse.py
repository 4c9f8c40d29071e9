from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import MeanAggregation

from qpignn.data.matrix import from_scipy
from qpignn.encoders import sparse as propagate
from qpignn.encoders.inputs import aggregation_matrix
from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.sparse import SparseMatrix, csr_arrays, index_type


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_products_agree_with_dense_ones(rows: int, columns: int, width: int, seed: int) -> None:
    matrix = sp.random(rows, columns, density=0.3, random_state=seed, format="csr")
    dense = torch.from_numpy(np.random.default_rng(seed).normal(size=(columns, width)))
    product = SparseMatrix.from_scipy(matrix, torch.float64) @ dense
    np.testing.assert_allclose(product, matrix.toarray() @ dense.numpy(), atol=1e-12)


@pytest.mark.parametrize("few", [0, 2**20])
def test_members_together_or_one_by_one(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagate, "FEW_ENTRIES", few)
    plain = sp.random(7, 5, density=0.4, random_state=2, format="csr")
    values, scale = SparseMatrix.from_scipy(plain, torch.float64), torch.rand(7, 1).double()
    matrix = SparseMatrix(values.starts, values.columns, values.values, (7, 5), scale)
    wanted = scale.numpy() * plain.toarray()
    dense = torch.randn(3, 5, 2, dtype=torch.float64)
    np.testing.assert_allclose(matrix.multiply(dense), wanted @ dense.numpy(), atol=1e-12)
    dense = torch.randn(3, 7, 2, dtype=torch.float64)
    got = matrix.multiply(dense, transposed=True)
    np.testing.assert_allclose(got, wanted.T @ dense.numpy(), atol=1e-12)


@pytest.mark.parametrize("few", [0, 2**20])
@pytest.mark.parametrize("members", [None, 1, 3])
def test_offset_is_added_to_every_row(
    few: int, members: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(propagate, "FEW_ENTRIES", few)
    plain = sp.random(7, 5, density=0.4, random_state=2, format="csr")
    offset = torch.randn(5, dtype=torch.float64)
    matrix = SparseMatrix.from_scipy(plain, torch.float64, offset)
    wanted = plain.toarray() + offset.numpy()  # filled, as the matrix itself never is
    shape = () if members is None else (members,)
    dense = torch.randn(*shape, 5, 2, dtype=torch.float64)
    np.testing.assert_allclose(matrix.multiply(dense), wanted @ dense.numpy(), atol=1e-12)
    some = matrix.some(2, 6).multiply(dense)
    np.testing.assert_allclose(some, wanted[2:6] @ dense.numpy(), atol=1e-12)
    dense = torch.randn(*shape, 7, 2, dtype=torch.float64)
    got = matrix.multiply(dense, transposed=True)
    np.testing.assert_allclose(got, wanted.T @ dense.numpy(), atol=1e-12)


def test_product_with_an_offset_passes_gradcheck() -> None:
    offset = torch.randn(4, dtype=torch.float64)
    plain = sp.random(6, 4, density=0.5, random_state=1)
    matrix = SparseMatrix.from_scipy(plain, torch.float64, offset)
    dense = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda d: matrix @ d, (dense,))


def test_product_passes_gradcheck() -> None:
    matrix = SparseMatrix.from_scipy(sp.random(6, 4, density=0.5, random_state=1), torch.float64)
    dense = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda d: matrix @ d, (dense,))


def test_product_of_a_matrix_without_entries_is_zero() -> None:
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
    got = aggregation_matrix(edges, None, 40).multiply(x)
    torch.testing.assert_close(got, wanted)


def test_aggregation_matrix_weighted_mean_hand_computed() -> None:
    edges = torch.tensor([[0, 1, 0], [2, 2, 1]])
    weight = torch.tensor([3.0, 1.0, 0.0])  # node 1's only weight is zero
    matrix = aggregation_matrix(edges, weight, 3).multiply(torch.eye(3))
    assert matrix.tolist() == [[0, 0, 0], [0, 0, 0], [0.75, 0.25, 0]]


@pytest.mark.parametrize("sparse", [False, True])
def test_wanted_nodes_come_first(sparse: bool) -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    edges = torch.tensor([[0, 1], [1, 2]])  # 0 → 1 → 2
    graph = SageEncoder.prepare(
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
    assert torch.equal(graph.matrix.multiply(x[order]), dense)
    assert torch.equal(graph.matrix_for(0).multiply(x[order]), dense[:2])


@pytest.mark.parametrize(("size", "bits"), [(0, 32), (2**31 - 1, 32), (2**31, 64), (2**40, 64)])
def test_indices_have_32_bits_as_long_as_they_fit(size: int, bits: int) -> None:
    assert np.iinfo(index_type(size)).bits == bits
    assert np.iinfo(index_type(3, size, 5)).bits == bits
    assert np.iinfo(index_type(size)).max >= size


@pytest.mark.parametrize(("stored", "wanted"), [(2**31 - 1, torch.int32), (2**31, torch.int64)])
@pytest.mark.parametrize("which", ["entries", "rows", "columns"])
def test_index_type_of_a_matrix_near_32_bits(which: str, stored: int, wanted: torch.dtype) -> None:
    """Its entries, its rows and its columns must each fit; nothing of that size is allocated."""
    sizes = {"entries": 4, "rows": 3, "columns": 3, which: stored}
    huge = SimpleNamespace(
        nnz=sizes["entries"],
        shape=(sizes["rows"], sizes["columns"]),
        indptr=np.array([0, 1, sizes["entries"]], dtype=np.int64),
        indices=np.array([sizes["columns"] - 1], dtype=np.int64),
    )
    starts, columns = csr_arrays(huge)
    assert starts.dtype == columns.dtype == wanted
    assert starts.tolist() == [0, 1, sizes["entries"]]
    assert columns.tolist() == [sizes["columns"] - 1]


@pytest.mark.parametrize("weighted", [False, True])
def test_means_in_float32_agree_with_float64(weighted: bool) -> None:
    """At most 60 numbers of size 1 are added up, so 60 roundings of half of 2⁻²³."""
    draw = torch.Generator().manual_seed(4)
    edges = torch.randint(0, 30, (2, 600), generator=draw)
    weight = torch.rand(600, generator=draw) if weighted else None
    x = torch.rand(30, 3, generator=draw)
    for transposed in (False, True):
        single, double = (
            aggregation_matrix(edges, weight, 30, dtype=dtype).multiply(
                x.to(dtype), transposed=transposed
            )
            for dtype in (torch.float32, torch.float64)
        )
        assert single.dtype == torch.float32
        torch.testing.assert_close(single.double(), double, rtol=60 * 2**-24, atol=60 * 2**-24)


@pytest.mark.parametrize("sparse", [False, True])
def test_all_numbers_go_to_a_device(sparse: bool) -> None:
    """To torch's own device without memory: it is there on every machine."""
    x, edges = torch.eye(3), torch.tensor([[0, 1], [1, 2]])
    here = SageEncoder.prepare(from_scipy(sp.csr_matrix(x.numpy())) if sparse else x, edges)
    there = here.to(torch.device("meta"))
    moved = [there.features, *there.matrices, *([] if there.own is None else [there.own])]
    assert len(moved) == 1 + len(here.matrices) + (here.own is not None)
    assert {part.device.type for part in moved} == {"meta"}
    assert [part.shape for part in there.matrices] == [part.shape for part in here.matrices]
    assert (there.rows, there.columns) == (here.rows, here.columns)
    for part in there.matrices:
        parts = (part.starts, part.columns, part.values, part.scale)
        assert {tensor.device.type for tensor in parts if tensor is not None} == {"meta"}
    assert here.to(torch.device("cpu")) is here  # nothing to do
