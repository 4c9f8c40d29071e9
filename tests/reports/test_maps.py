"""Where a map draws nodes, against distances on a sphere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from qpignn.reports.layout import graph_drawing
from qpignn.reports.maps import map_of

RADIUS = 6371.0088  # the earth's mean radius, in km
DEGREE = np.pi / 180 * RADIUS  # of latitude, in km


def placed(pos: Any, names: Any = None) -> Data:
    points = torch.tensor(pos, dtype=torch.float64)
    data = Data(x=torch.ones(len(points), 1), edge_index=torch.empty((2, 0), dtype=torch.long))
    data.pos = points
    if names is not None:
        data.pos_names = names
    return data


def on_sphere(a: Any, b: Any) -> float:
    """Great-circle distance in km (haversine)."""
    (x1, y1), (x2, y2) = np.radians(a), np.radians(b)
    h = np.sin((y2 - y1) / 2) ** 2 + np.cos(y1) * np.cos(y2) * np.sin((x2 - x1) / 2) ** 2
    return float(2 * RADIUS * np.arcsin(np.sqrt(h)))


@given(st.floats(-170, 170), st.floats(-60, 60), st.integers(0, 2**32 - 1))
def test_map_of_degrees_keeps_distances_on_the_ground(lon: float, lat: float, seed: int) -> None:
    """Within half a degree of the middle, to one per cent, in every direction."""
    near = np.array([lon, lat]) + np.random.default_rng(seed).uniform(-0.25, 0.25, (6, 2))
    drawn = map_of(placed(near.tolist(), ["lon", "lat"]))
    assert drawn is not None
    assert drawn.degrees
    for i in range(1, 6):
        paper = np.linalg.norm(drawn.places[i] - drawn.places[0]) * DEGREE
        assert paper == pytest.approx(on_sphere(near[0], near[i]), rel=0.01)


def test_map_of_both_sides_of_the_date_line_is_cut_elsewhere() -> None:
    fiji = [[178.0, -17.0], [-179.0, -18.0], [179.5, -16.5]]
    drawn = map_of(placed(fiji, ["Longitude", "Latitude"]))
    assert drawn is not None
    assert np.ptp(drawn.places[:, 0]) / drawn.stretch == pytest.approx(3.0)
    around = map_of(placed([[float(x), 0.0] for x in range(-180, 180, 10)], ["lon", "lat"]))
    assert around is not None
    assert np.ptp(around.places[:, 0]) == pytest.approx(350.0)  # the whole earth stays as it is


@pytest.mark.parametrize(
    ("pos", "names"),
    [
        ([[500.0, 3.0], [900.0, 4.0]], ["lon", "lat"]),  # no degrees, whatever they are called
        ([[5.0, 95.0], [6.0, 4.0]], ["lon", "lat"]),
        ([[5.0, 45.0], [6.0, 46.0]], ["east", "north"]),
        ([[5.0, 45.0], [6.0, 46.0]], ["lat", "lon"]),
    ],
)
def test_map_of_other_coordinates_is_drawn_as_it_stands(pos: Any, names: Any) -> None:
    drawn = map_of(placed(pos, names))
    assert drawn is not None
    assert (drawn.degrees, drawn.latitude, drawn.names) == (False, None, tuple(names))
    assert drawn.places.tolist() == pos


@pytest.mark.parametrize("names", [None, ["a"], "xy", 7])
def test_map_of_coordinates_without_names_calls_them_x_and_y(names: Any) -> None:
    drawn = map_of(placed([[5.0, 45.0], [6.0, 46.0]], names))
    assert drawn is not None
    assert (drawn.degrees, drawn.names) == (False, ("x", "y"))


def test_map_of_missing_or_unfinished_coordinates_is_none() -> None:
    assert map_of(placed([[1.0, float("nan")], [0.0, 0.0]])) is None
    data = placed([[1.0, 2.0, 3.0]])
    assert map_of(data) is None
    del data.pos
    assert map_of(data) is None


@pytest.mark.parametrize("names", [["lon", "lat"], ["east", "north"]])
def test_graph_drawing_axes_give_back_every_coordinate(names: list[str]) -> None:
    """A share of the width or height, read off the axes, is the coordinate of the node."""
    pos = np.random.default_rng(0).uniform([6, 45], [12, 50], (40, 2))
    graph = graph_drawing(placed(pos.tolist(), names), np.arange(40))
    x, y = (np.array(graph[name])[np.argsort(graph["node"])] for name in "xy")
    left, right = graph["axes"]["x"]
    bottom, top = graph["axes"]["y"]
    np.testing.assert_allclose(left + x * (right - left), pos[:, 0], atol=1e-4)
    np.testing.assert_allclose(top + y * (bottom - top), pos[:, 1], atol=1e-4)
    across = (right - left) * np.cos(np.radians(pos[:, 1].mean()) if names[0] == "lon" else 0)
    assert graph["aspect"] == pytest.approx(across / (top - bottom))


def test_graph_drawing_one_place_has_axes_of_some_length() -> None:
    graph = graph_drawing(placed([[8.0, 47.0]] * 3, ["lon", "lat"]), np.arange(3))
    assert graph["axes"]["x"][0] < graph["axes"]["x"][1]
    assert graph["axes"]["y"][0] < graph["axes"]["y"][1]
