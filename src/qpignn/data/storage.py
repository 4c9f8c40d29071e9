"""Graphs in folders: ``graph.safetensors`` for the numbers, ``nodes.parquet`` for the ids.

An optional ``table.parquet`` contains the node table that the graph was made from.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from safetensors.torch import save as save_tensors
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.graph import MASKS, check_graph, node_ids, pair_of_names
from qpignn.data.matrix import from_scipy, is_sparse
from qpignn.data.parquet_table import read_parquet
from qpignn.errors import ReadError
from qpignn.io.files import atomic_files, check_path, remove_file, write_atomically
from qpignn.io.locks import read_consistent
from qpignn.io.tensors import bytes_to_tensor, pack_json, read_file_bytes, read_tensors, unpack_json

NUMBERS, NODES, TABLE = "graph.safetensors", "nodes.parquet", "table.parquet"
COLUMNS = ("edge_index", "y", "edge_weight", "node_weight", "pos", *MASKS)
POS_NAMES, NODES_DIGEST = "pos.names", "nodes.sha256"


def save_graph(folder: str | Path, data: Data) -> None:
    """Write a graph to a folder, for :func:`load_graph` and ``qpignn compare --datasets FOLDER``.

    Nothing is pickled. Ids other than integers of ordinary size are written as text; attributes
    that no method reads are left out.

    Args:
        folder: the folder to write; a graph in it is replaced.
        data: a PyG graph: ``x`` (dense or CSR), ``edge_index``, and other attributes that methods
            use.

    Raises:
        GraphError: if methods cannot use the graph.
        WriteError: if the folder cannot be written to.
    """
    folder = check_path("folder", folder)
    data = check_graph(data, need_target=False)
    tensors = {name: data[name].contiguous() for name in COLUMNS if data.get(name) is not None}
    if is_sparse(data.x):
        tensors |= {
            "x.starts": data.x.crow_indices(),
            "x.columns": data.x.col_indices(),
            "x.values": data.x.values(),
            "x.shape": torch.tensor(data.x.shape),
        }
    else:
        tensors["x"] = data.x.contiguous()
    if data.get("pos_names") is not None:
        tensors[POS_NAMES] = pack_json([str(name) for name in data.pos_names])
    ids = pd.Series(node_ids(data), name="id")
    small = 2**63  # Parquet's integers end here
    if not all(isinstance(i, int | np.integer) and -small <= i < small for i in ids):
        ids = ids.map(str)
    nodes = ids.to_frame().to_parquet()
    tensors[NODES_DIGEST] = bytes_to_tensor(hashlib.sha256(nodes).digest())
    with atomic_files() as files:
        files.write(folder / NODES, nodes)
        files.write(folder / NUMBERS, save_tensors(tensors))


def load_graph(folder: str | Path) -> Data:
    """Read a graph written by :func:`save_graph`.

    Args:
        folder: the folder of the graph.

    Returns:
        The graph.

    Raises:
        ReadError: if the folder contains no such graph, or a damaged one.
    """
    folder = check_path("folder", folder)
    return read_consistent(folder, (NUMBERS, NODES), lambda: _load_graph(folder))


def _load_graph(folder: Path) -> Data:
    for name in (NUMBERS, NODES):
        if not (folder / name).is_file():
            raise ReadError(f"{folder}: expected the file {name}, got none")
    try:
        tensors = read_tensors(folder / NUMBERS)
        x = tensors["x"] if "x" in tensors else _sparse(tensors)
        digest = hashlib.sha256(read_file_bytes(folder / NODES)).digest()
        if NODES_DIGEST in tensors and tensors[NODES_DIGEST].tolist() != [*digest]:
            raise ValueError(f"{NUMBERS} and {NODES} are of two different graphs")
        ids = read_parquet(folder / NODES, rows=x.shape[0])["id"]
        out = Data(**{name: tensors[name] for name in COLUMNS if name in tensors})
        out.x, out.node_id = x, ids.to_numpy(dtype=object)
        if POS_NAMES in tensors:
            out.pos_names = pair_of_names(unpack_json(tensors[POS_NAMES]))
        return check_graph(out, need_target=False)
    except (ValueError, KeyError, IndexError, TypeError, OSError) as error:
        raise ReadError(f"{folder}: the stored graph is damaged: {error}") from error


def save_table(folder: Path, table: pd.DataFrame | None) -> None:
    """Write the user's node table, or remove an old one.

    Args:
        folder: the folder of the graph.
        table: the table, with its rows in the graph's order; ``None`` to remove an old one.
    """
    if table is None:
        remove_file(folder / TABLE)
        return
    plain = table.reset_index(drop=True)
    for name in plain.columns:
        if pd.api.types.is_object_dtype(plain[name]):  # a column of Parquet has one type
            plain[name] = plain[name].map(str, na_action="ignore")
    write_atomically(folder / TABLE, plain.to_parquet(index=False))


def load_table(folder: Path, rows: int) -> pd.DataFrame | None:
    """Read the table of :func:`save_table`.

    Args:
        folder: the folder of the graph.
        rows: the number of nodes, of which each has a row.

    Returns:
        The table, or ``None`` if there is none.

    Raises:
        ReadError: if the table is damaged.
    """
    if not (folder / TABLE).is_file():
        return None
    try:
        return read_parquet(folder / TABLE, rows)
    except ReadError as error:
        raise ReadError(f"{folder}: the stored table is damaged: {error}") from error


def _sparse(tensors: dict[str, Tensor]) -> Tensor:
    """Return sparse features, or raise KeyError, TypeError or ValueError."""
    values, columns, starts = (tensors[f"x.{part}"] for part in ("values", "columns", "starts"))
    if not columns.dtype == starts.dtype == torch.int64:
        raise TypeError(f"expected whole numbers, got {columns.dtype} and {starts.dtype}")
    parts = values.numpy(), columns.numpy(), starts.numpy()
    matrix = sp.csr_matrix(parts, shape=tuple(tensors["x.shape"].tolist()))
    matrix.check_format()
    return from_scipy(matrix, values.dtype)
