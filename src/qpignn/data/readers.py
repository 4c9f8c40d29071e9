"""Files in: CSV and Parquet tables of nodes and edges, or one GraphML file, become a graph."""

from __future__ import annotations

import gzip
import warnings
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

import networkx as nx
import pandas as pd
from torch_geometric.data import Data

from qpignn.data.edge_table import END_NAMES
from qpignn.data.frames import from_frames, network_frames
from qpignn.errors import ReadError, listed, near_names

BLANKS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A"]
PARQUET = (".parquet", ".pq")
GRAPHML = (".graphml", ".graphml.gz")


class Frames(NamedTuple):
    """The tables that files hold.

    Attributes:
        nodes: one row a node, with a column of ids.
        edges: one row an edge, or ``None`` without an edge file or edges.
        directed: whether the file says that edges go one way; ``None`` where it cannot say.
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame | None
    directed: bool | None


def read_graph(
    nodes: str | Path,
    edges: str | Path | None,
    *,
    target: str | None,
    id: str = "id",
    encoding: str = "utf-8",
    decimal: str = ".",
    **roles: Any,
) -> Data:
    """Read a node file and an edge file (``.csv``, ``.tsv``, ``.parquet``; also gzipped text).

    In text files ids are read as text, so that leading zeros and integers of any size survive and
    an id such as ``NA`` is a name, not a blank. Parquet keeps its own types. A GraphML file
    (``.graphml``, ``.graphml.gz``) holds nodes and edges and says which way edges go.

    Args:
        nodes, edges: the files; ``edges=None`` for a graph without edges and for GraphML.
        target, **roles: the roles of columns, as in :func:`qpignn.from_frames`.
        id: the node file's id column; GraphML names its nodes itself.
        encoding, decimal: of text files.
    """
    coding = roles.get("coding")
    words = [*roles.get("categorical", ()), *(coding.category_columns if coding else ())]
    tables = read_frames(
        nodes,
        edges,
        id=id,
        encoding=encoding,
        decimal=decimal,
        text=words,
        edge_ends=roles.get("edge_ends"),
    )
    return graph_of(tables, target=target, id=id, **roles)


def graph_of(tables: Frames, *, target: str | None, id: str = "id", **roles: Any) -> Data:
    """Make a graph of what :func:`read_frames` read; edges go the way the file says, if it does.

    Args:
        tables: what the files hold.
        target, id, **roles: the roles of columns, as in :func:`qpignn.from_frames`.
    """
    if tables.directed is not None:
        roles["directed"] = tables.directed
        if tables.edges is None:
            roles["edge_weight"] = None
    return from_frames(tables.nodes, tables.edges, target=target, id=id, **roles)


def read_frames(
    nodes: str | Path,
    edges: str | Path | None,
    *,
    id: str = "id",
    encoding: str = "utf-8",
    decimal: str = ".",
    text: Sequence[str] = (),
    edge_ends: tuple[str, str] | None = None,
) -> Frames:
    """Read the tables of :func:`read_graph` as they are, before any column gets a role.

    Args:
        nodes, edges: the files; ``edges=None`` for a graph without edges and for GraphML.
        id: the node file's id column; for GraphML the name that the column of ids is to have.
        encoding, decimal: of text files.
        text: columns to keep as text, such as codes: leading zeros stay, and NA is a word.
        edge_ends: the edge file's two id columns; by default those that ``from_frames`` takes.
    """
    files = [Path(file) for file in (nodes, edges) if file is not None]
    if any(_is_graphml(file) for file in files):
        if edges is not None:
            raise ReadError(
                f"{nodes}: expected a GraphML file alone, since it holds nodes and edges, got also "
                f"{edges}; give the GraphML file in the place of the nodes and no edge file"
            )
        return _read_graphml(files[0], id)
    node_table = read_table(nodes, text=[id, *text], encoding=encoding, decimal=decimal)
    if id not in node_table:
        raise ReadError(
            f"{nodes}: expected an id column {id!r}, got {listed(node_table.columns, 12)}; "
            f"name the right one with id=... (--id on the command line)"
        )
    if edges is None:
        return Frames(node_table, None, None)
    ends = edge_ends or (0, 1, *(name for pair in END_NAMES for name in pair))
    edge_table = read_table(edges, text=ends, encoding=encoding, decimal=decimal)
    if set(edge_table.columns[:2]) <= set(node_table[id]):
        raise ReadError(
            f"{edges}: expected a header line with column names, got an edge "
            f"({listed(edge_table.columns[:2])} are node ids); add a line such as from,to"
        )
    return Frames(node_table, edge_table, None)


def _is_graphml(path: Path) -> bool:
    return path.name.lower().endswith(GRAPHML)


def _read_graphml(path: Path, id: str) -> Frames:
    _check_file(path)
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        _refuse_declarations(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # ports of nodes, keys without a type
            graph = nx.read_graphml(BytesIO(content), node_type=_node_name)
        _check_declared(content, graph)
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error
    except (SyntaxError, expat.ExpatError) as error:  # how the two XML parsers name broken XML
        raise ReadError(f"{path}: expected GraphML, got broken XML: {error}") from error
    except (nx.NetworkXException, LookupError, TypeError, ValueError, OSError, EOFError) as error:
        raise ReadError(f"{path}: cannot be read as GraphML: {error}") from error
    if not graph:
        raise ReadError(f"{path}: expected a graph with nodes, got none")
    return _graphml_frames(graph, id)


def _graphml_frames(graph: nx.Graph, id: str) -> Frames:
    for name in graph.nodes:  # networkx reads the defaults of keys but leaves them aside
        graph.nodes[name].update({**graph.graph["node_default"], **graph.nodes[name]})
    for *_, attributes in graph.edges(data=True):
        attributes.update({**graph.graph["edge_default"], **attributes})
    nodes, edges = network_frames(graph)
    nodes = nodes.rename(columns={id: f"{id}_attribute"})  # the node's name is its id
    nodes.insert(0, id, pd.Series(list(graph.nodes), index=nodes.index, dtype=object))
    return Frames(nodes.reset_index(drop=True), edges, graph.is_directed())


def _refuse_declarations(content: bytes) -> None:
    """Raise if XML declares a document type, where entities that expand would be declared."""

    def refuse(*_: Any) -> NoReturn:
        raise ReadError(
            "expected GraphML without declarations, got a DOCTYPE, which could declare entities "
            "that expand without end; delete it from the file"
        )

    def finish(*_: Any) -> NoReturn:
        raise StopIteration  # a declaration can only stand before the first element

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler, parser.StartElementHandler = refuse, finish
    try:
        parser.Parse(content, True)
    except StopIteration:
        return


def _node_name(name: str | None) -> str:
    if name is None:
        raise ReadError("expected a name for every node and both ends of every edge, got none")
    return name


def _check_declared(content: bytes, graph: nx.Graph) -> None:
    """Raise for nodes that are there twice or only as the end of an edge."""
    elements = ElementTree.fromstring(content).iter()
    nodes = [element for element in elements if element.tag.rpartition("}")[2] == "node"]
    counts = Counter(node.get("id") for node in nodes)
    again = [name for name, count in counts.items() if count > 1]
    if again:
        raise ReadError(f"expected each node once, got repeated: {listed(again)}")
    strangers = [name for name in graph if name not in counts]
    if strangers:
        raise ReadError(
            f"edges name nodes that the file lacks: {listed(strangers)}; add those nodes or drop "
            f"those edges"
        )


def _check_file(path: Path) -> None:
    if not path.is_file():
        there = path.parent.iterdir() if path.parent.is_dir() else ()
        hint = near_names(path.name, (one.name for one in there if one.is_file()))
        raise ReadError(
            f"{path}: expected a file, got {'a folder' if path.is_dir() else 'nothing'}{hint}"
        )


def read_table(
    path: str | Path, *, text: Any = (), encoding: str = "utf-8", decimal: str = "."
) -> pd.DataFrame:
    """Read one table. ``text`` names (or numbers) the columns to be kept as text."""
    path = Path(path)
    _check_file(path)
    try:
        if path.suffix.lower() in PARQUET:
            return pd.read_parquet(path)
        return _read_text(path, text, encoding, decimal)
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


def _read_text(path: Path, text: Any, encoding: str, decimal: str) -> pd.DataFrame:
    # the byte-order mark some spreadsheets write is not part of the first column's name
    encoding = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding=encoding, newline="") as file:
        header = file.readline()
    delimiter = max(",;\t|", key=header.count)
    if decimal not in (".", ",") or decimal == delimiter:
        raise ReadError(
            f"decimal: expected '.' or ',', other than what parts the columns ({delimiter!r}), got "
            f"{decimal!r}"
        )
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
            decimal=decimal,
            index_col=False,
            low_memory=False,
        )
    for name in kept & set(columns):
        table[name] = table[name].str.strip()
    return table
