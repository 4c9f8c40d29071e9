"""A fit on disk: the model, the graph it was fitted on, the user's table, and where all came from.

``fit.json`` is written last and carries the digests of the other files, so a folder that was only
half written or mixed from two fits is refused, not read. A graph larger than memory is not copied:
``fit.json`` says where it lies and what tells it from others; only who is held out is kept here.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch_geometric.data import Data

from qpignn.data.graph import MASKS
from qpignn.data.mapped import digest_of, open_graph, read_description
from qpignn.data.storage import load_graph, load_table, save_graph, save_table
from qpignn.errors import ModelFileError, ReadError
from qpignn.files import replace_file
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import load_method

ORIGIN, GRAPH, PAGE = "fit.json", "graph", "report.html"
COPIES = ("graph/graph.safetensors", "graph/nodes.parquet", "graph/table.parquet")
MASKS_FILE = "graph/masks.safetensors"
FILES = ("model.json", *COPIES, MASKS_FILE)


@dataclass(frozen=True)
class MappedAt:
    """Where a graph lies that is too large to copy, and what tells it from others."""

    folder: str
    digest: str


@dataclass(frozen=True)
class Origin:
    """Where a graph came from: a data set by name, or the roles of the user's columns.

    Attributes:
        graph: where it lies, if it was converted beforehand; the roles are those of its tables.
    """

    dataset: str | None
    roles: dict[str, Any] | None
    graph: MappedAt | None = None

    @classmethod
    def of_mapped(cls, folder: Path) -> Origin:
        """Tell a graph that was converted by its folder."""
        where = MappedAt(str(folder.resolve()), digest_of(folder))
        return cls(None, read_description(folder).roles, where)

    @property
    def target(self) -> str:
        """What is predicted, in a word."""
        if self.roles is not None:
            return str(self.roles["target"])
        return str(self.dataset if self.graph is None else Path(self.graph.folder).name)


@dataclass(frozen=True)
class Fit:
    """A fitted model with its graph (all known targets, and masks), and the table it is from."""

    model: IntervalMethod
    data: Data
    table: pd.DataFrame | None
    origin: Origin


def save_fit(folder: Path, fit: Fit) -> None:
    """Write a fit; a page about another one that lies there is taken away."""
    (folder / PAGE).unlink(missing_ok=True)
    fit.model.save(folder)
    if fit.origin.graph is None:
        save_graph(folder / GRAPH, fit.data)
        save_table(folder / GRAPH, fit.table)
        (folder / MASKS_FILE).unlink(missing_ok=True)
    else:
        masks = {name: fit.data[name] for name in MASKS if fit.data.get(name) is not None}
        replace_file(folder / MASKS_FILE, save_tensors(masks))
        for name in COPIES:
            (folder / name).unlink(missing_ok=True)
    origin = {**asdict(fit.origin), "digests": _digests(folder)}
    replace_file(folder / ORIGIN, json.dumps(origin, indent=2).encode())


def load_fit(folder: Path) -> Fit:
    """Read a fit back; it must be whole, and of one piece."""
    model = load_method(folder)
    try:
        origin = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))
        whole = origin["digests"] == _digests(folder)
        graph = None if origin.get("graph") is None else MappedAt(**origin["graph"])
        found = Origin(origin["dataset"], origin["roles"], graph)
        named = found.dataset if found.roles is None else found.roles["target"]
        whole = whole and isinstance(named if graph is None else graph.folder, str)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise ModelFileError(
            f"{folder}: expected a folder written by one 'qpignn fit', got one with missing, "
            f"damaged or mixed files; fit again"
        )
    data = load_graph(folder / GRAPH) if found.graph is None else _open_mapped(folder, found.graph)
    data.feature_names, data.coding = model.fitted_.names, model.coding_
    return Fit(model, data, load_table(folder / GRAPH), found)


def _open_mapped(folder: Path, graph: MappedAt) -> Data:
    """Open the graph of a fit where it lies, with the fit's own masks."""
    there = Path(graph.folder)
    try:
        same = digest_of(there) == graph.digest
        got = "another graph"
    except ReadError as error:
        same, got = False, f"none that opens ({error})"
    if not same:
        raise ModelFileError(
            f"{folder}: expected the graph of the fit in {there}, got {got}; put it back there, or "
            f"fit again with --graph"
        )
    data = open_graph(there)
    try:
        masks = load_tensors((folder / MASKS_FILE).read_bytes())
    except (OSError, SafetensorError) as error:
        raise ModelFileError(f"{folder}: the stored masks are damaged: {error}") from error
    for name, mask in masks.items():
        data[name] = mask
    return data


def _digests(folder: Path) -> dict[str, str]:
    there = [folder / name for name in FILES]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in there
        if path.is_file()
    }
