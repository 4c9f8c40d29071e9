"""Every set of the paper loads with the counts that were known before the code was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from qpignn import check_graph, load_dataset
from qpignn.data.catalog import BENCHMARK, Dataset, Size, find_dataset, missing_message
from qpignn.errors import SettingError, UnknownNameError

NAMES = [
    *("basic", "gaussian", "uniform", "outlier", "edge", "ba", "er", "grid", "tree"),
    *("education", "election", "income", "unemployment", "twitch"),
    *("chameleon", "crocodile", "squirrel", "anaheim", "chicago"),
]

# nodes, edges stored by the published loader, self-loops, undirected edges without loops, features
KNOWN = {
    "grid": (900, 3480, 0, 1740, 5),
    "education": (3234, 12717, 3234, 9483, 6),
    "election": (3234, 12717, 3234, 9483, 6),
    "income": (3234, 12717, 3234, 9483, 6),
    "unemployment": (3234, 12717, 3234, 9483, 6),
    "twitch": (1912, 31299, 0, 31299, 3169),
    "chameleon": (2277, 36101, 50, 31371, 3132),
    "squirrel": (5201, 217073, 140, 198353, 3148),
    "anaheim": (914, 3638, 0, 3881, 4),
    "chicago": (2176, 14961, 0, 15104, 4),
}


def test_benchmark_has_19_names_in_the_order_of_the_paper() -> None:
    assert list(BENCHMARK) == NAMES


@pytest.mark.parametrize("name", KNOWN)
def test_datasets_have_the_reference_counts(real: Callable[..., Data], name: str) -> None:
    nodes, stored, loops, undirected, features = KNOWN[name]
    published = real(name, "published")
    ends = published.edge_index
    assert (published.x.shape[0], ends.shape[1], int((ends[0] == ends[1]).sum())) == (
        nodes,
        stored,
        loops,
    )
    corrected = real(name)
    assert corrected.x.shape == (nodes, features)
    assert corrected.edge_index.shape[1] == 2 * undirected


def differences(entry: Dataset, data: Data) -> list[str]:
    return entry.differences(data, entry.size, Size.of(data))


@pytest.mark.parametrize("name", NAMES)
def test_every_set_is_a_valid_graph_with_the_declared_counts(
    real: Callable[..., Data], name: str
) -> None:
    data = real(name)
    check_graph(data)
    assert data.name == name
    assert data.protocol == "corrected"
    assert differences(find_dataset(name), data) == []
    wide = data.x.shape[1] > 1000
    assert (data.x.layout == torch.sparse_csr) is wide


def test_differences_of_wrong_counts_names_them() -> None:
    entry = replace(find_dataset("grid"), size=find_dataset("ba").size)
    (line,) = differences(entry, load_dataset("grid"))
    assert "declared Size(nodes=1000" in line
    assert "found Size(nodes=900" in line


def test_differences_of_wrong_row_sums_names_them() -> None:
    x = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]).to_sparse_csr()  # 3 ones, 2 nodes
    data = Data(x=x, edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.zeros(2))
    size = Size(nodes=2, edges=1, self_loops=0, features=3)

    def declared(ones: float) -> list[str]:
        return differences(Dataset("tiny", "here", "", lambda: data, (), size, ones), data)

    assert declared(1.5) == []
    assert declared(1.4) == ["tiny: declared 1.4 ones, found 1.5"]


def test_load_dataset_unknown_names_or_options_raise() -> None:
    with pytest.raises(
        UnknownNameError, match="unknown data set 'chamelion': did you mean chameleon"
    ):
        load_dataset("chamelion")
    with pytest.raises(UnknownNameError, match="unknown protocol 'publish'"):
        load_dataset("basic", "publish")
    with pytest.raises(SettingError, match="data set 'basic' has no option 'year'"):
        load_dataset("basic", year=2012)


def test_missing_message_names_missing_files(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = str(tmp_path_factory.mktemp("empty"))
    monkeypatch.setenv("QPIGNN_DATA_DIR", empty)
    monkeypatch.setenv("QPIGNN_CACHE_DIR", empty)
    assert missing_message(find_dataset("basic")) is None
    reason = missing_message(find_dataset("anaheim"))
    assert reason is not None
    assert "Anaheim_net.tntp" in reason
    assert "QPIGNN_DATA_DIR" in reason
