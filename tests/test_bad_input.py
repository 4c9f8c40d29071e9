"""The list of bad inputs, and the QpignnError of each: what was expected, what was got, what to do.

One line per case: its name, what is done, the class of the error, a part of its message. Cases of the
command line are in ``tests/cli/test_bad_input.py``, settings of the wrong type, method by method,
in ``tests/methods/test_wrong_settings.py``, and damaged folders beside the modules that read them.
"""

# ruff: noqa: E501, PLW0108 (a case is a line)

from __future__ import annotations

import gzip
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from qpignn import (
    Conformal,
    Intervals,
    QpiGNN,
    check_graph,
    convert_graph,
    diagnose,
    example_tables,
    from_frames,
    from_networkx,
    join_frames,
    load_dataset,
    load_method,
    make_method,
    make_view,
    metrics,
    open_graph,
    read_graph,
    split_nodes,
    write_report,
)
from qpignn.data.mapped import write_graph
from qpignn.data.perturb import damage
from qpignn.errors import (
    ArrayError,
    GraphError,
    ModelFileError,
    NotFittedError,
    QpignnError,
    ReadError,
    SettingError,
    SplitError,
    TrainingError,
    UnknownNameError,
    WriteError,
)
from qpignn.experiments.cell import grid
from qpignn.experiments.store import Store

NAN, INF = float("nan"), float("inf")


class Case(NamedTuple):
    name: str
    do: Callable[[Path], Any]
    error: type[QpignnError]
    message: str


def frames(edges: Any = None, **roles: Any) -> Data:
    """A graph of six shops; columns of the node table are changed by ``nodes=``."""
    table = pd.DataFrame(
        {"id": list("abcdef"), "area": [5, 7, 2, 9, 4, 6], "sales": [1.0, 2, 3, 4, NAN, 6]}
    )
    changes = roles.pop("nodes", {})
    table = table.assign(**changes) if isinstance(changes, dict) else changes
    return from_frames(table, edges, **{"target": "sales", **roles})


def ends(source: list[Any], target: list[Any], **more: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"from": source, "to": target, **more})


def graph(nodes: int = 40, **changes: Any) -> Data:
    """A ring with two features."""
    place = torch.arange(nodes)
    x = torch.stack([torch.sin(place.float()), torch.cos(0.3 * place)], dim=1)
    ring = torch.stack([place, (place + 1) % nodes])
    y = x[:, 0] + 0.1 * x[:, 1]
    y[::8] = NAN
    data = Data(x=x, edge_index=torch.cat([ring, ring.flip(0)], dim=1), y=y)
    for name, value in changes.items():
        data[name] = value
    return data


def fit(data: Data | None = None, mask: Any = None, **settings: Any) -> Any:
    return QpiGNN(**{"epochs": 2, "members": 5, "hidden": 4, **settings}).fit(
        graph() if data is None else data, mask
    )


def prefit(model: Any, mask: Any = None, **settings: Any) -> Any:
    mask = np.ones(40, dtype=bool) if mask is None else mask
    return Conformal.prefit(model, graph(), mask, **settings)


def intervals_of(*columns: Any, **more: Any) -> Intervals:
    return Intervals(
        *(columns or ([1.0, 2], [0.0, 1], [2.0, 3])), **{"confidence_level": 0.9, **more}
    )


def file(folder: Path, content: str | bytes, name: str = "nodes.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, content: str | bytes, name: str = "nodes.csv", **roles: Any) -> Data:
    return read_graph(file(folder, content, name), None, **{"target": "t", **roles})


def two_files(folder: Path, edges: str) -> Data:
    nodes = file(folder, "id,v,t\na,1,2\nb,2,4\n")
    return read_graph(nodes, file(folder, edges, "edges.csv"), target="t")


def tree(folder: Path, nodes: str, edges: str = "") -> Data:
    """A GraphML file."""
    key = '<key id="v" for="node" attr.name="v" attr.type="double"/>'
    inside = f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{key}<graph edgedefault="directed">'
    return read(folder, f"{inside}{nodes}{edges}</graph></graphml>", "g.graphml", target="v")


def saved(folder: Path) -> Path:
    fit().save(folder / "model")
    return folder / "model"


def spoilt(folder: Path, name: str, content: str) -> Path:
    (saved(folder) / name).write_text(content)
    return folder / "model"


def half(where: str) -> torch.Tensor:
    mask = torch.arange(40) < 20
    return mask if where == "front" else ~mask


IDS = [
    Case("the id column is not there", lambda t: frames(id="shop"), GraphError, "lacks the column 'shop'; it has 'id', 'area'"),
    Case("the id column has another name in a file", lambda t: read(t, "shop,v,t\na,1,2\n"), ReadError, r"node ids called 'id'.*got 'shop'.*name it with id="),
    Case("an id twice", lambda t: frames(nodes={"id": list("abcdea")}), GraphError, "expected each node id once, got repeated: 'a'"),
    Case("a blank id", lambda t: frames(nodes={"id": ["a", None, *"cdef"]}), GraphError, "expected an id for every node, got blank ids in rows 2"),
    Case("ids that are lists", lambda t: frames(nodes={"id": [[i] for i in range(6)]}), GraphError, r"ids that can be compared .*got \[0\]; turn them into text"),
    Case("half a character in an id", lambda t: frames(nodes={"id": pd.Series([*"abcde", "\ud800"], dtype=object)}), GraphError, r"expected text, got .*half of a character in it .*ud800.*; correct it"),
    Case("half a character in a graph's id", lambda t: check_graph(graph(node_id=["\ud800", *map(str, range(39))])), GraphError, "half of a character"),
    Case("too few ids beside a graph", lambda t: check_graph(graph(node_id=[1, 2])), GraphError, "node_id: expected 40 ids, one per node, got 2"),
    Case("a number in place of ids", lambda t: check_graph(graph(node_id=7)), GraphError, "node_id: expected one id per node, got 7"),
    Case("ids of different types in the two tables", lambda t: frames(ends([1], [2])), GraphError, r"names nodes that the node table lacks: 1, .*different types: .*; add those nodes"),
    Case("a column name twice", lambda t: frames(nodes=pd.DataFrame([[1, 2, 3]], columns=["id", "v", "v"])), GraphError, "expected each column once, got repeated: 'v'"),
    Case("a new node with an old id", lambda t: join_frames(frames(), pd.DataFrame({"id": ["a"], "area": [1]}), None), GraphError, "expected ids of new nodes, got ids that the graph already has: 'a'; leave those rows out"),
    Case("no new node", lambda t: join_frames(frames(), pd.DataFrame({"id": [], "area": []}), None), GraphError, "expected at least one new node, got none"),
]  # fmt: skip

EDGES = [
    Case("an edge to nowhere", lambda t: frames(ends(["a"], ["z"])), GraphError, "lacks: 'z', first in edge row 1; node ids look like 'a', 'b'; add those nodes or drop those edges"),
    Case("a blank end", lambda t: frames(ends(["a", None], ["b", "c"])), GraphError, "edge column 'from': got blank ids in edge rows 2"),
    Case("one column of ends", lambda t: frames(pd.DataFrame({"from": ["a"]})), GraphError, "expected two columns of node ids, got 'from'"),
    Case("loops only", lambda t: frames(ends(["a", "b"], ["a", "b"])), GraphError, r"expected edges between different nodes, got 2 .*are 'from', 'to' the columns"),
    Case("a list in place of the edge table", lambda t: frames([("a", "b")]), GraphError, "the edge table: expected a pandas DataFrame, got list; make one"),
    Case("ends named in one word", lambda t: frames(ends(["a"], ["b"]), edge_ends="from"), GraphError, r"edge_ends: expected a list of columns, got 'from'; write"),
    Case("three ends", lambda t: frames(ends(["a"], ["b"]), edge_ends=["from", "to", "to"]), GraphError, "edge_ends: expected two columns, got 'from', 'to', 'to'"),
    Case("ends that are not there", lambda t: frames(ends(["a"], ["b"]), edge_ends=("from", "too")), GraphError, r"edge table lacks the column 'too'; .*did you mean to"),
    Case("a weight column that is not there", lambda t: frames(ends(["a"], ["b"]), edge_weight="km"), GraphError, "the edge table lacks the column 'km'; it has 'from', 'to'"),
    Case("a weight in words", lambda t: frames(ends(["a"], ["b"], km=["far"]), edge_weight="km"), GraphError, "edge weight column 'km': expected numbers, got 'far'.*write them as numbers"),
    Case("a blank weight", lambda t: frames(ends(["a"], ["b"], km=[None]), edge_weight="km"), GraphError, "edge weight column 'km': expected a number .*got a blank.*fill them"),
    Case("a weight that float32 cannot hold", lambda t: frames(ends(["a"], ["b"], km=[1e300]), edge_weight="km"), GraphError, r"up to 1e\+30, got 1e\+300 in edge row 1; .*divide all weights by the largest"),
    Case("a weight whose sums overflow", lambda t: frames(ends(["a"], ["b"], km=[1e38]), edge_weight="km"), GraphError, r"up to 1e\+30, got 1e\+38 in edge row 1; .*divide all weights by the largest"),
    Case("weights that are all tiny", lambda t: frames(ends(["a"], ["b"], km=[1e-40]), edge_weight="km"), GraphError, r"largest is between 1e-30 and 1e\+30.*divide all weights by the largest"),
    Case("a negative weight", lambda t: frames(ends(["a"], ["b"], km=[-1]), edge_weight="km"), GraphError, "edge weight column 'km': expected finite numbers from 0 up .*, got -1 in edge row 1; correct them"),
    Case("weights beside other edges", lambda t: check_graph(graph(edge_weight=torch.ones(3))), GraphError, r"edge_weight: expected a tensor of 80 numbers, got \(3,\)"),
    Case("no edge_index", lambda t: check_graph(graph(edge_index=None)), GraphError, r"edge_index: expected a \(2, edges\) tensor, got none; \(2, 0\) is allowed"),
    Case("edges as a list", lambda t: check_graph(graph(edge_index=[[0], [1]])), GraphError, "edge_index: expected .* tensor, got list"),
    Case("edges the other way round", lambda t: check_graph(graph(edge_index=torch.zeros(5, 2).long())), GraphError, r"expected shape \(2, edges\), got \(5, 2\); transpose it with .t\(\)"),
    Case("edges as floats", lambda t: check_graph(graph(edge_index=torch.zeros(2, 5))), GraphError, r"edge_index: expected whole numbers, got torch.float32; use .long\(\)"),
    Case("edges as booleans", lambda t: check_graph(graph(edge_index=torch.zeros(2, 5).bool())), GraphError, "edge_index: expected whole numbers, got torch.bool"),
    Case("edges counted from 1", lambda t: check_graph(graph(edge_index=torch.tensor([[1], [40]]))), GraphError, "expected node positions 0 to 39, got 1 to 40; count nodes from 0"),
    Case("an edge file without a header", lambda t: two_files(t, "a,b\nb,a\n"), ReadError, r"expected a header line with column names, got an edge .*add a line such as from,to"),
    Case("new edges without the weights of the old", lambda t: join_frames(frames(ends(["a"], ["b"], km=[1]), edge_weight="km"), pd.DataFrame({"id": ["n"], "area": [1]}), ends(["n"], ["a"])), GraphError, "edge_weight: expected a column, since the graph's edges have weights, got None"),
    Case("new edges both ways in a directed graph", lambda t: join_frames(frames(ends(["a"], ["b"]), directed=True), pd.DataFrame({"id": ["n"], "area": [1]}), ends(["n"], ["a"])), GraphError, "the graph has directed edges, got false; pass directed=True"),
    Case("GraphML edges to nowhere", lambda t: tree(t, '<node id="a"><data key="v">1</data></node>', '<edge source="a" target="z"/>'), ReadError, "edges name nodes that the file lacks: 'z'; add those nodes"),
    Case("tables in place of a networkx graph", lambda t: from_networkx(pd.DataFrame(), target="y"), GraphError, "expected a networkx graph, got DataFrame; make a graph of tables with from_frames"),
]  # fmt: skip

FEATURES = [
    Case("no feature column", lambda t: frames(ignore=["area"]), GraphError, "at least one feature column besides .*got none; add one, for instance each node's degree"),
    Case("a word among numbers", lambda t: frames(nodes={"area": [5, 7, 2, 9, 4, "big"]}), GraphError, "'area': expected numbers, got 'big' at node 'f' .*correct the values, leave the column out"),
    Case("a decimal comma", lambda t: frames(nodes={"area": ["1,5"] * 6}), GraphError, r"'area': expected numbers, got '1,5'.*a decimal comma: .*--decimal ,"),
    Case("free text", lambda t: frames(nodes=pd.DataFrame({"id": range(50), "note": [f"n {i}" for i in range(50)], "sales": np.arange(50.0)})), GraphError, "'note': expected numbers or a few categories, got 50 different texts .*ignore="),
    Case("dates", lambda t: frames(nodes={"area": pd.date_range("2024-01-01", periods=6)}), GraphError, "'area': expected numbers, got dates; turn them into a number"),
    Case("lists in cells", lambda t: frames(nodes={"area": [[1, 2]] * 6}), GraphError, "'area': expected numbers or text, got a list at node 'a'; give each part a column"),
    Case("a blank feature", lambda t: frames(nodes={"area": [5, None, 2, 9, 4, 6]}), GraphError, "'area': expected a number for every node, got a blank at node 'b' .*missing='impute'"),
    Case("nothing to fill blanks with", lambda t: frames(nodes={"area": [None] * 6}, missing="impute"), GraphError, "'area': expected some values, got blanks only; leave the column out"),
    Case("an unknown way to treat blanks", lambda t: frames(missing="mean"), UnknownNameError, "unknown way to treat missing values 'mean': known are error, impute"),
    Case("an infinite feature", lambda t: frames(nodes={"area": [5, INF, 2, 9, 4, 6]}), GraphError, "expected finite numbers, got inf in column 'area' of node 'b' .*fill or drop"),
    Case("complex features", lambda t: frames(nodes={"area": [1j] * 6}), GraphError, "'area': expected real numbers, got complex"),
    Case("features named in one word", lambda t: frames(features="area"), GraphError, r"features: expected a list of columns, got 'area'; write features=\['area'\]"),
    Case("a number in place of features", lambda t: frames(features=3), GraphError, "features: expected a list of columns, got 3"),
    Case("a feature that is not there", lambda t: frames(features=["aera"]), GraphError, r"lacks the column 'aera'; .*did you mean area\?"),
    Case("the target as a feature", lambda t: frames(features=["sales"]), GraphError, "features: expected each column once and none that has another role, got 'sales'"),
    Case("a category that is no feature", lambda t: frames(categorical=["sales"]), GraphError, "categorical: expected feature columns, got 'sales'"),
    Case("a coding that is none", lambda t: frames(coding={}), GraphError, "coding: expected the coding of an earlier graph, got dict; pass graph.coding"),
    Case("one coordinate", lambda t: frames(coordinates=["area"]), GraphError, "coordinates: expected two columns, got 'area'"),
    Case("no x", lambda t: check_graph(graph(x=None)), GraphError, r"x: expected a \(nodes, columns\) tensor, got none; .*degree"),
    Case("x as an array", lambda t: check_graph(graph(x=np.zeros((40, 2)))), GraphError, "x: expected .* tensor, got ndarray"),
    Case("x in one dimension", lambda t: check_graph(graph(x=torch.zeros(40))), GraphError, r"x: expected \(nodes, columns\) .*got shape \(40,\)"),
    Case("x without columns", lambda t: check_graph(graph(x=torch.zeros(40, 0))), GraphError, r"at least one of each, got shape \(40, 0\)"),
    Case("x of complex numbers", lambda t: check_graph(graph(x=torch.zeros(40, 2) * 1j)), GraphError, "x: expected real numbers, got torch.complex64"),
    Case("x in another sparse layout", lambda t: check_graph(graph(x=torch.zeros(40, 2).to_sparse())), GraphError, r"x: expected a dense or sparse CSR tensor, got torch.sparse_coo; use .to_sparse_csr\(\)"),
    Case("NaN in x", lambda t: check_graph(graph(x=torch.full((40, 2), NAN))), GraphError, "x: expected finite numbers, got nan in column 0 of node 0 .*fill or drop them"),
    Case("a name too few", lambda t: check_graph(graph(feature_names=["a"])), GraphError, "feature_names: expected 2 names, one per column of x, got 1; give a list"),
    Case("one word as names", lambda t: check_graph(graph(feature_names="ab")), GraphError, "feature_names: expected 2 names, .*got 'ab'; give a list"),
    Case("other columns than in the fit", lambda t: fit().predict_interval(graph(x=torch.ones(40, 5))), GraphError, "expected 2 feature columns as in the fit, got 5"),
    Case("columns of other names than in the fit", lambda t: fit(graph(feature_names=["a", "b"])).predict_interval(graph(feature_names=["a", "c"])), GraphError, "missing 'b', unknown 'c'; give the graph the columns it was fitted with"),
    Case("a column of the fit is missing", lambda t: from_frames(pd.DataFrame({"id": ["n"]}), None, target=None, coding=frames().coding), GraphError, "lacks the column 'area' of the fit; give every column the fit used"),
]  # fmt: skip

TARGETS = [
    Case("a misspelt target", lambda t: frames(target="sale"), GraphError, r"the node table lacks the column 'sale'; .*did you mean sales\?"),
    Case("several targets", lambda t: frames(target=["sales"]), GraphError, r"expected the name of one column, got \['sales'\]; it has 'id'"),
    Case("words as targets", lambda t: frames(nodes={"sales": ["much"] * 6}), GraphError, "target column 'sales': expected numbers, got 'much' .*leave unknown targets blank"),
    Case("dates as targets", lambda t: frames(nodes={"sales": pd.date_range("2024-01-01", periods=6)}), GraphError, "target column 'sales': expected numbers, got dates"),
    Case("no target known", lambda t: frames(nodes={"sales": NAN}), GraphError, r"at least one labelled node, got none.*is the target column the right one\?"),
    Case("one value only", lambda t: frames(nodes={"sales": 5}), GraphError, "expected targets that vary, got 6 labelled nodes that all have 5"),
    Case("an infinite target", lambda t: frames(nodes={"sales": [1, 2, INF, 4, 5, 6]}), GraphError, "y: expected finite targets .*got 1 infinite ones; set them to NaN"),
    Case("the id as the target", lambda t: frames(target="id"), GraphError, "expected a column of its own for every role, got 'id', 'id'"),
    Case("y as a list", lambda t: check_graph(graph(y=[1.0] * 40)), GraphError, "y: expected a tensor, got list; use torch.as_tensor"),
    Case("y of another length", lambda t: check_graph(graph(y=torch.zeros(3))), GraphError, r"y: expected one target per node \(40\), got shape \(3,\); give NaN to nodes without"),
    Case("two targets a node", lambda t: check_graph(graph(y=torch.zeros(40, 2))), GraphError, r"one target per node \(40\), got shape \(40, 2\);.*choose one column"),
    Case("complex targets", lambda t: check_graph(graph(y=torch.zeros(40) * 1j)), GraphError, "y: expected real numbers, got torch.complex64"),
    Case("no y", lambda t: fit(graph(y=None)), GraphError, "expected at least one labelled node, got none"),
    Case("a limit that targets break", lambda t: fit(y_min=0.5), SettingError, "y_min, y_max: expected the given targets between 0.5 and inf, got some from -1"),
]  # fmt: skip

MASKS = [
    Case("a mask too short", lambda t: check_graph(graph(train_mask=torch.ones(3).bool())), GraphError, r"train_mask: expected length 40 \(one per node\), got \(3,\); make masks with split_nodes"),
    Case("positions in place of a mask", lambda t: check_graph(graph(val_mask=torch.arange(40))), GraphError, "val_mask: expected a boolean tensor, got torch.int64; make one of positions with"),
    Case("masks that overlap", lambda t: check_graph(graph(train_mask=half("front"), test_mask=half("front"))), GraphError, r"train_mask and test_mask share 20 nodes; make them with split_nodes"),
    Case("positions to fit on", lambda t: fit(mask=[1, 2, 3]), ArrayError, r"mask: expected 40 booleans, one per node, got \(3,\) of int64 .*np.isin"),
    Case("ragged lists to fit on", lambda t: fit(mask=[[True], [True, False]]), ArrayError, "mask: expected 40 booleans, one per node, got"),
    Case("words to fit on", lambda t: fit(mask="front"), ArrayError, "mask: expected 40 booleans, .*got .*'front'"),
    Case("no labelled node to fit on", lambda t: fit(mask=graph().y.isnan()), SplitError, "expected labelled nodes to learn from, got none: 35 nodes are labelled"),
    Case("test nodes to fit on", lambda t: fit(graph(test_mask=half("front")), half("front")), SplitError, "train_mask apart from the graph's test_mask, got 17 nodes in both; leave them out"),
    Case("validation nodes only", lambda t: fit(graph(val_mask=torch.ones(40).bool()), members=1, lambda_width=0.05), SplitError, "expected nodes to train on, got 35 given nodes that are all in the val_mask; give train"),
    Case("a mask too long to predict", lambda t: fit().predict_interval(graph(), np.ones(50, dtype=bool)), ArrayError, r"mask: expected 40 booleans, one per node, got \(50,\)"),
    Case("no node to calibrate on", lambda t: prefit(lambda x, e: x[:, 0], np.zeros(40, dtype=bool)), SplitError, "calibration_mask: expected labelled nodes, got none"),
    Case("too few for a conformal step", lambda t: make_method("conformal:sqr", epochs=2, calibration=0.9).fit(graph(), torch.arange(40) == 1), SplitError, "both to fit on and to calibrate with, got 1 given nodes"),
    Case("a word that is no part", lambda t: frames(nodes={"part": ["train", "tset", *["test"] * 4]}, split="part"), GraphError, "expected train, validation, test or blank, got 'tset' at node 'b'"),
    Case("weight on no node", lambda t: check_graph(graph(node_weight=torch.zeros(40))), GraphError, "node_weight: expected some weight above 0, got zeros only"),
    Case("weight on no given node", lambda t: fit(graph(node_weight=half("back").float()), half("front")), GraphError, "node_weight: expected weight on the given nodes, got zeros only"),
    Case("a share in words", lambda t: split_nodes(graph(), test="0.2"), SettingError, "test: expected a number, got '0.2'"),
    Case("a share of 1", lambda t: split_nodes(graph(), test=1.0), SplitError, "test: expected a share from 0 to below 1, got 1.0"),
    Case("shares of more than all", lambda t: split_nodes(graph(), test=0.6, validation=0.6), SplitError, r"below 1 so that train nodes remain, got 0.6 \+ 0.6"),
    Case("too few labels to split", lambda t: split_nodes(frames(), test=0.1), SplitError, "expected enough labelled nodes .*got 5, .*label more nodes or take other shares"),
    Case("an unknown split", lambda t: split_nodes(graph(), by="age"), UnknownNameError, "unknown split 'age': .*known are random, degree, community"),
    Case("a view without a split", lambda t: make_view(graph()), SplitError, r"expected a graph with a test_mask, got none; make one with split_nodes"),
    Case("a view of one side", lambda t: make_view(graph(test_mask=torch.zeros(40).bool())), SplitError, "both sides of the split, got 35 given and 0 test nodes"),
    Case("an unknown view", lambda t: make_view(split_nodes(graph()), "inductiv"), UnknownNameError, "unknown view 'inductiv': did you mean inductive"),
]  # fmt: skip

SETTINGS = [
    Case("per cent", lambda t: fit(confidence_level=90), SettingError, "strictly between 0 and 1, such as 0.9, got 90; for 90 % write 0.9"),
    Case("a level in words", lambda t: fit(confidence_level="0.9"), SettingError, "confidence_level: expected a number .*got '0.9'"),
    Case("no level", lambda t: fit(confidence_level=[]), SettingError, r"confidence_level: expected a number or a list of numbers, got \[\]"),
    Case("a level that was not fitted", lambda t: fit().predict_interval(graph(), confidence_level=0.95), SettingError, r"expected one of the fitted levels \[0.9\], got 0.95; fit again with it among"),
    Case("an unknown method", lambda t: make_method("qpign"), UnknownNameError, "unknown method 'qpign': did you mean qpignn"),
    Case("no method", lambda t: make_method(None), UnknownNameError, "unknown method None: known are qpignn"),
    Case("a misspelt setting by name", lambda t: make_method("sqr", epoch=3), SettingError, r"method 'sqr' has no setting 'epoch'; it has .*did you mean epochs"),
    Case("a misspelt setting of a conformal step", lambda t: make_method("conformal:qpignn", scores="cqr"), SettingError, r"method 'qpignn' has no setting 'scores'; it has"),
    Case("an unknown protocol", lambda t: make_method("sqr", protocol="paper"), UnknownNameError, "unknown protocol 'paper': .*known are corrected, published"),
    Case("no published form", lambda t: make_method("evidential", protocol="published"), SettingError, "method 'evidential' has no published form; those with one"),
    Case("a rate in words", lambda t: fit(lr="0.1"), SettingError, "lr: expected a number from 0 up, got '0.1'"),
    Case("a rate that is too high", lambda t: fit(lr=1e30, epochs=30), TrainingError, r"the .* became .* at epoch .*Try a lower learning rate \(lr is 1e\+30\)"),
    Case("half a unit", lambda t: fit(hidden=3.5), SettingError, "hidden: expected a whole number from 1 up, got 3.5"),
    Case("no dropout", lambda t: fit(dropout=None), SettingError, "dropout: expected a number from 0 up, got None"),
    Case("all units dropped", lambda t: fit(dropout=1.0), SettingError, "dropout: expected a share from 0 to below 1, got 1.0"),
    Case("no members", lambda t: fit(members=0), SettingError, "members: expected a whole number from 1 up, got 0"),
    Case("true members", lambda t: fit(members=True), SettingError, "members: expected a whole number from 1 up, got True"),
    Case("no epochs", lambda t: fit(epochs=None), SettingError, "epochs: expected a whole number from 1 up, got None"),
    Case("a negative seed", lambda t: fit(seed=-1), SettingError, "seed: expected a whole number from 0 up, got -1"),
    Case("a limit in words", lambda t: fit(y_min="a"), SettingError, "y_min: expected \"auto\", a number, or None for no limit, got 'a'"),
    Case("limits in the wrong order", lambda t: fit(y_min=3, y_max=2), SettingError, "y_min: expected a number below y_max, got 3.0 and 2.0"),
    Case("an unknown side", lambda t: fit(side="left"), UnknownNameError, "unknown side 'left': .*known are both, lower, upper"),
    Case("a price in words", lambda t: fit(lambda_width="wide"), SettingError, 'lambda_width: expected "auto", "tuned" or a number from 0 up, got \'wide\''),
    Case("a batch of three", lambda t: fit(batch_size=3), SettingError, "batch_size: expected a whole number from 16 up, got 3"),
    Case("a truth in words", lambda t: make_method("mc_dropout", include_noise="False"), SettingError, "include_noise: expected true or false, got 'False'"),
    Case("a group by number", lambda t: make_method("conformal:sqr", groups=3), SettingError, "groups: expected degree, community or the name of a column, got 3"),
    Case("a group that is not there", lambda t: make_method("conformal:sqr", epochs=2, groups="zone").fit(graph()), SettingError, "groups: expected degree, community, a column of categories .*got 'zone'"),
    Case("a conformal step around a name", lambda t: Conformal("sqr").fit(graph()), SettingError, r"method: expected a method of this library, such as make_method\('sqr'\), got 'sqr'"),
    Case("all nodes for calibration", lambda t: make_method("conformal:sqr", calibration=1), SettingError, "calibration: expected a share strictly between 0 and 1, got 1"),
    Case("a number beyond all numbers", lambda t: fit(weight_decay=10**400), SettingError, "weight_decay: expected a number from 0 up, got 1000"),
    Case("weights of another net", lambda t: QpiGNN(epochs=2).fit(graph(), initial_weights={}), SettingError, "initial_weights: the weights do not fit the net"),
    Case("a prediction before the fit", lambda t: QpiGNN().predict_interval(graph()), NotFittedError, "this QpiGNN is not fitted yet; call fit first"),
    Case("a graph that is a table", lambda t: QpiGNN().fit(pd.DataFrame()), GraphError, "expected a torch_geometric.data.Data, got DataFrame; make one with from_frames"),
    Case("an unknown data set", lambda t: load_dataset("basix"), UnknownNameError, "unknown data set 'basix': did you mean basic"),
    Case("a data set by number", lambda t: load_dataset(3), UnknownNameError, "unknown data set 3: .*known are basic"),
    Case("an option the data set lacks", lambda t: load_dataset("basic", year=2012), SettingError, r"data set 'basic' has no option 'year'; it has"),
    Case("a size in words", lambda t: load_dataset("basic", nodes="many"), SettingError, "nodes: expected a whole number from 10 up, got 'many'"),
    Case("stations by half", lambda t: example_tables(nodes=30.5), SettingError, "nodes: expected a whole number from 20 up, got 30.5"),
    Case("an unknown damage", lambda t: damage(graph(), {"noise": 1.0}), UnknownNameError, "unknown damage 'noise': .*feature_noise"),
    Case("damage in words", lambda t: damage(graph(), {"edge_dropout": "half"}), SettingError, "share: expected a number, got 'half'"),
    Case("nothing to compare", lambda t: grid([], ["sqr"], 1), SettingError, "data sets: expected at least one, got none; name some"),
    Case("columns to judge by in one word", lambda t: fit().diagnose(graph(), by="zone"), SettingError, r"by: expected a list of columns, got 'zone'; write by=\['zone'\]"),
    Case("a number to judge by", lambda t: fit().diagnose(graph(), by=3), SettingError, "by: expected a list of columns, got 3"),
    Case("a column to judge by that is not there", lambda t: fit().diagnose(graph(), by=["zone"]), SettingError, "by: expected a column of the graph, got 'zone'"),
    Case("a report about a name", lambda t: write_report("model", graph(), t / "r.html"), SettingError, "model: expected a fitted method, got 'model'"),
    Case("memory in words", lambda t: convert_graph(file(t, "id,v,t\n"), None, t / "g", target="t", memory="1G"), SettingError, "memory: expected a whole number from 1 up, got '1G'"),
]  # fmt: skip

DEVICES = [
    Case("an unknown device", lambda t: fit(device="gpu"), SettingError, "device: expected auto, cpu or cuda, got 'gpu'"),
    Case("a device by number", lambda t: fit(device=0), SettingError, "device: expected auto, cpu or cuda, got 0"),
    Case("a device of another kind", lambda t: fit(device="meta"), SettingError, "device: expected auto, cpu or cuda, got 'meta'"),
    Case("a GPU that is not here", lambda t: fit(device="cuda:99"), SettingError, "device: expected one that is here, got 'cuda:99' with .* GPUs; use cpu"),
    Case("torch's own type", lambda t: fit(dtype=torch.float32), UnknownNameError, "unknown dtype torch.float32: did you mean float32"),
    Case("half precision", lambda t: fit(dtype="float16"), UnknownNameError, "unknown dtype 'float16': did you mean float32 or float64|float64 or float32"),
    Case("an unknown precision", lambda t: fit(precision="low"), UnknownNameError, "unknown precision 'low': .*known are highest, high, medium"),
]  # fmt: skip

FILES = [
    Case("no file", lambda t: read_graph(t / "node.csv", None, target="t"), ReadError, "node.csv: expected a file, got nothing"),
    Case("a misspelt file", lambda t: (file(t, ""), read_graph(t / "node.csv", None, target="t")), ReadError, r"node.csv: expected a file, got nothing; did you mean nodes.csv\?"),
    Case("a folder in place of a file", lambda t: read_graph(t, None, target="t"), ReadError, "expected a file, got a folder"),
    Case("no path", lambda t: read_graph(None, None, target="t"), SettingError, "nodes: expected the path of a file or folder, got None"),
    Case("a name too long for the system", lambda t: read_graph(t / ("n" * 300), None, target="t"), ReadError, "expected a file, got File name too long"),
    Case("an empty file", lambda t: read(t, ""), ReadError, "nodes.csv: expected a header line with column names, got no columns"),
    Case("a header without rows", lambda t: read(t, "id,v,t\n"), GraphError, "the node table: expected at least one node, got none"),
    Case("another encoding", lambda t: read(t, "id,Höhe,t\na,1,2\n".encode("latin-1")), ReadError, r"expected text in utf-8, got bytes that are not .*pass its encoding"),
    Case("an unknown encoding", lambda t: read(t, "id,v,t\n", encoding="klingon"), ReadError, "unknown encoding: klingon; a common one is encoding='utf-8'"),
    Case("an encoding that is no name", lambda t: read(t, "id,v,t\n", encoding=8), ReadError, "encoding: expected a name such as 'utf-8', got 8"),
    Case("UTF-16 that is not", lambda t: read(t, "id,v,t\na,1,2\n", encoding="utf-16"), ReadError, "nodes.csv: "),
    Case("a decimal sign that is none", lambda t: read(t, "id,v,t\n", decimal=";"), ReadError, r"decimal: expected '.', ',' or 'auto', got ';'"),
    Case("rows longer than the header", lambda t: read(t, "id,v,t\na,1,2,\nb,1,2,\n"), ReadError, "expected rows as long as the header line, got longer ones"),
    Case("a quotation without end", lambda t: read(t, 'id,v,t\na,"1,2\nb,2,3\n'), ReadError, "nodes.csv: cannot be read as a table: "),
    Case("a column without a name", lambda t: read(t, ",id,t\n0,a,2\n"), ReadError, r"got none for column 1; was the file written with its row index\? Leave it out"),
    Case("a name twice in a file", lambda t: read(t, "id,v,v,t\na,1,1,2\n"), ReadError, "expected each column name once, got repeated: 'v'"),
    Case("an old spreadsheet", lambda t: read(t, b"PK\x03\x04", "nodes.xls"), ReadError, r"expected a table \(.csv, .tsv, .parquet, .xlsx\), got .xls; save the sheet as .xlsx or CSV"),
    Case("an archive", lambda t: read(t, b"PK\x03\x04", "nodes.zip"), ReadError, r"expected a table .*got .zip; unpack it"),
    Case("Parquet that is not", lambda t: read(t, "id,v,t\na,1,2\n", "nodes.parquet"), ReadError, "nodes.parquet: cannot be read as a table"),
    Case("gzip that is not", lambda t: read(t, "id,v,t\na,1,2\n", "nodes.csv.gz"), ReadError, "nodes.csv.gz: cannot be read as a table"),
    Case("gzip cut short", lambda t: read(t, gzip.compress(b"id,v,t\n" + b"a,1,2\n" * 99)[:-12], "nodes.csv.gz"), ReadError, "nodes.csv.gz: cannot be read"),
    Case("gzip with a damaged middle", lambda t: read(t, gzip.compress(b"id,v,t\na,1,2\n")[:10] + b"\xff" * 40, "nodes.csv.gz"), ReadError, "nodes.csv.gz: cannot be read"),
    Case("GraphML that is broken", lambda t: read(t, "<graphml><graph>", "g.graphml"), ReadError, "g.graphml: expected GraphML, got broken XML"),
    Case("GraphML that is text", lambda t: read(t, "id,v,t\n", "g.graphml"), ReadError, "g.graphml: expected GraphML, got broken XML"),
    Case("GraphML in a damaged archive", lambda t: read(t, gzip.compress(b"<graphml/>")[:10] + b"\xff" * 40, "g.graphml.gz"), ReadError, "g.graphml.gz: cannot be read"),
    Case("GraphML without nodes", lambda t: tree(t, ""), ReadError, "expected a graph with nodes, got none"),
    Case("GraphML with a node twice", lambda t: tree(t, '<node id="a"/><node id="a"/>'), ReadError, "expected each node once, got repeated: 'a'"),
    Case("GraphML with entities", lambda t: read(t, '<!DOCTYPE x [<!ENTITY a "b">]><graphml/>', "g.graphml"), ReadError, "without declarations, got a DOCTYPE.*delete it"),
    Case("GraphML and an edge file", lambda t: read_graph(file(t, "", "g.graphml"), t / "e.csv", target="t"), ReadError, "expected a GraphML file alone.*got also .*e.csv; give"),
    Case("GraphML in pieces", lambda t: convert_graph(t / "g.graphml", None, t / "g", target="t"), ReadError, "expected tables .*got GraphML, which cannot be read in pieces; read it whole"),
    Case("a results file that is text", lambda t: Store(file(t, "notes" * 999, "r.sqlite")), ReadError, r"expected a results file of qpignn \(SQLite\), got .*; name another file"),
]  # fmt: skip

FOLDERS = [
    Case("no model", lambda t: load_method(t / "models"), ModelFileError, "expected a saved model with model.json, got no such folder; make one with 'qpignn fit'"),
    Case("a folder without a model", lambda t: load_method(t), ModelFileError, "expected a saved model with model.json, got a folder without it"),
    Case("a file in place of a model", lambda t: load_method(file(t, "")), ModelFileError, "expected a saved model with model.json"),
    Case("no path of a model", lambda t: load_method(None), SettingError, "folder: expected the path of a file or folder, got None"),
    Case("a model of another class", lambda t: Conformal.load(saved(t)), ModelFileError, "expected a saved Conformal, got a QpiGNN; load it with QpiGNN.load"),
    Case("weights cut short", lambda t: load_method(spoilt(t, "model.safetensors", "")), ModelFileError, "the file is cut short, damaged or from another model; save the model again"),
    Case("a description that is no JSON", lambda t: load_method(spoilt(t, "model.json", "{")), ModelFileError, "model.json: expected JSON, got something else"),
    Case("another description", lambda t: load_method(spoilt(t, "model.json", "{}")), ModelFileError, "model.json: expected the fields .*got others"),
    Case("a model saved over a file", lambda t: fit().save(file(t, "")), WriteError, "expected a place to write to, got (File exists|Not a directory); choose another"),
    Case("a model saved below a file", lambda t: fit().save(file(t, "") / "m"), WriteError, "expected a place to write to, got Not a directory; choose another name"),
    Case("a model saved nowhere", lambda t: fit().save(None), SettingError, "folder: expected the path of a file or folder, got None"),
    Case("a net of one's own, without it", lambda t: (prefit(lambda x, e: x[:, 0]).save(t), load_method(t)), ModelFileError, r"expected the net .*Conformal.load\(folder, model=net\)"),
    Case("no graph", lambda t: open_graph(t / "g"), ReadError, "expected a folder written by 'qpignn convert' .*got nothing; convert again"),
    Case("a file in place of a graph", lambda t: open_graph(file(t, "")), ReadError, "got a file; convert again"),
    Case("a conversion that did not finish", lambda t: open_graph(t), ReadError, r"got one without mapped.json .*convert again"),
    Case("a graph over other files", lambda t: (file(t, "", "x.npy"), write_graph(t, graph())), SettingError, "expected an empty folder .*got one with 'x.npy'; choose another folder"),
    Case("a graph over a file", lambda t: write_graph(file(t, ""), graph()), WriteError, "expected a place to write to, got Not a directory; choose another name"),
    Case("sparse features on disk", lambda t: write_graph(t / "g", graph(x=graph().x.to_sparse_csr())), GraphError, r"expected dense features to write, got sparse ones; use .to_dense\(\)"),
    Case("a report over a folder", lambda t: write_report(fit(), graph(), t), WriteError, "expected a place to write to, got Is a directory; choose another name"),
    Case("results below a file", lambda t: Store(file(t, "") / "r.sqlite"), WriteError, "expected a place to write to, got (File exists|Not a directory); choose another"),
]  # fmt: skip

SIZES = [
    Case("no nodes", lambda t: frames(nodes=pd.DataFrame({"id": [], "area": [], "sales": []})), GraphError, "the node table: expected at least one node, got none"),
    Case("an array in place of the node table", lambda t: frames(nodes=np.zeros((3, 3))), GraphError, "the node table: expected a pandas DataFrame, got ndarray; make one"),
    Case("an empty networkx graph", lambda t: from_networkx(nx.Graph(), target="y"), GraphError, "expected at least one node, got none"),
    Case("columns of different lengths", lambda t: intervals_of([1.0], [0.0, 1], [2.0, 3]), ArrayError, "expected columns of one length, got {'prediction': 1, 'lower': 2"),
    Case("columns in two dimensions", lambda t: intervals_of(np.ones((2, 1)), [0.0, 1], [2.0, 3]), ArrayError, r"one number per node .*got shape \(2, 1\); flatten it first"),
    Case("words as bounds", lambda t: intervals_of(["a", "b"], [0.0, 1], [2.0, 3]), ArrayError, r"prediction: expected one number per node, got \['a', 'b'\]; give an array"),
    Case("ragged bounds", lambda t: intervals_of([[1.0], [1.0, 2.0]], [0.0, 1], [2.0, 3]), ArrayError, "prediction: expected one number per node, got"),
    Case("a bound that is NaN", lambda t: intervals_of([1.0, 2], [0.0, NAN], [2.0, 3]), ArrayError, "lower: expected a number for every node, got NaN for 1 of 2"),
    Case("bounds that cross", lambda t: intervals_of([1.0, 2], [9.0, 1], [2.0, 3]), ArrayError, "expected lower ≤ upper, got the reverse on 1 nodes"),
    Case("ids that are one number", lambda t: intervals_of(node_id=5), ArrayError, "node_id: expected one id per node, got 5"),
    Case("a node that is not there", lambda t: intervals_of().select([7]), ArrayError, r"nodes: expected 2 booleans, or positions from 0 to 1, got \[7\]"),
    Case("a mask of another length", lambda t: intervals_of().select([True]), ArrayError, r"nodes: expected 2 booleans, .*got \[True\]"),
    Case("nodes by name", lambda t: intervals_of().select(["a"]), ArrayError, r"nodes: expected 2 booleans, .*got \['a'\]"),
    Case("targets of another number", lambda t: intervals_of().covers([1.0]), ArrayError, "y: expected 2 targets, got 1"),
    Case("targets that are not all known", lambda t: intervals_of().covers([1.0, NAN]), ArrayError, "expected a target for every node, got NaN; select labelled nodes"),
    Case("parts of the width that are not known", lambda t: intervals_of().to_frame(parts=True), SettingError, "parts: expected two-sided intervals of a method with several members"),
    Case("a metric of different lengths", lambda t: metrics.picp([1.0], [0.0, 1], [2.0, 3]), ArrayError, "expected columns of one length"),
    Case("a metric of nothing", lambda t: metrics.mpiw([], [], []), ArrayError, "expected at least one node, got none"),
    Case("a metric of words", lambda t: metrics.picp(["a"], [0.0], [1.0]), ArrayError, r"y: expected one number per node, got \['a'\]"),
    Case("a diagnosis of some nodes", lambda t: diagnose(graph(), intervals_of()), ArrayError, "expected intervals of all 40 nodes of the graph, got 2; predict without a mask"),
    Case("a diagnosis of a number", lambda t: diagnose(graph(), 3), ArrayError, "intervals: expected the result of predict_interval, got int"),
    Case("a net that is none", lambda t: prefit("net"), SettingError, "model: expected a net or a function of x and edge_index, got 'net'"),
    Case("a net with seven outputs", lambda t: prefit(lambda x, e: torch.ones(40, 7)), ArrayError, r"model: expected \(40,\), .* numbers, got \(40, 7\)"),
    Case("a net that returns two tensors", lambda t: prefit(lambda x, e: (x[:, 0], x[:, 1])), ArrayError, "model: expected a tensor of one to three numbers per node, got tuple; let it return one"),
    Case("a net that returns nothing", lambda t: prefit(lambda x, e: None), ArrayError, "model: expected a tensor .*got NoneType"),
    Case("a net that returns NaN", lambda t: prefit(lambda x, e: x[:, 0] * NAN), ArrayError, "model: expected finite numbers, got some that are not"),
]  # fmt: skip

FAMILIES = {
    "ids": IDS,
    "edges": EDGES,
    "features": FEATURES,
    "targets": TARGETS,
    "masks": MASKS,
    "settings": SETTINGS,
    "devices": DEVICES,
    "files": FILES,
    "folders": FOLDERS,
    "sizes": SIZES,
}
ALL = [(family, case) for family, cases in FAMILIES.items() for case in cases]


@pytest.mark.parametrize(
    "case", [case for _, case in ALL], ids=[f"{family}: {case.name}" for family, case in ALL]
)
@pytest.mark.filterwarnings("ignore::qpignn.errors.QpignnWarning")
def test_bad_input(case: Case, tmp_path: Path) -> None:
    with pytest.raises(QpignnError) as caught:
        case.do(tmp_path)
    message = str(caught.value)
    assert type(caught.value) is case.error, message
    assert re.search(case.message, message), message
    assert "\n" not in message


def test_cases_cover_every_error_class() -> None:
    from qpignn import errors

    kinds = {kind for _, kind in inspect.getmembers(errors, inspect.isclass)}
    ours = {kind for kind in kinds if issubclass(kind, QpignnError) and kind is not QpignnError}
    elsewhere = {
        "DataFileError",
        "LockedError",
        "RankError",
    }  # tests/data/sources/test_files.py, tests/io/test_locks.py, tests/runtime/test_distributed.py
    assert {kind.__name__ for kind in ours} - elsewhere == {case.error.__name__ for _, case in ALL}


def test_case_names_are_unique() -> None:
    names = [case.name for _, case in ALL]
    assert len(names) == len(set(names)) >= 60
