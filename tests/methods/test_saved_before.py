"""Models saved before sparse columns were centred and targets had limits of their own.

``saved_by_0_1`` was written by the code of commit c5f9e2d with the graphs and settings below: each
folder by ``save``, and ``expected.json`` with what the models predicted then.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import load_method
from qpignn.methods.base import IntervalMethod

FOLDER = Path(__file__).with_name("saved_by_0_1")
SPARSE = {"sparse": True, "dense": False, "conformal": True}
"""``QpiGNN([0.5, 0.8])``, ``QpiGNN(0.8)`` and ``Conformal(QpiGNN(0.8))`` with ``members=5,
hidden=4, epochs=8, seed=1``, fitted on the nodes whose number is no multiple of four."""


def graph(sparse: bool) -> Data:
    node, column = np.arange(90), np.arange(80)
    if sparse:
        filled = (7 * node[:, None] + 3 * column) % 40 == 0
        x = torch.from_numpy((filled * (1 + node[:, None] % 3)).astype(np.float32)).to_sparse_csr()
    else:
        x = torch.from_numpy(np.sin(node[:, None] * (1 + column[:5])).astype(np.float32))
    ring = torch.from_numpy(np.stack([node, (node + 1) % 90]))
    far = torch.from_numpy(np.stack([node, (7 * node + 3) % 90]))
    edges = torch.cat([ring, ring.flip(0), far, far.flip(0)], dim=1)
    y = torch.from_numpy(3 + np.sin(node / 5) + (node % 7) / 10)
    return Data(x=x, y=y, edge_index=edges)


@pytest.mark.parametrize("name", SPARSE)
def test_model_saved_by_an_earlier_version_gives_its_intervals(name: str, tmp_path: Path) -> None:
    expected = json.loads((FOLDER / "expected.json").read_text())[name]
    model = load_method(FOLDER / name)
    data = graph(SPARSE[name])
    for loaded in (model, _again(model, tmp_path)):
        intervals = loaded.predict_interval(data)
        for column, values in expected.items():
            np.testing.assert_allclose(getattr(intervals, column), values, rtol=1e-5)


def test_model_saved_with_csr_features_accepts_dense_ones() -> None:
    model, data = load_method(FOLDER / "sparse"), graph(sparse=True)
    dense = Data(x=data.x.to_dense(), edge_index=data.edge_index)
    a, b = (model.predict_interval(one) for one in (data, dense))
    assert np.array_equal(a.lower, b.lower)


def _again(model: IntervalMethod, folder: Path) -> IntervalMethod:
    model.save(folder / "model")
    return load_method(folder / "model")
