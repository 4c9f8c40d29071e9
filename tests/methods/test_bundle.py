from __future__ import annotations

from pathlib import Path

import pytest

from qpignn import QpiGNN, example_tables, from_frames, split_nodes
from qpignn.data.column_roles import ColumnRoles
from qpignn.errors import ModelFileError
from qpignn.methods.bundle import Fit, Origin, load_fit, save_fit


def made(seed: int = 0) -> Fit:
    stations, roads = example_tables(60)
    data = split_nodes(from_frames(stations, roads, target="pollution"), seed=seed)
    model = QpiGNN(epochs=2, seed=seed).fit(data)
    return Fit(model, data, stations, Origin(None, ColumnRoles(target="pollution", id="id")))


def test_save_fit_then_load_fit_gives_the_same_fit(tmp_path: Path) -> None:
    fit = made()
    save_fit(tmp_path, fit)
    again = load_fit(tmp_path)
    assert again.table is not None
    assert fit.table is not None
    assert again.table.equals(fit.table)
    assert again.origin == fit.origin
    assert again.data.coding == fit.data.coding == again.model.coding_
    assert again.data.pos.equal(fit.data.pos)
    assert again.data.pos_names == ["lon", "lat"]
    assert again.data.test_mask.equal(fit.data.test_mask)
    intervals = fit.model.predict_interval(fit.data)
    assert (again.model.predict_interval(again.data).upper == intervals.upper).all()


def test_new_tables_are_coded_as_those_of_the_fit(tmp_path: Path) -> None:
    save_fit(tmp_path, made())
    model = load_fit(tmp_path).model
    stations, _ = example_tables(30, seed=4)
    few = stations[stations["kind"] != "urban"].drop(columns="pollution")
    data = from_frames(few, None, target=None, coding=model.coding_)
    assert len(model.predict_interval(data)) == len(few)


@pytest.mark.parametrize("name", ["graph/table.parquet", "graph/nodes.parquet", "fit.json"])
def test_load_fit_with_a_missing_file_is_refused(name: str, tmp_path: Path) -> None:
    save_fit(tmp_path, made())
    (tmp_path / name).unlink()
    with pytest.raises(ModelFileError, match="missing, damaged or mixed files; fit again"):
        load_fit(tmp_path)


def test_save_fit_without_a_table_removes_an_older_table(tmp_path: Path) -> None:
    fit = made()
    save_fit(tmp_path, fit)
    save_fit(tmp_path, Fit(fit.model, fit.data, None, Origin("basic", None)))
    assert load_fit(tmp_path).table is None
