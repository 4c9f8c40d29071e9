from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from qpignn.data.matrix import is_sparse
from qpignn.data.scaling import (
    TRANSFORMS,
    Scaler,
    TargetScaler,
    count_nodes_that_differ,
    fit_feature_scaler,
    fit_target_scaler,
)
from qpignn.errors import ArrayError

X = torch.tensor([[1.0, 5.0], [3.0, 5.0], [100.0, 9.0]])
GIVEN = torch.tensor([True, True, False])


def test_fit_feature_scaler_given_nodes_only_hand_computed() -> None:
    scaler = fit_feature_scaler(X, GIVEN)
    # column 0: mean 2, deviation 1; column 1 does not vary where it is known, and is left out
    assert scaler.transform(X).tolist() == [[-1.0, 0.0], [1.0, 0.0], [98.0, 0.0]]


@pytest.mark.parametrize("sparse", [False, True])
def test_count_nodes_that_differ_hand_computed(sparse: bool) -> None:
    """Columns: varies; 0 or 5 where given and other elsewhere; constant; 0 everywhere."""
    x = torch.tensor([[1.0, 0, 5, 7, 0], [2, 0, 5, 7, 0], [3, 9, 0, 7, 0], [4, 0, 6, 7, 0]])
    x = x.to_sparse_csr() if sparse else x
    scaler = fit_feature_scaler(x, torch.tensor([True, True, False, False]))
    assert count_nodes_that_differ(x, scaler) == {1: 1, 2: 2}
    if sparse:
        stored, offset = scaler.transform_sparse(x, torch.float64)
        z = stored.to_dense() + (0 if offset is None else offset)
    else:
        z = scaler.transform(x, torch.float64)
    assert (z[:, 1:] == 0).all()
    assert z[:, 0].tolist() == [-1, 1, 3, 5]


def test_scaler_dense_equals_standard_scaler() -> None:
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * 3 + 7
    every = torch.ones(50, dtype=torch.bool)
    wanted = StandardScaler().fit_transform(x.double().numpy())
    np.testing.assert_allclose(fit_feature_scaler(x, every).transform(x), wanted, atol=1e-6)


def column_of(*values: float, nodes: int) -> torch.Tensor:
    """A column that is zero but for a few values, dense."""
    x = torch.zeros(nodes, 1, dtype=torch.float64)
    x[: len(values), 0] = torch.tensor(values, dtype=torch.float64)
    return x


@pytest.mark.parametrize("sparse", [False, True])
def test_fit_feature_scaler_mostly_zero_column_rms_two(
    sparse: bool,
) -> None:
    x = column_of(3.0, -4.0, 0.0, 100.0, nodes=20)  # 2 of 19 given nodes: rms √12.5
    given = torch.arange(20) != 3
    scaler = fit_feature_scaler(x.to_sparse_csr() if sparse else x, given)
    assert scaler.shift.item() == 0
    assert scaler.scale.item() == pytest.approx(12.5**0.5 / 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_fit_feature_scaler_mostly_zero_below_quarter(sparse: bool) -> None:
    every = torch.ones(8, dtype=torch.bool)
    rare, filled = column_of(1.0, nodes=8), column_of(1.0, 1.0, nodes=8)
    x = torch.cat([rare, filled, column_of(nodes=8)], dim=1)
    scaler = fit_feature_scaler(x.to_sparse_csr() if sparse else x, every)
    assert scaler.shift.tolist() == [0, 0.25, 0]
    assert scaler.scale.tolist() == pytest.approx([0.5, (0.25 * 0.75) ** 0.5, np.inf])


@given(st.integers(2, 30), st.integers(1, 6), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_scaler_dense_and_csr_equal(nodes: int, width: int, share: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    x = torch.from_numpy(draw.normal(5, 2, (nodes, width)) * (draw.random((nodes, width)) < share))
    labelled = torch.from_numpy(draw.random(nodes) < 0.7)
    labelled[0] = True
    dense, sparse = fit_feature_scaler(x, labelled), fit_feature_scaler(x.to_sparse_csr(), labelled)
    torch.testing.assert_close(sparse.shift, dense.shift, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(sparse.scale, dense.scale, rtol=1e-12, atol=1e-12)
    stored, offset = sparse.transform_sparse(x.to_sparse_csr(), torch.float64)
    whole = stored.to_dense() + (0 if offset is None else offset)
    torch.testing.assert_close(whole, dense.transform(x, torch.float64), rtol=1e-10, atol=1e-10)


def test_transform_sparse_centring_keeps_pattern() -> None:
    x = torch.tensor([[0.0, 2.0], [2.0, 0.0], [0.0, 0.0]]).to_sparse_csr()
    scaler = fit_feature_scaler(x, torch.ones(3, dtype=torch.bool))
    stored, offset = scaler.transform_sparse(x)
    assert is_sparse(stored)
    assert stored.values().shape == (2,)
    # mean 2/3, deviation √8/3: a zero becomes −1/√2, a two √2
    torch.testing.assert_close(offset, torch.full((2,), -(0.5**0.5)))
    torch.testing.assert_close(stored.values(), torch.full((2,), 2**0.5 + 0.5**0.5))


def test_transform_sparse_large_shift_keeps_digits() -> None:
    """Ids near 10⁹ that differ by hundreds: x/σ and μ/σ are 10⁷, where float32 counts by ones."""
    x = 1e9 + 100 * torch.arange(8, dtype=torch.float64).unsqueeze(1)
    scaler = fit_feature_scaler(x, torch.ones(8, dtype=torch.bool))
    other = torch.cat(
        [x, torch.zeros(1, 1, dtype=torch.float64)]
    )  # a zero that the scaler was not fitted on
    stored, offset = scaler.transform_sparse(other.to_sparse_csr())
    assert offset is None
    torch.testing.assert_close(stored.to_dense(), scaler.transform(other), rtol=1e-6, atol=1e-6)


def test_fit_target_scaler_ignores_nan() -> None:
    y = torch.tensor([10.0, float("nan"), 20.0, 1e6])
    scaler = fit_target_scaler(y, torch.tensor([True, True, True, False]))
    z = scaler.transform(y)
    assert z[0] == -1
    assert z[2] == 1
    assert z.isnan().tolist() == [False, True, False, False]


@given(
    shift=st.floats(-1e6, 1e6),
    spread=st.floats(1e-3, 1e6),
    seed=st.integers(0, 2**32 - 1),
)
def test_scaler_inverse_of_transform_identity(shift: float, spread: float, seed: int) -> None:
    y = torch.from_numpy(np.random.default_rng(seed).normal(shift, spread, 30))
    scaler = fit_target_scaler(y, torch.ones(30, dtype=torch.bool))
    torch.testing.assert_close(
        scaler.inverse(scaler.transform(y)), y, rtol=1e-5, atol=1e-5 * spread
    )
    matrix = y.reshape(5, 6)
    columns = fit_feature_scaler(matrix, torch.ones(5, dtype=torch.bool))
    back = columns.inverse(columns.transform(matrix, torch.float64))
    torch.testing.assert_close(back, matrix, rtol=1e-5, atol=1e-5 * spread)


@pytest.mark.parametrize("transform", ["none", "log1p", "sqrt"])
def test_target_scaler_inverse_finite_for_finite(transform: str) -> None:
    y = torch.tensor([-1e308, 0.0, 1.7e308], dtype=torch.float64)
    scaler = fit_target_scaler(y, torch.ones(3, dtype=torch.bool), transform)
    values = scaler.inverse(torch.tensor([-50.0, 50.0, torch.inf, -torch.inf]))
    assert values[:2].isfinite().all()
    assert values[2:].tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1.0, 1e30, 1e200])
def test_fit_feature_scaler_any_magnitude_finite(size: float) -> None:
    x = size * torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    z = fit_feature_scaler(x, torch.ones(3, dtype=torch.bool)).transform(x)
    np.testing.assert_allclose(z.flatten(), [-(1.5**0.5), 0, 1.5**0.5], atol=1e-6)


def test_fit_feature_scaler_rounding_noise_is_constant() -> None:
    x = torch.full((3, 1), 0.1, dtype=torch.float64) + torch.tensor([[0.0], [1e-17], [0.0]])
    assert fit_feature_scaler(x, torch.ones(3, dtype=torch.bool)).scale.tolist() == [np.inf]


def test_scaler_state_round_trip_equal() -> None:
    scaler = fit_feature_scaler(X, GIVEN)
    assert torch.equal(Scaler.from_state(scaler.state(), 2).transform(X), scaler.transform(X))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_increasing_and_invertible(name: str) -> None:
    y = torch.tensor([-1e6, -3.0, -1.0, -1e-9, 0.0, 1e-9, 0.5, 2.0, 1e6], dtype=torch.float64)
    scaler = fit_target_scaler(y, torch.ones(9, dtype=torch.bool), name)
    z = scaler.transform(y, torch.float64)
    assert (z.diff() > 0).all()  # so bounds of the one are bounds of the other
    torch.testing.assert_close(scaler.inverse(z), y, rtol=1e-9, atol=1e-9)
    again = TargetScaler.from_state(scaler.state())
    assert again.name == name
    assert torch.equal(again.transform(y), scaler.transform(y))


def test_transforms_hand_computed() -> None:
    y = torch.tensor([-8.0, 0.0, 3.0], dtype=torch.float64)
    assert TRANSFORMS["log1p"][0](y).tolist() == pytest.approx([-np.log(9), 0, np.log(4)])
    assert TRANSFORMS["sqrt"][0](y).tolist() == pytest.approx([-(8**0.5), 0, 3**0.5])


def test_scaler_invalid_input_raises() -> None:
    scaler = fit_feature_scaler(X, GIVEN)
    with pytest.raises(ArrayError, match=r"expected 2 columns .* got 3"):
        scaler.transform(torch.zeros(4, 3))
    with pytest.raises(ArrayError, match=r"expected 2 columns .* got 3"):
        scaler.transform_sparse(torch.zeros(4, 3).to_sparse_csr())
    with pytest.raises(ArrayError, match="at least one given node"):
        fit_feature_scaler(X, torch.zeros(3, dtype=torch.bool))
    with pytest.raises(ArrayError, match="at least one labelled node"):
        fit_target_scaler(torch.full((3,), float("nan")), GIVEN)
