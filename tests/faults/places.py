"""The places where something is written: how each is run, run again, and read."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.image
import torch

from faults.forks import exit_code
from faults.served import CONTENT, Served
from qpignn import QpiGNN, example_tables, from_frames
from qpignn.cli.errors import describe_error
from qpignn.data.mapped import open_graph
from qpignn.data.mapped_arrays import KINDS
from qpignn.data.sources.files import fetch, find
from qpignn.errors import QpignnError
from qpignn.experiments.cell import Cell, grid
from qpignn.experiments.store import Store
from qpignn.methods.bundle import load_fit
from qpignn.methods.catalog import load_method
from qpignn.methods.fitted import as_fitted
from qpignn.paper import find_spec
from qpignn.paper.plan import make_plan, shared_cells

Pieces = dict[str, str]
"""What a reader finds, by name: a digest, :data:`NONE`, or :data:`REFUSED`."""
MINUTE = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
SALT = "the same names in every picture"  # else matplotlib makes up others for each
NONE, REFUSED = "nothing", "named error"
SMALL = ("--epochs", 2, "--set", "members=5", "--set", "hidden=4", "--checkpoint-every", 0)
TABLES = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--target", "pollution")
SPEC = """
from qpignn.paper.spec import Condition, Spec, Variant
SPEC = Spec(
    name="small", title="Small", place="", datasets=("basic",), seeds={seeds}, metrics=("picp",),
    variants=(Variant("SQR", "sqr", {{"epochs": 3}}),), picture={picture!r},
    conditions=(Condition("", {{"options": {{"nodes": 60}}}}),),
)
"""


@dataclass(frozen=True)
class Place:
    """Something that writes. All paths are relative to the folder it is run in.

    Attributes:
        prepare: makes what it reads, and earlier results where it may find some.
        run: writes; returns an exit code or raises as a command does.
        again: the same, after a fault.
        look: reads what was written, as a user would.
        keeps: beginnings of the names of pieces that stay although the command fails: finished
            rows.
    """

    name: str
    prepare: Callable[[], object]
    run: Callable[[], int]
    again: Callable[[], int]
    look: Callable[[], Pieces]
    keeps: tuple[str, ...] = ()


def command_place(
    name: str,
    prepare: Callable[[], object],
    arguments: tuple[object, ...],
    look: Callable[[], Pieces],
    *more: object,
    keeps: tuple[str, ...] = (),
) -> Place:
    """Return a place that is a command; ``more`` are arguments added when it is repeated."""

    def run() -> int:
        return exit_code(*arguments)

    def again() -> int:
        return exit_code(*arguments, *more)

    return Place(name, prepare, run, again, look, keeps)


def call_place(
    name: str,
    prepare: Callable[[], object],
    work: Callable[[], object],
    look: Callable[[], Pieces],
) -> Place:
    """Return a place that is a call from Python; it ends as commands do, with a line and a code."""

    def run() -> int:
        try:
            work()
        except Exception as error:
            message, code = describe_error(error)
            os.write(2, f"{message}\n".encode())
            return code
        return 0

    return Place(name, prepare, run, run, look)


# ---- reading


def digest(*contents: bytes) -> str:
    """Return what tells contents from others."""
    combined = hashlib.sha256()
    for content in contents:
        combined.update(hashlib.sha256(content).digest())
    return combined.hexdigest()[:16]


def read(there: Path, how: Callable[[], bytes]) -> str:
    """Return the digest of what a reader gets, or that there is nothing, or that it is refused."""
    if not there.exists():
        return NONE
    try:
        return digest(how())
    except QpignnError:
        return REFUSED


def file(name: str) -> str:
    """Look at a file that has no reader of ours."""
    return read(Path(name), lambda: Path(name).read_bytes())


def fitted() -> Pieces:
    def content() -> bytes:
        fit = load_fit(Path("m"))
        shown = fit.model.predict_interval(fit.data).to_frame()
        return shown.to_csv().encode() + Path("m/model.safetensors").read_bytes()

    return {"fit": read(Path("m"), content), "page": file("m/report.html")}


def page() -> Pieces:
    """Look at a report, but for the minute it was made in."""
    there = Path("page.html")
    return {"page": read(there, lambda: MINUTE.sub(b"", there.read_bytes()))}


def saved() -> Pieces:
    def state() -> bytes:
        return repr(sorted(as_fitted(load_method(Path("m")))._state().items())).encode()

    return {"model": read(Path("m"), state)}


def converted() -> Pieces:
    def numbers() -> bytes:
        data = open_graph("g")
        return repr([(name, data[name].tolist()) for name in KINDS if name in data]).encode()

    return {"graph": read(Path("g"), numbers)}


def rows(cells: Sequence[Cell]) -> Pieces:
    """Look at rows of the results file; seconds and megabytes differ between runs."""
    stored = Store("r.sqlite").get(cells) if Path("r.sqlite").exists() else {}
    pieces = {}
    for cell in cells:
        row = stored.get(cell.key())
        values = {k: v for k, v in (row or {}).items() if k not in ("fit_seconds", "peak_mb")}
        pieces[f"row {cell.seed}"] = NONE if row is None else digest(json.dumps(values).encode())
    return pieces


def compared() -> Pieces:
    return rows(grid(["basic"], ["sqr"], 3, settings={"epochs": 2}))


def written() -> Pieces:
    """Look at rows, tables and pictures; a picture must open."""
    pieces = rows(shared_cells([make_plan(find_spec("new.py"), "corrected")]))
    for suffix in ("md", "tex", "json", "svg"):
        pieces[suffix] = file(f"to/small.corrected.{suffix}")
    picture = Path("to/small.corrected.png")
    pieces["png"] = read(picture, lambda: matplotlib.image.imread(picture).tobytes())
    return pieces


def downloaded() -> Pieces:
    """Look at the cache as :func:`find` does, and at what lies under the real name."""
    path = find(Served.file())
    there = Path("cache/a.csv")
    under = read(there, there.read_bytes)
    assert under in (NONE, digest(CONTENT)), "a part has the name of the whole"
    return {"file": NONE if path is None else digest(path.read_bytes())}


# ---- preparing


def tables(nodes: int = 60, seed: int = 0) -> None:
    for name, table in zip(("nodes", "edges"), example_tables(nodes, seed=seed), strict=True):
        table.to_csv(f"{name}.csv", index=False)


def fit_arguments(*more: object) -> tuple[object, ...]:
    return ("fit", *TABLES, *SMALL, "--out", "m", *more)


def done(*arguments: object) -> None:
    assert exit_code(*arguments) == 0, arguments


def older_fit() -> None:
    tables()
    done(*fit_arguments("--seed", 7))
    done("report", "m")


def older_fit_and_graph() -> None:
    older_fit()
    done("convert", *TABLES, "--out", "g")


def older_outputs() -> None:
    older_fit()
    done("predict", "m", "--only", "all", "--confidence", 0.5, "--out", "o.csv")
    done("report", "m", "--confidence", 0.5, "--out", "page.html")


def older_graph() -> None:
    tables(40)
    done("convert", *TABLES, "--out", "g")
    tables()


def older_rows() -> None:
    Path("old.py").write_text(SPEC.format(seeds=1, picture="scatter"))
    Path("new.py").write_text(SPEC.format(seeds=3, picture="scatter"))
    done("paper", "run", "old.py", "--results", "r.sqlite", "--out", "to")


def save_model(seed: int) -> None:
    torch.manual_seed(0)
    data = from_frames(*example_tables(40), target="pollution")
    QpiGNN(epochs=1, hidden=4, members=5, seed=seed).fit(data).save("m")


PAPER: Any = ("paper", "run", "new.py", "--results", "r.sqlite", "--out", "to")
COMPARE: Any = (
    *("compare", "--datasets", "basic", "--methods", "sqr", "--epochs", 2),
    *("--results", "r.sqlite"),
)
PLACES = {
    place.name: place
    for place in (
        command_place("fit", tables, fit_arguments(), fitted, "--resume"),
        command_place("fit over a fit", older_fit, fit_arguments(), fitted, "--resume"),
        command_place(
            "fit --graph over a fit",
            older_fit_and_graph,
            ("fit", "--graph", "g", *SMALL, "--out", "m"),
            fitted,
            "--resume",
        ),
        call_place("save", lambda: save_model(0), lambda: save_model(1), saved),
        command_place(
            "predict",
            older_outputs,
            ("predict", "m", "--only", "all", "--out", "o.csv"),
            lambda: {"table": file("o.csv")},
        ),
        command_place(
            "report",
            older_outputs,
            ("report", "m", "--out", "page.html"),
            page,
        ),
        command_place("convert", tables, ("convert", *TABLES, "--out", "g"), converted),
        command_place(
            "convert over a graph", older_graph, ("convert", *TABLES, "--out", "g"), converted
        ),
        command_place("paper run", older_rows, PAPER, written, keeps=("row",)),
        command_place(
            "compare",
            lambda: done(*COMPARE, "--seeds", 1),
            (*COMPARE, "--seeds", 3),
            compared,
            keeps=("row",),
        ),
        call_place("download", lambda: None, lambda: fetch(Served.file()), downloaded),
    )
}
