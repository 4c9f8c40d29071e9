"""Warnings about legal but suspicious data: one sentence with a count, and none without reason."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from qpignn import (
    QpiGNN,
    check_graph,
    convert_graph,
    example_tables,
    from_frames,
    from_networkx,
    make_method,
)
from qpignn.data import warnings as room
from qpignn.data.warnings import data_warnings, isolation_warnings
from qpignn.errors import QpignnWarning

NAN = float("nan")


def two_rings(nodes: int = 60, alone: int = 0, **changes: Any) -> Data:
    """Two rings of half the nodes each, then some without edges; every tenth is unlabelled."""
    half = torch.arange(nodes // 2)
    ring = torch.stack([half, (half + 1) % len(half)])
    both = torch.cat([ring, ring + len(half)], dim=1)
    x = torch.sin(torch.arange(nodes + alone).float()).unsqueeze(1)
    y = 3 * x[:, 0].double()
    y[::10] = NAN
    data = Data(x=x, y=y, edge_index=torch.cat([both, both.flip(0)], dim=1))
    for name, value in changes.items():
        data[name] = value
    return check_graph(data)


def messages_of(data: Data) -> list[str]:
    return data_warnings(data, ~data.y.isnan())


def test_data_warnings_usual_graph_none() -> None:
    assert messages_of(two_rings()) == []


def test_data_warnings_isolated_nodes_counted() -> None:
    data = two_rings(alone=5)
    data.y[61:63] = NAN  # with every tenth of 65: 7 + 2 are to be predicted, 3 of them alone
    (sentence,) = messages_of(data)
    assert sentence.startswith("3 of 9 nodes to predict have no edges: their intervals depend on")
    assert sentence.endswith("check that no edges are missing")
    data.y[60:] = 1.0  # alone, but known
    assert messages_of(data) == []


def test_isolation_warnings_either_direction_counts() -> None:
    one_way = two_rings()
    one_way.edge_index = one_way.edge_index[:, one_way.edge_index[1] == 1]
    nodes = torch.arange(60).numpy()
    assert isolation_warnings(one_way, nodes < 3) == []  # 0 and 2 point at 1
    (sentence,) = isolation_warnings(one_way, nodes < 4)
    assert sentence.startswith("1 of 4 nodes to predict have no edges")
    assert isolation_warnings(one_way, nodes < 0) == []  # no node to predict


def test_data_warnings_few_isolated_nodes_none() -> None:
    data = two_rings(nodes=4000, alone=1)
    data.y[-1] = NAN
    assert messages_of(data) == []  # one of 401


def test_data_warnings_component_without_target_reported() -> None:
    data = two_rings()
    data.y[30:] = NAN
    (sentence,) = messages_of(data)
    assert sentence.startswith("30 of 33 nodes to predict are in parts of the graph where no ")
    assert sentence.endswith("label some nodes of each part")
    data.y[42] = 1.0  # one label is enough to be in reach
    assert messages_of(data) == []


def test_data_warnings_large_graph_skips_components(monkeypatch: pytest.MonkeyPatch) -> None:
    data = two_rings()
    data.y[30:] = NAN
    monkeypatch.setattr(room, "MOST_EDGES", data.edge_index.shape[1] - 1)
    assert messages_of(data) == []


def test_data_warnings_no_edges_one_sentence() -> None:
    data = two_rings(edge_index=torch.empty((2, 0), dtype=torch.long))
    (sentence,) = messages_of(data)
    assert sentence.startswith(
        "the graph has no edges: intervals depend on each node's own features"
    )


def test_data_warnings_classes_and_row_numbers_reported() -> None:
    classes = two_rings(y=(torch.arange(60) % 2).double())
    (sentence,) = messages_of(classes)
    assert sentence.startswith("the 60 given targets are all 0 or 1: they look like two classes")
    rows = two_rings(y=torch.randperm(60).double() + 7)
    (sentence,) = messages_of(rows)
    assert sentence.startswith("the 60 given targets are whole numbers from 7 to 66, each once")
    assert (
        messages_of(two_rings(y=torch.arange(60).double() * 5)) == []
    )  # a count may be all different
    assert messages_of(two_rings(y=(torch.arange(60) % 5).double())) == []  # marks from 0 to 4
    assert messages_of(two_rings(y=torch.arange(60) / 7)) == []


def test_data_warnings_few_labels_none() -> None:
    y = torch.full((60,), NAN)
    y[:10] = torch.arange(10) % 2
    y[30:35] = 1
    assert messages_of(two_rings(y=y)) == []


def quiet(what: Callable[[], object]) -> list[str]:
    """Return the warnings of the library, also those that were given before."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        what()
    return [
        str(warning.message) for warning in caught if issubclass(warning.category, QpignnWarning)
    ]


@pytest.mark.parametrize("name", ["qpignn", "sqr", "cfgnn", "conformal:qpignn"])
def test_fit_warns_once(name: str) -> None:
    data = two_rings(nodes=80, alone=10)
    data.y[-10:] = NAN
    more = {"correction_epochs": 2} if name == "cfgnn" else {}
    method = make_method(name, epochs=2, hidden=4, confidence_level=0.6, **more)
    (sentence,) = quiet(lambda: method.fit(data))
    assert "have no edges" in sentence
    assert quiet(lambda: method.predict_interval(data)) == []


def test_predict_interval_mostly_clipped_warns() -> None:
    data = two_rings()
    method = QpiGNN(epochs=60, y_min=-3, y_max=3).fit(data)
    assert quiet(lambda: method.predict_interval(data)) == []
    far = two_rings(x=data.x + 100)
    (sentence,) = quiet(lambda: method.predict_interval(far))
    assert sentence.startswith("y_min, y_max: ")
    assert "of 60 predictions were outside -3 to 3 and are cut there; are the limits" in sentence


# --- edges that were merged or left out ---


def table(*pairs: str, **more: list[float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    nodes = pd.DataFrame({"id": list("abc"), "v": [1, 2, 4], "t": [1.0, 2.0, 3.0]})
    edges = pd.DataFrame({"from": [p[0] for p in pairs], "to": [p[1] for p in pairs], **more})
    return nodes, edges


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        (["ab", "bc"], {}, None),
        (["ab", "ba", "bc", "cb"], {}, None),  # each edge both ways
        (["ab", "ba", "bc"], {}, None),  # some of them
        (["ab", "ba", "bc"], {"directed": True}, None),
        (["ab", "ab", "bc"], {}, "the edge table: 1 repeated edge merged; if"),
        (["ab", "ab", "ab", "ba"], {}, "2 repeated edges merged"),
        (["ab", "ab", "ba"], {"directed": True}, "1 repeated edge merged"),
        (
            ["ab", "cc"],
            {},
            "the edge table: 1 self-loop left out; if they carry information, add it",
        ),
        (["ab", "cc", "cc", "aa", "ab"], {}, "3 self-loops left out and 1 repeated edge merged"),
        (["ab", "cc", "cc"], {"directed": True}, "2 self-loops left out;"),
    ],
)
def test_from_frames_loops_and_repeated_edges_warn(
    pairs: list[str], options: dict[str, Any], message: str
) -> None:
    messages = quiet(lambda: from_frames(*table(*pairs), target="t", **options))
    assert [message in sentence for sentence in messages] == ([] if message is None else [True])


def test_from_frames_repeated_weighted_edges_warn_of_average() -> None:
    nodes, edges = table("ab", "ab", km=[1.0, 3.0])
    (sentence,) = quiet(lambda: from_frames(nodes, edges, target="t", edge_weight="km"))
    assert "1 repeated edge merged, weights averaged" in sentence


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("pairs", [["ab", "ab", "ba", "cc"], ["ab", "ba"], ["ab", "cb", "cb"]])
def test_convert_graph_warns_as_from_frames_does(
    tmp_path: Path, pairs: list[str], directed: bool
) -> None:
    nodes, edges = table(*pairs)
    nodes.to_csv(tmp_path / "n.csv", index=False)
    edges.to_csv(tmp_path / "e.csv", index=False)
    files = (tmp_path / "n.csv", tmp_path / "e.csv", tmp_path / "g")
    got = quiet(lambda: convert_graph(*files, target="t", directed=directed))
    assert got == quiet(lambda: from_frames(nodes, edges, target="t", directed=directed))


def test_from_networkx_parallel_edges_warn() -> None:
    graph = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    nx.set_node_attributes(graph, {i: {"v": i, "t": i / 2} for i in range(3)})
    assert len(quiet(lambda: from_networkx(graph, target="t"))) == 1


def test_data_warnings_example_tables_none() -> None:
    stations, roads = example_tables(nodes=200)
    data = from_frames(stations, roads, target="pollution")
    assert quiet(lambda: QpiGNN(epochs=1, members=5).fit(data)) == []


# --- numbers that are no amounts ---


def measured(**columns: Any) -> Data:
    """Sixty nodes in two rings with named columns of numbers."""
    x = torch.tensor(np.column_stack([*columns.values()]))
    return two_rings(x=x, feature_names=[*columns])


NORMAL = np.random.default_rng(0).normal(20, 5, size=60)


@pytest.mark.parametrize("number", [-9.0, -99.0, -999.0, 9999.0, 99999.0])
def test_data_warnings_sentinel_features_reported(number: float) -> None:
    wet = NORMAL.copy()
    wet[[3, 40]] = number
    if number == -9:
        wet = wet / 100  # it must lie far from all others
        wet[[3, 40]] = number
    (sentence,) = messages_of(measured(wet=wet, dry=NORMAL))
    assert sentence.startswith(f"feature column 'wet' is {number:g} on 2 nodes and far from that")


def test_data_warnings_sentinel_targets_reported() -> None:
    y = torch.from_numpy(NORMAL.copy())
    y[5] = -999
    (sentence,) = messages_of(two_rings(y=y))
    assert sentence.startswith("the target is -999 on 1 node and far from that elsewhere")


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(-1200, 999, 60),  # it is simply the largest
        np.r_[np.arange(-30, 29), 99.0],  # the others spread wider than it is away
        np.full(60, 999.0),  # no other number
        np.r_[np.full(59, 1.0), -999.0],  # one other number: two values are not a scale
    ],
)
def test_data_warnings_ordinary_numbers_none(values: Any) -> None:
    assert messages_of(measured(v=values, w=NORMAL)) == []


def test_data_warnings_far_target_reported() -> None:
    y = torch.from_numpy(NORMAL.copy())
    y[7] = 1e12
    (sentence,) = messages_of(two_rings(y=y, node_id=[f"s{i}" for i in range(60)]))
    assert sentence.startswith("the target 1e+12 of node 's7' is over 1,000 times as far from")


def test_data_warnings_heavy_tails_none() -> None:
    rng = np.random.default_rng(0)
    count = 0
    for _ in range(200):
        count += len(messages_of(two_rings(y=torch.from_numpy(np.exp(2 * rng.normal(size=60))))))
    assert count == 0


@pytest.mark.parametrize("name", ["zip", "ZIP Code", "area_code", "FIPS", "naics-2017"])
def test_data_warnings_code_columns_reported(name: str) -> None:
    codes = np.random.default_rng(0).integers(100, 900, size=60).astype(float)
    (sentence,) = messages_of(measured(**{name: codes}, size=NORMAL))
    assert sentence.startswith(f"feature column {name!r}: codes are used as numbers")


@pytest.mark.parametrize(
    ("blank", "expected"),
    [
        (range(40, 100), ["column 'z' (60): blank on so many nodes"]),  # none of them is labelled
        (range(0, 100, 2), []),  # as often blank on labelled nodes as on others
        (range(85, 100), []),  # too few to tell: six of fifteen would be labelled by chance
    ],
    ids=["unlabelled", "independent", "few"],
)
def test_data_warnings_informative_blanks_reported(blank: range, expected: list[str]) -> None:
    draw = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": range(100), "z": draw.random(100), "t": draw.random(100)})
    nodes.loc[list(blank), "z"] = np.nan
    nodes.loc[40:, "t"] = np.nan
    edges = pd.DataFrame({"from": range(100), "to": np.roll(range(100), -1)})
    data = from_frames(nodes, edges, target="t", missing="impute")
    messages = [text for text in data_warnings(data, ~data.y.isnan()) if "blank" in text]
    assert [text[: len(start)] for text, start in zip(messages, expected, strict=True)] == expected


def test_data_warnings_amounts_and_indicators_none() -> None:
    whole = np.arange(60.0)
    assert messages_of(measured(encoder=whole, zipper=whole % 7, barcode_rate=NORMAL)) == []
    assert messages_of(measured(zip=NORMAL)) == []  # not whole numbers
    assert messages_of(measured(code=whole % 2, size=NORMAL)) == []  # yes or no
