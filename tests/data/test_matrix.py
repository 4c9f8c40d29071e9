import numpy as np
import pytest
import scipy.sparse as sp
import torch

from qpignn.data.matrix import (
    all_finite,
    from_scipy,
    is_sparse,
    select_rows,
    stored_values,
    to_scipy,
    with_values,
)

DENSE = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0]])


@pytest.fixture
def sparse() -> torch.Tensor:
    return from_scipy(sp.csr_matrix(DENSE.numpy()))


def test_scipy_there_and_back(sparse: torch.Tensor) -> None:
    assert is_sparse(sparse)
    assert not is_sparse(DENSE)
    assert np.array_equal(to_scipy(sparse).toarray(), DENSE.numpy())
    assert stored_values(sparse).tolist() == [2.0, 1.0, 3.0]


def test_repeated_entries_are_summed() -> None:
    twice = sp.coo_matrix(([1.0, 1.0], ([0, 0], [1, 1])), shape=(1, 2))
    assert stored_values(from_scipy(twice)).tolist() == [2.0]


@pytest.mark.parametrize("nodes", [torch.tensor([2, 1]), torch.tensor([True, False, True])])
def test_rows_of_both_kinds_agree(sparse: torch.Tensor, nodes: torch.Tensor) -> None:
    chosen = select_rows(sparse, nodes)
    assert is_sparse(chosen)
    assert torch.equal(chosen.to_dense(), select_rows(DENSE, nodes))


def test_same_pattern_other_values(sparse: torch.Tensor) -> None:
    doubled = with_values(sparse, 2 * stored_values(sparse))
    assert torch.equal(doubled.to_dense(), 2 * DENSE)
    assert torch.equal(with_values(DENSE, 2 * DENSE), 2 * DENSE)


def test_finiteness_looks_at_stored_values(sparse: torch.Tensor) -> None:
    assert all_finite(sparse)
    assert not all_finite(with_values(sparse, torch.tensor([1.0, float("inf"), 1.0])))
    assert not all_finite(torch.tensor([[float("nan")]]))
