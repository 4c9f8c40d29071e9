from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch_geometric.data import Data

from qpignn.data.storage import load_graph, save_graph
from qpignn.errors import ReadError
from qpignn.io.tensors import pack_json


@pytest.fixture
def rich(path_graph: Data) -> Data:
    path_graph.node_id = np.array(["a", "NA", "", "007"], dtype=object)
    path_graph.train_mask = torch.tensor([True, True, False, False])
    path_graph.node_weight = torch.ones(4)
    path_graph.edge_weight = torch.arange(6.0)
    return path_graph


@pytest.mark.parametrize("sparse", [False, True])
def test_save_graph_then_load_graph_gives_the_same_graph(
    rich: Data, tmp_path: Path, sparse: bool
) -> None:
    dense = rich.x
    if sparse:
        rich.x = rich.x.to_sparse_csr()
    save_graph(tmp_path, rich)
    got = load_graph(tmp_path)
    assert (got.x.layout == torch.sparse_csr) is sparse
    assert torch.equal(got.x.to_dense() if sparse else got.x, dense)
    for name in ("edge_index", "y", "edge_weight", "node_weight", "train_mask"):
        torch.testing.assert_close(got[name], rich[name], equal_nan=True)
    assert list(got.node_id) == ["a", "NA", "", "007"]
    assert got.get("test_mask") is None


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        ([1, 2, 3, 2**62], [1, 2, 3, 2**62]),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], ["(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)"]),
        ([2**80, 1, 2, 3], [str(2**80), "1", "2", "3"]),
    ],
)
def test_integers_stay_integers_and_other_ids_become_text(
    rich: Data, tmp_path: Path, ids: list[object], wanted: list[object]
) -> None:
    rich.node_id = np.empty(4, dtype=object)
    rich.node_id[:] = ids
    save_graph(tmp_path, rich)
    assert list(load_graph(tmp_path).node_id) == wanted


def test_save_graph_with_coordinates_keeps_their_names(rich: Data, tmp_path: Path) -> None:
    rich.pos, rich.pos_names = torch.arange(8.0).reshape(4, 2), ["lon", "lat"]
    save_graph(tmp_path, rich)
    got = load_graph(tmp_path)
    assert torch.equal(got.pos, rich.pos)
    assert got.pos_names == ["lon", "lat"]


@pytest.mark.parametrize("names", [["lon"], ["lon", 1], "xy", {"a": 1, "b": 2}])
def test_load_graph_with_other_names_of_coordinates_raises(
    rich: Data, tmp_path: Path, names: object
) -> None:
    save_graph(tmp_path, rich)
    tensors = load_file(tmp_path / "graph.safetensors")
    save_file({**tensors, "pos.names": pack_json(names)}, tmp_path / "graph.safetensors")
    with pytest.raises(ReadError, match="pos_names: expected two names"):
        load_graph(tmp_path)


def test_load_graph_damaged_or_missing_file_is_refused(rich: Data, tmp_path: Path) -> None:
    save_graph(tmp_path, rich)
    numbers = tmp_path / "graph.safetensors"
    whole = numbers.read_bytes()
    numbers.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ReadError, match="the stored graph is damaged"):
        load_graph(tmp_path)
    numbers.unlink()
    with pytest.raises(ReadError, match=r"expected the file graph\.safetensors, got none"):
        load_graph(tmp_path)


def test_load_graph_mixed_from_two_graphs_raises(rich: Data, tmp_path: Path) -> None:
    """As many nodes with other ids: without a digest, numbers would be given to other nodes."""
    save_graph(tmp_path / "a", rich)
    rich.node_id = np.array(["007", "", "NA", "a"], dtype=object)
    save_graph(tmp_path / "b", rich)
    (tmp_path / "b" / "nodes.parquet").replace(tmp_path / "a" / "nodes.parquet")
    with pytest.raises(ReadError, match="are of two different graphs"):
        load_graph(tmp_path / "a")
