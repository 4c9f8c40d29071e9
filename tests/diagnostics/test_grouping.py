from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn.diagnostics.grouping import (
    by_category,
    by_column,
    by_community,
    by_degree,
    by_distance,
    by_known_neighbours,
    by_number,
)


def labels_of(grouping: object) -> list[str | None]:
    return [None if i < 0 else grouping.labels[i] for i in grouping.member]  # type: ignore[attr-defined]


def test_by_number_cuts_at_quantiles_of_held_out_nodes() -> None:
    values = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1000])
    held_out = np.arange(11) < 10
    grouping = by_number("size", values, held_out, "nodes of size {}", shares=(0.5,))
    assert grouping.labels == ["1 to 5", "6 to 1,000"]
    assert grouping.descriptions == ["nodes of size 1 to 5", "nodes of size 6 to 1,000"]
    assert list(grouping.member) == [0] * 5 + [1] * 6


def test_by_number_missing_values_form_their_own_group() -> None:
    values = np.array([1.0, np.nan, 2.0, np.inf])
    held_out = np.ones(4, dtype=bool)
    grouping = by_number(
        "gap", values, held_out, "{}", shares=(0.5,), without=("none", "nodes without a gap")
    )
    assert labels_of(grouping) == ["1", "none", "2", "none"]
    assert grouping.descriptions[-1] == "nodes without a gap"


def test_by_number_with_cuts_leaves_out_groups_without_held_out_nodes() -> None:
    values = np.array([0.0, 1.0, 2.0, 5.0, 9.0])
    grouping = by_number("n", values, values != 2, "n of {}", cuts=(0, 1, 4))
    assert labels_of(grouping) == ["0", "1", None, "5 to 9", "5 to 9"]


def test_by_number_values_equal_up_to_rounding_are_one_group() -> None:
    values = 0.1 + 1e-16 * np.arange(100)
    assert len(np.unique(values)) > 1
    grouping = by_number("prediction", values, np.ones(100, dtype=bool), "{}")
    assert len(grouping.labels) == 1
    assert (grouping.member == 0).all()


def test_by_category_many_categories_are_merged() -> None:
    categories = [f"w{i:02d}" for i in range(20) for _ in range(20 - i)] + ["unseen"]
    held_out = np.arange(len(categories)) < len(categories) - 1
    grouping = by_category("kind", categories, held_out, "nodes with {}")
    assert grouping.labels == [f"w{i:02d}" for i in range(11)] + ["the other 9"]
    assert grouping.member[0] == 0
    assert grouping.member[-2] == 11
    assert grouping.member[-1] == -1  # no held_out node has it


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["b", "a", "b", None], ["a", "b", "blank"]),
        ([3.0, 1.0, 3.0, np.nan], ["1", "3", "blank"]),
        ([True, False, True, True], ["False", "True"]),
    ],
)
def test_by_column_few_values_are_categories(values: list[object], labels: list[str]) -> None:
    grouping = by_column("col", np.array(values, dtype=object), np.ones(4, dtype=bool))
    assert grouping.labels == labels


def test_by_degree_highest_group_shows_its_share() -> None:
    hub = 0
    ends = [(hub, i) for i in range(1, 20)]
    edges = torch.tensor(ends + [(b, a) for a, b in ends]).T
    data = Data(x=torch.zeros(20, 1), edge_index=edges)
    grouping = by_degree(data, np.ones(20, dtype=bool))
    assert grouping.labels == ["1", "19, top 5 %"]
    assert grouping.descriptions[-1] == "nodes with degree 19 (the highest 5 %)"


def test_by_distance_path_counts_edges(path_graph: Data) -> None:
    given = np.array([True, False, False, False])
    grouping = by_distance(path_graph, given, ~given)
    assert labels_of(grouping)[1:] == ["1 edge", "2 edges", "3 or more edges"]
    path_graph.edge_index = path_graph.edge_index[:, :2]
    assert labels_of(by_distance(path_graph, given, ~given))[2:] == ["no path", "no path"]


def test_by_known_neighbours_counts_form_five_groups() -> None:
    grouping = by_known_neighbours(np.array([0.0, 1, 2, 3, 4, 5, 31]), np.ones(7, dtype=bool))
    assert labels_of(grouping) == ["0", "1", "2", "3 to 4", "3 to 4", "5 to 31", "5 to 31"]
    assert grouping.descriptions == [
        "nodes with no neighbour whose target is known",
        "nodes with 1 neighbour whose target is known",
        "nodes with 2 neighbours whose target is known",
        "nodes with 3 to 4 neighbours whose target is known",
        "nodes with 5 to 31 neighbours whose target is known",
    ]


def test_by_known_neighbours_weights_give_fractions() -> None:
    counts = np.array([0.0, 0.4, 1 + 1e-15, 1.1, 7.5])  # rounding of a sum of weights
    grouping = by_known_neighbours(counts, np.ones(5, dtype=bool))
    assert labels_of(grouping) == ["0.00", "0.40 to 1.00", "0.40 to 1.00", "1.10", "7.50"]


def test_by_community_names_communities_after_highest_degree() -> None:
    cliques = [range(12), range(12, 24)]
    pairs = [(a, b) for clique in cliques for a in clique for b in clique if a != b]
    data = Data(x=torch.zeros(25, 1), edge_index=torch.tensor([*pairs, (3, 15), (15, 3)]).T)
    data.node_id = np.array([f"n{i}" for i in range(25)], dtype=object)
    grouping = by_community(data, np.ones(25, dtype=bool))
    assert sorted(grouping.labels[:2]) == ["1 (around n3)", "2 (around n15)"]
    assert grouping.labels[2] == "smaller ones"
    assert len({*grouping.member[:12]}) == len({*grouping.member[12:24]}) == 1
