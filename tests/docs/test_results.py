"""The pages of results: generated blocks, commands, and which pages are stale."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import comparison_blocks
import paper_blocks
from markers import BLOCK, block_names, fill, hand_written
from measured import Measured
from pages import ARENA, INDEX, OTHERS, PAGES, README, ROBUSTNESS, Page
from qpignn.cli import main
from qpignn.data.sources import files, transport
from qpignn.errors import DataFileError, QpignnWarning
from qpignn.experiments.cell import Cell
from qpignn.experiments.digest import SHORT, code_digest
from qpignn.experiments.store import Store
from qpignn.paper import table_pictures
from qpignn.reports.plotting import new_figure
from remake import MADE, RESULTS, ROOT, check, made, remake, state, unused, work_of, write
from studies import Comparison, Scale, Study, datasets_here

TEXT = "A\n\n<!-- results: one -->\n\nold\n\n<!-- /results -->\n\nB\n"
STUDIES = [*dict.fromkeys(study for page in PAGES for study in page.studies)]
QUICK = Scale(1, quick=True)


def text_of(page: Page) -> str:
    return (ROOT / page.path).read_text(encoding="utf-8")


def test_fill_replaces_what_is_between_the_markers_and_nothing_else() -> None:
    filled = fill(TEXT, {"one": "| a |\n"})
    assert filled == TEXT.replace("old", "| a |")
    assert fill(filled, {"one": "| a |\n"}) == filled
    assert hand_written(filled) == "A\n\n\n\nB\n"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (TEXT.replace("one", "two"), "expected the blocks ['one']"),
        (TEXT + TEXT, "each once"),
        ("A\n", "expected the blocks ['one']"),
        (TEXT.replace("<!-- /results -->", ""), "expected pairs"),
        (TEXT.replace("<!-- results: one -->", ""), "expected pairs"),
        (TEXT.replace("<!-- results: one -->", "<!-- results one -->"), "expected pairs"),
    ],
)
def test_fill_of_a_page_with_wrong_markers_is_refused(page: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        fill(page, {"one": ""})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_page_has_its_blocks_and_a_digest(page: Page) -> None:
    assert sorted(block_names(text_of(page))) == sorted([*page.blocks, "made"])
    assert len(MADE.findall(text_of(page))) == 1


def test_every_page_of_results_is_generated() -> None:
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / RESULTS).glob("*.md")}
    assert there == {page.path for page in PAGES} - {"README.md", "docs/theory.md"}


FIGURE = re.compile(r"\d\.\d\d|\b\d+ of \d+\b|± ?\d")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.path.startswith("docs/results")], ids=lambda p: p.path
)
def test_hand_written_text_quotes_no_figures(page: Page) -> None:
    assert FIGURE.search("coverage of 0.91, first on 13 of 18, 0.3 ± 0.1")
    settings = "λ = 0.05"  # not measured
    assert not FIGURE.findall(hand_written(text_of(page)).replace(settings, ""))


def test_pages_keep_the_protocols_apart() -> None:
    for page in PAGES:
        protocols = {getattr(study, "protocol", "corrected") for study in page.studies}
        both = page.path == "docs/results/index.md"  # in sections of their own
        assert len(protocols) == (2 if both else 1), page.path


def test_pictures_are_small_and_shown_on_a_page() -> None:
    pictures = [*(ROOT / RESULTS / "figures").glob("*.png")]
    assert pictures
    assert unused() == []
    for path in pictures:
        assert path.stat().st_size < 150_000, path


def test_remake_without_data_files_names_the_data_folder_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (files.DATA_DIR, "QPIGNN_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(DataFileError, match=r"exchangeability.*set QPIGNN_DATA_DIR"):
        work_of([OTHERS], Scale(1))
    assert check([OTHERS], None)[1].endswith("; not all of its data sets are available")


def test_picture_is_drawn_smaller_where_its_file_would_be_too_large() -> None:
    measured = Measured({}, Scale())
    noise = new_figure(9, 6)
    noise.add_axes((0, 0, 1, 1)).imshow(np.random.default_rng(0).random((700, 1000)))
    plain = new_figure(9, 6)
    assert measured.picture("noise", noise, "Noise") == "![Noise](figures/noise.png)"
    measured.picture("plain", plain, "Nothing")
    sizes = {}
    for name in ("noise", "plain"):
        content = measured.pictures[f"figures/{name}.png"]
        assert len(content) < 150_000
        sizes[name] = Image.open(BytesIO(content)).size
    assert sizes["plain"] == (990, 660)  # 110 dots per inch
    assert sizes["noise"] < sizes["plain"]


class CapturedError(Exception):
    """Raised in place of running cells."""


@pytest.mark.parametrize("study", STUDIES, ids=str)
def test_command_of_a_study_runs_its_cells(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    captured: list[Cell] = []

    def capture(cells: list[Cell], *args: Any, **options: Any) -> None:
        captured.extend(cells)
        raise CapturedError

    monkeypatch.setattr("qpignn.cli.compare.run_shown", capture)
    monkeypatch.setattr("qpignn.cli.paper.run_shown", capture)
    for scale in (Scale(), Scale(1)):
        captured.clear()
        arguments = shlex.split(study.command(scale).replace("\\\n", " "))
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit):
            main()
        wanted = {cell.key() for cell in study.cells(scale)}
        assert {cell.key() for cell in captured} == wanted
        if study.fits and not wanted:
            pytest.skip("needs the real data files: set QPIGNN_DATA_DIR")


def test_state_compares_the_digest_of_a_page_with_the_current_one() -> None:
    now = "a" * 64
    page = "Made with qpignn 0.1.0, code `{}`, on 2026-01-31."
    assert state(page.format("a" * SHORT), now) == "current"
    assert state(page.format("b" * SHORT), now) == f"stale (code {'b' * SHORT})"
    assert state("Made with care.", now) == "no digest"
    assert state(page.format("a" * SHORT) + " **A preview: two seeds.**", now).endswith("a preview")


TWO = Comparison(("qpignn", "sqr"), 2)
SMALL = Page(
    "page.md",
    (TWO, ROBUSTNESS),
    {
        "places": lambda rows: comparison_blocks.places(rows, TWO, "places"),
        "robustness": paper_blocks.section(ROBUSTNESS, table_pictures.damage, "Damage"),
    },
)
SMALL_TEXT = "".join(
    f"<!-- results: {name} -->\n<!-- /results -->\n" for name in ("made", *SMALL.blocks)
)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a page of two blocks in the place of the repository."""
    (tmp_path / "page.md").write_text(SMALL_TEXT)
    monkeypatch.setattr("remake.ROOT", tmp_path)
    return tmp_path


def test_remake_runs_what_is_missing_and_writes_what_changed(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(small / "r.sqlite")
    assert remake([SMALL], store, QUICK, into=small, jobs=1) == 0
    page = (small / "page.md").read_text()
    assert f"code `{code_digest()[:SHORT]}`" in page
    assert "| `sqr` |" in page
    assert "| feature noise 0.1 |" in page
    assert {path.name for path in (small / RESULTS).rglob("*.png")} == {
        *("places.png", "robustness.corrected.png"),
    }
    output = capsys.readouterr().out
    # two data sets × two methods, and three conditions × three variants
    assert "13 fits, 13 of them to run" in output
    written = [small / "page.md", *(small / RESULTS).rglob("*.png")]
    before = {path: path.stat().st_mtime_ns for path in written}
    assert remake([SMALL], store, QUICK, into=small, jobs=1) == 0
    output = capsys.readouterr().out
    assert "0 of them to run" in output
    assert "wrote" not in output
    assert {path: path.stat().st_mtime_ns for path in written} == before


def test_remake_interrupted_goes_on_where_it_stopped(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run = Store(small / "r.sqlite"), Cell.run
    ran: list[Cell] = []

    def interrupted(cell: Cell) -> dict[str, Any]:
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(cell)
        return run(cell)

    monkeypatch.setattr(Cell, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remake([SMALL], store, QUICK, into=small, jobs=1)
    assert (small / "page.md").read_text() == SMALL_TEXT  # unfinished pages stay as they are
    monkeypatch.setattr(Cell, "run", lambda cell: (ran.append(cell), run(cell))[1])
    remake([SMALL], store, QUICK, into=small, jobs=1)
    keys = [cell.key() for cell in ran]
    assert len(keys) == len({*keys})  # nothing was run twice
    assert "results: made" in (small / "page.md").read_text()


def test_remake_names_fits_that_failed(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Cell.run

    def failing(cell: Cell) -> dict[str, Any]:
        if (cell.method, cell.dataset, cell.damage) == ("sqr", "basic", {}):
            raise ArithmeticError("broke down")
        return run(cell)

    monkeypatch.setattr(Cell, "run", failing)
    assert remake([SMALL], Store(small / "r.sqlite"), QUICK, into=small, jobs=1) == 1
    assert "failed: basic sqr seed 0: ArithmeticError: broke down" in capsys.readouterr().out
    assert re.search(r"\*\*1 of \d+ fits are missing", (small / "page.md").read_text())


def test_pages_of_other_data_than_the_published_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = transport.CITIES["anaheim"].files["flow"]
    (tmp_path / file.path).parent.mkdir(parents=True)
    (tmp_path / file.path).write_text("other")
    for kind in ("net", "flow"):
        (tmp_path / transport.CITIES["anaheim"].files[kind].path).write_text("other")
    monkeypatch.setenv(files.DATA_DIR, str(tmp_path))
    with pytest.raises(QpignnWarning, match="is not the original file"):
        work_of([ARENA], Scale(1))


def figures(cell: Cell) -> dict[str, Any]:
    """Return a made-up row: every method its own width, and two exploded seeds."""
    width = 0.1 + 0.01 * (sum(map(ord, cell.method)) % 50)
    lam = cell.settings.get("lambda_width")
    exploded = (cell.dataset, cell.method, cell.seed) == ("er", "deep_ensemble", 2)
    return {
        "dataset": cell.dataset,
        "method": cell.method,
        "seed": cell.seed,
        "confidence_level": cell.confidence_level,
        "source": cell.source,
        "options": cell.options,
        "picp": cell.confidence_level + 0.01 * (cell.seed - 1),
        "mpiw": 20 * width if exploded else width,
        **{"mpiw_raw": 2 * width, "mpiw_limit": 0.1, "mpe": 0.1, "sharpness": 0.1, "cwc": 1.0},
        **{"winkler": 2 * width, "winkler_one": width, "fit_seconds": 60.0, "peak_mb": 1.0},
        "parameters": 10,
        "lambda_found": lam if isinstance(lam, float) else 0.05,
        "inputs": cell.inputs(),
        "versions": {"python": "3.11.0", "torch": "2.0", "numpy": "2.1"},
        "history": {name: [1.0, 2.0] for name in ("epoch", "coverage", "width", "loss")},
        "intervals": {
            **{"y": [0.0, 1.0], "prediction": [0.0, 1.0]},
            **{"lower": [-1.0, 0.0], "upper": [0.5, 2.0]},
        },
    }


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Store]:
    """Return all pages, filled from made-up rows of three seeds, and where those are."""
    if len(datasets_here()) < 18:
        pytest.skip("needs the real data files: set QPIGNN_DATA_DIR")
    folder = tmp_path_factory.mktemp("pages")
    store = Store(folder / "r.sqlite")
    works = work_of(PAGES, Scale(3))
    rows = {key: figures(cell) for work in works for key, cell in work.cells.items()}
    with sqlite3.connect(store.path) as connection:
        lines = [(key, "", json.dumps(row), "") for key, row in rows.items()]
        connection.executemany("INSERT INTO results VALUES (?, ?, ?, ?, '2026-01-31')", lines)
    for work in works:
        assert write(work, store, Scale(3), folder)
    return folder, store


def test_every_block_is_filled_and_every_picture_is_there(filled: tuple[Path, Store]) -> None:
    folder, _ = filled
    for page in PAGES:
        text = (folder / page.path).read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            assert block["content"].strip(), (page.path, block["name"])
            for name in re.findall(r"!\[.+?\]\((figures/.*?)\)", block["content"]):
                assert (folder / RESULTS / name).stat().st_size < 150_000, name
        assert hand_written(text) == hand_written(text_of(page))


def test_filled_pages_stay_as_they_are(filled: tuple[Path, Store]) -> None:
    folder, store = filled
    for work in work_of([README, INDEX], Scale(3)):
        assert write(work, store, Scale(3), folder) == []


def test_exploded_seed_is_named_beside_its_tables(filled: tuple[Path, Store]) -> None:
    folder, _ = filled
    width = figures(Cell("ba", "deep_ensemble", 2))["mpiw"]
    phrase = f"on er, seed 2: mean width {20 * width:.3g}, where the median of the other seeds is"
    for name, method in (("arena", "deep_ensemble"), ("main", "deep ensemble")):
        text = (folder / RESULTS / f"{name}.md").read_text(encoding="utf-8")
        assert text.count(f"{method} {phrase}") == 1
    assert "exploded.**" not in (folder / RESULTS / "published.md").read_text(encoding="utf-8")


def test_readme_shows_the_means_of_the_rows(filled: tuple[Path, Store]) -> None:
    folder, _ = filled
    text = (folder / "README.md").read_text(encoding="utf-8")
    width = figures(Cell("basic", "qpignn", 0))["mpiw"]
    # coverage 0.89, 0.90 and 0.91; the same width on all seeds, and a limit of 0.1
    assert f"| basic | 0.900 ± 0.010 | {width:.3f} ± 0.000 | {width / 0.1:.2f} |" in text
    assert "within 0.000 of the wanted one" in text
    assert "qpignn compare --datasets all --seeds 3 --jobs 2" in text


def test_made_names_code_versions_and_fits_of_a_page(filled: tuple[Path, Store]) -> None:
    _, store = filled
    (work,) = work_of([ARENA], Scale(3))
    rows = store.get_rows(work.cells)
    text = made(work, rows, store, Scale(3))
    assert f"code `{code_digest()[:SHORT]}`, on 2026-01-31: {len(rows):,} fits" in text
    assert f"{len(rows)} minutes of one core (Python 3.11.0, torch 2.0, NumPy 2.1)" in text
    assert "**A preview: seeds 0 to 2 of each study.**" in text
    mixed = {key: dict(row) for key, row in rows.items()}
    next(iter(mixed.values()))["versions"] = {"torch": "2.1"}
    assert "torch 2.0 and 2.1" in made(work, mixed, store, Scale())
    fewer = dict([*rows.items()][5:])
    assert f"**5 of {len(rows):,} fits are missing.**" in made(work, fewer, store, Scale())


def test_check_lists_stale_pages_and_missing_fits(
    filled: tuple[Path, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, store = filled
    assert all("current, a preview" in line for line in check([ARENA, README], store, folder)[1:])
    for module in ("remake", "qpignn.experiments.cell"):
        monkeypatch.setattr(f"{module}.code_digest", lambda: "f" * 64)
    first, *lines = check([ARENA, README], store, folder)
    assert first == f"code {'f' * SHORT}"
    for line in lines:
        assert "stale (code" in line
        missing, every = re.findall(r"([\d,]+) of ([\d,]+) fits to run", line)[0]
        assert missing == every
