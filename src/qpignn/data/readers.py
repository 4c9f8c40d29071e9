"""Files in: CSV and Parquet tables of nodes and edges, or one GraphML file, become a graph."""

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
"""What unpacking and networkx raise over a file that is not what its name says."""


class GraphTables(NamedTuple):
    """The tables that files hold.

    Attributes:
        nodes: one row per node.
        edges: one row per edge, or ``None`` without an edge file or edges.
        directed: whether the file says that edges go one way; ``None`` where it cannot say.
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
    own types. A GraphML file (``.graphml``, ``.graphml.gz``) holds nodes and edges and says which
    way edges go.

    Args:
        nodes, edges: the files; ``edges=None`` for a graph without edges and for GraphML.
        target, **roles: the roles of columns, as in :func:`qpignn.from_frames`.
        id: the node file's id column, by default the one called id, node_id or node; GraphML names
            its nodes itself.
        encoding: of text files; UTF-16 with a byte-order mark is recognised.
        decimal: of text files: ``.``, ``,`` or ``auto``, which looks at each file.
        thousands: the sign between groups of three digits in text files, such as ``,``.
        node_sheet, edge_sheet: sheets of Excel workbooks, where they have several.

    Raises:
        ReadError: if a file is not the table it should be.
        GraphError: if the tables do not make a graph.
    """
    coding = roles.get("coding")
    words = several("categorical", roles.get("categorical", ()))
    if isinstance(coding, FeatureEncoder):
        words += coding.category_columns
    tables = read_tables(
        nodes,
        edges,
        id=id,
        encoding=encoding,
        decimal=decimal,
        thousands=thousands,
        node_sheet=node_sheet,
        edge_sheet=edge_sheet,
        text=words,
        edge_ends=roles.get("edge_ends"),
    )
    return graph_from_tables(tables, target=target, **roles)


def graph_from_tables(tables: GraphTables, **roles: Any) -> Data:
    """Make a graph of what :func:`read_tables` read; edges go the way the file says, if it does.

    Args:
        tables: what the files hold.
        **roles: the roles of columns, as in :func:`qpignn.from_frames`.
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
    *,
    id: str | None = None,
    encoding: str = "utf-8",
    decimal: str = "auto",
    thousands: str | None = None,
    node_sheet: str | None = None,
    edge_sheet: str | None = None,
    text: Sequence[str] = (),
    edge_ends: Sequence[str] | None = None,
) -> GraphTables:
    """Read the tables of :func:`read_graph` as they are, before any column gets a role.

    Args:
        nodes, edges: the files; ``edges=None`` for a graph without edges and for GraphML.
        id: the node file's id column; for GraphML the name that the column of ids is to have.
        encoding, decimal, thousands, node_sheet, edge_sheet: as in :func:`read_graph`.
        text: columns to keep as text, such as codes: leading zeros stay, and NA is a word.
        edge_ends: the edge file's two id columns; by default those that ``from_frames`` takes.
    """
    files = [check_path("nodes", nodes), *([] if edges is None else [check_path("edges", edges)])]
    if any(_is_graphml(file) for file in files):
        if edges is not None:
            raise ReadError(
                f"{nodes}: expected a GraphML file alone, since it holds nodes and edges, got also "
                f"{edges}; give the GraphML file in the place of the nodes and no edge file"
            )
        return _read_graphml(files[0], id or "id")
    form: dict[str, Any] = {"encoding": encoding, "decimal": decimal, "thousands": thousands}
    node_table, id = open_nodes(nodes, id, text=text, sheet=node_sheet, **form)
    node_frame = node_table.read()
    if edges is None:
        return GraphTables(node_frame, None, None, id)
    edge_frame = open_edges(edges, edge_ends, sheet=edge_sheet, **form).read()
    check_header(edges, list(edge_frame.columns), set(node_frame[id]))
    return GraphTables(node_frame, edge_frame, None, id)


def _is_graphml(path: Path) -> bool:
    return path.name.lower().endswith(GRAPHML)


def _read_graphml(path: Path, id: str) -> GraphTables:
    import networkx as nx

    check_file(path)
    try:
        declared = _declared_nodes(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # ports of nodes, keys without a type
            with open_packed(path) as file:
                graph = nx.read_graphml(file, node_type=_node_name)
        _check_declared(declared, graph)
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error
    except (SyntaxError, expat.ExpatError) as error:  # how the two XML parsers name broken XML
        raise ReadError(f"{path}: expected GraphML, got broken XML: {error}") from error
    except (nx.NetworkXException, *UNREADABLE) as error:
        raise ReadError(f"{path}: cannot be read as GraphML: {error}") from error
    if not graph:
        raise ReadError(f"{path}: expected a graph with nodes, got none")
    return _graphml_frames(graph, id)


def _graphml_frames(graph: nx.Graph, id: str) -> GraphTables:
    for name in graph.nodes:  # networkx reads the defaults of keys but leaves them aside
        graph.nodes[name].update({**graph.graph["node_default"], **graph.nodes[name]})
    for *_, attributes in graph.edges(data=True):
        attributes.update({**graph.graph["edge_default"], **attributes})
    nodes, edges = network_frames(graph, id=id)
    return GraphTables(nodes, edges, graph.is_directed(), id)


def _declared_nodes(path: Path) -> Counter[str | None]:
    """Look a GraphML file through, and count the nodes it declares by their ids.

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
        raise ReadError("expected a name for every node and both ends of every edge, got none")
    return name


def _check_declared(counts: Counter[str | None], graph: nx.Graph) -> None:
    """Raise for nodes that are there twice or only as the end of an edge."""
    again = [name for name, count in counts.items() if count > 1]
    if again:
        raise ReadError(f"expected each node once, got repeated: {quoted(again)}")
    unknown = [name for name in graph if name not in counts]
    if unknown:
        raise ReadError(
            f"edges name nodes that the file lacks: {quoted(unknown)}; add those nodes or drop "
            f"those edges"
        )
