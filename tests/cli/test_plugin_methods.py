"""A method of the user's own on the command line: compared, fitted, and loaded again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SOURCE = '''
from qpignn.methods.quantile import QuantileGNN


class Mine(QuantileGNN):
    """Quantiles."""
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mine.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return "mine.py:Mine"


def test_compare_with_a_method_of_a_file(qpignn: Run, mine: str) -> None:
    arguments = ("compare", "--datasets", "tree", "--seeds", 1, "--epochs", 2, "--json")
    arguments = (*arguments, "--results", "rows.sqlite", "--methods")
    done = qpignn(*arguments, f"{mine},conformal:{mine}")
    rows = json.loads(done.out)
    assert [row["method"] for row in rows] == ["mine.py:Mine", "conformal:mine.py:Mine"]
    assert "2 rows, 2 of them found" in qpignn(*arguments, f"{mine},conformal:{mine}").err
    Path("mine.py").write_text(SOURCE + "\n\nMORE = 1\n")
    assert "1 rows, 0 of them found" in qpignn(*arguments, mine).err


def test_fit_with_a_method_of_a_file_and_evaluate_it(qpignn: Run, mine: str) -> None:
    arguments = ("fit", "--dataset", "tree", "--method", mine, "--epochs", 2, "--out", "model")
    assert qpignn(*arguments).code == 0
    refused = qpignn("evaluate", "model")
    assert refused.code == 2
    assert "--method mine.py:TheClass" in refused.err
    assert qpignn("evaluate", "model", "--method", mine, "--json").code == 0
    assert qpignn("predict", "model", "--method", mine, "--out", "p.csv", "--only", "all").code == 0


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("absent.py:Mine", "absent.py: expected a Python file"),
        ("mine.py:Other", "expected an object named 'Other'"),
        ("mine.py:QuantileGNN.x", "unknown method"),
    ],
)
def test_fit_with_a_missing_plugin_is_refused(
    qpignn: Run, mine: str, method: str, message: str
) -> None:
    done = qpignn("fit", "--dataset", "tree", "--method", method, "--out", "model")
    assert (done.code, message in done.err) == (2, True), done.err
