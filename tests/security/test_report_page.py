"""The report page of a hostile table, up to a real browser: names are text, never code."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hostile import describe
from qpignn import QpiGNN, from_frames, split_nodes, write_report
from qpignn.methods.bundle import load_fit

RUN = "window.pwned=1"
HOSTILE = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</title></style><svg onload={RUN}>",
    f'"><img src=x onerror="{RUN}">',
    f"' autofocus onfocus='{RUN}",
    f"javascript:{RUN}",
    f'<a href="javascript:{RUN}">click</a>',
    f"<iframe srcdoc='<script>parent.{RUN}</script>'>",
    f"\u2028{RUN}//\u2029",
    f"<!--<script>{RUN}//",
    f"]]><script>{RUN}</script>",
    f"${{{RUN}}}`${{{RUN}}}`",
    f"\\u003cscript\\u003e{RUN}",
    f'=HYPERLINK("javascript:{RUN}")',
    "\x00<b>zero",
    "cr\r=1+1",
    " \t=1+1",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page where everything that a user's file can name is hostile."""
    rng = np.random.default_rng(0)
    count = 120
    ids = [*HOSTILE, *(f"n{i}" for i in range(count - len(HOSTILE)))]
    column, group, target = (f"{HOSTILE[i]} {i}" for i in (0, 3, 1))
    frame = pd.DataFrame(
        {
            "id": pd.Series(ids, dtype=object),
            column: rng.uniform(size=count),
            group: np.array(HOSTILE[:4], dtype=object)[np.arange(count) % 4],
        }
    )
    frame[target] = np.where(np.arange(count) % 5 == 0, np.nan, frame[column] * 3)
    edges = pd.DataFrame({"from": ids[:-1], "to": ids[1:]}, dtype=object)
    data = split_nodes(from_frames(frame, edges, target=target), test=0.4)
    model = QpiGNN([0.5, 0.9], epochs=2, hidden=4, members=5).fit(data)
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    # texts that are no features, in columns whose names are hostile too
    own = frame.assign(**{name: np.resize(HOSTILE, count) for name in HOSTILE})
    names = {"target": target, "title": f"{HOSTILE[2]} {target}"}
    write_report(model, data, path, by=[group], columns=own, **names)
    return path


def attributes_of(text: str) -> list[tuple[str, str | None]]:
    """Every attribute of every element, as a browser would see them."""
    attributes: list[tuple[str, str | None]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: attributes.extend(attrs)  # type: ignore[method-assign]
    parser.feed(text)
    return attributes


def test_report_page_escapes_hostile_names(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(re.findall("<script", text)) == 2  # ours and the content
    assert len(re.findall("</script", text)) == 2
    for markup in ("<img", "<iframe", "<svg onload", "<b>", "<!--", "\u2028", "\u2029", "\x00"):
        assert markup not in text, markup
    attributes = attributes_of(text)
    assert not [name for name, _ in attributes if name.startswith("on")]
    assert not [value for _, value in attributes if (value or "").strip().startswith("javascript:")]
    embedded = re.search(r'id="content">(.*?)</script>', text, re.DOTALL)
    assert embedded is not None
    assert embedded[1].isascii()
    assert json.loads(embedded[1])["nodes"]["id"][: len(HOSTILE)] == HOSTILE


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Any]:
    """The page in a browser; no dialog, no error and no request may come of it."""
    troubles: list[str] = []
    context = browser.new_context(accept_downloads=True)
    tab = context.new_page()
    tab.set_default_timeout(10_000)

    def dialog(shown: Any) -> None:
        troubles.append(f"dialog: {shown.message}")
        shown.dismiss()

    tab.on("dialog", dialog)
    tab.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    tab.on("console", lambda message: troubles.append(f"console: {message.text}"))
    tab.on("popup", lambda shown: troubles.append(f"popup: {shown.url}"))
    tab.on("request", lambda asked: troubles.extend(_elsewhere(asked.url, page)))
    tab.goto(page.as_uri())
    yield tab
    assert tab.evaluate("window.pwned") is None
    context.close()
    assert troubles == []


def _elsewhere(url: str, page: Path) -> list[str]:
    own = url.startswith((page.as_uri(), "data:", "blob:"))
    return [] if own else [f"asked for {url}"]


def test_report_page_runs_no_script_of_the_data_when_clicked(opened: Any) -> None:
    for text in HOSTILE[:4]:
        assert text in opened.inner_text("body")
    for i in range(len(HOSTILE)):
        if i == 15:
            opened.click('[data-page="on"]')
        opened.locator("#rows tr button").nth(i % 15).click()
        shown = opened.locator("#panel h3").text_content()
        assert shown[-6:] == HOSTILE[i].replace("\x00", "\ufffd")[-6:]
    for chart in ("band", "group-0"):
        opened.focus(f'[data-chart="{chart}"]')
        for key in ("Home", "ArrowRight", "End"):
            opened.keyboard.press(key)
    for option in range(opened.locator("#grouping option").count()):
        opened.select_option("#grouping", index=option)
    opened.fill("#search", HOSTILE[0])
    matches = sum(HOSTILE[0] in text for text in HOSTILE)
    opened.locator("#count", has_text=f"1–{matches} of {matches} nodes").wait_for()
    opened.focus("#graph")
    for key in ("ArrowRight", "Enter", "+", "-"):
        opened.keyboard.press(key)
    opened.locator("summary").last.click()


def test_report_page_shows_columns_of_the_user_as_text(opened: Any) -> None:
    opened.click("#chooser summary")
    boxes = opened.locator("#columns input")
    for i in range(boxes.count()):
        boxes.nth(i).check()
    shown = opened.locator("#head th").all_text_contents()
    visible = [text.replace("\x00", "\ufffd") for text in HOSTILE]
    assert set(visible) <= {text.replace("\x00", "\ufffd") for text in shown}
    cells = opened.locator("#rows tr").first.locator("td.own").all_text_contents()
    assert cells.count(HOSTILE[0]) >= len(HOSTILE)
    opened.locator("#rows tr").first.click()
    card = opened.locator("#panel dl.own").text_content()
    assert HOSTILE[3] in card
    for i in range(opened.locator("#head button").count()):
        opened.locator("#head button").nth(i).click()
    opened.select_option("#where", "text")
    opened.fill("#search", HOSTILE[4])
    opened.locator("#count", has_text="of 120 nodes").wait_for(state="hidden")
    opened.fill("#threshold", "1")
    opened.get_by_label("may be either").check()
    for colour in ("prediction", "error"):
        opened.select_option("#colour", colour)


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet computes it; negative numbers are not meant."""
    return cell.lstrip()[:1] in ("=", "+", "-", "@") and not re.fullmatch(r"-[\d.]+(e-?\d+)?", cell)


def test_report_page_saved_table_has_no_formula(opened: Any, tmp_path: Path) -> None:
    opened.click("#chooser summary")
    boxes = opened.locator("#columns input")
    for i in range(boxes.count()):
        boxes.nth(i).check()
    with opened.expect_download() as caught:
        opened.click("#download")
    caught.value.save_as(tmp_path / "nodes.csv")
    with (tmp_path / "nodes.csv").open(encoding="utf-8-sig") as file:  # any line end is one
        head, *rows = csv.reader(file)
    assert len(rows) == 120
    ids = [row[0] for row in rows]
    assert '\'=HYPERLINK("javascript:window.pwned=1")' in ids
    assert "'" + HOSTILE[13] in {cell for row in rows for cell in row[1:]}
    assert not [cell for row in (head, *rows) for cell in row if is_formula(cell)]


def test_report_page_escapes_scripts_in_model_json(model: Path, tmp_path: Path) -> None:
    description = json.loads((model / "model.json").read_text())
    old = description["coding"]["columns"][0]["name"]
    text = (model / "model.json").read_text().replace(json.dumps(old), json.dumps(HOSTILE[1]))
    (model / "model.json").write_text(text)
    describe(model)
    fit = load_fit(model)
    write_report(fit.model, fit.data, tmp_path / "r.html", target=HOSTILE[1])
    page = (tmp_path / "r.html").read_text()
    assert len(re.findall("<script", page)) == 2
    assert "&lt;/script&gt;&lt;script&gt;window.pwned=1" in page


def test_browser_check_detects_a_script_that_runs(browser: Any, tmp_path: Path) -> None:
    """A page without our care does run what is in it."""
    path = tmp_path / "careless.html"
    path.write_text(f"<body>{HOSTILE[3]}</body>")
    assert "onerror" in dict(attributes_of(path.read_text()))
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(path.as_uri())
    tab.wait_for_function("window.pwned === 1")
    context.close()
