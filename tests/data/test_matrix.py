import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from qpignn.data import matrix
from qpignn.data.matrix import (
    WIDE,
    all_finite,
    best_layout,
    column,
    columns,
    from_scipy,
    is_sparse,
    mostly_zeros,
    select_rows,
    stack_rows,
    stored_values,
    to_csr,
    to_scipy,
    with_columns,
    with_values,
)

DENSE = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0]])


@pytest.fixture
def sparse() -> torch.Tensor:
    return from_scipy(sp.csr_matrix(DENSE.numpy()))


def test_to_scipy_from_scipy_round_trip_equal(sparse: torch.Tensor) -> None:
    assert is_sparse(sparse)
    assert not is_sparse(DENSE)
    assert np.array_equal(to_scipy(sparse).toarray(), DENSE.numpy())
    assert stored_values(sparse).tolist() == [2.0, 1.0, 3.0]


def test_from_scipy_repeated_entries_summed() -> None:
    twice = sp.coo_matrix(([1.0, 1.0], ([0, 0], [1, 1])), shape=(1, 2))
    assert stored_values(from_scipy(twice)).tolist() == [2.0]


@pytest.mark.parametrize("nodes", [torch.tensor([2, 1]), torch.tensor([True, False, True])])
def test_select_rows_dense_and_csr_equal(sparse: torch.Tensor, nodes: torch.Tensor) -> None:
    chosen = select_rows(sparse, nodes)
    assert is_sparse(chosen)
    assert torch.equal(chosen.to_dense(), select_rows(DENSE, nodes))


def test_with_values_keeps_pattern(sparse: torch.Tensor) -> None:
    doubled = with_values(sparse, 2 * stored_values(sparse))
    assert torch.equal(doubled.to_dense(), 2 * DENSE)
    assert torch.equal(with_values(DENSE, 2 * DENSE), 2 * DENSE)


def test_all_finite_checks_stored_values(sparse: torch.Tensor) -> None:
    assert all_finite(sparse)
    assert not all_finite(with_values(sparse, torch.tensor([1.0, float("inf"), 1.0])))
    assert not all_finite(torch.tensor([[float("nan")]]))


def random_dense(rows: int, width: int, share: float, seed: int) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    filled = torch.rand(rows, width, generator=draw) < share
    return torch.randn(rows, width, generator=draw) * filled


@given(st.integers(1, 9), st.integers(1, 9), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_to_csr_of_dense_equals_scipys(rows: int, width: int, share: float, seed: int) -> None:
    dense = random_dense(rows, width, share, seed)
    wanted = sp.csr_matrix(dense.numpy())
    got = to_scipy(to_csr(dense))
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name))


def test_to_csr_in_several_blocks_equals_one(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = random_dense(50, 8, 0.3, 1).double()
    monkeypatch.setattr(matrix, "BLOCK", 24)  # three rows at a time
    got = to_csr(dense)
    assert torch.equal(got.to_dense(), dense)
    assert got.dtype == torch.float64


def test_to_csr_of_csr_sorts_merges_and_drops_zeros_in_a_copy() -> None:
    values = torch.tensor([5.0, 0.0, 1.0, 2.0])
    messy = torch.sparse_csr_tensor(
        torch.tensor([0, 3, 4]), torch.tensor([2, 1, 2, 0]), values, size=(2, 3)
    )
    got = to_csr(messy)
    assert got.col_indices().tolist() == [2, 0]
    assert got.values().tolist() == [6.0, 2.0]
    assert messy.values().tolist() == [5.0, 0.0, 1.0, 2.0]
    tidy = from_scipy(sp.csr_matrix(DENSE.numpy()))
    assert to_csr(tidy) is tidy


@pytest.mark.parametrize("sparse", [False, True])
def test_mostly_zeros_needs_many_columns_and_few_nonzeros(sparse: bool) -> None:
    def asked(rows: int, width: int, filled: int) -> bool:
        x = torch.zeros(rows, width)
        x.view(-1)[:filled] = 1
        return mostly_zeros(x.to_sparse_csr() if sparse else x)

    assert asked(4, WIDE, WIDE)  # a quarter
    assert not asked(4, WIDE, WIDE + 1)
    assert not asked(4, WIDE - 1, 1)


def test_mostly_zeros_does_not_count_stored_zeros() -> None:
    ones = torch.ones(4, WIDE).to_sparse_csr()
    assert mostly_zeros(with_values(ones, torch.zeros(4 * WIDE)))


def test_best_layout_half_precision_accepted() -> None:
    dense = random_dense(30, 100, 0.02, 0)
    for kind in (torch.float16, torch.bfloat16):
        assert torch.equal(best_layout(dense.to(kind)).to_dense(), dense.to(kind))


@pytest.mark.parametrize("share", [0.02, 0.6])
def test_best_layout_dense_and_csr_equal(share: float) -> None:
    dense = random_dense(30, 100, share, 0)
    a, b = best_layout(dense), best_layout(dense.to_sparse_csr())
    assert a.layout == b.layout == (torch.sparse_csr if share < 0.25 else torch.strided)
    assert torch.equal(stored_values(a), stored_values(b))
    if is_sparse(a):
        assert torch.equal(a.col_indices(), b.col_indices())
        assert torch.equal(a.crow_indices(), b.crow_indices())


def test_best_layout_without_memory_stays_dense(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dense = random_dense(30, 100, 0.02, 0)
    monkeypatch.setattr(matrix, "free_memory", lambda: 100)
    assert best_layout(dense) is dense
    assert is_sparse(best_layout(dense.to_sparse_csr()))  # it is in memory already


@pytest.mark.parametrize("positions", [[1], [2, 0], range(1, 3), []])
def test_columns_dense_and_csr_equal(sparse: torch.Tensor, positions: list[int]) -> None:
    wanted = DENSE.numpy()[:, [*positions]]
    for x in (DENSE, sparse):
        got = columns(x, positions)
        assert got.layout == torch.strided
        np.testing.assert_array_equal(got, wanted)
    assert column(sparse, 2).tolist() == column(DENSE, 2).tolist() == [0.0, 3.0, 0.0]


def test_with_columns_replaces_some_and_keeps_the_others(sparse: torch.Tensor) -> None:
    got = with_columns(sparse, torch.tensor([0, 2]), torch.tensor([[7.0, 0], [8, 9], [0, 4]]))
    assert got.to_dense().tolist() == [[7, 2, 0], [8, 0, 9], [0, 0, 4]]


def test_stack_rows_keeps_the_upper_layout(sparse: torch.Tensor) -> None:
    for below in (DENSE.double(), sparse.double()):
        for above in (DENSE, sparse):
            got = stack_rows(above, below)
            assert got.layout == above.layout
            assert got.dtype == torch.float64
            wanted = torch.cat([DENSE, DENSE]).double()
            assert torch.equal(got.to_dense() if is_sparse(got) else got, wanted)
