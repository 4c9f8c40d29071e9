"""Inputs for hypothesis: graphs, tables and settings, sensible and senseless.

Each strategy mixes what is right with what is nearly right, so that a test meets both results of
the promise: either a QpignnError is raised, or there are intervals for every node.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st
from torch_geometric.data import Data

SMALL = st.floats(-100, 100, width=32)
FINITE = st.one_of(SMALL, st.floats(allow_nan=False, allow_infinity=False))
ANY_FLOAT = st.one_of(SMALL, st.floats(), st.sampled_from([0.0, -0.0, 1e-320, 1e308, -1e308]))
WORDS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["", " ", "NA", "007", "1,5", "=1+1", "<b>", "2026-11-16", "x" * 99]),
)
HALF = st.just("\ud800")  # of a character: pandas itself refuses it but in columns of objects
IDS = st.one_of(
    st.integers(-(2**70), 2**70),
    WORDS,
    HALF,
    st.floats(),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.none(),
    st.booleans(),
)
VALUES = st.one_of(
    ANY_FLOAT,
    st.integers(-(2**70), 2**70),
    WORDS,
    st.booleans(),
    st.none(),
    st.just(pd.NaT),
    st.just(pd.Timestamp("2026-11-16")),
    st.lists(st.integers(), max_size=2),
    st.complex_numbers(),
)


@st.composite
def graphs(
    draw: Any, *, sensible: bool = False, nodes: int = 12, columns: int | None = None
) -> Data:
    """A graph of few nodes; unless ``sensible``, one that may break any rule."""
    count = draw(st.integers(4 if sensible else 1, nodes))
    columns = draw(st.integers(1, 3)) if columns is None else columns
    number = SMALL if sensible else ANY_FLOAT
    x = draw(st.lists(number, min_size=count * columns, max_size=count * columns))
    ends = draw(
        st.lists(
            st.integers(0 if sensible else -1, count - 1 if sensible else count), max_size=4 * nodes
        )
    )
    ends = ends[: len(ends) // 2 * 2]
    data = Data(
        x=torch.tensor(x, dtype=torch.float64).reshape(count, columns).to(_dtype(draw, sensible)),
        edge_index=torch.tensor(ends, dtype=torch.int64).reshape(2, -1),
        y=torch.tensor(draw(_targets(count, sensible)), dtype=torch.float64),
    )
    if sensible:
        return data
    return _corrupted(draw, data, count)


def _dtype(draw: Any, sensible: bool) -> torch.dtype:
    plain = [torch.float32, torch.float64]
    odd = [torch.float16, torch.bfloat16, torch.int64, torch.bool]
    return draw(st.sampled_from(plain if sensible else plain * 4 + odd))


def _targets(count: int, sensible: bool) -> st.SearchStrategy[list[float]]:
    if not sensible:
        return st.lists(st.one_of(ANY_FLOAT, st.just(math.nan)), min_size=count, max_size=count)
    labels = st.lists(SMALL, min_size=count, max_size=count, unique=True)
    return labels.flatmap(
        lambda values: st.integers(0, max(0, count - 4)).map(
            lambda blank: [math.nan] * blank + values[blank:]
        )
    )


def _corrupted(draw: Any, data: Data, count: int) -> Data:
    masks = st.lists(st.booleans(), min_size=count, max_size=count).map(torch.tensor)
    weights = st.lists(ANY_FLOAT, min_size=1, max_size=count).map(torch.tensor)
    extras = {
        "train_mask": masks,
        "val_mask": masks,
        "test_mask": st.one_of(masks, st.just(torch.ones(count)), st.just("all")),
        "node_weight": weights,
        "edge_weight": weights,
        "node_id": st.lists(IDS, min_size=count, max_size=count),
        "feature_names": st.lists(WORDS, min_size=1, max_size=3),
    }
    for name in draw(st.lists(st.sampled_from(sorted(extras)), unique=True, max_size=3)):
        data[name] = draw(extras[name])
    for name in draw(st.lists(st.sampled_from(["x", "y", "edge_index"]), unique=True, max_size=1)):
        odd = (None, "words", torch.empty(0), torch.zeros(count), np.zeros((count, 2)), [[1]])
        if draw(st.integers(0, 3)) == 0:
            data[name] = draw(st.sampled_from(odd))
    return data


@st.composite
def frames(draw: Any, nodes: int = 12) -> tuple[pd.DataFrame, pd.DataFrame | None, dict[str, Any]]:
    """A table of nodes, a table of edges, and the roles of their columns."""
    if draw(st.booleans()):
        return draw(_sensible_frames(nodes))
    count = draw(st.integers(0, nodes))
    ids = draw(st.lists(IDS, min_size=count, max_size=count))
    if draw(st.booleans()):
        ids = list(range(count))
    table = {"id": pd.Series(ids, dtype=object)}
    plain = st.one_of(SMALL, st.none())
    for name in draw(st.lists(st.one_of(st.sampled_from(["a", "b", "lon", "lat"]), WORDS))):
        cells = draw(st.sampled_from([SMALL, plain, WORDS, VALUES]))
        kind = draw(st.sampled_from([None, object]))
        cells = cells | HALF if kind is object and cells is VALUES else cells
        values = draw(st.lists(cells, min_size=count, max_size=count))
        table[name] = pd.Series(values, dtype=kind)
    table["y"] = pd.Series(draw(st.lists(plain, min_size=count, max_size=count)), dtype=object)
    ends = st.one_of(st.sampled_from(ids), IDS) if ids else IDS
    pairs = draw(st.one_of(st.none(), st.lists(st.tuples(ends, ends), max_size=3 * nodes)))
    edges = None
    if pairs is not None:
        names = draw(st.sampled_from([("from", "to"), ("a", "b"), ("from", "from_")]))
        edges = pd.DataFrame(pairs, columns=list(names), dtype=object)
    column = st.one_of(st.sampled_from(["a", "b", "y", "id", "none"]), WORDS)
    options = {
        "id": st.one_of(st.none(), st.just("id"), column),
        "features": st.one_of(st.none(), st.lists(column, max_size=2), column),
        "categorical": st.lists(column, max_size=2),
        "ignore": st.lists(column, max_size=2),
        "missing": st.sampled_from(["error", "impute", "ignore"]),
        "edge_weight": st.one_of(st.none(), column),
        "node_weight": st.one_of(st.none(), column),
        "split": st.one_of(st.none(), column),
        "coordinates": st.one_of(st.none(), st.lists(column, max_size=3)),
        "directed": st.booleans(),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(options)), unique=True, max_size=3))
    roles = {name: draw(options[name]) for name in chosen}
    target = draw(st.sampled_from(["y", "y", "y", "a", None, "none"]))
    return pd.DataFrame(table), edges, {"target": target, **roles}


@st.composite
def _sensible_frames(draw: Any, nodes: int) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Valid tables, unless all edges join a node to itself."""
    count = draw(st.integers(4, nodes))
    columns = {
        name: draw(st.lists(SMALL, min_size=count, max_size=count)) for name in ("a", "b", "y")
    }
    ends = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=3 * nodes))
    table = pd.DataFrame({"id": range(count), **columns})
    return table, pd.DataFrame(pairs, columns=["from", "to"]), {"target": "y"}


ODD = st.sampled_from(
    [None, -1, 0, 1.5, math.nan, math.inf, "", "auto", "x", [], {}, True, (1, 2), b"x"]
)
"""What no setting should be, or few. None is legal and without end, as 10**40 epochs would be."""


@st.composite
def settings_of(draw: Any, *, sensible: bool = False) -> dict[str, Any]:
    """Settings of QpiGNN with little to train."""
    level = st.floats(0.05, 0.95)
    right: dict[str, st.SearchStrategy[Any]] = {
        "confidence_level": st.one_of(level, st.lists(level, min_size=1, max_size=3)),
        "side": st.sampled_from(["both", "both", "lower", "upper"]),
        "tails": st.sampled_from([None, "free", "equal", "symmetric"]),
        "target_transform": st.sampled_from(["auto", "none", "log1p", "sqrt"]),
        "y_min": st.sampled_from(["auto", None, -200.0]),
        "activation": st.sampled_from(["silu", "relu"]),
        "dropout": st.floats(0, 0.9),
        "scaling": st.sampled_from(["standard", "none"]),
        "dtype": st.sampled_from(["float32", "float64"]),
        "layers": st.integers(1, 3),
        "members": st.sampled_from([1, 5]),
        "patience": st.sampled_from([None, 1]),
        "seed": st.integers(0, 2**70),
        "batch_size": st.one_of(st.none(), st.integers(1, 20)),
        "fan_out": st.integers(1, 3),
        "lr": st.floats(1e-4, 0.1),
        "weight_decay": st.floats(0, 0.1),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(right)), unique=True, max_size=4))
    settings = {name: draw(right[name]) for name in chosen}
    if not sensible and draw(st.booleans()):
        every = [*right, "hidden", "epochs", "lambda_width", "trials", "half_width", "violation"]
        name = draw(st.sampled_from(every))
        huge = st.just(10**40 if name in ("lr", "dropout", "y_min", "seed", "lambda_width") else -1)
        settings[name] = draw(st.one_of(ODD, ANY_FLOAT, WORDS, huge))
    return {"epochs": 2, "hidden": 3, "members": 5, **settings}
