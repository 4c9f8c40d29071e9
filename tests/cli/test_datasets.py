from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qpignn import __version__
from qpignn.cli import app

runner = CliRunner()


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the real command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "qpignn", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_datasets_json_has_the_declared_counts(tmp_path: Path) -> None:
    done = run("datasets", "--json", QPIGNN_DATA_DIR=str(tmp_path), QPIGNN_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert len(rows) == 19
    assert (rows["anaheim"]["edges"], rows["anaheim"]["published_edges"]) == (3881, 3638)
    assert (rows["chicago"]["edges"], rows["chicago"]["published_edges"]) == (15104, 14961)
    assert rows["tree"]["nodes"] == 1000
    assert rows["tree"]["published_nodes"] == 511
    assert rows["basic"]["available"] is True
    assert rows["crocodile"]["available"] is False
    assert "musae_crocodile_features.json" in rows["crocodile"]["reason"]


def test_datasets_table_lists_missing_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("QPIGNN_DATA_DIR", "QPIGNN_CACHE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    shown = runner.invoke(app, ["datasets"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert "3,881" in shown.output
    assert "crocodile: not on this machine" in shown.output


def test_datasets_check_loads_available_data_sets(tmp_path: Path) -> None:
    empty = str(tmp_path)
    done = run("datasets", "--json", "--check", QPIGNN_DATA_DIR=empty, QPIGNN_CACHE_DIR=empty)
    assert done.returncode == 0
    json.loads(done.stdout)  # the verdict goes to stderr, the document stays one document
    assert "has the counts above" in done.stderr


def test_help_has_an_example_and_version_prints() -> None:
    assert "Example: qpignn datasets --json" in runner.invoke(app, ["datasets", "--help"]).output
    assert __version__ in runner.invoke(app, ["--version"]).output


def test_datasets_unknown_option_exits_2() -> None:
    assert run("datasets", "--jsn").returncode == 2
