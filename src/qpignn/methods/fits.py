"""A fit on disk: the model, the graph it was fitted on, the user's table, and where all came from.

``fit.json`` is written last and carries the digests of the other files, so a folder that was only
half written or mixed from two fits is refused, not read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from torch_geometric.data import Data

from qpignn.data.storage import load_graph, load_table, save_graph, save_table
from qpignn.errors import ModelFileError
from qpignn.files import replace_file
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import load_method

ORIGIN, GRAPH, PAGE = "fit.json", "graph", "report.html"
FILES = ("model.json", "graph/graph.safetensors", "graph/nodes.parquet", "graph/table.parquet")


@dataclass(frozen=True)
class Origin:
    """Where a graph came from: a data set by name, or the roles of the user's columns."""

    dataset: str | None
    roles: dict[str, Any] | None

    @property
    def target(self) -> str:
        """What is predicted, in a word."""
        return str(self.dataset if self.roles is None else self.roles["target"])


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
    save_graph(folder / GRAPH, fit.data)
    save_table(folder / GRAPH, fit.table)
    origin = {"dataset": fit.origin.dataset, "roles": fit.origin.roles, "digests": _digests(folder)}
    replace_file(folder / ORIGIN, json.dumps(origin, indent=2).encode())


def load_fit(folder: Path) -> Fit:
    """Read a fit back; it must be whole, and of one piece."""
    model = load_method(folder)
    try:
        origin = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))
        whole = origin["digests"] == _digests(folder)
        found = Origin(origin["dataset"], origin["roles"])
        named = found.dataset if found.roles is None else found.roles["target"]
        whole = whole and isinstance(named, str)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise ModelFileError(
            f"{folder}: expected a folder written by one 'qpignn fit', got one with missing, "
            f"damaged or mixed files; fit again"
        )
    data = load_graph(folder / GRAPH)
    data.feature_names, data.coding = model.fitted_.names, model.coding_
    return Fit(model, data, load_table(folder / GRAPH), found)


def _digests(folder: Path) -> dict[str, str]:
    there = [folder / name for name in FILES]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in there
        if path.is_file()
    }
