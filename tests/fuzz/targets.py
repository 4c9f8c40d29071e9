"""What is fuzzed: a function from any bytes to how it ended, and a few bytes to begin with.

A target returns ``fine`` or the name of one of our errors; whatever else it raises is a crash.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import networkx as nx
import numpy as np
from safetensors.torch import load as load_tensors

import hostile
import properties
from choices import Choices, corrupt_file, corrupt_json
from qpignn import QpiGNN, check_graph, example_tables, from_frames, read_graph
from qpignn.data.mapped import open_graph, write_graph
from qpignn.errors import QpignnError
from qpignn.methods.bundle import load_fit
from qpignn.methods.conformal import Conformal
from qpignn.training.checkpoint import checkpoints, fit_key

FINE = properties.FINE
BETWEEN = b"\n---\n"
"""Parts the bytes of a node file from those of an edge file."""


@dataclass(frozen=True)
class Target:
    """Something to fuzz.

    Attributes:
        run: takes any bytes and says how it ended.
        seeds: bytes that end in various ways.
    """

    run: Callable[[bytes], str]
    seeds: list[bytes]


def make(name: str, base: Path) -> Target:
    """Make a target; ``base`` is a folder of its own to write files to."""
    return MAKERS[name](base)


def outcome_of(run: Callable[[], Any]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
    except QpignnError as error:
        str(error)
        return type(error).__name__
    return FINE


# ---- tables and GraphML


def _tables() -> tuple[Any, Any]:
    stations, roads = example_tables(20)
    stations["pollution"] = np.arange(20.0)
    return stations, roads


def text(base: Path) -> Target:
    stations, roads = _tables()
    ways = [
        {"suffix": suffix, "target": "pollution", **roles}
        for suffix in (".csv", ".tsv")
        for roles in (
            {},
            {"missing": "impute"},
            {"target": None, "encoding": "latin-1"},
            {"encoding": "utf-16"},
            {"decimal": ","},
            {"categorical": ["kind"], "edge_weight": "km"},
        )
    ]

    def run(data: bytes) -> str:
        way = dict(ways[data[0] % len(ways)]) if data else dict(ways[0])
        suffix = way.pop("suffix")
        nodes, _, edges = data[1:].partition(BETWEEN)
        paths = [base / f"nodes{suffix}", base / f"edges{suffix}"]
        for path, content in zip(paths, (nodes, edges), strict=True):
            path.write_bytes(content)
        return outcome_of(lambda: read_graph(paths[0], paths[1] if edges else None, **way))

    plain = [stations.to_csv(index=False).encode(), roads.to_csv(index=False).encode()]
    other = [stations.to_csv(index=False, sep=";", decimal=",").encode(), b"from;to\n"]
    small = [b"id,a,pollution\n1,2,3\n2,x,\n3,,4\n", b"from,to\n1,2\n2,3\n"]
    seeds = [bytes([i]) + BETWEEN.join(part) for part in (plain, other, small) for i in range(4)]
    seeds += [b"\x00" + part for part in (*plain, *small, b'"a\nb",c\n', b"\xef\xbb\xbfid\n1\n")]
    return Target(run, seeds)


def excel(base: Path) -> Target:
    """The first sheet of a workbook that is whole otherwise: as XML, or as cells by commas."""
    stations, _ = _tables()
    written = io.BytesIO()
    stations.to_excel(written, index=False, engine="openpyxl")
    with zipfile.ZipFile(written) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    sheet = "xl/worksheets/sheet1.xml"

    def run(data: bytes) -> str:
        xml = data if data.startswith(b"<") else _sheet_of(data)
        with zipfile.ZipFile(base / "nodes.xlsx", "w") as packed:
            for name, content in {**parts, sheet: xml}.items():
                packed.writestr(name, content)
        return outcome_of(lambda: read_graph(base / "nodes.xlsx", None, target="pollution"))

    row = b'<row r="9000"><c r="XFD9000" t="n"><v>1e999</v></c></row></sheetData>'
    seeds = [parts[sheet], parts[sheet][:300], parts[sheet].replace(b"</sheetData>", row)]
    seeds += [parts[sheet].replace(b't="n"', b't="d"'), b"<a/>", b""]
    cells = b"id,a,pollution\n1,2,3\n2,4,\n3,5,4\n"
    return Target(run, [*seeds, cells, cells.replace(b"2,4", b"2,x"), *[cells] * 3])


def _sheet_of(data: bytes) -> bytes:
    """Return a sheet of cells that were written with commas: numbers where they are, else text."""
    rows = []
    for line in data.decode("latin-1").split("\n"):
        made = []
        for cell in line.split(","):
            try:
                made.append(f"<c><v>{float(cell):g}</v></c>")
            except ValueError:
                text = "".join(sign for sign in cell if sign.isprintable())
                made.append(f'<c t="str"><v>{escape(text)}</v></c>' if text else "<c/>")
        rows.append(f"<row>{''.join(made)}</row>")
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{space}"><sheetData>{"".join(rows)}</sheetData></worksheet>'
    return sheet.encode()


def parquet(base: Path) -> Target:
    stations, roads = _tables()

    def run(data: bytes) -> str:
        (base / "nodes.parquet").write_bytes(data)
        return outcome_of(lambda: read_graph(base / "nodes.parquet", None, target="pollution"))

    seeds = []
    for frame in (stations, roads, stations.head(0), stations.set_index("id")):
        for compression in ("snappy", None):
            stream = io.BytesIO()
            frame.to_parquet(stream, compression=compression)
            seeds.append(stream.getvalue())
    return Target(run, seeds)


def graphml(base: Path) -> Target:
    def run(data: bytes) -> str:
        (base / "g.graphml").write_bytes(data)
        return outcome_of(lambda: read_graph(base / "g.graphml", None, target=None))

    seeds = [b"<graphml/>", b"<!DOCTYPE a [<!ENTITY b 'c'>]><graphml>&b;</graphml>"]
    for kind in (nx.Graph, nx.DiGraph, nx.MultiGraph):
        graph = kind()
        graph.add_node("a", x=1.5, kind="b", on=True)
        graph.add_node("c", x=2, kind="d", on=False)
        graph.add_edge("a", "c", km=3)
        seeds.append("\n".join(nx.generate_graphml(graph)).encode())
    return Target(run, seeds)


# ---- folders


class Folder:
    """A folder whose files are corrupted and restored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        self.files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        self.names = list(self.files)

    def corrupt(self, choices: Choices, sign: Callable[[Path], None]) -> None:
        """Write corrupted files in place of good ones, mostly with valid digests."""
        for name, content in self.files.items():
            path = self.folder / name
            if path.read_bytes() != content:
                path.write_bytes(content)
        signs = choices.below(8) > 0
        for _ in range(3):
            name = choices.pick(self.names)
            path = self.folder / name
            path.write_bytes(corrupt_file(name, path.read_bytes(), choices))
            if not choices.left:
                break
        if signs:
            sign(self.folder)


def _folder_seeds(names: list[str], count: int = 24) -> list[bytes]:
    """Some decisions about every file."""
    draw = np.random.default_rng(0)
    seeds = [b""]
    for i in range(len(names)):
        for _ in range(count // len(names) + 1):
            seeds.append(bytes([1, i]) + draw.bytes(int(draw.integers(2, 24))))
    return seeds


def _use(folder: Path) -> None:
    fit = load_fit(folder)
    intervals = fit.model.predict_interval(fit.data)
    assert len(intervals) == fit.data.x.shape[0]
    assert (intervals.lower <= intervals.upper).all()


def model(base: Path) -> Target:
    return _fit_target(hostile.make_fit(base / "model", nodes=30))


def conformal(base: Path) -> Target:
    folder = hostile.make_fit(base / "model", nodes=30)
    fit = load_fit(folder)
    inner = QpiGNN(epochs=1, hidden=3, lambda_width=0.1)
    method = Conformal(inner, groups="degree").fit(fit.data)
    hostile.save_fit(folder, hostile.Fit(method, fit.data, fit.table, fit.origin))
    return _fit_target(folder)


def _fit_target(folder: Path) -> Target:
    kept = Folder(folder)

    def run(data: bytes) -> str:
        kept.corrupt(Choices(data), hostile.sign)
        return outcome_of(lambda: _use(folder))

    return Target(run, _folder_seeds(kept.names))


def mapped(base: Path) -> Target:
    folder = base / "graph"
    stations, roads = example_tables(30)
    write_graph(folder, from_frames(stations, roads, target="pollution"))
    kept = Folder(folder)

    def use() -> None:
        data = open_graph(folder)
        check_graph(data, need_target=False)

    def run(data: bytes) -> str:
        kept.corrupt(Choices(data), _sign_mapped)
        return outcome_of(use)

    return Target(run, _folder_seeds(kept.names))


def _sign_mapped(folder: Path) -> None:
    try:
        description = json.loads((folder / "mapped.json").read_bytes())
        for name, file in description["files"].items():
            file["bytes"] = (folder / name).stat().st_size
        (folder / "mapped.json").write_text(json.dumps(description))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return


def checkpoint(base: Path) -> Target:
    folder = base / "checkpoint"
    stations, roads = example_tables(20)
    data = from_frames(stations, roads, target="pollution")
    method = QpiGNN(epochs=2, hidden=2, members=5)
    key = fit_key(method, data)
    with checkpoints(folder, key, every=0):
        method.fit(data)
    kept = Folder(folder)

    def use() -> None:
        with checkpoints(folder, key, writes=False):
            method.fit(data)

    def run(data_: bytes) -> str:
        choices = Choices(data_)
        kept.corrupt(choices, lambda folder: _sign_checkpoint(folder, choices))
        return outcome_of(use)

    return Target(run, _folder_seeds(kept.names))


def _sign_checkpoint(folder: Path, choices: Choices) -> None:
    """Corrupt the description too, which is stored in a tensor, and make the digest valid."""
    for path in folder.glob("training-*.safetensors"):
        try:
            tensors = load_tensors(path.read_bytes())
            description = json.loads(bytes(tensors.pop("words").tolist()))
            tensors.pop("sha256", None)
        except Exception:
            continue
        hostile.checkpoint(path, corrupt_json(description, choices), **tensors)


# ---- whatever a program may hand in


def _by_hypothesis(test: Any) -> Callable[[Path], Target]:
    def maker(base: Path) -> Target:
        draw = np.random.default_rng(0)

        def run(data: bytes) -> str:
            properties.endings.clear()
            test.hypothesis.fuzz_one_input(data)
            return properties.endings[-1] if properties.endings else "not an example"

        return Target(run, [draw.bytes(2000) for _ in range(30)])

    return maker


MAKERS: dict[str, Callable[[Path], Target]] = {
    "text": text,
    "excel": excel,
    "parquet": parquet,
    "graphml": graphml,
    "model": model,
    "conformal": conformal,
    "mapped": mapped,
    "checkpoint": checkpoint,
    "graph": _by_hypothesis(properties.fuzz_graph),
    "frames": _by_hypothesis(properties.fuzz_frames),
    "fit": _by_hypothesis(properties.fuzz_fit),
    "sensible fit": _by_hypothesis(properties.fuzz_sensible_fit),
    "order": _by_hypothesis(properties.fuzz_order),
    "unit": _by_hypothesis(properties.fuzz_unit),
}
