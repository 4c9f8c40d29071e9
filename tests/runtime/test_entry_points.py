"""Plug-ins of installed packages, from the metadata of a made-up one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qpignn import load_dataset
from qpignn.data.catalog import find_dataset, is_dataset
from qpignn.errors import SettingError
from qpignn.experiments.cell import Cell
from qpignn.experiments.digest import data_digest, plugin_digest
from qpignn.runtime.entry_points import installed, load_installed

SOURCE = """
import torch
from torch_geometric.data import Data
from qpignn.data.catalog import Dataset


def load(*, bends: int = 3):
    x = torch.arange(20.0).reshape(10, 2)
    edges = torch.stack([torch.arange(9), torch.arange(1, 10)])
    return Data(x=x, y=x[:, 0] + bends, edge_index=edges)


RIVERS = Dataset("rivers", "mine", "a chain of ten nodes", load)
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "river_data.py").write_text(SOURCE)
    info = tmp_path / "river_data-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: river-data\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[qpignn.datasets]\nrivers = river_data:RIVERS\nwrong = river_data:SOURCE_OF_ALL\n"
        "function = river_data:load\nbasic = river_data:RIVERS\n"
        "[qpignn.methods]\nsqr = river_data:RIVERS\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.cache_clear()
    yield
    sys.modules.pop("river_data", None)
    installed.cache_clear()


def test_installed_lists_names_without_importing() -> None:
    assert installed("qpignn.datasets")["rivers"] == "river_data:RIVERS"
    assert "river_data" not in sys.modules
    assert installed("qpignn.no_such_group") == {}


def test_load_dataset_of_an_installed_package_is_undirected() -> None:
    data = load_dataset("rivers", bends=5)
    assert data.y.tolist()[:2] == [5.0, 7.0]
    assert data.edge_index.shape == (2, 18)
    assert is_dataset("rivers")
    assert Cell("rivers", "sqr", 0).name == "rivers"


def test_load_installed_of_another_kind_is_refused() -> None:
    with pytest.raises(SettingError, match="river_data:load of the group"):
        find_dataset("function")


def test_load_installed_of_a_missing_object_names_it() -> None:
    with pytest.raises(SettingError, match="expected an object named 'SOURCE_OF_ALL'"):
        load_installed("qpignn.datasets", "wrong", object)


def test_data_digest_of_an_installed_data_set_covers_its_module(tmp_path: Path) -> None:
    module, cell = tmp_path / "river_data.py", Cell("rivers", "sqr", 0)
    before, key = data_digest("rivers"), cell.key()
    assert before
    module.write_text(SOURCE + "\n# a comment\n")
    assert (data_digest("rivers"), cell.key()) == (before, key)
    module.write_text(SOURCE.replace("bends: int = 3", "bends: int = 4"))
    assert data_digest("rivers") != before
    assert cell.key() != key


def test_digests_of_a_name_that_is_built_in_and_installed_are_those_of_the_built_in_one() -> None:
    assert {"basic", "rivers"} <= {*installed("qpignn.datasets")}
    assert data_digest("basic") == ""
    assert plugin_digest("conformal:sqr") == ""
    assert plugin_digest("student", {"encoder": "river_data:RIVERS"}) != ""
