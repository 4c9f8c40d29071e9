"""The range of features on some nodes: dense and CSR, whole and inner."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from qpignn.data.feature_range import FeatureRange

X = torch.tensor([[0.0, 5.0], [1.0, 7.0], [2.0, 6.0], [9.0, -1.0]])
ROWS = torch.tensor([0, 1, 2])
SCALE = torch.tensor([2.0, 0.5], dtype=torch.float64)


@pytest.mark.parametrize("sparse", [False, True])
def test_cut_moves_values_to_the_range_and_measures_how_far(sparse: bool) -> None:
    x = X.to_sparse_csr() if sparse else X
    within, off = FeatureRange.of(x, ROWS, SCALE).cut(x)
    dense = within.to_dense() if sparse else within
    low = 0.0 if sparse else 5.0  # a CSR column's range contains 0
    assert dense.tolist() == [[0, 5], [1, 7], [2, 6], [2, low]]
    assert off.toarray()[3].tolist() == [3.5, (low + 1) / 0.5]
    assert off.toarray()[:3].sum() == 0


def test_cut_within_the_range_returns_the_same_tensor() -> None:
    for x in (X, X.to_sparse_csr()):
        within, off = FeatureRange.of(x, torch.arange(4), SCALE).cut(x)
        assert within is x
        assert off.nnz == 0


def test_cut_leaves_columns_alone_that_do_not_count() -> None:
    scale = torch.tensor([torch.inf, 0.5], dtype=torch.float64)
    within, off = FeatureRange.of(X, ROWS, scale).cut(X)
    assert within[3].tolist() == [9, 5]
    assert off.toarray()[3].tolist() == [0, 12]


def test_inner_range_is_that_of_quantiles() -> None:
    x = torch.linspace(0, 100, 101).unsqueeze(1)
    inner = FeatureRange.of(x, torch.arange(101), torch.ones(1).double(), 0.1)
    np.testing.assert_allclose([inner.low.item(), inner.high.item()], [10, 90])
