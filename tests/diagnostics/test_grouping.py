from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn.diagnostics.grouping import (
    by_column,
    by_community,
    by_degree,
    by_distance,
    by_number,
    by_word,
)


def labels_of(grouping: object) -> list[str | None]:
    return [None if i < 0 else grouping.labels[i] for i in grouping.member]  # type: ignore[attr-defined]


def test_numbers_are_cut_at_quantiles_of_the_judged_nodes() -> None:
    values = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1000])
    judged = np.arange(11) < 10
    found = by_number("size", values, judged, "nodes of size {}", shares=(0.5,))
    assert found.labels == ["1 to 5", "6 to 1,000"]
    assert found.who == ["nodes of size 1 to 5", "nodes of size 6 to 1,000"]
    assert list(found.member) == [0] * 5 + [1] * 6


def test_nodes_without_a_number_stand_alone() -> None:
    values = np.array([1.0, np.nan, 2.0, np.inf])
    judged = np.ones(4, dtype=bool)
    found = by_number("gap", values, judged, "{}", shares=(0.5,), without=("none", "lonely"))
    assert labels_of(found) == ["1", "none", "2", "none"]
    assert found.who[-1] == "lonely"


def test_by_number_values_equal_up_to_rounding_are_one_group() -> None:
    values = 0.1 + 1e-16 * np.arange(100)
    assert len(np.unique(values)) > 1
    found = by_number("prediction", values, np.ones(100, dtype=bool), "{}")
    assert len(found.labels) == 1
    assert (found.member == 0).all()


def test_many_words_are_put_together() -> None:
    words = [f"w{i:02d}" for i in range(20) for _ in range(20 - i)] + ["unseen"]
    judged = np.arange(len(words)) < len(words) - 1
    found = by_word("word", words, judged, "nodes with {}")
    assert found.labels == [f"w{i:02d}" for i in range(11)] + ["the other 9"]
    assert found.member[0] == 0
    assert found.member[-2] == 11
    assert found.member[-1] == -1  # no judged node has it


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["b", "a", "b", None], ["a", "b", "blank"]),
        ([3.0, 1.0, 3.0, np.nan], ["1", "3", "blank"]),
        ([True, False, True, True], ["False", "True"]),
    ],
)
def test_columns_of_words_or_few_values_are_taken_as_they_are(
    values: list[object], labels: list[str]
) -> None:
    found = by_column("col", np.array(values, dtype=object), np.ones(4, dtype=bool))
    assert found.labels == labels


def test_the_best_connected_tenth_is_named() -> None:
    hub = 0
    ends = [(hub, i) for i in range(1, 20)]
    edges = torch.tensor(ends + [(b, a) for a, b in ends]).T
    data = Data(x=torch.zeros(20, 1), edge_index=edges)
    found = by_degree(data, np.ones(20, dtype=bool))
    assert found.labels == ["1", "19, top 5 %"]
    assert found.who[-1] == "nodes with degree 19 (the highest 5 %)"


def test_distance_from_the_given_nodes(path_graph: Data) -> None:
    given = np.array([True, False, False, False])
    found = by_distance(path_graph, given, ~given)
    assert labels_of(found)[1:] == ["1 edge", "2 edges", "3 or more edges"]
    path_graph.edge_index = path_graph.edge_index[:, :2]
    assert labels_of(by_distance(path_graph, given, ~given))[2:] == ["no path", "no path"]


def test_communities_are_named_after_their_hub() -> None:
    cliques = [range(12), range(12, 24)]
    pairs = [(a, b) for clique in cliques for a in clique for b in clique if a != b]
    data = Data(x=torch.zeros(25, 1), edge_index=torch.tensor([*pairs, (3, 15), (15, 3)]).T)
    data.node_id = np.array([f"n{i}" for i in range(25)], dtype=object)
    found = by_community(data, np.ones(25, dtype=bool))
    assert sorted(found.labels[:2]) == ["1 (around n3)", "2 (around n15)"]
    assert found.labels[2] == "the smaller ones"
    assert len({*found.member[:12]}) == len({*found.member[12:24]}) == 1
