"""Pipes, sockets, devices and folders in the place of files: refused at once, never waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostile import NOT_FILES, in_time, make_fit, not_a_file
from qpignn import QpiGNN, load_dataset, load_graph, load_method, open_graph, read_graph
from qpignn.errors import QpignnError
from qpignn.methods.bundle import COPIES, ORIGIN, load_fit
from qpignn.methods.serialization import MODEL_FILES
from qpignn.training.checkpoint import checkpoints, fit_key

pytestmark = pytest.mark.parametrize("kind", NOT_FILES)


@pytest.mark.parametrize("name", [*MODEL_FILES, *COPIES, ORIGIN])
def test_load_fit_of_a_folder_with_a_pipe_or_the_like_raises(
    model: Path, name: str, kind: str
) -> None:
    not_a_file(model / name, kind)
    with in_time(), pytest.raises(QpignnError):
        load_fit(model)


@pytest.mark.parametrize("name", MODEL_FILES)
def test_load_method_of_a_folder_with_a_pipe_or_the_like_raises(
    model: Path, name: str, kind: str
) -> None:
    not_a_file(model / name, kind)
    with in_time(), pytest.raises(QpignnError):
        load_method(model)


@pytest.mark.parametrize("name", ["graph.safetensors", "nodes.parquet"])
def test_load_graph_of_a_folder_with_a_pipe_or_the_like_raises(
    model: Path, name: str, kind: str
) -> None:
    not_a_file(model / "graph" / name, kind)
    with in_time(), pytest.raises(QpignnError):
        load_graph(model / "graph")


@pytest.mark.parametrize("name", ["mapped.json", "x.npy", "edge_index.npy", "ids.parquet"])
def test_open_graph_of_a_folder_with_a_pipe_or_the_like_raises(
    graph: Path, name: str, kind: str
) -> None:
    not_a_file(graph / name, kind)
    with in_time(), pytest.raises(QpignnError):
        open_graph(graph)


def test_checkpoints_of_a_folder_with_a_pipe_or_the_like_raises(tmp_path: Path, kind: str) -> None:
    data, method = load_dataset("basic", nodes=30), QpiGNN(epochs=1, hidden=2)
    not_a_file(tmp_path / "training-1.safetensors", kind)
    with in_time(), pytest.raises(QpignnError), checkpoints(tmp_path, fit_key(method, data)):
        pass


@pytest.mark.parametrize("name", ["nodes.csv", "nodes.parquet", "nodes.csv.gz", "nodes.graphml"])
def test_read_graph_of_a_pipe_or_the_like_raises(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    not_a_file(path, kind)
    expected = "expected a file, got a (named pipe|socket|device|folder)"
    with in_time(), pytest.raises(QpignnError, match=expected):
        read_graph(path, None, target="t")


def test_load_fit_with_a_lock_that_is_a_pipe_or_the_like_does_not_wait(
    tmp_path: Path, kind: str
) -> None:
    folder = make_fit(tmp_path / "fit")
    not_a_file(folder / ".qpignn.lock", kind)
    with in_time():
        assert load_fit(folder).origin.target == "pollution"
    (folder / "model.json").write_text("{}")
    with in_time(), pytest.raises(QpignnError):
        load_fit(folder)
