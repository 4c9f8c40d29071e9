from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from page_content import column, in_table, make_content, search_for, with_columns
from qpignn.reports.page import render_page

Visit = Callable[..., Any]
HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "</script><script>window.hacked=1</script>",
    "line\u2028and\u2029paragraph",
    "<!--<script>",
    "$title ${content} {{7*7}}",
    "half a character \ud800",
)


def test_page_without_javascript_has_text_and_tables(visit: Visit) -> None:
    page = visit(make_content(), java_script_enabled=False)
    text = page.inner_text("body")
    for phrase in (
        "Unemployment by county",
        "Good. The intervals hold.",
        "One sentence. Another sentence.",
        "Warning. Hubs are covered less often.",
        "Coverage by group",
        "61.0\u00a0%",  # of the second group
        "◆ low",
        "3 had a true value below",
        "need JavaScript",
    ):
        assert phrase in text
    page.click("text=All metrics")
    assert "0.9123" in page.inner_text("#background")
    assert page.locator(".js-only:visible").count() == 0


def test_charts_are_drawn_and_have_descriptions(visit: Visit) -> None:
    page = visit(make_content())
    charts = page.locator("[data-chart]:visible")
    assert charts.count() == 9  # band, misses, calibration, errors, one grouping, four of training
    for chart in charts.all():
        assert len(chart.get_attribute("aria-label")) > 30
        assert chart.locator("svg path, svg rect").count() > 2
    smallest = page.evaluate(
        """() => Math.min(...[...document.querySelectorAll('body *')].filter(e => e.innerText
           || e.textContent).map(e => parseFloat(getComputedStyle(e).fontSize)))"""
    )
    assert smallest >= 11


def test_chart_points_show_tips_by_pointer_and_keys(visit: Visit) -> None:
    page = visit(make_content())
    page.focus('[data-chart="calibration"]')
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "nominal 80.0\u00a0%" in page.inner_text("#tip")
    assert "observed 81.0\u00a0%" in page.inner_text("#status")
    page.keyboard.press("Escape")
    assert page.is_hidden("#tip")
    page.locator('[data-chart="calibration"] circle.mark').nth(2).hover()
    assert "nominal 90.0\u00a0%" in page.inner_text("#tip")


def test_grouping_selection_shows_its_chart(visit: Visit) -> None:
    page = visit(make_content())
    assert page.is_visible("text=Groups by degree.")
    assert page.is_hidden("text=Groups by region.")
    page.select_option("#grouping", label="region")
    assert page.is_hidden("text=Groups by degree.")
    assert page.is_visible("text=Groups by region.")
    chart = page.locator('[data-chart="group-1"] svg')
    assert chart.bounding_box()["width"] > 200
    assert "low" in chart.text_content()


def test_table_searches_filters_and_sorts(visit: Visit) -> None:
    page = visit(make_content(60))
    assert "1–15 of 60" in page.inner_text("#count")
    page.click("text=Next")
    assert in_table(page)[0] == "node 15"
    search_for(page, "NODE 5", "of 11 nodes")
    assert in_table(page) == ["node 5", *(f"node {i}" for i in range(50, 60))]
    page.select_option("#role", label="held out")
    assert in_table(page) == ["node 52", "node 55", "node 58"]
    search_for(page, "nowhere", "No node matches")
    page.select_option("#role", label="all roles")
    search_for(page, "", "of 60 nodes")
    page.click('[data-sort="width"]')
    assert page.get_attribute("th.width", "aria-sort") == "ascending"
    page.click('[data-sort="width"]')
    assert page.get_attribute("th.width", "aria-sort") == "descending"
    assert in_table(page)[0] == "node 59"
    page.click('[data-sort="target"]')
    targets = column(page, "target")
    assert targets == sorted(targets)
    assert page.get_attribute("th.width", "aria-sort") == "none"
    page.click("text=Last")
    assert page.locator("#rows td.target").last.inner_text() == "–"  # unknown ones come last


def test_table_numeric_ids_sort_as_numbers(visit: Visit) -> None:
    content = make_content(3)
    content["nodes"]["id"] = ["10", "9", "-1"]
    page = visit(content)
    page.click('[data-sort="id"]')
    assert in_table(page) == ["-1", "9", "10"]


def test_table_row_click_shows_card_and_marks_graph(visit: Visit) -> None:
    page = visit(make_content(60))
    before = page.locator("#graph").evaluate("e => e.toDataURL()")
    page.locator("#rows tr").nth(7).locator("td.lower").click()
    panel = page.inner_text("#panel")
    assert "node 7\n" in panel
    assert "5.88 to 8.12" in panel  # 7 ± (1 + 7 / 60)
    assert page.locator("#rows tr").nth(7).get_attribute("aria-current") == "true"
    page.wait_for_function(
        "before => document.getElementById('graph').toDataURL() !== before", arg=before
    )
    page.locator("#rows tr button").nth(8).focus()
    page.keyboard.press("Enter")
    assert "node 8\n" in page.inner_text("#panel")


def place_of(page: Any, i: int, content: dict[str, Any]) -> tuple[float, float]:
    """Where a node is drawn before any zoom: the graph fills its canvas but for a margin."""
    graph, box = content["graph"], page.locator("#graph").bounding_box()
    margin = 19  # with the border
    width = min(box["width"] - 2 * margin, (box["height"] - 2 * margin) * graph["aspect"])
    height = width / graph["aspect"]
    return (
        (box["width"] - width) / 2 + graph["x"][i] * width,
        (box["height"] - height) / 2 + graph["y"][i] * height,
    )


def test_graph_node_hover_and_click_show_card(visit: Visit) -> None:
    content = make_content(60)
    page = visit(content)
    canvas = page.locator("#graph")
    x, y = place_of(page, 21, content)
    canvas.hover(position={"x": x, "y": y})
    assert "node 21\n" in page.inner_text("#panel")
    assert "node 21\n" in page.inner_text("#tip")
    canvas.hover(position={"x": 3, "y": 3})
    assert "No node selected" in page.inner_text("#panel")
    canvas.click(position={"x": x, "y": y})
    canvas.hover(position={"x": 3, "y": 3})
    panel = page.inner_text("#panel")
    assert "node 21\n" in panel
    assert "19.65 to 22.35" in panel
    assert "given" in panel


def test_graph_keyboard_moves_and_selects(visit: Visit) -> None:
    page = visit(make_content(60))  # eight a row
    page.focus("#graph")
    page.keyboard.press("ArrowRight")  # to the middle
    first = int(re.search(r"node (\d+)", page.inner_text("#panel"))[1])
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert f"node {first + 9}\n" in page.inner_text("#panel")
    assert f"node {first + 9}, " in page.inner_text("#status")
    page.keyboard.press("+")
    page.wait_for_selector("#graph.zoomed")
    page.keyboard.press("Tab")
    assert f"node {first + 9}\n" in page.inner_text("#panel")


def test_graph_zoom_and_drag_move_nodes(visit: Visit) -> None:
    content = make_content(60)
    page = visit(content)
    canvas = page.locator("#graph")
    canvas.scroll_into_view_if_needed()
    x, y = place_of(page, 0, content)
    page.click('[aria-label="Zoom in"]')
    canvas.hover(position={"x": x, "y": y})
    assert "node 0\n" not in page.inner_text("#panel")
    box = canvas.bounding_box()
    middle = {"x": box["width"] / 2, "y": box["height"] / 2}
    page.mouse.move(box["x"] + middle["x"], box["y"] + middle["y"])
    page.mouse.down()
    moved = ((middle["x"] - x) / 2, (middle["y"] - y) / 2)  # zoomed half as far again
    page.mouse.move(box["x"] + middle["x"] + moved[0], box["y"] + middle["y"] + moved[1], steps=4)
    page.mouse.up()
    canvas.hover(position={"x": x, "y": y})
    assert "node 0\n" in page.inner_text("#panel")
    page.click("text=Fit")
    x, y = place_of(page, 21, content)
    canvas.hover(position={"x": x, "y": y})
    assert "node 21\n" in page.inner_text("#panel")


def test_page_keyboard_reaches_all_controls(visit: Visit) -> None:
    page = visit(make_content())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
        seen = page.evaluate(
            "() => document.activeElement === document.body || "
            "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
        )
        assert seen
    assert {"theme", "grouping", "graph", "search", "role", "download", "mark"} <= reached
    assert {"threshold", "colour", "panel"} <= reached


def test_download_csv_has_no_formulas(visit: Visit, tmp_path: Path) -> None:
    content = make_content(5)
    ids = ["=1+1", "-5", 'a "quoted", id', "@x", "plain"]
    content["nodes"]["id"] = ids
    content["nodes"]["lower"][0] = None
    page = visit(content)
    page.select_option("#role", label="all roles")
    with page.expect_download() as waiting:
        page.click("#download")
    waiting.value.save_as(tmp_path / "nodes.csv")
    with (tmp_path / "nodes.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["'=1+1", "-5", 'a "quoted", id', "'@x", "plain"]
    assert float(rows[0]["lower"]) == -np.inf
    assert float(rows[1]["upper"]) == content["nodes"]["upper"][1]
    assert rows[2]["target"] == ""


@pytest.mark.parametrize("width", [390, 1280])
def test_page_is_not_wider_than_the_screen(visit: Visit, width: int) -> None:
    content = with_columns(60)
    content["columns"]["list"][2]["categories"][0] = content["columns"]["list"][1]["name"] = (
        "W" * 300
    )
    content["nodes"]["id"][0] = content["groupings"][0]["groups"][0]["label"] = "W" * 300
    content["title"] = content["target"] = content["summary"][0] = "W" * 200
    page = visit(content, width=width)
    page.locator("#rows tr button").first.click()
    page.fill("#threshold", "30")
    for details in page.locator("summary").all():
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    other = 390 if width == 1280 else 1280
    page.set_viewport_size({"width": other, "height": 800})
    page.wait_for_function(
        "() => document.querySelector('[data-chart=band] svg').clientWidth <= innerWidth - 40"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= other


CONTRASTS = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = parts(colour).map((c) => c / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0.99) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const e of document.querySelectorAll("body *:not(script, option)")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const ink = e instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(ink), light(behind(e))].sort((p, q) => q - p);
    found.push([(a + 0.05) / (b + 0.05), e.textContent.slice(0, 40)]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_text_has_contrast_in_both_modes(visit: Visit, scheme: str) -> None:
    page = visit(with_columns(), color_scheme=scheme)
    page.locator("#rows tr button").nth(1).click()
    page.fill("#threshold", "30")
    page.wait_for_selector("#choices:enabled")
    page.click("#chooser summary")
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 150
    assert [text for contrast, text in contrasts if contrast < 4.5] == []


def test_dark_mode_is_kept_after_reload(visit: Visit) -> None:
    page = visit(make_content())
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    dark = page.evaluate(ground)
    assert dark != light
    assert page.get_attribute("#theme", "aria-pressed") == "true"
    assert min(contrast for contrast, _ in page.evaluate(CONTRASTS)) >= 4.5
    page.reload()
    assert page.evaluate(ground) == dark
    page.emulate_media(media="print")
    assert page.evaluate(ground) != dark  # paper is white
    page.emulate_media(media="screen", color_scheme="dark")
    page.click("#theme")
    assert page.evaluate(ground) == light  # the choice outweighs the system's


def test_page_hostile_names_are_only_text(visit: Visit) -> None:
    content = make_content(60)
    for i, name in enumerate(HOSTILE):
        content["nodes"]["id"][i] = name
    every = " ".join(HOSTILE)
    content["title"] = content["subtitle"] = content["target"] = every
    content["summary"] = content["settings"] = []
    content["verdict"]["text"] = content["findings"][0]["text"] = every
    content["groupings"][0] |= {"name": every, "title": every, "about": every}
    content["groupings"][0]["groups"][0]["label"] = every
    content["key_numbers"][0] = {"label": every, "value": every, "note": every}
    content["graph"]["note"] = content["nodes"]["note"] = every
    content["read"] = [[every, every]]
    content["training"]["stopped"] = every
    page = visit(content)
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2  # ours and the content
    assert page.inner_text("h1").startswith(HOSTILE[0])
    assert in_table(page)[0] == HOSTILE[0]
    for i in range(len(HOSTILE)):
        page.locator("#rows tr button").nth(i).click()
        assert page.locator("#panel h3").text_content()[:6] == HOSTILE[i][:6]
    page.focus('[data-chart="band"]')
    page.keyboard.press("Home")
    page.focus('[data-chart="group-0"]')
    page.keyboard.press("Home")
    assert HOSTILE[0] in page.inner_text("#tip")
    assert page.evaluate("window.hacked") is None


def test_page_policy_allows_only_its_own_script(visit: Visit) -> None:
    text = render_page(make_content())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "://" not in re.sub(r"http://www\.w3\.org/2000/svg", "", text)


def test_page_without_parts_leaves_sections_out(visit: Visit) -> None:
    content = make_content(60)
    empty: dict[str, Any] = dict.fromkeys(("figures", "band", "misses", "training", "graph"))
    lists = ("findings", "key_numbers", "calibration", "groupings", "errors")
    empty |= {name: [] for name in (*lists, "settings", "versions", "read")}
    page = visit({**content, **empty})
    titles = page.locator("main h2").all_inner_texts()
    assert titles == ["Summary", "Nodes"]
    assert page.locator(".contents a").all_inner_texts() == titles
    page.locator("#rows tr button").nth(3).click()
    assert "node 3\n" in page.inner_text("#panel")
    content["nodes"] |= {name: [] for name in ("id", "role", "degree", "target")}
    content["nodes"] |= {name: [] for name in ("prediction", "lower", "upper")}
    page = visit({**content, **empty, "summary": [], "nodes": content["nodes"]})
    assert page.locator("main h2").all_inner_texts() == ["Summary"]


def test_page_infinite_bounds_and_one_node_are_shown(visit: Visit) -> None:
    content = make_content(2, drawn=1)
    content["nodes"]["lower"] = [float("-inf"), None]
    content["nodes"]["upper"] = [float("inf"), 5.0]
    content["band"] |= {"lower": [None], "upper": [None]}
    content["graph"] |= {"edges": [], "x": [0.5], "y": [0.5], "aspect": 1.0}
    content["errors"] = [{"width": float("inf"), "error": 0.5, "nodes": 1}]
    content["groupings"][0]["groups"][0]["size"] = float("inf")
    page = visit(content)
    box = page.locator("#graph").bounding_box()
    page.click("#graph", position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert "−∞ to ∞" in page.inner_text("#panel")
    page.locator("#rows tr button").nth(1).click()
    assert "−∞ to 5" in page.inner_text("#panel")
    assert "open circle" in page.locator("#ramp").text_content()
    json.loads(page.locator("#content").text_content(), parse_constant=pytest.fail)


def test_page_a_hundred_thousand_nodes_opens_quickly(visit: Visit, tmp_path: Path) -> None:
    content = make_content(100_000, drawn=4_000)
    start = time.perf_counter()
    page = visit(content)
    opened = time.perf_counter() - start
    assert (tmp_path / "page.html").stat().st_size < 15e6
    assert opened < 8  # about two seconds, the browser's start and the writing included
    assert "of 100,000 nodes" in page.inner_text("#count")
    start = time.perf_counter()
    search_for(page, "node 9999", "of 11 nodes")
    assert time.perf_counter() - start < 2
    assert in_table(page) == ["node 9999", *(f"node {i}" for i in range(99_990, 100_000))]
    search_for(page, "", "of 100,000 nodes")
    page.click('[data-sort="prediction"]')
    page.click('[data-sort="prediction"]')
    assert in_table(page)[0] == "node 99999"
    page.locator("#rows tr button").first.click()
    assert "99,997.00 to 100,001.00" in page.inner_text("#panel")
