"""Make the pages of results: run missing fits, then fill in tables, pictures and sentences.

A run that was killed continues where it stopped, because every finished fit is stored in the
results file. A page is written as soon as all its fits are finished. Finished fits of the present
code are also kept in the repository (``stored_rows.py``).
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from markers import fill
from measured import PICTURES, Measured
from pages import PAGES, Page
from qpignn import __version__
from qpignn.data.catalog import BENCHMARK
from qpignn.data.sources.files import DATA_DIR
from qpignn.errors import DataFileError, QpignnError, QpignnWarning
from qpignn.experiments.cell import Cell
from qpignn.experiments.digest import SHORT, code_digest
from qpignn.experiments.run import run_cells
from qpignn.experiments.store import Store
from qpignn.io.files import atomic_files, cache_folder, write_atomically
from stored_rows import read_rows, write_rows
from studies import JOBS, Scale, datasets_here

ROOT = Path(__file__).parent.parent.parent
RESULTS = Path("docs") / "results"
MADE = re.compile(rf"code `([0-9a-f]{{{SHORT}}})`")
SECONDS = 30  # between two lines of progress


@dataclass(frozen=True)
class Work:
    """The cells of a page, each once, by key."""

    page: Page
    cells: dict[str, Cell]


def work_of(pages: Sequence[Page], scale: Scale) -> list[Work]:
    """Return what each page needs: QpiGNN before other methods, then the first seeds first.

    Raises:
        QpignnWarning: if a data file is not the published one: pages are about those.
        DataFileError: if none of a study's data sets is on this machine.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", QpignnWarning)
        return [
            Work(page, {cell.key(): cell for cell in sorted(_cells(page, scale), key=_order)})
            for page in pages
        ]


def _cells(page: Page, scale: Scale) -> list[Cell]:
    """Return the cells of a page.

    Raises:
        DataFileError: if none of a study's data sets is on this machine.
    """
    cells = []
    for study in page.studies:
        own = study.cells(scale)
        if not own and study.fits:
            raise DataFileError(
                f"{study}: expected at least one of its data sets on this machine, got none; set "
                f"{DATA_DIR} to a folder that holds them (see qpignn datasets)"
            )
        cells += own
    return cells


def _order(cell: Cell) -> tuple[bool, int]:
    return cell.method != "qpignn", cell.seed


def remake(
    pages: Sequence[Page], store: Store, scale: Scale, *, into: Path = ROOT, jobs: int = JOBS
) -> int:
    """Run missing fits and write the pages; return how many fits failed.

    Args:
        pages: the pages to write.
        store: store of finished fits.
        scale: how much of every study to run.
        into: folder that the pages are written under; they are read from the repository.
        jobs: processes, of one thread each.
    """
    torch.set_num_threads(1)
    works = work_of(pages, scale)
    every = {key: cell for work in works for key, cell in work.cells.items()}
    missing = len(every) - len(store.get_rows(every))
    say(f"{len(every):,} fits, {missing:,} of them to run; stored in {store.path}")
    progress, failed = Progress(missing), set[str]()
    for work in works:
        outcome = run_cells(
            [cell for key, cell in work.cells.items() if key not in failed],
            store,
            jobs=jobs,
            on_done=progress.done,
        )
        failed |= {cell.key() for cell, _ in outcome.failures}
        for cell, error in outcome.failures:
            say(f"failed: {cell.dataset} {cell.method} seed {cell.seed}: {error}")
        for path in write(work, store, scale, into):
            say(f"wrote {path}")
    return len(failed)


class Progress:
    """Lines on how many fits are done and how long the others may take."""

    def __init__(self, total: int) -> None:
        self.total, self.count = total, 0
        self.started = self.printed = time.monotonic()

    def done(self, cell: Cell, error: str | None) -> None:
        """Count a fit, and print the progress every 30 seconds."""
        self.count += 1
        now = time.monotonic()
        if now - self.printed >= SECONDS or self.count == self.total:
            self.printed = now
            left = (now - self.started) / self.count * (self.total - self.count)
            say(f"{self.count:,} of {self.total:,} fits, about {left / 60:.0f} min left")


def say(line: str) -> None:
    """Print a line without buffering."""
    print(line, flush=True)


def write(work: Work, store: Store, scale: Scale, into: Path) -> list[Path]:
    """Fill a page from the stored rows; return the files written."""
    rows = store.get_rows(work.cells)
    measured = Measured(rows, scale)
    blocks = {name: block(measured) for name, block in work.page.blocks.items()}
    blocks["made"] = made(work, rows, store, scale)
    text = fill((ROOT / work.page.path).read_text(encoding="utf-8"), blocks)
    page = into / work.page.path
    files = {page: text.encode()}
    files |= {into / RESULTS / name: content for name, content in measured.pictures.items()}
    changed = [path for path, content in files.items() if not _has(path, content)]
    with atomic_files():
        for path in changed:
            write_atomically(path, files[path])
    return changed


def _has(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def made(work: Work, rows: dict[str, dict[str, Any]], store: Store, scale: Scale) -> str:
    """Return the sentences on the code, date and versions that a page was made with."""
    versions: dict[str, set[str]] = {}
    for row in rows.values():
        for name, version in row["versions"].items():
            versions.setdefault(name, set()).add(version)
    libraries = ", ".join(
        f"{shown} {' and '.join(sorted(versions[name]))}"
        for name, shown in (("python", "Python"), ("torch", "torch"), ("numpy", "NumPy"))
        if name in versions
    )
    minutes = sum(row["fit_seconds"] for row in rows.values()) / 60
    sentences = [
        f"Made with qpignn {__version__}, code `{code_digest()[:SHORT]}`, on "
        f"{store.latest_day(rows) or 'no day'}: {len(rows):,} fits that took {minutes:.0f} minutes "
        f"of one core ({libraries})."
    ]
    lost = len(work.cells) - len(rows)
    sentences += [f"**{lost:,} of {len(work.cells):,} fits are missing.**"] if lost else []
    if scale.seeds is not None or scale.quick:
        last = (scale.seeds or 1) - 1
        few = f"seeds 0 to {last}" if last else "seed 0"
        limit = "a dry run" if scale.quick else f"{few} of each study"
        sentences.append(f"**A preview: {limit}.** `make results` runs all.")
    absent = [name for name in BENCHMARK if name not in datasets_here()]
    if absent:
        sentences.append(f"Without {', '.join(absent)}, whose files were not available.")
    return " ".join(sentences)


def state(page: str, code: str) -> str:
    """Return whether a page was made with some code: ``current``, ``stale`` or ``no digest``.

    Args:
        page: text of the page.
        code: the digest of the code.
    """
    match = MADE.search(page)
    if match is None:
        return "no digest"
    if match[1] != code[:SHORT]:
        return f"stale (code {match[1]})"
    return "current, a preview" if "**A preview" in page else "current"


def check(pages: Sequence[Page], store: Store | None, root: Path = ROOT) -> list[str]:
    """Return one line per page: whether it is stale, and how many of its fits are missing."""
    lines = [f"code {code_digest()[:SHORT]}"]
    for page in pages:
        text = (root / page.path).read_text(encoding="utf-8")
        lines.append(f"{page.path}: {state(text, code_digest())}; {_missing(page, store)}")
    return lines


def _missing(page: Page, store: Store | None) -> str:
    """Return how many fits of a page are missing in a store, as text."""
    try:
        (work,) = work_of([page], Scale())
    except DataFileError:
        return "not all of its data sets are available"
    rows = {} if store is None else store.get_rows(work.cells)
    return f"{len(work.cells) - len(rows):,} of {len(work.cells):,} fits to run"


def unused(root: Path = ROOT) -> list[Path]:
    """Return the pictures that no page shows."""
    texts = [(root / page.path).read_text(encoding="utf-8") for page in PAGES]
    folder = root / RESULTS / PICTURES
    return [path for path in folder.glob("*.png") if not any(path.name in text for text in texts)]


def main() -> int:
    """Parse the command line, and check or make the pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = cache_folder() / "results.sqlite"
    add: Callable[..., Any] = parser.add_argument
    add("--results", type=Path, default=default, help="SQLite file of finished fits")
    add("--jobs", type=int, default=JOBS, help="processes, of one thread each")
    add("--seeds", type=int, help="a preview: largest number of seeds of each study")
    add("--quick", action="store_true", help="a dry run: two data sets and two epochs")
    add("--into", type=Path, default=ROOT, help="folder to write the pages under")
    add("--check", action="store_true", help="only list which pages are stale")
    options = parser.parse_args()
    if options.quick and options.into == ROOT:
        parser.error("--quick: expected --into DIR, since its figures mean nothing")
    try:
        if options.check:
            store = Store(options.results) if options.results.exists() else None
            say("\n".join(check(PAGES, store)))
            return 0
        scale, store = Scale(options.seeds, quick=options.quick), Store(options.results)
        if options.into == ROOT:
            say(f"{read_rows(store):,} fits taken from the repository")
        try:
            failed = remake(PAGES, store, scale, into=options.into, jobs=options.jobs)
        finally:
            if options.into == ROOT:
                write_rows(store, [key for work in work_of(PAGES, Scale()) for key in work.cells])
        for path in unused() if options.into == ROOT else ():
            path.unlink()
            say(f"deleted {path}, which no page shows")
        return 1 if failed else 0
    except KeyboardInterrupt:
        say(f"interrupted: finished fits are in {options.results}; the same command continues")
        return 130
    except (QpignnError, QpignnWarning, ValueError) as error:
        say(f"error: {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
