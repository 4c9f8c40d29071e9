from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from hostile import exchange_array
from qpignn import example_tables, from_frames
from qpignn.data import mapped
from qpignn.data.graph import simple_edges
from qpignn.data.mapped import describe_graph, graph_digest, open_graph, write_graph
from qpignn.errors import GraphError, ReadError, SettingError
from qpignn.io.locks import lock_folder


@pytest.fixture
def stations() -> Data:
    nodes, edges = example_tables(60)
    nodes["weight"], edges["km"] = np.arange(60.0), np.linspace(0, 1, len(edges))
    nodes["part"] = np.where(np.arange(60) % 3 > 0, "train", "test")
    roles = {"node_weight": "weight", "edge_weight": "km", "split": "part"}
    return from_frames(nodes, edges, target="pollution", **roles)


@pytest.fixture
def folder(stations: Data, tmp_path: Path) -> Path:
    write_graph(tmp_path / "graph", stations)
    return tmp_path / "graph"


@pytest.mark.parametrize("names", [["lon"], ["lon", 1], "xy"])
def test_open_graph_with_other_names_of_coordinates_raises(folder: Path, names: object) -> None:
    path = folder / "mapped.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pos_names": names}))
    with pytest.raises(ReadError, match="pos_names: expected two names"):
        open_graph(folder)


def test_write_graph_then_open_graph_gives_the_same_graph(stations: Data, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = open_graph(folder)
    for name in ("x", "y", "node_weight", "pos", "train_mask", "val_mask", "test_mask"):
        torch.testing.assert_close(got[name], stations[name], rtol=0, atol=0, equal_nan=True)
    assert list(got.node_id) == list(stations.node_id)
    assert got.feature_names == stations.feature_names
    assert got.coding == stations.coding
    assert got.pos_names == ["lon", "lat"]
    assert describe_graph(folder).counts() == {
        "nodes": 60,
        "labelled": 45,
        "edges": stations.num_edges // 2,
        "directed": False,
        "features": stations.x.shape[1],
        "bytes": sum(p.stat().st_size for p in folder.iterdir() if p.suffix != ".json"),
    }


def test_edges_are_sorted_by_target_then_source_each_once(tmp_path: Path) -> None:
    edges = torch.tensor([[3, 0, 2, 3, 1, 1], [0, 3, 1, 0, 1, 0]])
    weight = torch.tensor([1.0, 2.0, 3.0, 5.0, 9.0, 4.0])
    data = Data(x=torch.rand(4, 2), edge_index=edges, edge_weight=weight)
    write_graph(tmp_path / "g", data)
    got = open_graph(tmp_path / "g")
    assert got.edge_index.tolist() == [[1, 3, 2, 0], [0, 0, 1, 3]]
    assert got.edge_weight.tolist() == [4, 3, 3, 2]
    assert got.get("y") is None
    assert describe_graph(tmp_path / "g").directed
    wanted, _ = simple_edges(edges, 4, directed=True)
    assert {*map(tuple, wanted.T.tolist())} == {*map(tuple, got.edge_index.T.tolist())}


def test_write_graph_without_edges(tmp_path: Path) -> None:
    data = Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0, dtype=torch.long))
    write_graph(tmp_path, data)
    assert open_graph(tmp_path).edge_index.shape == (2, 0)


@pytest.mark.parametrize(
    ("ids", "stored", "wanted"),
    [
        ([0, 1], False, None),
        ([1, 0], True, [1, 0]),
        (["007", "NA"], True, ["007", "NA"]),
        ([2**80, (1, 2)], True, [str(2**80), "(1, 2)"]),
        ([1.5, 2.5], True, [1.5, 2.5]),
    ],
)
def test_ids_that_are_row_numbers_are_not_stored(
    tmp_path: Path, ids: list[object], stored: bool, wanted: list[object] | None
) -> None:
    data = Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0, dtype=torch.long), node_id=ids)
    write_graph(tmp_path, data)
    assert (tmp_path / "ids.parquet").exists() is stored
    got = open_graph(tmp_path).get("node_id")
    assert (got if got is None else list(got)) == wanted


def test_open_graph_changes_are_not_written_to_files(stations: Data, folder: Path) -> None:
    data = open_graph(folder)
    data.x += 1
    data.edge_index[:] = 0
    assert torch.equal(open_graph(folder).x, stations.x)
    assert open_graph(folder).edge_index.any()


@pytest.mark.skipif(sys.platform != "linux", reason="needs files with holes")
def test_arrays_larger_than_memory_open_and_are_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "check_digests", lambda *_, **__: None)  # minutes of reading holes
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    description = json.loads((folder / "mapped.json").read_text())
    rows = 2 * memory // 4
    description |= {"nodes": rows, "feature_names": ["a"], "coding": None}
    description["files"] = {
        name: description["files"][name] for name in ("x.npy", "edge_index.npy")
    }
    with (folder / "x.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, 1)}
        np.lib.format.write_array_header_1_0(file, header)
        description["files"]["x.npy"] |= {"bytes": file.tell() + 4 * rows, "shape": [rows, 1]}
        try:
            file.truncate(description["files"]["x.npy"]["bytes"])
        except OSError:
            pytest.skip("this disk has no files with holes")
    (folder / "mapped.json").write_text(json.dumps(description))
    data = open_graph(folder)
    assert data.x.shape == (rows, 1)
    assert float(data.x[-1, 0]) == 0


def test_open_graph_incomplete_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    message = "expected a folder written by 'qpignn convert'.*got"
    with pytest.raises(ReadError, match=f"{message} nothing"):
        open_graph(tmp_path / "absent")
    with pytest.raises(ReadError, match=f"{message} a file"):
        open_graph(folder / "x.npy")
    whole = (folder / "y.npy").read_bytes()
    (folder / "y.npy").write_bytes(whole[:-8])
    with pytest.raises(ReadError, match=f"{message} 600 bytes in place of the 608 bytes of y.npy"):
        open_graph(folder)
    (folder / "y.npy").unlink()
    with pytest.raises(ReadError, match=f"{message} none in place of the 608 bytes of y.npy"):
        open_graph(folder)
    (folder / "mapped.json").unlink()
    with pytest.raises(ReadError, match=f"{message} one without mapped.json .*convert again"):
        open_graph(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "format 99"),
        ({"nodes": 61}, "x.npy of shape"),
        ({"edges": 1}, "edge_index.npy of shape"),
        ({"feature_names": ["a"]}, "1 feature names for"),
        ({"coding": {"missing": "maybe"}}, "damaged mapped.json"),
        ({"files": {}}, "damaged mapped.json"),
        ({"surprise": 1}, "damaged mapped.json"),
    ],
)
def test_open_graph_invalid_description_is_refused(
    folder: Path, change: dict[str, object], message: str
) -> None:
    path = folder / "mapped.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ReadError, match=message):
        open_graph(folder)
    path.write_text("{")
    with pytest.raises(ReadError, match=r"damaged mapped.json"):
        open_graph(folder)


@pytest.mark.parametrize("kind", ["<i8", "O"])
def test_open_graph_arrays_that_differ_from_the_description_are_refused(
    folder: Path, kind: str
) -> None:
    size = (folder / "y.npy").stat().st_size
    np.save(folder / "y.npy", np.zeros(60, dtype=kind), allow_pickle=True)
    with (folder / "y.npy").open("r+b") as file:
        file.truncate(size)  # the same size, so that only the header tells
    with pytest.raises(ReadError, match=r"y.npy"):
        open_graph(folder)
    (folder / "y.npy").write_bytes(b"\0" * size)
    with pytest.raises(ReadError, match=r"a damaged y.npy"):
        open_graph(folder)


def test_open_graph_damaged_ids_are_refused(folder: Path) -> None:
    path = folder / "ids.parquet"
    exchange_array(folder, path.name, b"\0" * 500)
    with pytest.raises(ReadError, match=r"a damaged ids.parquet"):
        open_graph(folder)
    pd.DataFrame({"id": ["a"]}).to_parquet(path)
    exchange_array(folder, path.name, path.read_bytes())
    with pytest.raises(ReadError, match="expected 60 rows, got 1"):
        open_graph(folder)


def test_one_changed_target_is_another_graph(stations: Data, folder: Path) -> None:
    digest = graph_digest(folder)
    write_graph(folder, stations)
    assert graph_digest(folder) == digest
    stations.y[1] += 1
    write_graph(folder, stations)
    assert graph_digest(folder) != digest


def test_write_graph_replaces_an_older_graph_and_no_other_file(
    stations: Data, folder: Path
) -> None:
    (folder / "notes.txt").write_text("mine")
    bare = Data(x=stations.x, edge_index=stations.edge_index)
    write_graph(folder, bare)
    there = {path.name for path in folder.iterdir()}
    locks = {".qpignn.lock", ".qpignn.converting"}
    assert there - locks == {"x.npy", "edge_index.npy", "mapped.json", "notes.txt"}


def test_write_graph_into_a_folder_with_other_files_is_refused(
    stations: Data, tmp_path: Path
) -> None:
    (tmp_path / "x.npy").write_text("mine")
    with pytest.raises(SettingError, match=r"expected an empty folder.*got one with 'x.npy'"):
        write_graph(tmp_path, stations)
    assert (tmp_path / "x.npy").read_text() == "mine"


def test_write_graph_sparse_features_are_refused(stations: Data, tmp_path: Path) -> None:
    stations.x = stations.x.to_sparse_csr()
    with pytest.raises(GraphError, match="expected dense features to write"):
        write_graph(tmp_path / "g", stations)
    assert not (tmp_path / "g").exists()


def test_write_graph_into_a_locked_folder_is_refused(stations: Data, folder: Path) -> None:
    with (
        lock_folder(folder, name=".qpignn.converting"),
        pytest.raises(SettingError, match="another process is converting into; wait for its end"),
    ):
        write_graph(folder, stations)
    assert torch.equal(open_graph(folder).x, stations.x)
    write_graph(folder, stations)
    assert not (folder / "unfinished").exists()
