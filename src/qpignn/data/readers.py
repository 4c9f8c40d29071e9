"""Files in: CSV and Parquet tables of nodes and edges become a graph."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pandas as pd
from torch_geometric.data import Data

from qpignn.data.frames import from_frames
from qpignn.errors import ReadError, listed

BLANKS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A"]
PARQUET = (".parquet", ".pq")


def read_graph(
    nodes: str | Path,
    edges: str | Path | None,
    *,
    target: str | None,
    id: str = "id",
    encoding: str = "utf-8",
    **roles: Any,
) -> Data:
    """Read a node file and an edge file (``.csv``, ``.tsv``, ``.parquet``; also gzipped text).

    In text files ids are read as text, so that leading zeros and integers of any size survive and
    an id such as ``NA`` is a name, not a blank. Parquet keeps its own types.

    Args:
        nodes, edges: the files; ``edges=None`` for a graph without edges.
        target, **roles: the roles of columns, as in :func:`qpignn.from_frames`.
        id: the node file's id column.
        encoding: of text files.
    """
    node_table = read_table(nodes, text=[id], encoding=encoding)
    if id not in node_table:
        raise ReadError(
            f"{nodes}: expected an id column {id!r}, got {listed(node_table.columns, 12)}; "
            f"name the right one with id=... (--id on the command line)"
        )
    edge_table = None
    if edges is not None:
        ends = roles.get("edge_ends") or (0, 1)
        edge_table = read_table(edges, text=ends, encoding=encoding)
    return from_frames(node_table, edge_table, target=target, id=id, **roles)


def read_table(path: str | Path, *, text: Any = (), encoding: str = "utf-8") -> pd.DataFrame:
    """Read one table. ``text`` names (or numbers) the columns to be kept as text."""
    path = Path(path)
    if not path.is_file():
        raise ReadError(
            f"{path}: expected a file, got {'a folder' if path.is_dir() else 'nothing'}"
        )
    try:
        if path.suffix.lower() in PARQUET:
            return pd.read_parquet(path)
        return _read_text(path, text, encoding)
    except UnicodeDecodeError as error:
        raise ReadError(
            f"{path}: expected text in {encoding}, got bytes that are not (at position "
            f"{error.start}); save it as UTF-8 or pass its encoding, such as encoding='latin-1'"
        ) from error
    except LookupError as error:
        raise ReadError(f"{path}: {error}; a common one is encoding='utf-8'") from error
    except pd.errors.EmptyDataError as error:
        raise ReadError(
            f"{path}: expected a header line with column names, got no columns"
        ) from error
    except (ValueError, OSError, EOFError) as error:  # parser and Arrow errors are ValueErrors
        raise ReadError(f"{path}: cannot be read as a table: {error}") from error


def _read_text(path: Path, text: Any, encoding: str) -> pd.DataFrame:
    # the byte-order mark some spreadsheets write is not part of the first column's name
    encoding = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding=encoding, newline="") as file:
        header = file.readline()
    delimiter = max(",;\t|", key=header.count)
    found = pd.read_csv(path, nrows=0, encoding=encoding, sep=delimiter).columns
    columns = [str(name).strip() for name in found]
    kept = {
        columns[name] if isinstance(name, int) and name < len(columns) else name for name in text
    }
    table = pd.read_csv(
        path,
        sep=delimiter,
        encoding=encoding,
        header=0,
        names=columns,
        dtype={name: str for name in columns if name in kept},
        keep_default_na=False,
        na_values={name: [""] if name in kept else BLANKS for name in columns},
        index_col=False,
        low_memory=False,
    )
    for name in kept & set(columns):
        table[name] = table[name].str.strip()
    return table
