"""Slow libraries are imported where they are used; ``benchmarks/imports.py`` has the times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SLOW = (
    *("torch._dynamo", "torch_geometric", "networkx", "sknetwork", "matplotlib", "openpyxl"),
    *("sklearn.ensemble", "sklearn.model_selection", "optuna", "ray", "IPython", "typer"),
)


def imported(code: str, *, among: tuple[str, ...]) -> list[str]:
    """Return which modules a new process has imported after some code."""
    code = f"{code}\nimport sys; print([name for name in {among!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules: list[str] = eval(done.stdout.splitlines()[-1])
    return modules


@pytest.mark.parametrize("name", ["QpiGNN", "Conformal", "load_method"])
def test_importing_a_method_imports_nothing_slow_but_torch(name: str) -> None:
    assert imported(f"from qpignn import {name}", among=(*SLOW, "torch")) == ["torch"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "--nodes", "nodes.csv", "--target", "t", "--confidence", "90", "--out", "m"),
        ("fit", "--nodes", "absent.csv", "--target", "t", "--out", "m"),
        ("fit", "--nodes", "nodes.csv", "--target", "absent", "--out", "m"),
        ("fit", "--dataset", "absent", "--out", "m"),
        ("fit", "--dataset", "er", "--method", "absent", "--out", "m"),
        ("fit", "--dataset", "er", "--test-fraction", "2", "--out", "m"),
        ("predict", "model", "--out", "intervals.txt"),
        ("compare", "--datasets", "absent"),
        ("compare", "--datasets", "er", "--methods", "absent"),
        ("compare", "--datasets", "er", "--confidence", "90"),
        ("fit", "--epochs", "many", "--out", "m"),
    ],
)
def test_wrong_options_are_refused_before_torch_is_imported(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes.csv").write_text("id,x,t\na,1,2\nb,2,3\n")
    monkeypatch.chdir(tmp_path)
    code = (
        f"import sys; sys.argv = ['qpignn', *{arguments!r}]\n"
        "from qpignn.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 2, end.code"
    )
    assert imported(code, among=("torch",)) == []
