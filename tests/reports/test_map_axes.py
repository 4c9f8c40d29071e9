"""Axes and scale bar of a map, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from page_content import hover, make_content

Visit = Callable[..., Any]
WATCH_CANVAS = """
  window.texts = [];
  window.path = [];
  const pen = CanvasRenderingContext2D.prototype;
  const watch = (name, seen) => {
    const own = pen[name];
    pen[name] = function (...given) { seen(...given); return own.apply(this, given); };
  };
  watch("clearRect", () => { window.texts = []; window.path = []; });
  watch("fillText", (text, x, y) => window.texts.push([text, x, y]));
  watch("moveTo", (x, y) => window.path.push([x, y]));
  watch("lineTo", (x, y) => window.path.push([x, y]));
"""


def on_map(**axes: Any) -> dict[str, Any]:
    """Nodes at the crossings of whole degrees, 6 to 12 east and 45 to 50 north."""
    content = make_content(42)
    places = [(lon, lat) for lat in range(45, 51) for lon in range(6, 13)]
    content["graph"] |= {
        "x": [(lon - 6) / 6 for lon, _ in places],
        "y": [1 - (lat - 45) / 5 for _, lat in places],
        "aspect": 6 * np.cos(np.radians(47.5)) / 5,
        "axes": {
            "names": ["lon", "lat"],
            "degrees": True,
            "latitude": 47.5,
            "x": [6, 12],
            "y": [45, 50],
            **axes,
        },
    }
    content["nodes"]["id"] = [f"at {lon} {lat}" for lon, lat in places]
    return content


def labels(page: Any) -> dict[str, tuple[float, float]]:
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return {text: (x, y) for text, x, y in page.evaluate("window.texts")}


def bar(page: Any) -> float:
    """The length of the scale bar, in pixels: it is drawn last."""
    path = page.evaluate("window.path.slice(-4)")
    (x, _), _, (end, _), _ = path
    return end - x


def degrees(page: Any) -> tuple[dict[float, float], dict[float, float]]:
    """Where longitudes and latitudes stand on the axes, in pixels."""
    ticks: dict[str, dict[float, float]] = {"E": {}, "N": {}}
    for text, (x, y) in labels(page).items():
        tick = re.fullmatch(r"([\d.]+)°\u00a0([EN])", text)
        if tick:
            ticks[tick[2]][float(tick[1])] = x if tick[2] == "E" else y
    return ticks["E"], ticks["N"]


def check_map(page: Any) -> None:
    """One scale for all directions, the bar as long as it says, nodes where the ticks say."""
    east, north = degrees(page)
    assert min(len(east), len(north)) >= 3
    lines = (np.polyfit(list(axis), list(axis.values()), 1) for axis in (east, north))
    (scale_x, x), (scale_y, y) = lines
    assert scale_x / -scale_y == pytest.approx(np.cos(np.radians(47.5)), rel=1e-6)
    (text,) = [text for text in labels(page) if "km" in text]
    kilometres = float(re.match(r"(\d+)\u00a0km", text)[1])
    assert bar(page) / -scale_y * np.pi / 180 * 6371.0088 == pytest.approx(kilometres, rel=1e-4)
    assert "at 48°\u00a0N" in text  # a degree east is a tenth longer at 45° than at 50°
    hover(page, x + 9 * scale_x, y + 47 * scale_y)
    assert "at 9 47\n" in page.inner_text("#tip")


def test_map_ticks_stand_at_their_coordinates_and_lengths_are_true(visit: Visit) -> None:
    page = visit(on_map(), before=WATCH_CANVAS)
    page.locator("#graph").scroll_into_view_if_needed()
    check_map(page)
    assert set(degrees(page)[1]) == {45, 46, 47, 48, 49, 50}
    page.click('[aria-label="Zoom in"]')
    page.click('[aria-label="Zoom in"]')
    check_map(page)
    assert 45 not in degrees(page)[1]  # out of sight
    page.locator("#graph").hover(position={"x": 300, "y": 200})
    page.mouse.down()
    page.mouse.move(500, 300, steps=4)
    page.mouse.up()
    page.focus("#graph")
    page.keyboard.press("0")
    check_map(page)


def test_map_across_the_date_line_and_the_equator_names_directions(visit: Visit) -> None:
    page = visit(on_map(x=[177, 183], y=[-2.5, 2.5], latitude=0), before=WATCH_CANVAS)
    shown = labels(page)
    assert {"178°\u00a0E", "178°\u00a0W", "0°", "2°\u00a0S", "2°\u00a0N"} <= set(shown)
    assert shown["178°\u00a0E"][0] < shown["178°\u00a0W"][0]
    assert shown["2°\u00a0S"][1] > shown["2°\u00a0N"][1]  # north is up


def test_map_of_plain_units_has_their_names_and_a_bar_in_units(visit: Visit) -> None:
    plain = {"names": ["east", "north"], "degrees": False, "latitude": None}
    content = on_map(**plain, x=[0, 6000], y=[0, 5000])
    content["graph"]["aspect"] = 6 / 5
    page = visit(content, before=WATCH_CANVAS)
    shown = labels(page)
    assert {"east", "north", "0", "2,000", "4,000"} <= set(shown)
    (scale,) = [text for text in shown if text.endswith("units")]
    length = float(scale.removesuffix(" units").replace(",", ""))
    ticks = page.evaluate("window.texts.filter(([text]) => text === '2,000' || text === '4,000')")
    lowest = max(y for *_, y in ticks)  # the axis below the map
    first, second = sorted(x for _, x, y in ticks if y == lowest)
    assert bar(page) / (second - first) * 2000 == pytest.approx(length, rel=1e-4)


@pytest.mark.parametrize("width", [390, 1280])
def test_map_fits_the_screen_and_graphs_without_coordinates_have_no_axes(
    visit: Visit, width: int
) -> None:
    page = visit(on_map(), width=width, before=WATCH_CANVAS)
    box = page.locator("#graph").bounding_box()
    for x, y in labels(page).values():
        assert 0 < x < box["width"]
        assert 0 < y < box["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert labels(visit(make_content(), before=WATCH_CANVAS)) == {}
