from __future__ import annotations

import datetime
import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from qpignn.data.encoding import Column, FeatureEncoder
from qpignn.errors import GraphError, QpignnError, QpignnWarning, UnknownNameError

NA = None


def learn(frame: pd.DataFrame, **options: Any) -> FeatureEncoder:
    return FeatureEncoder.learn(frame, list(frame.columns), frame.index, **options)


def encode(coding: FeatureEncoder, frame: pd.DataFrame) -> list[list[float]]:
    matrix = coding.encode(frame, frame.index)
    assert matrix.dtype == np.float64
    return matrix.tolist()


@pytest.fixture
def towns() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "income": [10.0, 30.0, 20.0, 60.0],
            "region": ["south", "north", " south ", "east"],
            "zone": [3, 12, 3, 3],
        },
        index=["a", "b", "c", "d"],
    )


def test_encode_text_one_hot_in_sorted_order(towns: pd.DataFrame) -> None:
    coding = learn(towns)
    assert coding.feature_names == ["income", "region=east", "region=north", "region=south", "zone"]
    assert coding.category_columns == ["region"]
    assert encode(coding, towns) == [
        [10, 0, 0, 1, 3],
        [30, 0, 1, 0, 12],
        [20, 0, 0, 1, 3],
        [60, 1, 0, 0, 3],
    ]


def test_encode_categorical_integers_one_hot(towns: pd.DataFrame) -> None:
    coding = learn(towns[["zone"]], categorical=["zone"])
    assert coding.feature_names == ["zone=12", "zone=3"]
    assert encode(coding, towns) == [[0, 1], [1, 0], [0, 1], [0, 1]]
    floats = towns.assign(zone=[3.0, np.nan, 3.0, 12.5])
    coding = learn(floats[["zone"]], categorical=["zone"], missing="impute")
    assert coding.feature_names == ["zone=12.5", "zone=3", "zone is blank"]
    assert encode(coding, floats) == [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", " 2.5 ", "1e3"], [1, 2.5, 1000]),
        (pd.array([1, 2, 3], dtype="Int64"), [1, 2, 3]),
        ([True, False, True], [1, 0, 1]),
        (pd.Series([True, False, True], dtype=object), [1, 0, 1]),
        (pd.array([True, False, True], dtype="boolean"), [1, 0, 1]),
        (["2020.12", "2020.5", "1999.1"], [2020.12, 2020.5, 1999.1]),
    ],
)
def test_encode_numbers_unchanged(values: Any, expected: list[float]) -> None:
    frame = pd.DataFrame({"v": values})
    coding = learn(frame)
    assert coding.columns == (Column("v", "number"),)
    assert encode(coding, frame) == [[value] for value in expected]


def test_learn_pandas_categorical_of_numbers_is_category() -> None:
    frame = pd.DataFrame({"c": pd.Categorical([2, 1, 2])})
    assert learn(frame).feature_names == ["c=1", "c=2"]


def test_encode_blanks_imputed_with_median_and_indicator() -> None:
    frame = pd.DataFrame({"v": [1.0, np.nan, 4.0, 7.0], "w": [1, 2, 3, 4], "c": ["p", "", NA, "q"]})
    coding = learn(frame, missing="impute")
    assert coding.feature_names == ["v", "v is blank", "w", "c=p", "c=q", "c is blank"]
    assert [column.fill for column in coding.columns] == [4.0, 2.5, None]
    assert encode(coding, frame) == [
        [1, 0, 1, 1, 0, 0],
        [4, 1, 2, 0, 0, 1],
        [4, 0, 3, 0, 0, 1],
        [7, 0, 4, 0, 1, 0],
    ]


def test_encode_other_table_uses_median_of_first() -> None:
    first = pd.DataFrame({"v": [1.0, 2.0, 30.0], "c": ["p", "q", "p"]})
    coding = learn(first, missing="impute")
    other = pd.DataFrame({"c": [NA, "q"], "v": ["", "100"], "more": [1, 2]})
    assert encode(coding, other) == [[2, 0, 0], [100, 0, 1]]
    strict = learn(first)
    with pytest.raises(GraphError, match=r"'v': expected a number .*node 0 .*missing='impute'"):
        encode(strict, other)
    with pytest.raises(GraphError, match=r"'c': expected a category .*node 0 .*--missing impute"):
        encode(strict, other.assign(v=1.0))


def test_encode_unknown_categories_zeros_and_one_warning(towns: pd.DataFrame) -> None:
    coding = learn(towns.assign(kind=["x", "y", "x", "y"]))
    other = towns.assign(region=["west", "north", "west", "centre"], kind=["z", "x", "x", "y"])
    with pytest.warns(QpignnWarning, match="occurred in the fit, got new ones") as caught:
        rows = encode(coding, other)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "column 'region': 'centre', 'west' (3 nodes)" in message
    assert "column 'kind': 'z' (1 node)" in message
    assert [row[1:4] for row in rows] == [[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert coding.categories_of(rows, "region").tolist() == [
        "(other)",
        "north",
        "(other)",
        "(other)",
    ]


def test_encode_known_categories_no_warning(towns: pd.DataFrame) -> None:
    coding = learn(towns, categorical=["zone"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode(coding, towns)
        encode(coding, towns.assign(zone=["3", "12", "3", "3"]))


def test_categories_of_encoded_table_returns_labels() -> None:
    frame = pd.DataFrame({"v": [5.0, 6.0, 7.0], "c": ["p", NA, "q"], "d": ["p", "r", "r"]})
    coding = learn(frame, missing="impute")
    x = coding.encode(frame, frame.index)
    assert coding.categories_of(x, "c").tolist() == ["p", "(blank)", "q"]
    assert coding.categories_of(x, "d").tolist() == ["p", "r", "r"]
    sparse = torch.from_numpy(x).to_sparse_csr()
    assert coding.categories_of(sparse, "c").tolist() == ["p", "(blank)", "q"]
    with pytest.raises(UnknownNameError, match=r"unknown category column 'v': .*known are c, d"):
        coding.categories_of(x, "v")


def test_encode_missing_columns_raises_with_names(towns: pd.DataFrame) -> None:
    coding = learn(towns)
    other = towns.rename(columns={"income": "Income"}).drop(columns="zone")
    with pytest.raises(
        GraphError, match=r"lacks the columns 'income', 'zone' of the fit; it has 'Income'"
    ):
        encode(coding, other)


def test_encode_text_in_number_column_raises(towns: pd.DataFrame) -> None:
    coding = learn(towns)
    with pytest.raises(GraphError, match="'income': expected numbers, got 'high' at node 'a'"):
        encode(coding, towns.assign(income=["high", "low", "low", "low"]))


MANY = 40
DAYS = [f"2024-01-{day:02}" for day in range(1, 31)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.to_datetime(["2020-01-01"] * MANY), "got dates; turn them into a number that matters"),
        (pd.to_timedelta([5] * MANY, unit="D"), "got dates"),
        (pd.Series(pd.period_range("2020-01", periods=MANY, freq="M")), "got dates"),
        ([datetime.date(2020, 1, 1)] * MANY, "got dates"),
        (
            [*DAYS, "2024-02-01 12:00", "2024/3/1", "2024-05", "2024-02-01T00:00:00Z"],
            "got dates",
        ),
        (DAYS + ["unknown"] * 2 + ["2024-01-01"] * 8, "got dates"),
        (["31/12/99", "1/2/2024", "12.31.2024", "01-02-2024"] * 10, "got dates"),
        ([1.5] * 38 + ["n.v.t.", "fast"], r"got 'n.v.t.' at node 38 \(2 such values\); correct"),
        (["1", "2", "x", "4"] * 10, r"got 'x' at node 2 .*categorical=\[\.\.\.\]"),
        (["1,234", "2,345,678"] * 20, "got '1,234' .*number with a comma"),
        (["12", "1.234.567"] * 20, "got '1.234.567' .*thousands separators"),
        (["1,5", "2"] * 20, "got '1,5' .*a decimal comma"),
        (["12 %", "7.5%"] * 20, "got '12 %' .*a per cent sign"),
        ([f"name {i}" for i in range(MANY)], "40 different texts on 40 nodes .*looks like a name"),
        ([f"name {i % 21}" for i in range(MANY)], r"21 different .*ignore=\[.*--ignore"),
        ([f"name {i % 101}" for i in range(1000)], "101 different texts on 1,000 nodes"),
        (pd.Categorical([f"name {i}" for i in range(MANY)]), "looks like a name"),
        ([["p", "q"]] * MANY, "expected numbers or text, got a list at node 0"),
        ([{"p": 1}] * MANY, "got a dict at node 0"),
        (["p", ("q", 1)] * 20, "got a tuple at node 1"),
        ([1 + 2j] * MANY, "expected real numbers"),
        ([1.0, -np.inf] * 20, "got -inf in column 'v' of node 1"),
        ([10**400] * MANY, "expected numbers, got int too large"),
        ([1.0, np.nan] * 20, "a blank at node 1 .*missing='impute' .--missing impute"),
        (["p", " "] * 20, "expected a category for every node, got a blank at node 1 .20 blanks"),
    ],
)
def test_learn_neither_numbers_nor_categories_raises(values: Any, message: str) -> None:
    with pytest.raises(GraphError, match=f"(?s){message}"):
        learn(pd.DataFrame({"v": values}))


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([f"name {i % 20}" for i in range(MANY)], 20),
        ([f"name {i}" for i in range(20)], 20),
        ([f"name {i % 100}" for i in range(1000)], 100),
        (["1", "2", "x", "y"] * 10, 4),
        (["1.2.10", "10.0.0.1", "3-4", "2020-13"] * 10, 4),
        (["2024-01-01", "never"] * 20, 2),
        (["yes", "no"], 2),
        (["only"] * 3, 1),
    ],
)
def test_learn_few_texts_are_categories(values: list[str], count: int) -> None:
    assert len(learn(pd.DataFrame({"v": values})).feature_names) == count


def test_learn_categorical_accepts_many_texts_but_not_lists() -> None:
    names = pd.DataFrame({"v": [f"name {i}" for i in range(MANY)]})
    assert len(learn(names, categorical=["v"]).feature_names) == MANY
    typo = pd.DataFrame({"v": ["1", "2", "x"]})
    assert learn(typo, categorical=["v"]).feature_names == ["v=1", "v=2", "v=x"]
    with pytest.raises(GraphError, match="got a list at node 0"):
        learn(pd.DataFrame({"v": [["p"], ["q"]]}), categorical=["v"])


@pytest.mark.parametrize("blank", [np.nan, NA, "", pd.NaT])
def test_learn_blank_column_raises(blank: object) -> None:
    frame = pd.DataFrame({"v": pd.Series([blank] * 3, dtype=object)})
    for options in ({}, {"categorical": ["v"]}):
        with pytest.raises(GraphError, match="'v': expected some values, got blanks only"):
            learn(frame, missing="impute", **options)
        with pytest.raises(GraphError, match=r"'v': .*blank at node 0 .3 blanks"):
            learn(frame, **options)


def test_learn_repeated_feature_name_raises() -> None:
    frame = pd.DataFrame({"c=p": [1, 2], "c": ["p", "q"]})
    with pytest.raises(GraphError, match="different names, got 'c=p' from two columns"):
        learn(frame)


def test_learn_unknown_missing_raises(towns: pd.DataFrame) -> None:
    with pytest.raises(UnknownNameError, match="'inpute': did you mean impute"):
        learn(towns, missing="inpute")


def test_learn_median_of_huge_numbers_finite() -> None:
    frame = pd.DataFrame({"v": [1.6e308, 1.7e308, np.nan]})
    (column,) = learn(frame, missing="impute").columns
    assert column.fill == pytest.approx(1.65e308)


def stored(**change: Any) -> dict[str, Any]:
    number = {"name": "v", "kind": "number", "categories": [], "fill": 2.0, "blank": True}
    return {"missing": "impute", "columns": [number | change]}


def test_to_dict_json_round_trip_equal(towns: pd.DataFrame) -> None:
    gaps = towns.assign(income=[1.1, NA, 2.2, 3.3])
    for coding in (learn(towns), learn(gaps, missing="impute", categorical=["zone"])):
        text = json.dumps(coding.to_dict(), allow_nan=False)
        assert FeatureEncoder.from_dict(json.loads(text)) == coding
    assert FeatureEncoder.from_dict(stored()).to_dict() == stored()


@pytest.mark.parametrize(
    "values",
    [
        [],
        {},
        {"missing": "error"},
        {"missing": "never", "columns": []},
        {"missing": "error", "columns": []},
        {"missing": "error", "columns": ["v"]},
        {"missing": "error", "columns": {"name": "v"}},
        {"missing": "impute", "columns": stored()["columns"] * 2},
        stored(name=3),
        stored(kind="date"),
        stored(kind="category"),
        stored(kind="category", fill=None),
        stored(kind="category", fill=None, categories=["p", "p"]),
        stored(kind="category", fill=None, categories=["p", 3]),
        stored(kind="category", fill=None, categories="pq"),
        stored(categories=["p"]),
        stored(fill=None),
        stored(fill="2"),
        stored(fill=True),
        stored(fill=float("nan")),
        stored(fill=10**400),
        stored(blank=1),
        stored() | {"missing": "error"},
        stored(fill=None) | {"missing": "error"},  # blanks are refused, yet there were some
    ],
)
def test_from_dict_malformed_raises(values: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        FeatureEncoder.from_dict(values)


def test_repr_counts_columns_and_features(towns: pd.DataFrame) -> None:
    assert repr(learn(towns)) == "FeatureEncoder(3 columns, 5 features)"


CELLS = st.one_of(
    st.floats(),
    st.integers(),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.sampled_from(["north", "south", "1,234", "2020-01-01", "7", " 3.0", "NA", "inf", "nan"]),
)
COLUMNS = st.one_of(
    st.lists(CELLS, min_size=6, max_size=6),
    st.lists(st.floats(allow_infinity=False), min_size=6, max_size=6),
    st.lists(st.sampled_from(["north", "south", "", "west"]), min_size=6, max_size=6),
)


@settings(max_examples=150)
@given(
    st.lists(COLUMNS, min_size=1, max_size=3),
    st.sampled_from(["error", "impute"]),
    st.booleans(),
)
def test_encode_any_table_raises_or_finite(
    columns: list[list[Any]], missing: str, forced: bool
) -> None:
    frame = pd.DataFrame({f"c{i}": values for i, values in enumerate(columns)})
    categorical = ["c0"] if forced else []
    try:
        coding = learn(frame, missing=missing, categorical=categorical)
    except QpignnError:
        return
    matrix = coding.encode(frame, frame.index)
    assert matrix.shape == (6, len(coding.feature_names))
    assert np.isfinite(matrix).all()
    again = FeatureEncoder.from_dict(json.loads(json.dumps(coding.to_dict())))
    assert np.array_equal(again.encode(frame, frame.index), matrix)
    for name in coding.category_columns:
        assert "(other)" not in coding.categories_of(matrix, name)
