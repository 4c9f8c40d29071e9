"""Which changes of code and data make stored rows stale."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from qpignn.data.sources import files, transport
from qpignn.errors import QpignnWarning, UnknownNameError
from qpignn.experiments import digest
from qpignn.experiments.cell import Cell
from qpignn.experiments.digest import (
    COMPUTING,
    LIBRARIES,
    NOT_COMPUTING,
    code_digest,
    data_digest,
    is_listed,
    package_digest,
    source_digest,
    versions,
)
from qpignn.experiments.run import CHANGED, run_cells
from qpignn.experiments.store import Store

pytestmark = pytest.mark.filterwarnings("ignore:.* is not the original file")

CODE = '''
"""About this file."""

LIMIT = 3
"""What the limit means."""


def double(x: int, *, of: str = "a") -> int:
    """Double it."""
    # by addition
    return x + x


class Empty:
    """Nothing here."""
'''
SAME_CODE = {
    "comment": CODE.replace("# by addition", "# by adding it to itself"),
    "no comments": CODE.replace("    # by addition\n", ""),
    "docstrings": CODE.replace("Double it.", "Return twice x.\n\n    Args:\n        x: a number."),
    "no docstring": CODE.replace('    """Double it."""\n', ""),
    "other text": CODE.replace('"""What the limit means."""', '"""How many."""'),
    "layout": CODE.replace("(x: int, *, of", "(\n    x: int,\n    *,\n    of").replace(
        "return x + x", "return (\n        x\n        + x  # twice\n    )"
    ),
    "quotes": CODE.replace('"a"', "'a'"),
    "spaces": CODE.replace("\n\n\n", "\n\n\n\n\n\n"),
}
OTHER_CODE = {
    "operator": CODE.replace("x + x", "x * x"),
    "number": CODE.replace("LIMIT = 3", "LIMIT = 4"),
    "type of a number": CODE.replace("LIMIT = 3", "LIMIT = 3.0"),
    "default": CODE.replace('"a"', '"b"'),
    "name": CODE.replace("double", "twice"),
    "statement": CODE.replace("    return x + x", "    x += 1\n    return x + x"),
    "order": CODE.replace("x + x", "x + x - 1").replace("x + x - 1", "x - 1 + x"),
    "string that is used": CODE.replace('"""What the limit means."""', 'TEXT = "What"'),
    "missing argument": CODE.replace(', *, of: str = "a"', ""),
}


@pytest.mark.parametrize("change", SAME_CODE)
def test_source_digest_of_reworded_or_reformatted_code_is_the_same(change: str) -> None:
    assert SAME_CODE[change] != CODE
    assert source_digest(SAME_CODE[change].encode()) == source_digest(CODE.encode())


@pytest.mark.parametrize("change", OTHER_CODE)
def test_source_digest_of_changed_code_is_another(change: str) -> None:
    assert source_digest(OTHER_CODE[change].encode()) != source_digest(CODE.encode())


def test_source_digest_keeps_none_and_empty_containers_apart() -> None:
    values = ("None", "[]", "()", "{}", "''", "0", "False", "[None]", "{**a}", "b''")
    assert len({source_digest(f"x = {value}".encode()) for value in values}) == len(values)


def test_every_module_is_listed_once_as_computing_or_not() -> None:
    package = Path(digest.__file__).parent.parent
    for path in package.rglob("*.py"):
        module = path.relative_to(package)
        lists = [is_listed(module, places) for places in (COMPUTING, NOT_COMPUTING)]
        assert lists in ([True, False], [False, True]), f"{module}: list it in digest.py once"


def test_listed_places_exist() -> None:
    package = Path(digest.__file__).parent.parent
    planned = {"tasks"}
    places = {*COMPUTING, *NOT_COMPUTING}
    assert {place for place in places if not (package / place).exists()} <= planned


def test_package_digest_counts_what_computes_and_nothing_else(tmp_path: Path) -> None:
    source, copy = Path(digest.__file__).parent.parent, tmp_path / "qpignn"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = package_digest(copy)
    assert before == package_digest(source) == code_digest()
    for shown in (
        *("cli/compare.py", "reports/tables.py", "paper/entries/main.py"),
        *("experiments/run.py", "experiments/digest.py"),
    ):
        (copy / shown).write_text("SOMETHING = 'else'")
    for commented in ("nn/heads.py", "experiments/cell.py"):
        (copy / commented).write_text((copy / commented).read_text() + "\n\n# a remark\n")
    assert package_digest(copy) == before
    for computing in (
        "runtime/randomness.py",
        "experiments/cell.py",
        "data/split.py",
        "nn/heads.py",
        "paper/published/methods.py",
    ):
        (copy / computing).write_text((copy / computing).read_text() + "\nANOTHER = 1\n")
        after = package_digest(copy)
        assert after != before
        before = after
    (copy / "nn" / "new.py").write_text("")  # a file more
    assert package_digest(copy) != before


@pytest.fixture
def roads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a data folder with a small road network in the place of Anaheim's."""
    folder = tmp_path / "data"
    monkeypatch.setenv(files.DATA_DIR, str(folder))
    monkeypatch.setenv("QPIGNN_CACHE_DIR", str(tmp_path / "cache"))
    rng, ring = np.random.default_rng(0), 60
    head = "<NUMBER OF LINKS> 60\n<END OF METADATA>\n\n~ init term\n"
    net, flow = head, "From\tTo\tVolume\tCost\n"
    for i in range(1, ring + 1):
        link = f"{i}\t{i % ring + 1}"
        capacity, length, time, speed = rng.integers(1, 100, 4)
        net += f"\t{link}\t{capacity}\t{length}\t{time}\t0.15\t4\t{speed}\t0\t1\t;\n"
        flow += f"{link}\t{10 * capacity + rng.integers(0, 50)}\t1\n"
    for kind, text in (("net", net), ("flow", flow)):
        path = folder / transport.CITIES["anaheim"].files[kind].path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def flow_file(folder: Path) -> Path:
    return folder / transport.CITIES["anaheim"].files["flow"].path


def change(path: Path) -> None:
    """Change one digit of a file, so that its size stays the same."""
    text = path.read_text()
    last = text.rindex("\t1\n") - 1
    path.write_text(f"{text[:last]}{(int(text[last]) + 1) % 10}{text[last + 1 :]}")


def test_key_after_a_changed_data_file_is_another(roads: Path) -> None:
    cell = Cell("anaheim", "sqr", 0, settings={"epochs": 2})
    with pytest.warns(QpignnWarning, match=r"Anaheim_flow\.tntp is not the original file"):
        before = cell.key()
    other_set, from_here = Cell("basic", "sqr", 0), Cell("basic", "sqr", 0, source="anaheim")
    fixed, taken = other_set.key(), from_here.key()
    size = flow_file(roads).stat().st_size
    change(flow_file(roads))
    assert flow_file(roads).stat().st_size == size
    assert cell.key() != before
    assert from_here.key() != taken  # also where it is only fitted on
    assert other_set.key() == fixed


def test_run_cells_after_a_changed_data_file_makes_new_rows(roads: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "r.sqlite")
    cells = [Cell("anaheim", "sqr", seed, settings={"epochs": 2}) for seed in range(2)]
    first = run_cells(cells, store)
    assert run_cells(cells, store).reused == 2
    change(flow_file(roads))
    second = run_cells(cells, store)
    assert second.reused == 0
    assert [row["mpiw_raw"] for row in first.rows] != [row["mpiw_raw"] for row in second.rows]
    flow_file(roads).write_text("From\tTo\tVolume\tCost\n")  # broken
    broken = run_cells(cells, store)
    assert (broken.rows, broken.reused) == ([], 0)
    assert all("expected a flow for every link" in message for _, message in broken.failures)


def test_row_of_files_that_changed_while_it_ran_is_refused(
    roads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run = Store(tmp_path / "r.sqlite"), Cell.run
    cells = [Cell("anaheim", "sqr", seed, settings={"epochs": 2}) for seed in range(2)]

    def disturbed(cell: Cell) -> dict[str, Any]:
        if cell.seed == 1:
            change(flow_file(roads))
        return run(cell)

    monkeypatch.setattr(Cell, "run", disturbed)
    outcome = run_cells(cells, store)
    assert [row["seed"] for row in outcome.rows] == [0]
    assert outcome.failures == [(cells[1], CHANGED)]
    assert store.get(cells) == {}  # what was kept belongs to the files before the change


def test_row_names_its_inputs_and_versions() -> None:
    cell = Cell("basic", "sqr", 0, settings={"epochs": 2}, options={"nodes": 60})
    row = cell.run()
    assert row["inputs"] == {"code": code_digest(), "data": ""}
    assert cell.key(row["inputs"]) == cell.key()
    assert row["versions"] == versions()
    assert row["versions"]["torch"] == torch.__version__
    assert row["versions"]["numpy"] == np.__version__
    assert {*row["versions"]} <= {"python", *LIBRARIES}


def test_data_digest_of_published_files_does_not_depend_on_where_they_are(
    real: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real("anaheim")
    here = data_digest("anaheim")
    copy = tmp_path / "copy"
    for file in transport.CITIES["anaheim"].files.values():
        original = files.find(file)
        assert original is not None
        (copy / file.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(original, copy / file.path)
    monkeypatch.setenv("QPIGNN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(files.DATA_DIR, str(copy))
    assert data_digest("anaheim") == here
    monkeypatch.setenv(files.DATA_DIR, str(tmp_path / "nothing"))
    assert data_digest("anaheim") == here  # they would be downloaded, and checked
    monkeypatch.setenv(files.DATA_DIR, str(copy))
    with flow_file(copy).open("a") as opened:
        opened.write("\n")
    assert data_digest("anaheim") != here


def test_data_digest_counts_the_files_that_options_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(files.DATA_DIR, str(tmp_path))
    monkeypatch.setenv("QPIGNN_CACHE_DIR", str(tmp_path / "cache"))
    before = data_digest("twitch", {"country": "DE"})
    assert before != data_digest("twitch")
    target = tmp_path / "twitch" / "DE" / "musae_DE_target.csv"
    target.parent.mkdir(parents=True)
    target.write_text("new_id,views\n0,1\n")
    assert data_digest("twitch", {"country": "DE"}) != before
    assert data_digest("basic", {"nodes": 50}) == data_digest("basic") == ""


def test_data_digest_of_a_path_is_that_of_its_content(tmp_path: Path) -> None:
    folder, table = tmp_path / "graph", tmp_path / "nodes.csv"
    folder.mkdir()
    (folder / "x.npy").write_text("1")
    (folder / "y.npy").write_text("2")
    table.write_text("id,y\n")
    kept = data_digest(str(folder)), data_digest(str(table))
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert data_digest(str(copy)) == kept[0] != kept[1]
    (copy / "y.npy").write_text("3")
    assert data_digest(str(copy)) != kept[0]
    (copy / "y.npy").write_text("2")
    (copy / "y.npy").rename(copy / "z.npy")
    assert data_digest(str(copy)) != kept[0]
    table.write_text("id,z\n")
    assert data_digest(str(table)) != kept[1]
    with pytest.raises(UnknownNameError, match="unknown data set 'basics'"):
        data_digest("basics")


def test_file_is_read_once_while_it_stays_the_same(
    roads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    original = files.read_digests

    def counted(file: Path) -> files.Digests:
        read.append(file)
        return original(file)

    monkeypatch.setattr(files, "read_digests", counted)
    keys = {Cell("anaheim", "sqr", seed).key() for seed in range(500)}
    assert len(keys) == 500
    assert len(read) == 2  # the network and the flow, once each
    change(flow_file(roads))
    Cell("anaheim", "sqr", 0).key()
    assert len(read) == 3
