"""Features, names and weights of a graph: used as the user gave them, or warned of."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from qpignn import Conformal, QpiGNN, load_method, make_method
from qpignn.data.graph import check_graph
from qpignn.errors import QpignnWarning

FIRST = 1_700_000_000  # seconds: neighbours in float32 are 128 apart


def graph(nodes: int = 80) -> Data:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (2, 2 * nodes))
    stamps = rng.integers(0, 60, (nodes, 2))
    y = stamps[:, 0] + rng.normal(size=nodes)
    edges = torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1))
    return Data(x=torch.from_numpy(stamps) + FIRST, y=torch.from_numpy(y), edge_index=edges)


def warnings_of(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in record if issubclass(w.category, QpignnWarning)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_fit_large_integer_features_keep_their_digits(dtype: torch.dtype, sparse: bool) -> None:
    data = graph()
    exact = copy.copy(data)
    exact.x = data.x.double()
    data.x = data.x.to(dtype)
    data.x = data.x.to_sparse_csr() if sparse else data.x
    a, b = (QpiGNN(epochs=20).fit(g).predict_interval(g) for g in (data, exact))
    np.testing.assert_array_equal(a.lower, b.lower)
    np.testing.assert_array_equal(a.upper, b.upper)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([[0], [2**24]], torch.float32),
        ([[0], [2**24 + 1]], torch.float64),
        ([[-(2**24) - 1], [0]], torch.float64),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_check_graph_integers_become_the_type_that_holds_them(
    values: list[list[int]], dtype: torch.dtype, sparse: bool
) -> None:
    x = torch.tensor(values)
    data = Data(
        x=x.to_sparse_csr() if sparse else x,
        y=torch.tensor([0.0, 1.0]),
        edge_index=torch.empty(2, 0, dtype=torch.long),
    )
    checked = check_graph(data).x
    assert checked.dtype == dtype
    assert checked.to_dense().long().tolist() == values


def test_users_float32_net_runs_on_large_integer_features() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(2, 1)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.line(x)
            return out

    data = graph()
    model = Conformal.prefit(Net(), data, torch.arange(80) < 40)
    assert np.isfinite(model.predict_interval(data).width).all()


def test_fit_edge_features_with_or_without_weights_warns_that_they_are_not_used() -> None:
    data = graph()
    data.edge_attr = torch.rand(data.edge_index.shape[1], 2)
    assert any("edge_attr" in w for w in warnings_of(lambda: QpiGNN(epochs=2).fit(data)))
    data.edge_weight = torch.ones(data.edge_index.shape[1])
    assert any("only edge_weight" in w for w in warnings_of(lambda: QpiGNN(epochs=2).fit(data)))


@pytest.mark.parametrize("name", ["qpignn", "conformal:sqr"])
@pytest.mark.parametrize("weighted", [True, False])
def test_predict_other_kind_of_edges_than_fit_warns(
    name: str, weighted: bool, tmp_path: Path
) -> None:
    plain, heavy, alike, alone = (graph() for _ in range(4))
    count = plain.edge_index.shape[1]
    heavy.edge_weight = torch.linspace(0.1, 5, count)
    alike.edge_weight = torch.full((count,), 3.0)
    alone.edge_index = torch.empty(2, 0, dtype=torch.long)
    fitted = make_method(name, epochs=3).fit(heavy if weighted else plain)
    fitted.save(tmp_path / "model")
    for model in (fitted, load_method(tmp_path / "model")):
        for data, is_weighted in ((plain, False), (heavy, True), (alike, False)):
            messages = warnings_of(lambda model=model, data=data: model.predict_interval(data))
            assert any("edge_weight" in w for w in messages) == (is_weighted != weighted)
        messages = warnings_of(lambda model=model: model.predict_interval(alone))
        assert not any("edge_weight" in w for w in messages)


@pytest.mark.parametrize("names", [[0, 1], np.array([7, 8]), ("a", 1), torch.tensor([3, 4])])
def test_predict_accepts_the_feature_names_of_its_own_fit(names: Any, tmp_path: Path) -> None:
    data = graph()
    data.feature_names = names
    model = QpiGNN(epochs=2).fit(data)
    model.save(tmp_path / "model")
    assert len(model.predict_interval(data)) == 80
    assert len(load_method(tmp_path / "model").predict_interval(data)) == 80
