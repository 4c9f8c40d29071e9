"""Shared ground: one thread a test process, small graphs, and data sets that may be absent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_geometric.data import Data

from qpignn.data.catalog import find_dataset, load_dataset

torch.set_num_threads(1)


@pytest.fixture
def path_graph() -> Data:
    """0 – 1 – 2 – 3, two features, the last node unlabelled."""
    return Data(
        x=torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]),
        edge_index=torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]),
        y=torch.tensor([1.0, 2.0, 4.0, float("nan")]),
    )


@pytest.fixture(scope="session")
def real() -> Callable[..., Data]:
    """Load a data set, or skip the test, saying which files are absent."""

    def load(name: str, protocol: str = "corrected", **options: object) -> Data:
        missing = find_dataset(name).missing()
        if missing:
            pytest.skip(f"needs {', '.join(missing)}: set QPIGNN_DATA_DIR")
        return load_dataset(name, protocol, **options)

    return load
