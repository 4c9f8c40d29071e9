"""Files in: CSV and Parquet tables of nodes and edges become a graph."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from torch_geometric.data import Data

from qpignn.data.frames import END_NAMES, from_frames
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
        ends = roles.get("edge_ends") or (0, 1, *(name for pair in END_NAMES for name in pair))
        edge_table = read_table(edges, text=ends, encoding=encoding)
        if set(edge_table.columns[:2]) <= set(node_table[id]):
            raise ReadError(
                f"{edges}: expected a header line with column names, got an edge "
                f"({listed(edge_table.columns[:2])} are node ids); add a line such as from,to"
            )
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
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error
    except pd.errors.ParserWarning as error:
        raise ReadError(
            f"{path}: expected rows as long as the header line, got longer ones"
        ) from error
    except (ValueError, OSError, EOFError) as error:  # parser and Arrow errors are ValueErrors
        raise ReadError(f"{path}: cannot be read as a table: {error}") from error


def _check_names(columns: list[str]) -> None:
    again = sorted({name for name in columns if columns.count(name) > 1})
    if again:
        raise ReadError(f"expected each column name once, got repeated: {listed(again)}")
    if "" in columns:
        raise ReadError(
            f"expected a name for every column, got none for column {columns.index('') + 1}; was "
            f"the file written with its row index? Leave it out (pandas: index=False)"
        )


def _read_text(path: Path, text: Any, encoding: str) -> pd.DataFrame:
    # the byte-order mark some spreadsheets write is not part of the first column's name
    encoding = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding=encoding, newline="") as file:
        header = file.readline()
    delimiter = max(",;\t|", key=header.count)
    first = pd.read_csv(
        path,
        nrows=1,
        header=None,
        encoding=encoding,
        sep=delimiter,
        dtype=str,
        keep_default_na=False,
    )
    columns = [str(name).strip() for name in first.iloc[0]]
    _check_names(columns)
    kept = {
        columns[name] if isinstance(name, int) and name < len(columns) else name for name in text
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # longer rows would lose data
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
