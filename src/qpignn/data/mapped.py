"""Graphs larger than memory: folders of memory-mapped arrays.

Each array is a ``.npy`` file; ``mapped.json`` describes the others and is written last, so that an
incomplete folder is refused. Edges are sorted by target, then source.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from qpignn.data.encoding import FeatureEncoder
from qpignn.data.graph import check_graph, pair_of_names, simple_edges
from qpignn.data.mapped_arrays import KINDS, array_file, mapped_array, read_header
from qpignn.data.mapped_digests import check_digests, invalid_graph
from qpignn.data.matrix import is_sparse
from qpignn.data.parquet_table import read_parquet
from qpignn.errors import GraphError, LockedError, ReadError, SettingError, quoted
from qpignn.io.files import atomic_files, check_path, open_regular, read_json, write_errors
from qpignn.io.locks import LOCK_NAME, lock_folder, read_consistent

FORMAT = 1
DESCRIPTION, IDS, UNFINISHED = "mapped.json", "ids.parquet", "unfinished"
CONVERTING = ".qpignn.converting"  # lock file of a running conversion
NAMES = (IDS, *(f"{name}.npy" for name in KINDS))


@dataclass(frozen=True)
class GraphDescription:
    """Description of a folder of arrays (``mapped.json``).

    Attributes:
        nodes, labelled: numbers of nodes and of labelled nodes.
        edges: columns of ``edge_index``; an undirected edge is there both ways.
        directed: whether edges go one way.
        feature_names: names of the columns of ``x``, where it has names.
        coding: how a table became features (:meth:`FeatureEncoder.to_dict`).
        roles: the roles of the table's columns, where it was made from one.
        files: each file's ``bytes`` and ``sha256``, and each array's ``dtype`` and ``shape``.
        pos_names: names of the two coordinates of ``pos``, where it has names.
    """

    nodes: int
    labelled: int
    edges: int
    directed: bool
    feature_names: list[str] | None
    coding: dict[str, Any] | None
    roles: dict[str, Any] | None
    files: dict[str, dict[str, Any]]
    pos_names: list[str] | None = None

    def counts(self) -> dict[str, int | bool]:
        """Return the sizes of the graph; an undirected edge counts once."""
        return {
            "nodes": self.nodes,
            "labelled": self.labelled,
            "edges": self.edges if self.directed else self.edges // 2,
            "directed": self.directed,
            "features": int(self.files["x.npy"]["shape"][1]),
            "bytes": sum(int(file["bytes"]) for file in self.files.values()),
        }


def open_graph(folder: str | Path, *, verbose: bool = False) -> Data:
    """Open a folder written by ``qpignn convert`` or :func:`write_graph`.

    Only ids are read into memory; everything else stays on disk until it is used. Changing a tensor
    in place changes memory, never the files. Every file is checked against its SHA-256 digest: read
    whole the first time and after every change, by its size, time stamps and a sample of its bytes
    otherwise. The results are recorded in the user's cache folder (``QPIGNN_CACHE_DIR``).

    Args:
        folder: the folder of the graph.
        verbose: whether to show progress while files are read whole.

    Returns:
        The graph; its tensors are mapped files.

    Raises:
        ReadError: if the folder is incomplete, damaged, changed or not a graph.
    """
    folder = check_path("folder", folder)
    return read_consistent(folder, (DESCRIPTION, *NAMES), lambda: _open_graph(folder, verbose))


def _open_graph(folder: Path, verbose: bool) -> Data:
    stored = describe_graph(folder)
    out = Data()
    files = {}
    with ExitStack() as opened:
        for name, described in stored.files.items():
            try:
                files[name] = opened.enter_context(open_regular(folder / name))
                if name != IDS:
                    array = mapped_array(files[name], described)
                    out[name.removesuffix(".npy")] = torch.from_numpy(array)
            except (OSError, ValueError) as error:
                raise invalid_graph(folder, f"a damaged {name} ({error})") from error
        check_digests(folder, stored.files, files, verbose=verbose)
    out.feature_names, out.pos_names = stored.feature_names, stored.pos_names
    if stored.coding is not None:
        out.coding = FeatureEncoder.from_dict(stored.coding)
    if IDS in stored.files:
        out.node_id = _read_ids(folder / IDS, stored.nodes)
    return out


def write_graph(folder: str | Path, data: Data) -> None:
    """Write a graph from memory to a folder for :func:`open_graph`.

    An older graph in the folder is replaced once the new one is complete. Self-loops are dropped
    and repeated edges merged. Ids other than numbers and text are written as text.

    Args:
        folder: the folder to write.
        data: a PyG graph with dense ``x``.

    Raises:
        GraphError: if the graph is invalid or its features are sparse.
        SettingError: if the folder contains other files, or another process writes to it.
        WriteError: if the folder cannot be written.
    """
    folder = check_path("folder", folder)
    data = check_graph(data, need_target=False)
    if is_sparse(data.x):
        raise GraphError("x: expected dense features to write, got sparse ones; use .to_dense()")
    nodes = data.x.shape[0]
    reverse = data.edge_index.flip(0)  # sorted by the first row, which must be the target
    ends, weight = simple_edges(reverse, nodes, data.get("edge_weight"), directed=True)
    data.edge_index, data.edge_weight = ends.flip(0), weight
    with unfinished(folder) as staging:
        write_arrays(staging, data, KINDS)
        if data.get("node_id") is not None:
            write_ids(staging, pd.Index(data.node_id, tupleize_cols=False))
        finish(folder, staging, data, directed=not is_undirected(ends, num_nodes=nodes))


@contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """Create a staging folder for the files of a new graph, removed at the end of the block.

    An older graph stays until :func:`finish` replaces it.

    Args:
        folder: the folder of the graph.

    Yields:
        The staging folder, inside ``folder``.

    Raises:
        SettingError: if the folder contains files of the same names from elsewhere, or another
            process writes to it.
        WriteError: if the folder, or a file within the block, cannot be written.
    """
    with write_errors(folder), ExitStack() as lock:
        new, staging = not folder.exists(), folder / UNFINISHED
        if staging.is_symlink():  # its contents are going to be deleted
            raise SettingError(f"{staging}: expected a folder, got a link to elsewhere; delete it")
        foreign = [name for name in NAMES if (folder / name).exists()]
        if foreign and not staging.exists() and not (folder / DESCRIPTION).exists():
            raise SettingError(
                f"{folder}: expected an empty folder or one of an earlier conversion, got one with "
                f"{quoted(foreign)}; choose another folder"
            )
        staging.mkdir(parents=True, exist_ok=True)  # first: it marks the files as ours
        try:
            lock.enter_context(lock_folder(folder, wait=0, name=CONVERTING))
        except LockedError as error:
            raise SettingError(
                f"{folder}: expected a folder without another writer, got one that another "
                f"process is converting into; wait for its end, or choose another folder"
            ) from error
        try:
            shutil.rmtree(staging, ignore_errors=True)  # left by a killed conversion
            staging.mkdir()
            yield staging
        finally:
            if not (folder / DESCRIPTION).exists():
                for name in NAMES:
                    (folder / name).unlink(missing_ok=True)
            shutil.rmtree(staging, ignore_errors=True)
            if new and {path.name for path in folder.iterdir()} <= {CONVERTING, LOCK_NAME}:
                shutil.rmtree(folder, ignore_errors=True)


def write_arrays(staging: Path, data: Data, names: Iterable[str]) -> None:
    """Write tensors of a graph.

    Args:
        staging: the staging folder.
        data: the graph.
        names: which tensors; those that the graph lacks are left out.
    """
    for name in names:
        if data.get(name) is not None:
            values = data[name].numpy()
            kind = values.dtype.str if values.dtype.str in KINDS[name] else KINDS[name][0]
            with array_file(staging / f"{name}.npy", kind, values.shape) as file:
                file.write(np.ascontiguousarray(values, dtype=kind).tobytes())


def write_ids(staging: Path, ids: pd.Index) -> None:
    """Write node ids, unless they are the row numbers.

    Args:
        staging: the staging folder.
        ids: the ids; those of types that Parquet lacks are written as text.
    """
    ids = ids.infer_objects()
    if pd.api.types.is_integer_dtype(ids) and bool((ids == np.arange(len(ids))).all()):
        return
    if pd.api.types.is_object_dtype(ids):
        ids = pd.Index([str(id) for id in ids])
    pd.DataFrame({"id": ids}).to_parquet(staging / IDS, index=False)


def finish(
    folder: Path, staging: Path, data: Data, *, directed: bool, roles: dict[str, Any] | None = None
) -> GraphDescription:
    """Replace the folder's graph by the staged one and write its description.

    The older description is removed first, so that it never describes files of the new graph.

    Args:
        folder: the folder of the graph.
        staging: the staging folder with the new files.
        data: the graph, of which ``coding``, ``feature_names`` and ``pos_names`` are used.
        directed: whether edges go one way.
        roles: the roles of the table's columns, if there is one.

    Returns:
        The description.
    """
    files = {name: _file(staging / name) for name in NAMES if (staging / name).is_file()}
    labelled = 0
    if "y.npy" in files:
        with (staging / "y.npy").open("rb") as file:
            labelled = int((~np.isnan(mapped_array(file, files["y.npy"]))).sum())
    coding, pos_names = data.get("coding"), data.get("pos_names")
    stored = GraphDescription(
        nodes=files["x.npy"]["shape"][0],
        labelled=labelled,
        edges=files["edge_index.npy"]["shape"][1],
        directed=directed,
        feature_names=data.get("feature_names"),
        coding=None if coding is None else coding.to_dict(),
        roles=roles,
        files=files,
        pos_names=None if pos_names is None else [str(name) for name in pos_names],
    )
    document = {"format": FORMAT, **asdict(stored)}
    with atomic_files() as changes:
        changes.remove(folder / DESCRIPTION)
        for name in NAMES:
            if name in files:
                changes.move(staging / name, folder / name)
            else:
                changes.remove(folder / name)
        changes.write(folder / DESCRIPTION, json.dumps(document, indent=2).encode())
    return stored


def _file(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        entry: dict[str, Any] = {"bytes": path.stat().st_size, "sha256": digest}
        if path.suffix == ".npy":
            shape, kind, _ = read_header(file)
            entry |= {"dtype": kind, "shape": list(shape)}
    return entry


def graph_digest(folder: Path) -> str:
    """Return the SHA-256 digest of a graph: that of its description, which contains digests.

    Args:
        folder: the folder of the graph.

    Raises:
        ReadError: if there is no graph.
    """
    describe_graph(folder)
    with open_regular(folder / DESCRIPTION) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_graph(folder: Path) -> GraphDescription:
    """Read ``mapped.json`` and check that the files it lists exist and have the right sizes.

    Args:
        folder: the folder of the graph.

    Returns:
        The description.

    Raises:
        ReadError: naming what is invalid.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        unfinished = f"one without {DESCRIPTION} (a conversion that did not finish?)"
        got = unfinished if folder.is_dir() else "a file" if folder.exists() else "nothing"
        raise invalid_graph(folder, got)
    try:
        document = read_json(path)
        version = document.pop("format")
        if version != FORMAT:
            raise invalid_graph(folder, f"format {version!r}, where this version reads {FORMAT}")
        stored = GraphDescription(**document)
        _check_shapes(stored)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, ReadError):
            raise
        raise invalid_graph(folder, f"a damaged {DESCRIPTION} ({error})") from error
    for name, file in stored.files.items():
        there = (folder / name).stat().st_size if (folder / name).is_file() else None
        if there != file["bytes"]:
            got = "none" if there is None else f"{there:,} bytes"
            raise invalid_graph(folder, f"{got} in place of the {file['bytes']:,} bytes of {name}")
    return stored


def _check_shapes(stored: GraphDescription) -> None:
    """Raise ValueError, KeyError or TypeError if a description contradicts itself."""
    _check_types(stored)
    if stored.coding is not None:
        FeatureEncoder.from_dict(stored.coding)
    columns = stored.files["x.npy"]["shape"][1]
    if stored.feature_names is not None and len(stored.feature_names) != columns:
        raise ValueError(f"{len(stored.feature_names)} feature names for {columns} columns")
    shapes = {
        "x": [stored.nodes, columns],
        "edge_index": [2, stored.edges],
        "edge_weight": [stored.edges],
        "pos": [stored.nodes, 2],
    }
    for name, file in stored.files.items():
        if name not in NAMES:
            raise ValueError(f"a file {name!r}")
        kind = name.removesuffix(".npy")
        right = file.get("shape") == shapes.get(kind, [stored.nodes])
        if name != IDS and not (right and file["dtype"] in KINDS[kind]):
            raise ValueError(f"{name} of shape {file['shape']} and type {file['dtype']}")
    if "edge_index.npy" not in stored.files:
        raise ValueError("no edge_index.npy")


def _check_types(stored: GraphDescription) -> None:
    counts = [stored.nodes, stored.labelled, stored.edges]
    for file in stored.files.values():
        counts += [file["bytes"], *file.get("shape", ())]
        if not isinstance(file["sha256"], str):
            raise TypeError("sha256: expected a digest")
    if any(type(count) is not int or count < 0 for count in counts):
        raise TypeError("expected whole numbers for nodes, labelled, edges, bytes and shapes")
    names, roles = stored.feature_names or [], stored.roles or {}
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise TypeError("feature_names: expected a list of names")
    pair_of_names(stored.pos_names or ["", ""])
    if not (isinstance(stored.directed, bool) and isinstance(roles, dict)):
        raise TypeError("directed, roles: expected a truth and a description")


def _read_ids(path: Path, nodes: int) -> npt.NDArray[Any]:
    try:
        ids = read_parquet(path, rows=nodes)["id"]
    except (ReadError, KeyError) as error:
        raise invalid_graph(path.parent, f"a damaged {IDS} ({error})") from error
    if pd.api.types.is_object_dtype(ids) and not all(isinstance(id, str) for id in ids):
        raise invalid_graph(path.parent, f"{IDS} with ids that are neither numbers nor text")
    return ids.to_numpy()
