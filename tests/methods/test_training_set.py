"""What nets are trained on, and which units they hold out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from qpignn import load_dataset, make_method
from qpignn.encoders.sage import SageEncoder
from qpignn.methods.training_set import Batch, TrainingSet, assign_folds


@pytest.fixture
def data() -> Data:
    return load_dataset("basic", nodes=100)


def training_set(held_out: list[list[int]], batch: Batch | None = None) -> TrainingSet:
    """Five nodes in a row, targets 0 to 4, with weights 1 to 5."""
    x = torch.arange(5.0).unsqueeze(1)
    graph = SageEncoder.prepare(x, torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    masks = torch.tensor(held_out, dtype=torch.bool)
    return TrainingSet(graph, torch.arange(5.0), torch.arange(1.0, 6), masks, batch)


def test_assign_folds_ten_members_hold_out_each_unit_twice() -> None:
    held_out = assign_folds(23, 10, seed=0)
    assert held_out.shape == (10, 23)
    for division in (held_out[:5], held_out[5:]):
        assert (division.sum(dim=0) == 1).all()
        assert division.sum(dim=1).min() >= 4
    assert not torch.equal(held_out[:5], held_out[5:])
    assert torch.equal(held_out, assign_folds(23, 10, seed=0))
    assert not torch.equal(held_out, assign_folds(23, 10, seed=1))
    assert not assign_folds(4, 10, seed=0).any()  # four units cannot be divided into fifths


@pytest.mark.parametrize("members", [1, 2, 3, 4, 7])
def test_assign_folds_any_number_of_members_each_holds_out_another_fifth(members: int) -> None:
    held_out = assign_folds(100, members, seed=0)
    assert held_out.sum(dim=1).tolist() == [20] * members
    assert held_out[:5].sum(dim=0).max() == 1  # five members hold out different units
    assert torch.equal(held_out, assign_folds(100, 10, seed=0)[:members])


def test_trained_leaves_out_units_that_all_members_hold_out() -> None:
    part = training_set([[0, 0, 0, 1, 1]]).trained()
    assert part.y.tolist() == [0, 1, 2]
    assert part.weight.tolist() == [1, 2, 3]
    assert part.graph.rows == 3
    assert not part.held_out.any()


def test_trained_with_batches_leaves_them_out_too() -> None:
    part = training_set([[0, 0, 0, 1, 1]], Batch(2, torch.tensor([4, 3, 2, 1, 0]))).trained()
    assert part.batch is not None
    assert part.batch.positions.tolist() == [4, 3, 2]
    assert (part.y.tolist(), part.graph.rows) == ([0, 1, 2], 5)


@pytest.mark.parametrize(
    "held_out",
    [[[0, 0, 0, 0, 0]], [[1, 0, 0, 0, 0]], [[0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]],
    ids=["none", "not last", "not by all"],
)
def test_trained_otherwise_returns_the_set_itself(held_out: list[list[int]]) -> None:
    whole = training_set(held_out)
    assert whole.trained() is whole


def encoder(members: int = 1) -> SageEncoder:
    return SageEncoder(1, 4, 2, generator=torch.Generator(), members=members)


def test_watched_gives_each_member_the_units_it_holds_out() -> None:
    """The second member has one unit fewer: its row is padded, without weight."""
    watched = training_set([[0, 1, 0, 1, 0], [0, 0, 1, 0, 0]]).watched(encoder(members=2))
    assert watched.y[0].tolist() == [1, 3]
    assert watched.y[1, 0] == 2
    assert watched.weight[0].tolist() == [2, 4]
    assert watched.held_out.tolist() == [[True, True], [True, False]]
    assert watched.graph.rows == 2


def test_watched_with_batches_returns_the_set_itself() -> None:
    whole = training_set([[0, 0, 0, 1, 1]], Batch(2, torch.arange(5)))
    assert whole.watched(encoder()) is whole


METHODS: list[tuple[str, dict[str, Any]]] = [
    ("qpignn", {}),
    ("qpignn", {"lambda_width": 0.05}),
    ("sqr", {}),
    ("mc_dropout", {}),
    ("deep_ensemble", {"layers": 3}),
    ("evidential", {"layers": 1}),
]


@pytest.mark.parametrize(("name", "settings"), METHODS, ids=str)
def test_held_out_score_with_watched_units_equals_that_of_the_whole_graph(
    name: str, settings: dict[str, Any], data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.node_weight = torch.linspace(0.5, 2, 100)

    def scores() -> dict[int, float]:
        settled = {"epochs": 10, "dtype": "float64", **settings}
        return make_method(name, **settled).fit(data).history_.held_out

    actual = scores()
    monkeypatch.setattr(TrainingSet, "watched", lambda self, encoder: self)
    assert actual == pytest.approx(scores(), rel=1e-9)
    assert [*actual] == [4, 9]


def test_assign_folds_groups_are_held_out_together() -> None:
    groups = torch.arange(60) // 2 % 30
    held_out = assign_folds(60, 5, seed=0, groups=groups)
    assert (held_out.sum(dim=0) == 1).all()
    assert torch.equal(held_out[:, ::2], held_out[:, 1::2])
