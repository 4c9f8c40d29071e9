"""A graph larger than memory: a folder of arrays that are mapped where they lie, not read.

Each array is a ``.npy`` file; ``mapped.json`` is written last and says what the others hold, so a
folder that was only half written is refused, not read. Edges are sorted by target, then source.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from qpignn.data.encoding import FeatureEncoder
from qpignn.data.graph import check_graph, simple_edges
from qpignn.data.mapped_arrays import KINDS, array_file, mapped_array, read_header
from qpignn.data.mapped_digests import check_digests
from qpignn.data.matrix import is_sparse
from qpignn.data.parquet_table import read_parquet
from qpignn.errors import GraphError, LockedError, ReadError, SettingError, quoted
from qpignn.io.files import atomic_files, check_path, open_regular, read_json, write_errors
from qpignn.io.locks import LOCK_NAME, lock_folder, read_consistent

FORMAT = 1
DESCRIPTION, IDS, UNFINISHED = "mapped.json", "ids.parquet", "unfinished"
CONVERTING = ".qpignn.converting"  # the lock of a conversion, held from its beginning to its end
NAMES = (IDS, *(f"{name}.npy" for name in KINDS))


@dataclass(frozen=True)
class GraphDescription:
    """What a folder holds.

    Attributes:
        nodes, labelled: how many there are.
        edges: columns of ``edge_index``; an undirected edge is there both ways.
        directed: whether edges go one way.
        feature_names: names of the columns of ``x``, where it has names.
        coding: how a table became features (:meth:`Coding.to_dict`).
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
        """What there is, in numbers; an undirected edge counts once."""
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

    Only ids are kept in memory; all else stays on disk until it is used. Changing a tensor in place
    changes memory, never the files. Every file is checked against its SHA-256 digest: read whole
    the first time and after every change, by its size, time stamps and a sample of its bytes
    otherwise. What was checked is recorded in the user's cache folder (``QPIGNN_CACHE_DIR``).

    Args:
        folder: where the graph is.
        verbose: whether to show progress while files are read whole.

    Returns:
        The graph; its tensors are mapped files.

    Raises:
        ReadError: where the folder is unfinished, damaged, changed or something else.
    """
    folder = check_path("folder", folder)
    return read_consistent(folder, (DESCRIPTION, *NAMES), lambda: _open_graph(folder, verbose))


def _open_graph(folder: Path, verbose: bool) -> Data:
    told = describe_graph(folder)
    out = Data()
    with ExitStack() as opened:
        try:
            files = {name: opened.enter_context(open_regular(folder / name)) for name in told.files}
        except (OSError, ValueError) as error:
            raise _amiss(folder, f"a file that cannot be read ({error})") from error
        arrays = {
            kind: _array(folder, f"{kind}.npy", told, files[f"{kind}.npy"])
            for kind in KINDS
            if f"{kind}.npy" in files
        }
        digests = {name: told.files[name]["sha256"] for name in files}
        check_digests(folder, digests, files, verbose=verbose)
    for kind, array in arrays.items():
        out[kind] = torch.from_numpy(array)
    if told.feature_names is not None:
        out.feature_names = told.feature_names
    if told.coding is not None:
        out.coding = FeatureEncoder.from_dict(told.coding)
    if told.pos_names is not None:
        out.pos_names = told.pos_names
    if IDS in told.files:
        out.node_id = _read_ids(folder / IDS, told.nodes)
    return out


def write_graph(folder: str | Path, data: Data) -> None:
    """Write a graph that is in memory; ids other than numbers and text are written as text.

    An older graph in the folder is replaced once the new one is whole. Self-loops are dropped and
    repeated edges merged.
    """
    folder = check_path("folder", folder)
    data = check_graph(data, need_target=False)
    if is_sparse(data.x):
        raise GraphError("x: expected dense features to write, got sparse ones; use .to_dense()")
    nodes = data.x.shape[0]
    # sorted by the first row: that must be the target
    ends, weight = simple_edges(
        data.edge_index.flip(0), nodes, data.get("edge_weight"), directed=True
    )
    arrays = {name: data[name].numpy() for name in KINDS if data.get(name) is not None}
    arrays["edge_index"] = ends.flip(0).numpy()
    if weight is not None:
        arrays["edge_weight"] = weight.numpy()
    with unfinished(folder) as room:
        for name, values in arrays.items():
            kind = values.dtype.str if values.dtype.str in KINDS[name] else KINDS[name][0]
            with array_file(room / f"{name}.npy", kind, values.shape) as file:
                file.write(np.ascontiguousarray(values, dtype=kind).tobytes())
        if data.get("node_id") is not None:
            write_ids(room, pd.Index(data.node_id, tupleize_cols=False))
        finish(
            folder,
            room,
            directed=not is_undirected(ends, num_nodes=nodes),
            feature_names=data.get("feature_names"),
            coding=data.get("coding"),
            pos_names=data.get("pos_names"),
        )


@contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """Give a room inside a folder for the files of a new graph; afterwards the room is gone.

    An older graph stays until :func:`finish` exchanges it.

    Raises:
        SettingError: where files of the same names lie there that are not ours, or another process
            is at work there.
        WriteError: where the folder, or what is written within the block, cannot be written.
    """
    with write_errors(folder):
        yield from _unfinished(folder)


def _unfinished(folder: Path) -> Iterator[Path]:
    new, room = not folder.exists(), folder / UNFINISHED
    if room.is_symlink():  # what is in there is going to be deleted
        raise SettingError(f"{room}: expected a folder, got a link to elsewhere; delete it")
    strangers = [name for name in NAMES if (folder / name).exists()]
    if strangers and not room.exists() and not (folder / DESCRIPTION).exists():
        raise SettingError(
            f"{folder}: expected an empty folder or one of an earlier conversion, got one with "
            f"{quoted(strangers)}; choose another folder"
        )
    room.mkdir(parents=True, exist_ok=True)  # first: it says that the files are ours
    with ExitStack() as lock:
        try:
            lock.enter_context(lock_folder(folder, wait=0, name=CONVERTING))
        except LockedError as error:
            raise SettingError(
                f"{folder}: expected a folder that nobody else writes to, got one that another "
                f"process is converting into; wait for its end, or choose another folder"
            ) from error
        try:
            room.mkdir(exist_ok=True)  # who held the lock before has removed it
            for path in room.iterdir():  # of one that was killed
                path.unlink()
            yield room
        finally:
            if not (folder / DESCRIPTION).exists():
                for name in NAMES:
                    (folder / name).unlink(missing_ok=True)
            shutil.rmtree(room, ignore_errors=True)
            if new and {path.name for path in folder.iterdir()} <= {CONVERTING, LOCK_NAME}:
                shutil.rmtree(folder, ignore_errors=True)


def write_ids(room: Path, ids: pd.Index) -> None:
    """Write ids, unless they are the rows' own numbers; what Parquet has no type for is text."""
    ids = ids.infer_objects()
    if pd.api.types.is_integer_dtype(ids) and bool((ids == np.arange(len(ids))).all()):
        return
    if pd.api.types.is_object_dtype(ids):
        ids = pd.Index([str(id) for id in ids])
    pd.DataFrame({"id": ids}).to_parquet(room / IDS, index=False)


def finish(
    folder: Path,
    room: Path,
    *,
    directed: bool,
    feature_names: list[str] | None,
    coding: FeatureEncoder | None,
    roles: dict[str, Any] | None = None,
    pos_names: list[str] | None = None,
) -> GraphDescription:
    """Move written files to their places and describe them: from here on the folder opens.

    The older description goes first, so that it never describes files of the new graph.
    """
    files = {name: _file(room / name) for name in NAMES if (room / name).is_file()}
    labelled = 0
    if "y.npy" in files:
        with (room / "y.npy").open("rb") as file:
            labelled = int((~np.isnan(mapped_array(file, files["y.npy"]))).sum())
    told = GraphDescription(
        nodes=files["x.npy"]["shape"][0],
        labelled=labelled,
        edges=files["edge_index.npy"]["shape"][1],
        directed=directed,
        feature_names=None if feature_names is None else [str(name) for name in feature_names],
        coding=None if coding is None else coding.to_dict(),
        roles=roles,
        files=files,
        pos_names=None if pos_names is None else [str(name) for name in pos_names],
    )
    document = {"format": FORMAT, **asdict(told)}
    with atomic_files() as changes:
        changes.remove(folder / DESCRIPTION)
        for name in NAMES:
            if name in files:
                changes.move(room / name, folder / name)
            else:
                changes.remove(folder / name)
        changes.write(folder / DESCRIPTION, json.dumps(document, indent=2).encode())
    return told


def _file(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        told: dict[str, Any] = {"bytes": path.stat().st_size, "sha256": digest}
        if path.suffix == ".npy":
            shape, kind, _ = read_header(file)
            told |= {"dtype": kind, "shape": list(shape)}
    return told


def _array(folder: Path, name: str, told: GraphDescription, file: BinaryIO) -> npt.NDArray[Any]:
    try:
        return mapped_array(file, told.files[name])
    except (OSError, ValueError) as error:
        raise _amiss(folder, f"a damaged {name} ({error})") from error


def graph_digest(folder: Path) -> str:
    """Return what tells a graph from all others: the digest of its description, itself of digests.

    Raises:
        ReadError: where there is no graph.
    """
    describe_graph(folder)
    with open_regular(folder / DESCRIPTION) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_graph(folder: Path) -> GraphDescription:
    """Read and check ``mapped.json``, and that the files it tells of are there, each of its size.

    Raises:
        ReadError: naming what is amiss.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        unfinished = f"one without {DESCRIPTION} (a conversion that did not finish?)"
        got = unfinished if folder.is_dir() else "a file" if folder.exists() else "nothing"
        raise _amiss(folder, got)
    try:
        document = read_json(path)
        version = document.pop("format")
        if version != FORMAT:
            raise _amiss(folder, f"format {version!r}, where this version knows {FORMAT}")
        told = GraphDescription(**document)
        _check_shapes(told)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, ReadError):
            raise
        raise _amiss(folder, f"a damaged {DESCRIPTION} ({error})") from error
    for name, file in told.files.items():
        there = (folder / name).stat().st_size if (folder / name).is_file() else None
        if there != file["bytes"]:
            got = "none" if there is None else f"{there:,} bytes"
            raise _amiss(folder, f"{got} in place of the {file['bytes']:,} bytes of {name}")
    return told


def _amiss(folder: Path, got: str) -> ReadError:
    return ReadError(
        f"{folder}: expected a folder written by 'qpignn convert' or write_graph, got {got}; "
        f"convert again"
    )


def _check_shapes(told: GraphDescription) -> None:
    """Raise ValueError, KeyError or TypeError unless a description makes sense in itself."""
    _check_types(told)
    if told.coding is not None:
        FeatureEncoder.from_dict(told.coding)
    columns = told.files["x.npy"]["shape"][1]
    if told.feature_names is not None and len(told.feature_names) != columns:
        raise ValueError(f"{len(told.feature_names)} feature names for {columns} columns")
    shapes = {
        "x": [told.nodes, columns],
        "edge_index": [2, told.edges],
        "edge_weight": [told.edges],
        "pos": [told.nodes, 2],
    }
    for name in told.files:
        if name == IDS:
            continue
        kind = name.removesuffix(".npy")
        if name != f"{kind}.npy":
            raise ValueError(f"a file {name!r}")
        if told.files[name]["dtype"] not in KINDS[kind]:
            raise ValueError(f"{name} of type {told.files[name]['dtype']}")
        if told.files[name]["shape"] != shapes.get(kind, [told.nodes]):
            raise ValueError(f"{name} of shape {told.files[name]['shape']}")
    if "edge_index.npy" not in told.files:
        raise ValueError("no edge_index.npy")


def _check_types(told: GraphDescription) -> None:
    counts = [told.nodes, told.labelled, told.edges]
    for file in told.files.values():
        counts += [file["bytes"], *file.get("shape", ())]
        if not isinstance(file["sha256"], str):
            raise TypeError("sha256: expected a digest")
    if any(type(count) is not int or count < 0 for count in counts):
        raise TypeError("expected whole numbers for nodes, labelled, edges, bytes and shapes")
    names, roles = told.feature_names or [], told.roles or {}
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise TypeError("feature_names: expected a list of names")
    pair = told.pos_names or ["", ""]
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(n, str) for n in pair)):
        raise TypeError("pos_names: expected two names")
    if not (isinstance(told.directed, bool) and isinstance(roles, dict)):
        raise TypeError("directed, roles: expected a truth and a description")


def _read_ids(path: Path, nodes: int) -> npt.NDArray[Any]:
    try:
        ids = read_parquet(path, rows=nodes)["id"]
    except (ReadError, KeyError) as error:
        raise _amiss(path.parent, f"a damaged {IDS} ({error})") from error
    if pd.api.types.is_object_dtype(ids) and not all(isinstance(id, str) for id in ids):
        raise _amiss(path.parent, f"{IDS} with ids that are neither numbers nor text")
    return ids.to_numpy()
