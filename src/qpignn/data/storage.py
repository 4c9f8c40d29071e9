"""A graph as a folder: ``graph.safetensors`` for the numbers, ``nodes.parquet`` for the ids.

Beside them ``table.parquet`` may keep the table of nodes it was made from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.graph import MASKS, check_graph, node_ids
from qpignn.data.matrix import from_scipy, is_sparse
from qpignn.errors import ReadError
from qpignn.files import replace_file

NUMBERS, NODES, TABLE = "graph.safetensors", "nodes.parquet", "table.parquet"
COLUMNS = ("edge_index", "y", "edge_weight", "node_weight", "pos", *MASKS)


def save_graph(folder: Path, data: Data) -> None:
    """Write a graph; ids other than integers of ordinary size are written as text."""
    folder.mkdir(parents=True, exist_ok=True)
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
    replace_file(folder / NUMBERS, save_tensors(tensors))
    ids = pd.Series(node_ids(data), name="id")
    small = 2**63  # Parquet's integers end here
    if not all(isinstance(i, int | np.integer) and -small <= i < small for i in ids):
        ids = ids.map(str)
    replace_file(folder / NODES, ids.to_frame().to_parquet())


def load_graph(folder: Path) -> Data:
    """Read a graph written by :func:`save_graph`."""
    for name in (NUMBERS, NODES):
        if not (folder / name).is_file():
            raise ReadError(f"{folder}: expected the file {name}, got none")
    try:
        tensors = load_tensors((folder / NUMBERS).read_bytes())
        ids = pd.read_parquet(folder / NODES)["id"]
    except (SafetensorError, ValueError, KeyError, OSError) as error:
        raise ReadError(f"{folder}: the stored graph is damaged: {error}") from error
    out = Data(**{name: tensors[name] for name in COLUMNS if name in tensors})
    out.x = tensors["x"] if "x" in tensors else _sparse(tensors, folder)
    out.node_id = np.array(ids.to_list(), dtype=object)
    return check_graph(out, need_target=False)


def save_table(folder: Path, table: pd.DataFrame | None) -> None:
    """Write the user's own node table, row by row as in the graph, or take an old one away."""
    if table is None:
        (folder / TABLE).unlink(missing_ok=True)
        return
    plain = table.reset_index(drop=True)
    for name in plain.columns:
        if pd.api.types.is_object_dtype(plain[name]):  # Parquet wants one type a column
            plain[name] = plain[name].map(str, na_action="ignore")
    replace_file(folder / TABLE, plain.to_parquet(index=False))


def load_table(folder: Path) -> pd.DataFrame | None:
    """Read the table of :func:`save_table`, if there is one."""
    if not (folder / TABLE).is_file():
        return None
    try:
        return pd.read_parquet(folder / TABLE)
    except (ValueError, OSError) as error:
        raise ReadError(f"{folder}: the stored table is damaged: {error}") from error


def _sparse(tensors: dict[str, Tensor], folder: Path) -> Tensor:
    try:
        parts = tuple(tensors[f"x.{part}"].numpy() for part in ("values", "columns", "starts"))
        matrix = sp.csr_matrix(parts, shape=tuple(tensors["x.shape"].tolist()))
        matrix.check_format()
    except (KeyError, ValueError) as error:
        raise ReadError(f"{folder}: the stored features are damaged: {error}") from error
    return from_scipy(matrix, tensors["x.values"].dtype)
