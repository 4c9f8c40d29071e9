"""Methods of the user's own: by file, by module, by installed package, and their saved models."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from torch_geometric.data import Data

from qpignn import Conformal, load_dataset, load_method, make_method
from qpignn.errors import ModelFileError, SettingError, UnknownNameError
from qpignn.experiments.cell import Cell, grid
from qpignn.experiments.run import run_cells
from qpignn.experiments.store import Store
from qpignn.methods import catalog
from qpignn.methods.base import IntervalMethod
from qpignn.runtime.plugins import load_object

SOURCE = '''"""A method of my own."""
from qpignn.methods.quantile import QuantileGNN


class StudentT(QuantileGNN):
    """Quantiles."""


NOT_A_METHOD = 3
'''
FEW = {"epochs": 2}


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return f"{path}:StudentT"


@pytest.fixture(scope="module")
def data() -> Data:
    return load_dataset("basic", nodes=60)


def test_make_method_of_a_file_gives_its_class(mine: str) -> None:
    method = make_method(mine, hidden=8)
    assert type(method) is load_object(mine)
    assert method.get_params()["hidden"] == 8


def test_make_method_of_a_module_gives_its_class() -> None:
    assert type(make_method("qpignn.methods.sqr:SQR")) is type(make_method("sqr"))


@pytest.mark.parametrize("prefix", ["conformal:", "ensemble:"])
def test_make_method_of_a_file_composes_with_prefixes(prefix: str, mine: str) -> None:
    method = make_method(f"{prefix}{mine}", hidden=8)
    inner = method.method if isinstance(method, Conformal) else method
    assert type(inner) is load_object(mine)
    assert inner.get_params()["hidden"] == 8


def test_make_method_of_another_object_is_refused(mine: str) -> None:
    with pytest.raises(SettingError, match="expected a class derived from IntervalMethod, got 3"):
        make_method(mine.replace("StudentT", "NOT_A_METHOD"))


def test_make_method_unknown_setting_of_a_plugin_is_refused(mine: str) -> None:
    with pytest.raises(SettingError, match=r"has no setting 'hiden'.*did you mean hidden"):
        make_method(mine, hiden=8)


# ---- installed packages


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "qpignn_student.py").write_text(SOURCE)
    info = tmp_path / "qpignn_student-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: qpignn-student\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[qpignn.methods]\nstudent = qpignn_student:StudentT\nwrong = qpignn_student:NOT_A_METHOD\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    catalog.installed.cache_clear()
    yield
    sys.modules.pop("qpignn_student", None)
    catalog.installed.cache_clear()


@pytest.mark.usefixtures("package")
def test_make_method_of_an_installed_package_takes_its_name() -> None:
    assert type(make_method("student")).__name__ == "StudentT"
    assert type(make_method("conformal:student").method).__name__ == "StudentT"


@pytest.mark.usefixtures("package")
def test_make_method_of_an_entry_point_that_is_no_method_is_refused() -> None:
    with pytest.raises(SettingError, match="expected the entry point qpignn_student:NOT_A_METHOD"):
        make_method("wrong")


@pytest.mark.usefixtures("package")
def test_load_method_of_an_installed_package_needs_no_class(tmp_path: Path, data: Data) -> None:
    make_method("student", **FEW).fit(data).save(tmp_path / "model")
    assert type(load_method(tmp_path / "model")).__name__ == "StudentT"


def test_make_method_name_of_a_package_that_is_not_installed_is_unknown() -> None:
    with pytest.raises(UnknownNameError, match="unknown method 'student'"):
        make_method("student")


# ---- saved models


@pytest.mark.parametrize("prefix", ["", "conformal:"])
def test_load_method_of_a_plugin_needs_its_class(
    prefix: str, mine: str, data: Data, tmp_path: Path
) -> None:
    fitted = make_method(f"{prefix}{mine}", **FEW).fit(data)
    fitted.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"load_method\(folder, method=TheClass\)"):
        load_method(tmp_path / "model")
    for given in (load_object(mine), mine):
        loaded = load_method(tmp_path / "model", method=given)
        assert np.array_equal(
            loaded.predict_interval(data).lower, fitted.predict_interval(data).lower
        )


def test_load_of_a_plugin_class_reads_its_own_folder(mine: str, data: Data, tmp_path: Path) -> None:
    make_method(mine, **FEW).fit(data).save(tmp_path / "model")
    cls: type[IntervalMethod] = load_object(mine)
    assert type(cls.load(tmp_path / "model")) is cls


def test_load_method_runs_no_code_that_a_folder_names(
    mine: str, data: Data, tmp_path: Path
) -> None:
    make_method("sqr", **FEW).fit(data).save(tmp_path / "model")
    marker = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w')\nclass SQR: pass\n")
    description = tmp_path / "model" / "model.json"
    text = description.read_text()
    for name in (f"{tmp_path / 'evil.py'}:SQR", "evil:SQR"):
        description.write_text(text.replace('"method": "SQR"', f'"method": "{name}"'))
        with pytest.raises(ModelFileError, match="expected a saved model of a method of qpignn"):
            load_method(tmp_path / "model")
    assert not marker.exists()


@pytest.mark.parametrize("wrong", [3, dict])
def test_load_method_with_something_else_for_a_class_is_refused(
    wrong: object, tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match="expected a class derived from IntervalMethod"):
        load_method(tmp_path, method=wrong)  # type: ignore[arg-type]


# ---- rows


def test_cell_of_a_plugin_is_keyed_by_its_source_not_by_its_folder(
    mine: str, tmp_path: Path
) -> None:
    cell = Cell("basic", f"conformal:{mine}", 0, options={"nodes": 60}, settings=FEW)
    assert cell.method_name == "conformal:mine.py:StudentT"
    before = cell.key()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.py").write_text(SOURCE.replace("A method of my own", "Reworded"))
    moved = Cell(
        "basic", f"conformal:{elsewhere}/mine.py:StudentT", 0, options={"nodes": 60}, settings=FEW
    )
    assert moved.key() == before
    (tmp_path / "mine.py").write_text(SOURCE + "\nMORE = 1\n")
    assert cell.key() != before


def test_run_cells_of_an_edited_plugin_makes_new_rows(mine: str, tmp_path: Path) -> None:
    cells = [Cell("basic", mine, 0, options={"nodes": 60}, settings=FEW)]
    store = Store(tmp_path / "results.sqlite")
    assert run_cells(cells, store).reused == 0
    assert run_cells(cells, store).reused == 1
    Path(mine.rpartition(":")[0]).write_text(SOURCE.replace("NOT_A_METHOD = 3", "OTHER = 4"))
    again = run_cells(cells, store)
    assert again.reused == 0
    assert again.rows[0]["method"] == "mine.py:StudentT"


def test_cell_plugin_among_settings_is_part_of_the_key(mine: str) -> None:
    cell = Cell("basic", "sqr", 0, settings={"encoder": mine})
    before = cell.key()
    Path(mine.rpartition(":")[0]).write_text(SOURCE + "\nMORE = 1\n")
    assert cell.key() != before


def test_cell_of_a_built_in_method_has_no_plugin_digest() -> None:
    assert "plugins" not in Cell("basic", "conformal:sqr", 0).inputs()


def test_grid_with_a_plugin_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"absent\.py: expected a Python file"):
        grid(["basic"], [f"{tmp_path}/absent.py:StudentT"], 1)
