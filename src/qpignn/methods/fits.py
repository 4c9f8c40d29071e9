"""A fit on disk: the model, the graph it was fitted on, the user's table, and where all came from.

``fit.json`` is written last and carries the digests of the other files, so a folder that was only
half written or mixed from two fits is refused, not read. A graph larger than memory is not copied:
``fit.json`` says where it lies and what tells it from others; only who is held out is kept here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from safetensors.torch import save as save_tensors

from qpignn.data.graph import MASKS
from qpignn.data.mapped import digest_of, open_graph, read_description
from qpignn.data.storage import load_graph, load_table, save_graph, save_table
from qpignn.errors import ModelFileError, ReadError, SettingError
from qpignn.files import read_json, together
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import load_method
from qpignn.tensors import read_tensors

if TYPE_CHECKING:
    from torch_geometric.data import Data

ORIGIN, GRAPH, PAGE = "fit.json", "graph", "report.html"
COPIES = ("graph/graph.safetensors", "graph/nodes.parquet", "graph/table.parquet")
MASKS_FILE = "graph/masks.safetensors"
FILES = ("model.json", *COPIES, MASKS_FILE)
ROLE_TYPES: dict[str, Any] = {
    **dict.fromkeys(("id", "encoding", "decimal"), str),
    "edge_ends": list | None,
    "edge_weight": str | None,
    "directed": bool,
}
"""Of the roles that are used again, when other tables are read."""


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

    def check_types(self) -> None:
        """Raise KeyError, TypeError or ValueError unless a file says what :func:`save_fit` writes.

        A graph that lies elsewhere is named by its whole path; it is only ever read.
        """
        named = self.dataset if self.roles is None else self.roles["target"]
        if self.graph is not None:
            named = self.graph.folder
            if not os.path.isabs(named) or os.path.normpath(named) != named:
                raise ValueError(f"graph: expected a whole path, got {named!r}")
        if not isinstance(named, str):
            raise TypeError("expected the name of what is predicted")
        roles = self.roles or {}
        for role, kind in ROLE_TYPES.items():
            if role in roles and not isinstance(roles[role], kind):
                raise TypeError(f"{role}: expected another type, got {roles[role]!r}")
        if not all(isinstance(end, str) for end in roles.get("edge_ends") or ()):
            raise TypeError("edge_ends: expected names of columns, got others")


@dataclass(frozen=True)
class Fit:
    """A fitted model with its graph (all known targets, and masks), and the table it is from."""

    model: IntervalMethod
    data: Data
    table: pd.DataFrame | None
    origin: Origin


def save_fit(folder: Path, fit: Fit) -> None:
    """Write a fit; a page about another one that lies there is taken away.

    Raises:
        WriteError: where it cannot be written; an earlier fit and its page stay as they were.
    """
    if (folder / GRAPH).is_symlink():  # files would be written elsewhere
        raise SettingError(f"{folder / GRAPH}: expected a folder, got a link to one; delete it")
    with together() as files:
        files.remove(folder / PAGE)
        fit.model.save(folder)
        if fit.origin.graph is None:
            save_graph(folder / GRAPH, fit.data)
            save_table(folder / GRAPH, fit.table)
            files.remove(folder / MASKS_FILE)
        else:
            masks = {name: fit.data[name] for name in MASKS if fit.data.get(name) is not None}
            files.write(folder / MASKS_FILE, save_tensors(masks))
            for name in COPIES:
                files.remove(folder / name)
        origin = {**asdict(fit.origin), "digests": _digests(folder, files.where)}
        files.write(folder / ORIGIN, json.dumps(origin, indent=2).encode())


def load_fit(folder: Path) -> Fit:
    """Read a fit back; it must be whole, and of one piece."""
    model = load_method(folder)
    try:
        origin = read_json(folder / ORIGIN)
        whole = origin["digests"] == _digests(folder)
        graph = None if origin.get("graph") is None else MappedAt(**origin["graph"])
        found = Origin(origin["dataset"], origin["roles"], graph)
        found.check_types()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise ModelFileError(
            f"{folder}: expected a folder written by one 'qpignn fit', got one with missing, "
            f"damaged or mixed files; fit again"
        )
    data = load_graph(folder / GRAPH) if found.graph is None else _open_mapped(folder, found.graph)
    data.feature_names, data.coding = model.fitted_.names, model.coding_
    return Fit(model, data, load_table(folder / GRAPH, data.x.shape[0]), found)


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
        masks = read_tensors(folder / MASKS_FILE)
        for name, mask in masks.items():
            if name not in MASKS or (mask.shape, mask.dtype) != (data.x.shape[:1], torch.bool):
                raise ValueError(f"a tensor {name!r}, {tuple(mask.shape)} of {mask.dtype}")
            data[name] = mask
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{folder}: the stored masks are damaged: {error}") from error
    return data


def _digests(
    folder: Path, where: Callable[[Path], Path | None] = lambda path: path
) -> dict[str, str]:
    """Return digests of the files that are there; ``where`` says where their bytes lie."""
    found = {}
    for name in FILES:
        path = where(folder / name)
        if path is not None and path.is_file():
            with path.open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
