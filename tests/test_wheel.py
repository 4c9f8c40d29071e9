"""The wheel works where there is no checkout: built, unpacked elsewhere, imported, run."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from qpignn.reports.page import SCRIPTS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = folder.glob("qpignn-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "qpignn/py.typed" in names
    assets = ["page.html", "page.css", *(f"{name}.js" for name in SCRIPTS)]
    assert {f"qpignn/reports/assets/{name}" for name in assets} <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "shared/"))]
    target = folder / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    return target


def elsewhere(installed: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        command, cwd=installed.parent, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_import(installed: Path) -> None:
    code = "import qpignn; print(qpignn.__file__); print(qpignn.load_dataset('basic').num_nodes)"
    where, nodes = elsewhere(installed, sys.executable, "-c", code).split()
    assert Path(where).is_relative_to(installed)
    assert nodes == "1000"


def test_command_line(installed: Path) -> None:
    script = str(installed / "bin" / "qpignn")
    assert '"name": "basic"' in elsewhere(installed, script, "datasets", "--json")
