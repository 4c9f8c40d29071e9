"""Graphs from files: tables of nodes and edges (CSV, Parquet, Excel), or one GraphML file."""

from __future__ import annotations

import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from xml.parsers import expat

import pandas as pd

from qpignn.data.bounded import XML, BoundedReader, open_packed
from qpignn.data.column_roles import DEFAULTS, ColumnRoles
from qpignn.data.columns import several
from qpignn.data.encoding import FeatureEncoder
from qpignn.data.frames import from_frames, network_frames
from qpignn.data.table_file import check_file
from qpignn.data.tables import check_header, open_edges, open_nodes
from qpignn.errors import ReadError, quoted
from qpignn.io.files import check_path
from qpignn.runtime.memory import free_memory

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data

GRAPHML = (".graphml", ".graphml.gz")
UNREADABLE = (LookupError, TypeError, ValueError, OSError, EOFError, zlib.error)
"""Errors of decompression and networkx on a file whose content does not fit its name."""


class GraphTables(NamedTuple):
    """The tables that files hold.

    Attributes:
        nodes: one row per node.
        edges: one row per edge, or ``None`` without an edge file or edges.
        directed: whether the file declares its edges directed; ``None`` where it cannot.
        id: name of the node table's id column.
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame | None
    directed: bool | None
    id: str


def read_graph(
    nodes: str | Path,
    edges: str | Path | None,
    *,
    target: str | None,
    id: str | None = None,
    encoding: str = "utf-8",
    decimal: str = "auto",
    thousands: str | None = None,
    node_sheet: str | None = None,
    edge_sheet: str | None = None,
    **roles: Any,
) -> Data:
    """Read a node file and an edge file (``.csv``, ``.tsv``, ``.parquet``, ``.xlsx``).

    In text files, which may be gzipped, ids are read as text, so that leading zeros and integers of
    any size survive and an id such as ``NA`` is a name, not a blank. Parquet and Excel keep their
    own types. A GraphML file (``.graphml``, ``.graphml.gz``) holds nodes and edges and declares
    whether edges are directed.

    Args:
        nodes, edges: the files; ``edges=None`` for a graph without edges and for GraphML.
        target, **roles: the roles of columns, as in :func:`qpignn.from_frames`.
        id: the node file's id column, by default the one called id, node_id or node; GraphML names
            its nodes itself.
        encoding: of text files; UTF-16 with a byte-order mark is recognised.
        decimal: of text files: ``.``, ``,`` or ``auto``, which looks at each file.
        thousands: the sign between groups of three digits in text files, such as ``,``.
        node_sheet, edge_sheet: sheets of Excel workbooks, where they have several.

    Returns:
        The graph, as :func:`qpignn.from_frames` returns it.

    Raises:
        ReadError: if a file is not the table it should be.
        GraphError: if the tables do not make a graph.
    """
    coding = roles.get("coding")
    text = several("categorical", roles.get("categorical", ()))
    if isinstance(coding, FeatureEncoder):
        text += coding.category_columns
    files = ColumnRoles(
        id=id,
        edge_ends=roles.get("edge_ends"),
        encoding=encoding,
        decimal=decimal,
        thousands=thousands,
        node_sheet=node_sheet,
        edge_sheet=edge_sheet,
    )
    tables = read_tables(nodes, edges, files, text=text)
    return graph_from_tables(tables, target=target, **roles)


def graph_from_tables(tables: GraphTables, **roles: Any) -> Data:
    """Make a graph from the result of :func:`read_tables`.

    Args:
        tables: the tables. Where their file declares edges directed or undirected, that overrides
            the argument ``directed``.
        **roles: the roles of columns, as in :func:`qpignn.from_frames`.

    Returns:
        The graph.
    """
    roles["id"] = tables.id
    if tables.directed is not None:
        roles["directed"] = tables.directed
        if tables.edges is None:
            roles["edge_weight"] = None
    return from_frames(tables.nodes, tables.edges, **roles)


def read_tables(
    nodes: str | Path,
    edges: str | Path | None,
    roles: ColumnRoles = DEFAULTS,
    *,
    text: Sequence[str] = (),
) -> GraphTables:
    """Read the tables of :func:`read_graph` without encoding any column.

    Args:
        nodes, edges: the files; ``edges=None`` for a graph without edges and for GraphML.
        roles: the format of the files, the node file's id column (for GraphML the name that the
            column of ids gets) and the edge file's two id columns; default the defaults of each.
        text: columns to keep as text, such as codes: leading zeros stay, and NA is not a blank.

    Returns:
        The tables.

    Raises:
        ReadError: if a file is not the table it should be.
    """
    files = [check_path("nodes", nodes), *([] if edges is None else [check_path("edges", edges)])]
    if any(file.name.lower().endswith(GRAPHML) for file in files):
        if edges is not None:
            raise ReadError(
                f"{nodes}: expected a GraphML file alone, since it holds nodes and edges, got also "
                f"{edges}; give the GraphML file in the place of the nodes and no edge file"
            )
        return _read_graphml(files[0], roles.id or "id")
    node_table, id = open_nodes(nodes, roles, text=text)
    node_frame = node_table.read()
    if edges is None:
        return GraphTables(node_frame, None, None, id)
    edge_frame = open_edges(edges, roles).read()
    check_header(edges, list(edge_frame.columns), set(node_frame[id]))
    return GraphTables(node_frame, edge_frame, None, id)


def _read_graphml(path: Path, id: str) -> GraphTables:
    import networkx as nx

    check_file(path)
    try:
        declared = _declared_nodes(path)
        with warnings.catch_warnings(), open_packed(path) as file:
            warnings.simplefilter("ignore", UserWarning)  # ports of nodes, keys without a type
            graph = nx.read_graphml(file, node_type=_node_name)
        _check_declared(declared, graph)
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error
    except (SyntaxError, expat.ExpatError) as error:
        raise ReadError(
            f"{path}: expected GraphML, got broken XML: {error}; export the file again"
        ) from error
    except (nx.NetworkXException, *UNREADABLE) as error:
        raise ReadError(f"{path}: cannot be read as GraphML: {error}; export it again") from error
    if not graph:
        raise ReadError(f"{path}: expected a graph with nodes, got none; is it the right file?")
    for name in graph.nodes:  # networkx reads the defaults of keys but does not apply them
        graph.nodes[name].update({**graph.graph["node_default"], **graph.nodes[name]})
    for *_, attributes in graph.edges(data=True):
        attributes.update({**graph.graph["edge_default"], **attributes})
    nodes, edges = network_frames(graph, id=id)
    return GraphTables(nodes, edges, graph.is_directed(), id)


def _declared_nodes(path: Path) -> Counter[str | None]:
    """Parse a GraphML file and count the nodes it declares, by their ids.

    Raises:
        ReadError: if the file needs more than the free memory, or declares a document type, where
            entities that expand would be declared.
    """

    def refuse(*_: Any) -> NoReturn:
        raise ReadError(
            "expected GraphML without declarations, got a DOCTYPE, which could declare entities "
            "that expand without end; delete it from the file"
        )

    def count(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition("}")[2] == "node":
            declared[attributes.get("id")] += 1

    declared = Counter[str | None]()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartDoctypeDeclHandler, parser.StartElementHandler = refuse, count
    advice = "save nodes and edges as tables, which 'qpignn convert' reads by pieces"
    with BoundedReader(
        open_packed(path), free_memory(), XML, what="a GraphML file", advice=advice
    ) as file:
        parser.ParseFile(file)
    return declared


def _node_name(name: str | None) -> str:
    if name is None:
        raise ReadError("expected a name for every node and end of an edge, got none; add the ids")
    return name


def _check_declared(counts: Counter[str | None], graph: nx.Graph) -> None:
    """Raise for nodes that are declared twice or occur only as the end of an edge."""
    if again := [name for name, count in counts.items() if count > 1]:
        raise ReadError(
            f"expected each node once, got repeated: {quoted(again)}; delete all but one"
        )
    if unknown := [name for name in graph if name not in counts]:
        raise ReadError(
            f"edges name nodes that the file lacks: {quoted(unknown)}; add those nodes or drop "
            f"those edges"
        )
