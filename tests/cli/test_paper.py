from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.image
import pytest

from qpignn.experiments.store import Store
from qpignn.paper import specs

Run = Callable[..., Any]
ROOT = Path(__file__).parent.parent.parent
SMALL = """
from qpignn.paper.spec import Condition, Spec, Variant
SPEC = Spec(
    name="small", title="Small", place="", datasets=("basic",), seeds=12,
    variants=(Variant("SQR", "sqr", {"epochs": 40}),),
    conditions=(Condition("", {"options": {"nodes": 200}}),),
)
"""


def test_paper_list_names_every_spec(qpignn: Run) -> None:
    listed = json.loads(qpignn("paper", "list", "--json").out)
    assert {line["name"] for line in listed} == set(specs())
    assert {line["kind"] for line in listed} == {"table", "figure"}
    shown = qpignn("paper", "list").out
    assert all(name in shown for name in specs())


@pytest.mark.slow  # tests of the pages of results run most of these commands
@pytest.mark.parametrize("protocol", ["corrected", "published"])
def test_paper_run_all_quick_writes_every_table_and_picture(
    qpignn: Run, protocol: str, tmp_path: Path
) -> None:
    out, to = tmp_path / "r.sqlite", tmp_path / "paper"
    arguments = ("--quick", "--protocol", protocol, "--results", out)
    done = qpignn("paper", "run", "all", *arguments, "--out", to)
    assert done.code == 0, done.err
    for spec in specs().values():
        stem = f"{spec.name}.{protocol}"
        if f"no rows for {spec.name}\n" in done.err:  # its data are not on this machine
            assert not {*spec.datasets} & {"basic", "er"}
            continue
        page = (to / f"{stem}.md").read_text()
        assert f"protocol {protocol}" in page
        assert len(re.findall(r"^\| (?!---)", page, flags=re.MULTILINE)) >= 2
        assert r"\begin{tabular}" in (to / f"{stem}.tex").read_text()
        json.loads((to / f"{stem}.json").read_text())
        if spec.facts:
            assert "| ours | paper | difference |" in (to / f"{stem}.against-paper.md").read_text()
        if spec.picture:
            assert matplotlib.image.imread(to / f"{stem}.png").std() > 0.05
            assert "<svg" in (to / f"{stem}.svg").read_text()
    shown = qpignn("paper", "show", "robustness", *arguments, "--format", "json")
    assert len(json.loads(shown.out)["rows"]) == 3
    beside = qpignn("paper", "show", "robustness", *arguments, "--against-paper").out
    assert "| er | SQR | feature noise 0.1 | PICP |" in beside


def measured(path: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
        rows = connection.execute("SELECT row FROM results").fetchall() if tables else []
    parsed = [json.loads(row) for (row,) in rows]
    for row in parsed:
        del row["fit_seconds"], row["peak_mb"]
    return sorted(parsed, key=lambda row: row["seed"])


@pytest.mark.slow
def test_paper_run_killed_and_repeated_gives_the_rows_of_one_run(tmp_path: Path) -> None:
    spec = tmp_path / "small.py"
    spec.write_text(SMALL)

    def start(name: str) -> subprocess.Popen[str]:
        arguments = (
            *("paper", "run", spec, "--jobs", 2),
            *("--results", tmp_path / name, "--out", tmp_path / f"{name}.to"),
        )
        return subprocess.Popen(
            [sys.executable, "-m", "qpignn", *map(str, arguments)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )

    killed = start("a.sqlite")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if (tmp_path / "a.sqlite").exists() and len(measured(tmp_path / "a.sqlite")) >= 2:
            break
        time.sleep(0.02)
    killed.kill()  # the first of the processes only
    killed.communicate(timeout=60)  # ends when the others have noticed, and ended
    kept = len(measured(tmp_path / "a.sqlite"))
    assert 2 <= kept < 12
    again, whole = start("a.sqlite"), start("b.sqlite")
    err = again.communicate(timeout=120)[1]
    assert f"12 rows, {kept} of them found" in err
    whole.communicate(timeout=120)
    assert measured(tmp_path / "a.sqlite") == measured(tmp_path / "b.sqlite")
    tables = [(tmp_path / f"{n}.sqlite.to" / "small.corrected.md").read_text() for n in "ab"]
    assert tables[0] == tables[1]


def test_paper_run_of_the_example_in_contributing(qpignn: Run, tmp_path: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(code.splitlines()) <= 40
    (tmp_path / "dropout.py").write_text(code)
    where = ("--quick", "--results", tmp_path / "r.sqlite")
    done = qpignn("paper", "run", tmp_path / "dropout.py", *where, "--out", tmp_path)
    assert done.code == 0, done.err
    assert "| er | a third lost |" in (tmp_path / "dropout.corrected.md").read_text()


def test_paper_invalid_spec_or_name_exits_2(qpignn: Run, tmp_path: Path) -> None:
    done = qpignn("paper", "run", "mains")
    assert (done.code, "unknown table or figure 'mains': did you mean main" in done.err) == (
        2,
        True,
    )
    store = ("--results", tmp_path / "r.sqlite")
    assert "nothing to show yet" in qpignn("paper", "show", "main", *store).err
    assert "no figures for 'coverage_error'" in (
        qpignn("paper", "show", "coverage_error", "--against-paper", *store).err
    )
    assert "unknown format 'html'" in qpignn("paper", "show", "main", "--format", "html").err
    assert "got no file" in qpignn("paper", "run", tmp_path / "absent.py").err
    (tmp_path / "empty.py").write_text("SPEC = 3")
    assert "got 3 for it" in qpignn("paper", "run", tmp_path / "empty.py").err
    assert "expected one table or figure, got all" in qpignn("paper", "show", "all").err
    (tmp_path / "syntax.py").write_text("SPEC =")
    assert "got an error: invalid syntax" in qpignn("paper", "run", tmp_path / "syntax.py").err
    for wrong, message in (
        ('picture="band",', "unknown picture 'band': did you mean bands"),
        ('picture="bands",', 'expected keep=("intervals",) for the picture bands'),
        ('table="grids",', "unknown table 'grids': did you mean grid"),
        ('facts="mains",', "unknown facts 'mains': did you mean main"),
    ):
        (tmp_path / "wrong.py").write_text(SMALL.replace("seeds=12,", wrong))
        done = qpignn("paper", "run", tmp_path / "wrong.py", *store)
        assert (done.code, message in done.err) == (2, True), done.err
    (tmp_path / "bad.py").write_text(SMALL.replace('"basic"', '"basics"'))
    bad = qpignn("paper", "run", tmp_path / "bad.py", *store)
    assert (bad.code, "did you mean basic" in bad.err) == (2, True)
    assert Store(tmp_path / "r.sqlite").get([]) == {}


def test_paper_run_lists_failed_cells_and_shows_the_others(qpignn: Run, tmp_path: Path) -> None:
    broken = SMALL.replace('{"epochs": 40})', '{"epochs": 2}), Variant("B", "sqr", {"lr": 1e30})')
    (tmp_path / "half.py").write_text(broken.replace("seeds=12", "seeds=1"))
    where = ("--results", tmp_path / "r.sqlite", "--out", tmp_path)
    done = qpignn("paper", "run", tmp_path / "half.py", *where)
    assert done.code == 1
    assert "failed: basic sqr seed 0: TrainingError" in done.err
    assert "| basic |" in (tmp_path / "small.corrected.md").read_text()
