"""Sums over many neighbours: by hand, exact in whole numbers, and against float64 for hubs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from qpignn.encoders import sparse
from qpignn.encoders.inputs import aggregation_matrix
from qpignn.encoders.sparse import SparseMatrix


def test_pieces_hand_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "PIECE", 2)
    pieces = sparse._pieces_of(torch.tensor([0, 0, 5, 7, 8]))  # rows of 0, 5, 2 and 1
    assert pieces is not None
    cuts, first = pieces
    assert cuts.tolist() == [0, 2, 4, 5, 7, 8]
    assert first.tolist() == [0, 0, 3, 4, 5]
    assert sparse._pieces_of(torch.tensor([0, 2, 4])) is None
    assert sparse._pieces_of(torch.tensor([0])) is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_pieces_of_pieces_change_no_whole_number(
    seed: int, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small whole numbers are exact in float32 in whatever order they are added up."""
    monkeypatch.setattr(sparse, "PIECE", 3)
    rng = np.random.default_rng(seed)
    matrix = sp.random(9, 40, density=0.6, random_state=seed, format="csr")
    matrix.data = rng.integers(1, 9, matrix.nnz).astype(np.float64) if weighted else matrix.data**0
    dense = torch.from_numpy(rng.integers(-9, 9, (40, 2)).astype(np.float32))
    starts, columns = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices))
    values = torch.from_numpy(matrix.data).float() if weighted else None
    ours = SparseMatrix(starts, columns, values, (9, 40))
    assert ours._pieces is not None
    np.testing.assert_array_equal(ours.multiply(dense), matrix @ dense.numpy())
    back = torch.from_numpy(rng.integers(-9, 9, (9, 2)).astype(np.float32))
    np.testing.assert_array_equal(ours.multiply(back, transposed=True), matrix.T @ back.numpy())


@pytest.mark.parametrize("neighbours", [10**5, 10**6])
def test_mean_of_a_hub_agrees_with_float64(neighbours: int) -> None:
    """Added up one after the other, a million 0.1 are a hundredth off, and 10⁵ a ten-thousandth.

    In pieces of 1024 at most 2·1024 roundings of half a unit of 2⁻²³ meet one number: 1.3e-4 if
    all went one way; they do so partly, and a fifth of that is allowed.
    """
    leaves = torch.arange(1, neighbours + 1)
    hub = torch.zeros_like(leaves)
    edges = torch.stack([torch.cat([leaves, hub]), torch.cat([hub, leaves])])
    mean = aggregation_matrix(edges, None, neighbours + 1)
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(neighbours + 1, 2, generator=draw)
    x[:, 0] = 0.1
    wanted = x[1:].double().mean(dim=0)
    torch.testing.assert_close(mean.multiply(x)[0].double(), wanted, rtol=2.5e-5, atol=0)
    back = mean.multiply(x, transposed=True)[0].double()  # every leaf has the hub alone
    torch.testing.assert_close(back, neighbours * wanted, rtol=2.5e-5, atol=0)
    assert mean.multiply(x)[1:].equal(x[:1].expand(neighbours, -1))


def test_float64_is_added_up_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed under the published protocol keeps its bits."""
    matrix = sp.random(3, 5000, density=0.9, random_state=0, format="csr")
    dense = torch.randn(5000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cut = SparseMatrix.from_scipy(matrix, torch.float64)
    assert cut._pieces is not None
    monkeypatch.setattr(sparse, "PIECE", 10**9)
    whole = SparseMatrix.from_scipy(matrix, torch.float64)
    assert whole._pieces is None
    assert cut.multiply(dense).equal(whole.multiply(dense))
