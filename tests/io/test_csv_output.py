"""Tables as CSV that every reader splits into the same cells, and on request without formulas."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest

from qpignn.io.csv_output import is_formula, to_csv


def test_to_csv_plain_table_is_written_without_quotes() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "lower": [0.5, -1.0]})
    assert to_csv(frame) == b"id,lower\na,0.5\nb,-1.0\n"


@pytest.mark.parametrize("text", ["x\r=1+1", "x\n=1+1", "x\r\n=1+1", 'x"y', "x,y"])
def test_to_csv_text_with_line_ends_and_delimiters_stays_one_cell(text: str) -> None:
    written = to_csv(pd.DataFrame({"id": [text, "b"], "upper": [1, 2]})).decode()
    rows = list(csv.reader(io.StringIO(written, newline="")))
    assert rows == [["id", "upper"], [text, "1"], ["b", "2"]]


def test_to_csv_for_a_spreadsheet_puts_an_apostrophe_before_formulas_only() -> None:
    frame = pd.DataFrame({"=id": ["=1+1", "-5", "plain", " @x"], "upper": [-1, 2, 3, 4]})
    rows = list(csv.reader(io.StringIO(to_csv(frame, spreadsheet=True).decode(), newline="")))
    assert rows[0] == ["'=id", "upper"]
    assert [row[0] for row in rows[1:]] == ["'=1+1", "-5", "plain", "' @x"]
    assert rows[1][1] == "-1"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("=1", True), ("+a", True), ("-5", False), ("-5+2", True), ("\t-5", True), ("a=1", False)],
)
def test_is_formula(cell: str, expected: bool) -> None:
    assert is_formula(cell) is expected
