"""Filter, colours and columns of the page, in a real browser."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from page_content import BORDER, hover, in_table, make_content, search_for, with_columns

Visit = Callable[..., Any]


def counts(page: Any) -> dict[str, str]:
    page.wait_for_function("() => document.querySelector('[data-count=all]').textContent")
    choices = page.locator(".choice").all()
    return {one.locator("span").inner_text(): one.locator("output").inner_text() for one in choices}


# ---- threshold


def test_threshold_classifies_nodes_by_their_bounds(visit: Visit) -> None:
    page = visit(make_content(60))  # node i: i ± (1 + i / 60)
    assert page.locator("#choices").is_hidden()
    page.fill("#threshold", "30")
    # lower > 30 from node 32 on; upper < 30 up to node 28
    assert counts(page) == {
        "all nodes": "60",
        "surely above": "28",
        "surely below": "29",
        "may be either": "3",
    }
    page.get_by_label("surely above").check()
    assert "of 28 nodes" in page.inner_text("#count")
    assert in_table(page)[0] == "node 32"
    page.get_by_label("may be either").check()
    assert in_table(page) == ["node 29", "node 30", "node 31"]
    page.select_option("#role", label="held out")  # every third, from node 1
    assert in_table(page) == ["node 31"]
    assert counts(page)["surely below"] == "10"
    assert "about 10\u00a0% of all true values are outside their interval" in page.inner_text(
        "#nodes"
    )
    page.fill("#threshold", "")
    page.wait_for_function("() => document.getElementById('choices').disabled")
    assert "of 20 nodes" in page.inner_text("#count")  # the role alone


@pytest.mark.parametrize(
    ("side", "wanted"),
    [
        ("upper", {"all nodes": "60", "surely below": "29", "may be above": "31"}),
        ("lower", {"all nodes": "60", "surely above": "28", "may be below": "32"}),
    ],
)
def test_threshold_one_sided_offers_one_side(
    visit: Visit, side: str, wanted: dict[str, str]
) -> None:
    content = make_content(60) | {"side": side, "misses": None, "errors": []}
    other = {"upper": "lower", "lower": "upper"}[side]
    content["nodes"][other] = [None] * 60
    content["band"][other] = [None] * len(content["band"]["node"])
    page = visit(content)
    page.fill("#threshold", "30")
    assert counts(page) == wanted


def centre(page: Any, content: dict[str, Any], i: int) -> tuple[float, float]:
    """Where a node of a graph without coordinates is on the canvas, before any zoom."""
    graph, box = content["graph"], page.locator("#graph").bounding_box()
    wide, high = box["width"] - 2 * BORDER, box["height"] - 2 * BORDER
    w = min(wide - 36, (high - 36) * graph["aspect"])
    h = w / graph["aspect"]
    return (wide - w) / 2 + graph["x"][i] * w, (high - h) / 2 + graph["y"][i] * h


def colour_at(page: Any, x: float, y: float) -> list[int]:
    return page.evaluate(
        """async ([x, y]) => {
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          const copy = document.createElement("canvas");
          const pen = copy.getContext("2d", { willReadFrequently: true }), ratio = devicePixelRatio;
          pen.drawImage(document.getElementById("graph"), -x * ratio, -y * ratio);
          return [...pen.getImageData(0, 0, 1, 1).data];
        }""",
        [x, y],
    )


def test_threshold_filters_the_graph_too(visit: Visit) -> None:
    content = make_content(60)
    page = visit(content)
    spot = centre(page, content, 10)
    hover(page, *spot)
    assert "node 10\n" in page.inner_text("#tip")
    page.fill("#threshold", "30")
    counts(page)
    page.get_by_label("surely above").check()
    hover(page, *centre(page, content, 40))
    assert "node 40\n" in page.inner_text("#tip")
    hover(page, *spot)
    assert page.is_hidden("#tip")
    page.focus("#graph")
    for _ in range(12):
        page.keyboard.press("ArrowUp")
    row = int(re.search(r"node (\d+)", page.inner_text("#panel"))[1])
    assert row >= 32  # the keyboard, too, meets only nodes that are left
    search_for(page, "nowhere", "No node matches")
    page.keyboard.press("Tab")
    page.focus("#graph")
    page.keyboard.press("ArrowUp")  # nothing to step to


# ---- colours


def test_colour_by_prediction_error_and_width(visit: Visit) -> None:
    content = make_content(60)
    error = np.linspace(-3, 3, 60)
    labelled = [i for i in range(60) if content["nodes"]["role"][i] != 2]
    content["nodes"]["target"] = [i + error[i] if i in labelled else None for i in range(60)]
    page = visit(content, color_scheme="light")
    page.uncheck("#mark")
    ends = {i: centre(page, content, i) for i in (0, 2, 58, 59)}
    page.select_option("#colour", label="prediction")
    assert colour_at(page, *ends[0])[:3] == [0x44, 0x01, 0x54]  # viridis, from its dark end
    assert colour_at(page, *ends[59])[:3] == [0xFD, 0xE7, 0x25]
    text = page.locator("#ramp").text_content()
    assert "prediction of unemployment" in text
    assert re.search(r"≤ 1\.00.*29\.50.*≥ 58\.00", text)  # quantiles 2 % and 98 %, and their middle
    page.select_option("#colour", "error")
    assert colour_at(page, *ends[0])[:3] == [0x08, 0x30, 0x6B]  # far below its prediction
    assert colour_at(page, *ends[58])[:3] == [0x7F, 0x3B, 0x08]  # far above it
    assert colour_at(page, *ends[59])[:3] == [0xC3, 0xC8, 0xCE]  # unlabelled: grey
    assert "grey: no true value" in page.locator("#ramp").text_content()
    assert "0.00" in page.locator("#ramp").text_content()  # in the middle, where colours turn
    assert "held-out nodes" in page.inner_text("#colour-note")
    page.click("#theme")
    assert colour_at(page, *ends[58])[:3] == [0xFF, 0xB8, 0x77]  # bright on a dark ground
    page.select_option("#colour", "width")
    assert colour_at(page, *ends[59])[:3] == [0xFD, 0xE7, 0x25]  # the widest
    assert page.inner_text("#colour-note") == ""


def test_colour_by_width_equal_widths_have_one_colour(visit: Visit) -> None:
    """As after conformal calibration; rounding makes them differ in the last digit."""
    content = make_content(60)
    middle = [1000.0 + 10 * i for i in range(60)]
    content["nodes"] |= {
        "prediction": middle,
        "lower": [x - 82.13 for x in middle],
        "upper": [x + 82.13 + 1e-6 * (i % 2) for i, x in enumerate(middle)],
    }
    page = visit(content)
    page.uncheck("#mark")
    assert "164 everywhere" in page.locator("#ramp").text_content()
    first, second = (colour_at(page, *centre(page, content, i)) for i in (20, 21))
    assert first == second


# ---- columns


def heads(page: Any) -> list[str]:
    return page.locator("#head th").all_inner_texts()


def test_own_columns_first_few_are_shown_and_others_chosen(visit: Visit) -> None:
    page = visit(with_columns())
    assert heads(page)[-3:] == ["year", "name", "a"]
    assert page.locator("#rows tr").nth(2).locator("td.own").all_inner_texts() == [
        "2002",  # a year has no thousands
        "mill 9",
        "−0.666667",
    ]
    assert page.inner_text("#chooser summary") == "Columns (11 of 13)"
    page.click("#chooser summary")
    page.check('[data-column="own-0"]')
    page.uncheck('[data-column="role"]')
    assert heads(page)[:2] == ["node", "prediction"]
    assert "lon" in heads(page)
    page.keyboard.press("Escape")
    assert page.locator("#columns").is_hidden()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.locator("#rows tr").nth(3).click()
    card = page.locator("#panel dl.own").inner_text()
    assert re.sub(r"\s+", " ", card) == "lon 0.375 year 2003 name – a −1 b –"


def test_own_columns_sort_numerically_and_in_natural_order(visit: Visit) -> None:
    page = visit(with_columns(8))
    page.click('[data-sort="own-3"]')
    assert in_table(page) == [f"node {i}" for i in range(7, -1, -1)]
    page.click('[data-sort="own-2"]')
    names = page.locator("#rows td.own.text").all_inner_texts()
    assert names == ["lake", "lake", "mill 9", "mill 9", "mill 10", "mill 10", "–", "–"]
    page.keyboard.press("Enter")  # the heading keeps the focus
    assert page.get_attribute("th:has([data-sort=own-2])", "aria-sort") == "descending"
    names = page.locator("#rows td.own.text").all_inner_texts()
    assert names == ["mill 10", "mill 10", "mill 9", "mill 9", "lake", "lake", "–", "–"]


def test_search_in_text_finds_nodes_by_their_columns(visit: Visit) -> None:
    page = visit(with_columns())
    search_for(page, "MILL 9", "No node matches")
    page.select_option("#where", label="in ids and text")
    assert "of 15 nodes" in page.inner_text("#count")
    search_for(page, "node 59", "of 1 nodes")
    assert visit(make_content()).locator("#where").count() == 0  # no text to search in


def test_saved_rows_have_the_columns_shown_and_no_formulas(visit: Visit, tmp_path: Path) -> None:
    content = with_columns(4)
    content["columns"]["list"][2] |= {"name": "=cmd", "categories": ["=1+1", "-5", "a,b"]}
    content["columns"]["list"][3]["name"] = "upper"
    page = visit(content)
    page.click("#chooser summary")
    page.uncheck('[data-column="role"]')
    with page.expect_download() as waiting:
        page.click("#download")
    waiting.value.save_as(tmp_path / "nodes.csv")
    with (tmp_path / "nodes.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    own = ["year", "'=cmd", "upper (table)"]
    builtin = ["id", "prediction", "lower", "upper", "width", "target", "inside"]
    assert list(rows[0]) == builtin + own
    assert [row["'=cmd"] for row in rows] == ["'=1+1", "-5", "a,b", ""]
    assert [float(row["upper (table)"]) for row in rows] == pytest.approx([0, -1 / 3, -2 / 3, -1])


def test_columns_left_out_are_named_without_javascript(visit: Visit) -> None:
    content = make_content()
    content["columns"]["left_out"] = ["<b>income</b>", "age"]
    page = visit(content, java_script_enabled=False)
    assert "2 further columns are not on this page" in page.inner_text("#nodes")
    assert "<b>income</b>" in page.inner_text("#nodes")


def test_ten_thousand_nodes_with_thirty_columns_stay_quick(visit: Visit) -> None:
    content = make_content(10_000, drawn=4_000)
    rng = np.random.default_rng(0)
    content["columns"]["list"] = [
        {
            "name": f"column {i}",
            "shown": True,
            "kind": "number",
            "values": rng.normal(size=10_000).round(6).tolist(),
        }
        for i in range(29)
    ]
    coded = {"categories": [f"place {i}" for i in range(10_000)], "codes": list(range(10_000))}
    text = {"name": "place", "shown": True, "kind": "text", **coded}
    content["columns"]["list"].append(text)
    page = visit(content)
    start = page.evaluate("performance.now()")
    page.select_option("#where", "text")
    search_for(page, "place 777", "of 11 nodes")
    page.fill("#threshold", "5000")
    assert counts(page)["all nodes"] == "11"
    search_for(page, "", "of 10,000 nodes")
    page.click("#chooser summary")
    page.check('[data-column="own-29"]')
    page.click('[data-sort="own-29"]')
    page.locator("#rows tr").nth(3).click()
    assert page.evaluate("performance.now()") - start < 5_000  # about one second
    assert "place 3" in page.inner_text("#panel")
