"""Properties that hold for any input: hypothesis in ``make test``, the fuzzer in ``make fuzz``.

Either a QpignnError is raised, or ordered bounds for every node asked for, infinite only on the
side that was not asked for, or where too few nodes are given for the level. Laws of a fitted model:
what nodes are called, in which order edges stand and in which unit the target is counted changes
nothing else.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

import strategies
from qpignn import Intervals, QpiGNN, check_graph, from_frames, make_method
from qpignn.errors import QpignnError
from qpignn.methods.base import IntervalMethod

FINE = "fine"
CLOSE = 1e-5
METHODS = ("qpignn", "sqr", "evidential", "mc_dropout", "cfgnn", "cqr")
Tables = tuple[pd.DataFrame, pd.DataFrame | None, dict[str, Any]]


# ---- whatever goes in


def any_graph(data: Data) -> str:
    """A graph is refused, or comes back in a form that is accepted again as it is."""
    try:
        checked = check_graph(data)
    except QpignnError as error:
        return type(error).__name__
    again = check_graph(checked)
    assert checked.x.is_floating_point()
    assert again.x.equal(checked.x)
    assert again.edge_index.equal(checked.edge_index)
    return FINE


def any_frames(tables: Tables) -> str:
    """Tables are refused, or make a graph that keeps all rules and every row's id."""
    nodes, edges, roles = tables
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = from_frames(nodes, edges, **roles)
    except QpignnError as error:
        return type(error).__name__
    check_graph(data, need_target=False)
    assert data.x.shape == (len(nodes), len(data.feature_names))
    assert len(data.node_id) == len(nodes)
    return FINE


def any_fit(data: Data, settings: dict[str, Any]) -> str:
    """A fit is refused, or gives every node an interval."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = QpiGNN(**settings).fit(data)
            intervals = model.predict_interval(data)
    except QpignnError as error:
        return type(error).__name__
    check_intervals(intervals, data.x.shape[0], settings.get("side", "both"), enough_nodes(model))
    return FINE


def enough_nodes(model: IntervalMethod) -> bool:
    """Whether the rank of the highest level is among the nodes that calibrated it, if any did."""
    count, level = model.fitted_.calibrated_on, model.levels_[-1]
    return count is None or math.ceil((count + 1) * level - 1e-9) <= count


def check_intervals(
    intervals: Intervals, nodes: int, side: str = "both", bounded: bool = True
) -> None:
    """Fail unless there are ordered bounds for every node, finite where they were asked for.

    ``bounded``: whether enough nodes calibrated them; otherwise they may be infinite.
    """
    assert len(intervals) == nodes
    assert np.isfinite(intervals.prediction).all()
    assert (intervals.lower <= intervals.prediction).all()
    assert (intervals.prediction <= intervals.upper).all()
    assert not bounded or side == "upper" or np.isfinite(intervals.lower).all()
    assert not bounded or side == "lower" or np.isfinite(intervals.upper).all()


# ---- laws of a fitted model


@cache
def fitted(name: str) -> IntervalMethod:
    """A model of a few nodes with two features."""
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(60, 2, generator=draw) * 200 - 100
    ends = torch.randint(0, 60, (2, 120), generator=draw)
    data = Data(x=x, y=x[:, 0] + torch.rand(60, generator=draw), edge_index=ends)
    few = {"correction_epochs": 2} if name == "cfgnn" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_method(name, epochs=3, hidden=4, **few).fit(data)


def close(actual: Intervals, wanted: Intervals) -> None:
    """Fail unless bounds agree, relative to their size."""
    for name in ("prediction", "lower", "upper"):
        one, other = getattr(actual, name), getattr(wanted, name)
        size = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0)))
        np.testing.assert_allclose(one / size, other / size, rtol=0, atol=CLOSE)


def other_names(name: str, data: Data, draw: Random) -> str:
    """Nodes that are counted in another order have the same intervals."""
    order = list(range(data.x.shape[0]))
    draw.shuffle(order)
    new = torch.tensor(order)  # the node that stands at a place now
    place = torch.empty_like(new)
    place[new] = torch.arange(len(new))
    moved = Data(x=data.x[new], edge_index=place[data.edge_index])
    before = fitted(name).predict_interval(data)
    close(fitted(name).predict_interval(moved), before.select(new.numpy()))
    return FINE


def other_edges(name: str, data: Data, draw: Random) -> str:
    """Edges in another order change nothing."""
    order = list(range(data.edge_index.shape[1]))
    draw.shuffle(order)
    moved = Data(x=data.x, edge_index=data.edge_index[:, torch.tensor(order, dtype=torch.long)])
    close(fitted(name).predict_interval(moved), fitted(name).predict_interval(data))
    return FINE


def other_unit(data: Data, targets: list[int], scale: float, shift: float, name: str) -> str:
    """y → a·y + b, a > 0: intervals go the same way, as long as no transform looks at zero."""
    y = torch.tensor(targets, dtype=torch.float64)[: data.x.shape[0]]
    chosen: dict[str, Any] = {"epochs": 2, "hidden": 3, "dtype": "float64"}
    chosen |= {"y_min": None, "y_max": None}  # those found by the sign of targets do not move
    if name == "qpignn":
        chosen |= {"members": 5, "target_transform": "none", "tails": "equal"}
    results = []
    for values in (y, scale * y + shift):
        graph = check_graph(Data(x=data.x, edge_index=data.edge_index, y=values))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.append(make_method(name, **chosen).fit(graph).predict_interval(graph))
    one, other = results
    columns = [scale * getattr(one, side) + shift for side in ("prediction", "lower", "upper")]
    close(other, Intervals(*columns, one.confidence_level))
    return FINE


# ---- the same, as hypothesis and the fuzzer run them

GRAPHS = (strategies.graphs(),)
FRAMES = (strategies.frames(),)
FITS = (strategies.graphs(), strategies.settings_of())
SENSIBLE = (strategies.graphs(sensible=True), strategies.settings_of(sensible=True))
MOVED = (
    st.sampled_from(METHODS),
    strategies.graphs(sensible=True, columns=2),
    st.randoms(use_true_random=False),
)
UNITS = (
    strategies.graphs(sensible=True),
    st.lists(st.integers(-50, 50), min_size=12, max_size=12, unique=True),
    st.floats(0.01, 1000),
    st.floats(-1000, 1000),
    st.sampled_from(["qpignn", "sqr", "quantile"]),
)
endings: list[str] = []
"""How the last examples ended, for the fuzzer to count."""


@given(*GRAPHS)
def fuzz_graph(data: Data) -> None:
    endings.append(any_graph(data))


@given(*FRAMES)
def fuzz_frames(tables: Tables) -> None:
    endings.append(any_frames(tables))


@given(*FITS)
def fuzz_fit(data: Data, settings: dict[str, Any]) -> None:
    endings.append(any_fit(data, settings))


@given(*SENSIBLE)
def fuzz_sensible_fit(data: Data, settings: dict[str, Any]) -> None:
    endings.append(any_fit(data, settings))


@given(*MOVED)
def fuzz_order(name: str, data: Data, draw: Random) -> None:
    endings.append(other_names(name, data, draw))
    endings.append(other_edges(name, data, draw))


@given(*UNITS)
def fuzz_unit(data: Data, targets: list[int], scale: float, shift: float, name: str) -> None:
    endings.append(other_unit(data, targets, scale, shift, name))
