"""The page of promises names tests that exist, and every promise names one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def missing(page: str) -> list[str]:
    """Return the tests a page names that are not there."""
    gone = []
    for path, name in NAMED.findall(page):
        file = ROOT / path
        tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.parse("")
        if name not in {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}:
            gone.append(f"{path}::{name}")
    return gone


def test_every_test_named_on_the_page_exists() -> None:
    assert missing(PAGE) == []


def test_missing_lists_names_that_do_not_exist() -> None:
    page = "`tests/test_promises.py::test_nothing` `tests/none.py::test_it` `tests/x.py::missing`"
    assert len(missing(page)) == 3
    assert missing("`tests/test_promises.py::missing`") == []


def test_every_promise_is_one_sentence_and_names_tests() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    rows = [line for line in rows if not line.startswith("| guarantee |")]
    assert len(rows) > 40
    for row in rows:
        promise, held = row.strip("| ").split(" | ")
        assert promise.endswith("."), promise
        assert ". " not in promise, f"one sentence each: {promise}"
        assert NAMED.sub("", held).strip(", ") == "", f"expected tests only, got {held}"
        assert NAMED.search(held), promise
    assert len(NAMED.findall(PAGE)) == PAGE.count("::")


def test_page_is_linked() -> None:
    assert "What qpignn promises: promises.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "(docs/promises.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(promises.md)" in (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
