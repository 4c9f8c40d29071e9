"""A page in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qpignn.reports.page import render_page


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open content as a page; afterwards, fail on console messages, errors and requests."""
    problems: list[str] = []
    contexts = []

    def open_page(
        content: dict[str, Any], width: int = 1280, *, before: str = "", **options: Any
    ) -> Any:
        path = tmp_path / "page.html"
        path.write_text(render_page(content), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        if before:  # a script of the test that runs before the page's
            page.add_init_script(before)
        page.on(
            "console", lambda message: problems.append(f"console {message.type}: {message.text}")
        )
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
        page.on("request", lambda request: problems.extend(_elsewhere(request.url, path)))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def _elsewhere(url: str, path: Path) -> list[str]:
    own = url.startswith((path.as_uri(), "data:", "blob:"))
    return [] if own else [f"asked for {url}"]
