"""Pages of the documentation agree with the code: layers, modules, code blocks, links."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from qpignn.data.catalog import find_dataset
from qpignn.methods.catalog import ALL

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_architecture_layers_equal_import_linter_contracts() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    packages, inside = (one for one in contracts if one["type"] == "layers")
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert "\n".join(packages["layers"]) in page
    modules = [
        ", ".join(module.removeprefix("qpignn.data.") for module in layer.split(" | "))
        for layer in inside["layers"]
    ]
    assert f"Inside `data`: {' > '.join(modules)}." in page


def test_architecture_names_every_module() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "qpignn"
    for path in source.rglob("*.py"):
        inside = path.relative_to(source)
        if inside.name.startswith("__") or inside.parts[0] in ("cli", "reports"):
            continue
        folder = inside.parent.as_posix()
        named_by_folder = folder in (
            "data/sources",
            "paper/entries",
        )  # many small files of one kind
        assert (f"`{folder}/`" if named_by_folder else inside.name) in page, inside


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


@dataclass
class Reader:
    """Does what a page says, from top to bottom, in a folder of its own."""

    qpignn: Callable[..., Any]
    capsys: pytest.CaptureFixture[str]
    names: dict[str, object]

    def follow(self, page: str) -> None:
        checked = "<!-- outputs are checked -->" in page
        printed, end = None, 0
        for block in FENCE.finditer(page):
            language, code = block.groups()
            if language in ("python", "bash"):
                printed = self.python(code) if language == "python" else self.bash(code)
                end = block.end()
            elif language == "text" and checked and not page[end : block.start()].strip():
                assert printed is not None
                assert contains(printed, code), f"expected\n{code}\ngot\n{printed}"

    def python(self, code: str) -> str:
        exec(compile(code, "<docs>", "exec"), self.names)
        return "".join(self.capsys.readouterr())

    def bash(self, code: str) -> str:
        printed = ""
        for line in code.replace("\\\n", " ").splitlines():
            command, _, comment = line.partition(" #") if not line.startswith("#") else ("", "", "")
            arguments = shlex.split(command)
            if not arguments:
                continue
            if arguments[0] != "qpignn":
                check_command(arguments)
                continue
            for shrunk in shrink(arguments[1:]):
                done = self.qpignn(*shrunk)
                assert done.code == (2 if "exit code 2" in comment else 0), (shrunk, done.err)
                printed += done.out + done.err
        return printed


def contains(printed: str, wanted: str) -> bool:
    """Whether a text was printed, spaces aside; … stands for anything."""
    parts = [re.escape(" ".join(part.split())) for part in wanted.split("…")]
    return re.search(".*".join(parts), " ".join(printed.split())) is not None


def check_command(arguments: list[str]) -> None:
    """What cannot be done inside a test must at least be there."""
    if arguments[0] == "make":
        assert re.search(rf"^{arguments[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), (
            arguments
        )
    elif arguments[0] == "pip":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for extras in re.findall(r"qpignn\[(.*?)\]", " ".join(arguments)):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), arguments
    elif arguments[0] == "python":
        script = (ROOT / arguments[1]).read_text(encoding="utf-8")
        for option in arguments[2:]:
            assert not option.startswith("-") or f'"{option}"' in script, arguments
    else:
        assert arguments[0] in ("git", "cd"), arguments


def shrink(arguments: list[str]) -> list[list[str]]:
    """Make hours of computing minutes: two data sets, one seed, two epochs."""
    if arguments[0] == "paper" and arguments[1] in ("run", "show"):
        if arguments[2] == "all" or "--quick" in arguments:
            return []  # tests/cli/test_paper.py runs all of them so
        shared = ["--quick", "--results", "docs.sqlite"]
        small = [arguments[:2] + without(arguments[2:], "--seeds", "--jobs") + shared]
        if arguments[1] == "show":  # what is shown must have been run
            small.insert(0, ["paper", "run", *without(arguments[2:], *OPTIONS_OF_SHOW), *shared])
        return small
    if arguments[0] in ("compare", "curve"):
        if "--nodes" in arguments:  # tables of the page's own
            return [[*arguments, "--results", "docs.sqlite"]]
        if "--datasets" in arguments:  # not run, but there
            for name in arguments[arguments.index("--datasets") + 1].split(","):
                assert name == "all" or Path(name).is_dir() or find_dataset(name), arguments
        small = without(
            arguments, "--datasets", "--seeds", "--jobs", "--against", "--against-model"
        )
        small = [word.replace(",boosting", "") for word in small]  # trees have no epochs
        small += ["--datasets", "basic", "--seeds", "1"]
        return [[*small, "--epochs", "2", "--results", "docs.sqlite"]]
    return [arguments]


OPTIONS_OF_SHOW = ("--seeds", "--jobs", "--format", "--against-paper!")


def without(arguments: list[str], *options: str) -> list[str]:
    """Leave options out with their value; those ending in ! have none."""
    kept, skip = [], False
    for word in arguments:
        if skip:
            skip = False
        elif f"{word}!" not in options:
            skip = word in options
            kept += [] if skip else [word]
    return kept


def example_files(folder: Path) -> dict[str, object]:
    """Write the tables that the README speaks of; return them under the names it uses."""
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
    for name, table in (("nodes", nodes), ("edges", edges)):
        table.to_csv(folder / f"{name}.csv", index=False)
    for shown, table in zip(blocks(README, "csv"), (nodes, edges), strict=True):
        assert shown.splitlines()[0] == ",".join(table.columns)
    return {"nodes": nodes, "edges": edges}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_of_a_page_runs(
    page: Path,
    real: Callable[..., Any],
    qpignn: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = page.read_text(encoding="utf-8")
    for needed in re.findall(r"<!-- needs: (.*?) -->", text):
        for name in needed.split(","):
            real(name.strip())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "docs"}
    if page.name == "README.md":
        names |= example_files(tmp_path)
    Reader(qpignn, capsys, names).follow(text)
    if page.name == "README.md":
        written = pd.read_csv(tmp_path / "intervals.csv")
        assert written["id"].tolist() == [f"A{i}" for i in range(0, 60, 6)]


def test_every_method_has_a_page_and_links_exist() -> None:
    for name in ALL:
        assert (ROOT / "docs" / "methods" / f"{name}.md").is_file()
    for page in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page, target)


def test_site_builds_without_a_warning(tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:  # nothing is fetched from elsewhere
        fetched = re.findall(
            r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text()
        )
        assert not [url for url in fetched if "canonical" not in url], (page, fetched)
