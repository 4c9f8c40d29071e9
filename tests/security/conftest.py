"""Folders as ``qpignn fit`` and ``qpignn convert`` write them, to be made hostile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hostile import make_fit
from qpignn import example_tables, from_frames
from qpignn.data.mapped import write_graph


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One fit and one mapped graph, made once; never changed."""
    folder = tmp_path_factory.mktemp("honest")
    make_fit(folder / "model")
    stations, roads = example_tables(40)
    write_graph(folder / "graph", from_frames(stations, roads, target="pollution"))
    return folder


@pytest.fixture
def model(honest: Path, tmp_path: Path) -> Path:
    """A fit of one's own to spoil."""
    return Path(shutil.copytree(honest / "model", tmp_path / "model"))


@pytest.fixture
def graph(honest: Path, tmp_path: Path) -> Path:
    """A mapped graph of one's own to spoil."""
    return Path(shutil.copytree(honest / "graph", tmp_path / "graph"))
