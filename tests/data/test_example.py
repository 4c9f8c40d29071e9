from __future__ import annotations

import pandas as pd
import pytest

from qpignn import from_frames
from qpignn.data.example import example_tables
from qpignn.errors import SettingError


def test_example_tables_same_seed_equal() -> None:
    stations, roads = example_tables()
    assert len(stations) == 800
    assert stations["id"].is_unique
    assert stations["pollution"].isna().sum() == 200
    assert not stations.drop(columns="pollution").isna().any(axis=None)
    assert {*roads["from"], *roads["to"]} == set(stations["id"])
    assert (roads["from"] != roads["to"]).all()
    assert not roads.duplicated().any()
    again, _ = example_tables()
    pd.testing.assert_frame_equal(stations, again)
    assert not example_tables(seed=1)[0]["lon"].equals(stations["lon"])


def test_example_tables_from_frames_has_coordinates() -> None:
    data = from_frames(*example_tables(100), target="pollution")
    assert data.pos.shape == (100, 2)
    assert data.coding.category_columns == ["kind"]
    with pytest.raises(SettingError, match="from 20 up"):
        example_tables(5)
