"""What the pages say is what the project does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from qpignn.methods.catalog import ALL

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_map_is_what_import_linter_enforces() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    house, inside = settings["tool"]["importlinter"]["contracts"]
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert "\n".join(house["layers"]) in page
    rooms = [
        ", ".join(room.removeprefix("qpignn.data.") for room in layer.split(" | "))
        for layer in inside["layers"]
    ]
    assert f"Inside `data`: {' > '.join(rooms)}." in page


def test_every_module_is_on_the_map() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "qpignn"
    for path in source.rglob("*.py"):
        inside = path.relative_to(source)
        if inside.name.startswith("__") or inside.parts[0] in ("cli", "reports"):
            continue
        folder = inside.parent.as_posix()
        told_once = folder in ("data/sources", "paper")  # many small files of one kind
        assert (f"`{folder}/`" if told_once else inside.name) in page, inside


@pytest.fixture
def tables(tmp_path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame(
        {
            "id": [f"A{i}" for i in range(60)],
            "lanes": rng.integers(1, 4, 60),
            "speed": rng.integers(3, 9, 60) * 10,
        }
    )
    nodes["flow"] = (600 * nodes["lanes"] + rng.normal(0, 50, 60)).where(np.arange(60) % 6 > 0)
    edges = pd.DataFrame({"from": nodes["id"][:-1].to_list(), "to": nodes["id"][1:].to_list()})
    return nodes, edges


def test_the_python_example(
    tables: tuple[pd.DataFrame, pd.DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = blocks(README, "python")
    names: dict[str, object] = {"nodes": tables[0], "edges": tables[1]}
    exec(code, names)
    assert len(names["intervals"]) == 10  # type: ignore[arg-type]
    assert "prediction" in capsys.readouterr().out


def test_the_csv_example(tables: tuple[pd.DataFrame, pd.DataFrame], tmp_path: Path) -> None:
    tables[0].to_csv(tmp_path / "nodes.csv", index=False)
    tables[1].to_csv(tmp_path / "edges.csv", index=False)
    shown = blocks(README, "csv")
    assert shown[0].splitlines()[0] == (tmp_path / "nodes.csv").read_text().splitlines()[0]
    assert shown[1].splitlines()[0] == (tmp_path / "edges.csv").read_text().splitlines()[0]
    (commands,) = [block for block in blocks(README, "bash") if "qpignn fit" in block]
    where = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": where}
    for line in commands.splitlines():
        command = line.split("#")[0].split()
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    written = pd.read_csv(tmp_path / "intervals.csv")
    assert written["id"].tolist() == [f"A{i}" for i in range(0, 60, 6)]


PAGES = [path for path in (ROOT / "docs").rglob("*.md") if blocks(path.read_text(), "python")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_python_block_of_the_docs_runs(page: Path) -> None:
    for code in blocks(page.read_text(encoding="utf-8"), "python"):
        exec(code, {"__name__": "docs"})


def test_every_method_has_its_page_and_links_lead_somewhere() -> None:
    for name in ALL:
        assert (ROOT / "docs" / "methods" / f"{name}.md").is_file()
    for page in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page, target)
