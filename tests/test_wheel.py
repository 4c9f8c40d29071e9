"""The wheel works where there is no checkout: built, unpacked elsewhere, imported, run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from qpignn.reports.page import SCRIPTS

ROOT = Path(__file__).parent.parent
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ["wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*PIP, *build], check=True)
    (path,) = folder.glob("qpignn-*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(packed.read(name))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    target = wheel.parent / "site"
    subprocess.run([*PIP, "install", "--no-deps", "--target", str(target), str(wheel)], check=True)
    return target


def elsewhere(installed: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        command, cwd=installed.parent, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "qpignn/py.typed" in names
    assets = ["page.html", "page.css", "metrics.csv", *(f"{name}.js" for name in SCRIPTS)]
    assert {f"qpignn/reports/assets/{name}" for name in assets} <= set(names)
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"qpignn"}


def test_wheel_is_imported_and_run_without_the_checkout(installed: Path) -> None:
    code = "import qpignn; print(qpignn.__file__); print(qpignn.load_dataset('basic').num_nodes)"
    where, nodes = elsewhere(installed, sys.executable, "-c", code).split()
    assert Path(where).is_relative_to(installed)
    assert nodes == "1000"
    script = str(installed / "bin" / "qpignn")
    assert '"name": "basic"' in elsewhere(installed, script, "datasets", "--json")


def test_metadata_bounds_torch_to_the_tested_range(metadata: Message) -> None:
    required = metadata.get_all("Requires-Dist") or []
    (torch,) = (one for one in required if re.match("torch[<>=]", one))
    assert re.fullmatch(r"torch<\d+\.\d+,>=\d+\.\d+", torch)
    always = {re.split(r"\W", one)[0] for one in required if "extra ==" not in one}
    assert not always & {"matplotlib", "openpyxl", "pooch", "optuna", "ray", "mkdocs"}


def test_metadata_links_are_those_of_the_project(metadata: Message) -> None:
    assert {"Homepage", "Source", "Issues"} <= {
        link.split(",")[0] for link in metadata.get_all("Project-URL") or []
    }
    page = metadata.get_payload()
    assert isinstance(page, str)
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(links) > 10
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_sdist_holds_docs_examples_and_what_make_needs(tmp_path: Path) -> None:
    build = ["-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run([sys.executable, *build], cwd=ROOT, check=True, capture_output=True)
    (packed,) = tmp_path.glob("qpignn-*.tar.gz")
    with tarfile.open(packed) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"Makefile", "constraints.txt", "pyproject.toml", "README.md", "mkdocs.yml"}
    wanted |= {"docs/start.md", "examples/roads.py", "tests/conftest.py", "src/qpignn/py.typed"}
    assert wanted <= names
