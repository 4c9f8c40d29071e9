"""A fit on disk: the model, the graph it was fitted on, the user's table, and their origin.

``fit.json`` is written last and carries the digests of the other files, so a folder that was only
half written or mixed from two fits is refused, not read. A graph larger than memory is not copied:
``fit.json`` says where it lies and what tells it from others; only who is held out is kept here.
"""

from __future__ import annotations

import copy
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

from qpignn.data.append import join_frames
from qpignn.data.column_roles import ColumnRoles
from qpignn.data.columns import require_columns
from qpignn.data.frames import target_values
from qpignn.data.graph import MASKS, given_nodes, node_ids
from qpignn.data.ids import NodeIndex, check_ids
from qpignn.data.mapped import describe_graph, graph_digest, open_graph
from qpignn.data.readers import graph_from_tables, read_tables
from qpignn.data.storage import load_graph, load_table, save_graph, save_table
from qpignn.data.tables import open_nodes
from qpignn.errors import ModelFileError, QpignnError, ReadError, SettingError, SplitError, quoted
from qpignn.io.files import atomic_files, open_regular, read_json
from qpignn.io.locks import read_consistent
from qpignn.io.tensors import read_tensors
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import load_method, saved_class
from qpignn.methods.serialization import MODEL_FILES

if TYPE_CHECKING:
    from torch_geometric.data import Data

ORIGIN, GRAPH, PAGE = "fit.json", "graph", "report.html"
COPIES = ("graph/graph.safetensors", "graph/nodes.parquet", "graph/table.parquet")
MASKS_FILE = "graph/masks.safetensors"
FILES = ("model.json", *COPIES, MASKS_FILE)


@dataclass(frozen=True)
class MappedAt:
    """A graph that is too large to copy.

    Attributes:
        folder: where it is stored.
        digest: of its contents.
    """

    folder: str
    digest: str


@dataclass(frozen=True)
class Origin:
    """Where a graph came from: a data set by name, or the user's tables.

    Attributes:
        dataset: the data set's name.
        roles: the roles of the tables' columns, and how their files are written.
        graph: where the graph lies, if it was converted beforehand from such tables.
    """

    dataset: str | None
    roles: ColumnRoles | None
    graph: MappedAt | None = None

    @classmethod
    def of_mapped(cls, folder: Path) -> Origin:
        """Describe a converted graph.

        Args:
            folder: where it is stored.

        Returns:
            The origin.
        """
        where = MappedAt(str(folder.resolve()), graph_digest(folder))
        roles = describe_graph(folder).roles
        return cls(None, None if roles is None else ColumnRoles.from_dict(roles), where)

    @property
    def target(self) -> str:
        """What is predicted, in a word."""
        if self.roles is not None:
            return str(self.roles.target)
        return str(self.dataset if self.graph is None else Path(self.graph.folder).name)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "dataset": self.dataset,
            "roles": None if self.roles is None else self.roles.to_dict(),
            "graph": None if self.graph is None else asdict(self.graph),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Origin:
        """Return what :meth:`to_dict` described.

        A graph in another folder is named by its absolute path; it is only read.

        Args:
            values: as read from a file; unchecked.

        Raises:
            KeyError: if a field is missing.
            TypeError: if a field has another type.
            ValueError: if a path is not absolute.
        """
        dataset, roles, graph = values["dataset"], values["roles"], values.get("graph")
        origin = cls(
            dataset,
            None if roles is None else ColumnRoles.from_dict(roles),
            None if graph is None else MappedAt(**graph),
        )
        named = dataset if origin.roles is None else origin.roles.target
        if origin.graph is not None:
            named = origin.graph.folder
            if not os.path.isabs(named) or os.path.normpath(named) != named:
                raise ValueError(f"graph: expected a whole path, got {named!r}")
        if not isinstance(named, str):
            raise TypeError("expected the name of what is predicted")
        return origin


@dataclass(frozen=True)
class Fit:
    """A fitted model with its graph and the table it is from.

    Attributes:
        model: the fitted method.
        data: the graph with all known targets, and masks.
        table: the user's table of nodes, if there was one.
        origin: where the graph came from.
    """

    model: IntervalMethod
    data: Data
    table: pd.DataFrame | None
    origin: Origin


def save_fit(folder: Path, fit: Fit) -> None:
    """Write a fit; a report page of another fit in the folder is removed.

    Args:
        folder: where to.
        fit: the fit.

    Raises:
        SettingError: if the folder of the graph is a link.
        WriteError: where it cannot be written; an earlier fit and its page stay as they were.
    """
    if (folder / GRAPH).is_symlink():  # files would be written elsewhere
        raise SettingError(f"{folder / GRAPH}: expected a folder, got a link to one; delete it")
    with atomic_files() as files:
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
        origin = {**fit.origin.to_dict(), "digests": _digests(folder, files.where)}
        files.write(folder / ORIGIN, json.dumps(origin, indent=2).encode())


def has_finished_fit(folder: Path, model: IntervalMethod | None = None) -> bool:
    """Return whether a folder holds a fit whose training ran to its end.

    Args:
        folder: where the fit would be.
        model: a method whose class the fit may be of, though it is outside this package.
    """
    inner: Any = getattr(model, "method", model)
    try:
        with saved_class(None if inner is None else type(inner)):
            return not load_fit(folder).model.history_.interrupted
    except (QpignnError, OSError):
        return False


def load_fit(folder: Path) -> Fit:
    """Return a fit that :func:`save_fit` wrote, also while another process is writing one there.

    Args:
        folder: where the fit is.

    Raises:
        ModelFileError: if there is no fit, or a damaged or mixed one.
        ReadError: if its files cannot be read.
    """
    return read_consistent(folder, (*MODEL_FILES, *FILES, ORIGIN), lambda: _load_fit(folder))


def _load_fit(folder: Path) -> Fit:
    model = load_method(folder)
    try:
        origin = read_json(folder / ORIGIN)
        whole = origin["digests"] == _digests(folder)
        origin_of_fit = Origin.from_dict(origin)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise ModelFileError(
            f"{folder}: expected a folder written by one 'qpignn fit', got one with missing, "
            f"damaged or mixed files; fit again"
        )
    data = _load_graph(folder, origin_of_fit.graph)
    data.feature_names, data.coding = model.fitted_.names, model.coding_
    roles = origin_of_fit.roles
    if roles is not None and roles.id is not None:
        data.id_name = roles.id
    return Fit(model, data, load_table(folder / GRAPH, data.x.shape[0]), origin_of_fit)


def _load_graph(folder: Path, graph: MappedAt | None) -> Data:
    """Open the graph of a fit: its copy, or where it lies, with the fit's own masks."""
    if graph is None:
        return load_graph(folder / GRAPH)
    there = Path(graph.folder)
    try:
        got = None if graph_digest(there) == graph.digest else "another graph"
    except ReadError as error:
        got = f"none that opens ({error})"
    if got is not None:
        raise ModelFileError(
            f"{folder}: expected the graph of the fit in {there}, got {got}; put it back there, or "
            f"fit again with --graph"
        )
    data = open_graph(there)
    try:
        for name, mask in read_tensors(folder / MASKS_FILE).items():
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
    digests = {}
    for name in FILES:
        path = where(folder / name)
        if path is not None and path.is_file():
            with open_regular(path) as file:
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def read_like(fit: Fit, nodes: Path, edges: Path | None, *, join: bool = False) -> Data:
    """Return another graph, or new nodes of the fit's own, with the columns of the fit.

    Args:
        fit: whose columns and files are meant.
        nodes: the file of nodes.
        edges: the file of edges; without it the nodes have no neighbours.
        join: whether the nodes join the graph of the fit.

    Raises:
        ReadError: if the fit was not made on files, so that no columns are known.
    """
    roles, coding = _roles(fit), fit.model.coding_
    assert coding is not None
    tables = read_tables(nodes, edges, roles, text=coding.category_columns)
    shared = {name: roles.columns()[name] for name in ("edge_ends", "edge_weight", "directed")}
    shared |= {"id": tables.id, "match_ids": roles.match_ids}
    # new nodes need not carry the column to be predicted
    target = roles.target if roles.target in tables.nodes else None
    if join:
        return join_frames(fit.data, tables.nodes, tables.edges, target=target, **shared)
    return graph_from_tables(tables, target=target, coding=coding, need_target=False, **shared)


def with_new_labels(fit: Fit, nodes: Path) -> Data:
    """Return the graph of a fit with targets from a table; its test nodes are those not given.

    Args:
        fit: the fit.
        nodes: a table with the id and the target of some of its nodes.

    Raises:
        ReadError: if the table has no such columns.
        SplitError: if it has no target that the fit was not given.
    """
    roles = _roles(fit)
    opened, id = open_nodes(nodes, roles)
    table = opened.read()
    require_columns("node", table, [str(roles.target)])
    ids: pd.Index = pd.Index(table[id], tupleize_cols=False)
    check_ids(ids, len(table))
    index = NodeIndex(pd.Index(node_ids(fit.data), tupleize_cols=False), roles.match_ids)
    positions = index.positions(ids)
    if (positions < 0).any():
        lacking = ids[positions < 0]
        raise ReadError(
            f"{nodes}: expected nodes of the fit, got {quoted(lacking)}{index.explain(lacking)}; "
            f"for another graph give its edges too"
        )
    values = target_values(table[roles.target], ids)
    data = copy.copy(fit.data)
    y, given = fit.data.get("y"), given_nodes(fit.data)
    unknown = torch.full(given.shape, torch.nan, dtype=torch.float64)
    data.y = unknown if y is None else y.clone()
    places = torch.from_numpy(positions)
    unseen = ~values.isnan() & ~given[places]
    new = places[unseen]
    if not len(new):
        raise SplitError(f"{nodes}: expected targets that the fit was not given, got none")
    data.y[new] = values[unseen].to(data.y.dtype)
    data.train_mask, data.val_mask = given, None
    data.test_mask = torch.zeros_like(given).index_fill(0, new, True)
    return data


def _roles(fit: Fit) -> ColumnRoles:
    """Return the roles of a fit's tables, or raise."""
    if fit.origin.roles is None:
        raise ReadError(
            f"--nodes: expected a model fitted on files, whose columns are known, got one that was "
            f"fitted on the {'graph' if fit.origin.graph else 'data set'} {fit.origin.target!r}; "
            f"fit on files of your own"
        )
    if fit.model.coding_ is None:
        raise ModelFileError(
            "--nodes: expected a model that says how its tables became features, got one that does "
            "not; fit again"
        )
    return fit.origin.roles
