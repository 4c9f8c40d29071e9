"""Which of the user's columns reach the page, and as what."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from qpignn import from_frames
from qpignn.errors import ArrayError, SettingError
from qpignn.reports import columns as module
from qpignn.reports.columns import column_content, left_out_note


def graph(**attributes: Any) -> Data:
    edges = torch.tensor([[0, 1], [1, 0]])
    y = torch.tensor([1.5, 2.5, float("nan")], dtype=torch.float64)
    return Data(x=torch.arange(6.0).reshape(3, 2), edge_index=edges, y=y, **attributes)


def values_of(column: dict[str, Any]) -> list[Any]:
    if column["kind"] == "number":
        return list(column["values"])
    return [None if code < 0 else column["categories"][code] for code in column["codes"]]


def read(columns: Any, data: Data | None = None, shown: Any = None) -> dict[str, list[Any]]:
    rows = np.arange(3) if shown is None else np.array(shown)
    content = column_content(graph() if data is None else data, columns, rows)
    json.dumps(content, allow_nan=False)  # it can be embedded
    return {column["name"]: values_of(column) for column in content["list"]}


def test_column_content_keeps_every_kind_of_value() -> None:
    table = pd.DataFrame(
        {
            "year": [1999, 2001, 2020],
            "share": [0.123456789012, np.nan, -np.inf],
            "maybe": pd.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "name": ["Ärger", None, "a\nb"],
            "grade": pd.Categorical(["low", "high", None]),
            "day": pd.to_datetime(["2020-01-31", "2021-02-28", None]),
            "code": [2**60 + 1, 2, 3],  # JavaScript has no such number
            "things": [[1], {"a": 2}, "x"],
        }
    )
    assert read(table) == {
        "year": [1999, 2001, 2020],
        "share": [0.123456789, None, None],
        "maybe": [1, None, 3],
        "flag": ["True", "False", "True"],
        "name": ["Ärger", None, "a\nb"],
        "grade": ["low", "high", None],
        "day": ["2020-01-31", "2021-02-28", None],
        "code": [str(2**60 + 1), "2", "3"],
        "things": ["[1]", "{'a': 2}", "x"],
    }


def test_column_content_skips_ids_and_targets() -> None:
    data = graph(node_id=np.array(["a", "b", "c"], dtype=object))
    table = {"key": ["a", "b", "c"], "flow": [1.5, 2.5, np.nan], "other": [1.5, 2.5, 3.5]}
    assert list(read(table, data)) == ["other"]


def test_column_content_lists_the_rows_shown_in_their_order() -> None:
    assert read({"v": [10, 20, 30]}, shown=[2, 0]) == {"v": [30, 10]}


def test_column_content_without_table_shows_features_with_their_categories() -> None:
    frame = pd.DataFrame(
        {"id": [1, 2, 3], "area": [0.1, 0.2, 0.3], "kind": ["x", "y", "x"], "y": [1.0, 2.0, None]}
    )
    data = from_frames(frame, None, target="y")
    assert read(None, data) == {"area": [0.1, 0.2, 0.3], "kind": ["x", "y", "x"]}
    named = graph(feature_names=["p", "q"])
    assert read(None, named) == {"p": [0.0, 2.0, 4.0], "q": [1.0, 3.0, 5.0]}
    assert read(None) == {}  # features without names
    assert read(None, Data(**{**named.to_dict(), "x": named.x.to_sparse_csr()})) == {}


def test_column_content_two_columns_of_one_name_are_both_kept() -> None:
    table = pd.DataFrame([[1, "a"], [2, "b"], [3, "c"]], columns=["v", "v"])
    content = column_content(graph(), table, np.arange(3))
    assert [column["kind"] for column in content["list"]] == ["number", "text"]


def test_column_content_hides_coordinates_at_first() -> None:
    data = graph(pos=torch.zeros(3, 2), pos_names=["lon", "lat"])
    content = column_content(data, {"lon": [1, 2, 3], "v": [1, 2, 4]}, np.arange(3))
    assert {column["name"]: column["shown"] for column in content["list"]} == {
        "lon": False,
        "v": True,
    }


def test_column_content_beyond_the_size_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {f"c{i}": [0.125 + i, 1 / 3, 0.5] for i in range(40)}
    one = len(json.dumps({"name": "c0", "shown": True, "kind": "number", "values": [0.1] * 3}))
    monkeypatch.setattr(module, "BYTES", 20 * one)
    content = column_content(graph(), table, np.arange(3))
    kept = [column["name"] for column in content["list"]]
    assert 5 < len(kept) < 40
    assert kept + content["left_out"] == list(table)
    assert len(json.dumps(content["list"])) < 25 * one
    assert f"{40 - len(kept)} further columns" in left_out_note(content["left_out"])
    assert left_out_note([]) == ""


def test_column_content_long_text_is_cut() -> None:
    (text, *_) = read({"t": ["x" * 5000, "b", "c"]})["t"]
    assert len(text) <= 300
    assert text.endswith("…")


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (pd.DataFrame({"v": [1, 2]}), ArrayError, r"one row per node \(3\), got 2 rows"),
        ({"v": [1, 2]}, ArrayError, r"one value per node for 'v' \(3\), got 2"),
        ({"v": {1, 2, 3}}, ArrayError, "expected values for 'v'"),
        (["v"], SettingError, "expected a pandas table or a mapping"),
    ],
)
def test_column_content_other_shapes_raise(columns: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        read(columns)
