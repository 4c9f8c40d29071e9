"""``qpignn evaluate``: metrics of a fitted model's intervals on nodes not used for training."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from qpignn.cli import options
from qpignn.cli.output import print_findings, print_json, print_metrics, say
from qpignn.errors import ModelFileError, SettingError, SplitError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.bundle import Fit


def evaluate(
    folder: options.Folder,
    nodes: Path | None = None,
    edges: Path | None = None,
    confidence: options.Level = None,
    method: options.SavedMethod = None,
    without_graph: bool = False,
    as_json: options.Json = False,
) -> None:
    """Evaluate a fitted model on the labelled nodes held out from its fit, or on new labels.

    With --nodes alone, the table needs the ids and targets of nodes of the fit's graph. With
    --nodes and --edges it is another graph, with the columns of the fit. Nodes whose targets were
    given to the fit are never evaluated. --without-graph fits the same method once more, without
    edges, and compares the two: does the graph help?

    Example: qpignn evaluate model --json

    Args:
        nodes: Node table with targets that became known after the fit; default: the held-out nodes.
        edges: Its edge table, for another graph; without it the nodes are those of the fit.
        without_graph: Compare with a fit of the same method without edges.

    Raises:
        SettingError: if --edges is given without --nodes.
        ModelFileError: if no nodes were held out.
    """
    if nodes is None and edges is not None:
        raise SettingError("--edges needs --nodes: another graph needs both tables")
    from qpignn.data.graph import given_nodes, test_nodes
    from qpignn.diagnostics.graph_effect import graph_effect
    from qpignn.methods.bundle import load_fit
    from qpignn.methods.catalog import saved_class
    from qpignn.methods.without_graph import fit_without_graph
    from qpignn.metrics import summary

    with saved_class(method):
        fit = load_fit(folder)
    data = fit.data if nodes is None else _labelled_since(fit, nodes, edges)
    evaluated = test_nodes(data)
    if not bool(evaluated.any()):
        raise ModelFileError(
            f"{folder}: expected held-out nodes to evaluate, got none; fit with "
            f"--test-fraction 0.2, mark test nodes in the split column, or give new labels with "
            f"--nodes"
        )
    intervals = fit.model.predict_interval(data, evaluated.numpy(), confidence_level=confidence)
    given = fit.data.y[given_nodes(fit.data)]
    level = intervals.confidence_level
    figures = {
        "confidence_level": level,
        "n_test": len(intervals),
        **summary(intervals, data.y[evaluated], y_given=given),
    }
    effect = None
    if without_graph:
        say("fitting the same method without edges")
        plain = fit_without_graph(fit.model, fit.data)
        others = plain.predict_interval(data, evaluated.numpy(), confidence_level=level)
        effect = graph_effect(intervals, others, data.y[evaluated])
    if as_json:
        print_json(figures if effect is None else {**figures, "graph_effect": asdict(effect)})
        return
    which = "held-out nodes" if nodes is None else "nodes labelled after the fit"
    print_metrics(f"{len(intervals):,} {which}, wanted coverage {level:g}", figures)
    findings = fit.model.diagnose(data, confidence_level=confidence).findings
    print_findings(findings if effect is None else [*findings, effect.finding()])


def _labelled_since(fit: Fit, nodes: Path, edges: Path | None) -> Data:
    """Return a graph whose test nodes are labelled in a table and were not given to the fit."""
    import torch

    from qpignn.data.graph import given_nodes, labelled, node_ids
    from qpignn.data.ids import NodeIndex
    from qpignn.methods.bundle import read_like, with_new_labels

    if edges is None:
        return with_new_labels(fit, nodes)
    data = read_like(fit, nodes, edges)
    import pandas as pd

    ids: pd.Index = pd.Index(node_ids(fit.data), tupleize_cols=False)
    positions = torch.from_numpy(NodeIndex(ids).positions(node_ids(data)))
    given = (positions >= 0) & given_nodes(fit.data)[positions]
    data.test_mask = labelled(data) & ~given
    data.train_mask = labelled(data) & given
    if not bool(data.test_mask.any()):
        raise SplitError(
            f"{nodes}: expected targets that the fit was not given, got "
            f"{int(labelled(data).sum())} labelled nodes, all of them given to the fit"
        )
    return data
