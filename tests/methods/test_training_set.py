"""What a fit sees: who is trained on what, and judged by what."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from qpignn import load_dataset, make_method
from qpignn.encoders.sparse import prepare
from qpignn.methods.training_set import Batch, Seen, fold_turns


@pytest.fixture
def data() -> Data:
    return load_dataset("basic", nodes=100)


def seen(held_out: list[list[int]], batch: Batch | None = None) -> Seen:
    """Five nodes in a row, targets 0 to 4, with weights 1 to 5."""
    x = torch.arange(5.0).unsqueeze(1)
    graph = prepare(x, torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    turns = torch.tensor(held_out, dtype=torch.bool)
    return Seen(graph, torch.arange(5.0), torch.arange(1.0, 6), turns, batch)


def test_members_take_turns_and_each_node_is_held_out_once_a_deal() -> None:
    held_out = fold_turns(23, 10, seed=0)
    assert held_out.shape == (10, 23)
    for deal in (held_out[:5], held_out[5:]):
        assert (deal.sum(dim=0) == 1).all()
        assert deal.sum(dim=1).min() >= 4
    assert not torch.equal(held_out[:5], held_out[5:])
    assert torch.equal(held_out, fold_turns(23, 10, seed=0))
    assert not torch.equal(held_out, fold_turns(23, 10, seed=1))
    assert not fold_turns(4, 10, seed=0).any()  # four nodes cannot be dealt in five


def test_nodes_nobody_trains_on_are_left_out() -> None:
    part = seen([[0, 0, 0, 1, 1]]).trained()
    assert part.y.tolist() == [0, 1, 2]
    assert part.weight.tolist() == [1, 2, 3]
    assert part.graph.rows == 3
    assert not part.held_out.any()


def test_they_are_left_out_of_batches_too() -> None:
    part = seen([[0, 0, 0, 1, 1]], Batch(2, torch.tensor([4, 3, 2, 1, 0]))).trained()
    assert part.batch is not None
    assert part.batch.positions.tolist() == [4, 3, 2]
    assert (part.y.tolist(), part.graph.rows) == ([0, 1, 2], 5)


@pytest.mark.parametrize(
    "held_out",
    [[[0, 0, 0, 0, 0]], [[1, 0, 0, 0, 0]], [[0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]],
    ids=["nobody", "not last", "not by all"],
)
def test_others_stay(held_out: list[list[int]]) -> None:
    whole = seen(held_out)
    assert whole.trained() is whole


def test_every_member_is_judged_by_its_own() -> None:
    """The second has one node fewer: its row is filled up, and that counts nothing."""
    watched = seen([[0, 1, 0, 1, 0], [0, 0, 1, 0, 0]]).watched(hidden=4)
    assert watched.y[0].tolist() == [1, 3]
    assert watched.y[1, 0] == 2
    assert watched.weight[0].tolist() == [2, 4]
    assert watched.held_out.tolist() == [[True, True], [True, False]]
    assert watched.graph.rows == 2


def test_in_batches_all_are_run() -> None:
    whole = seen([[0, 0, 0, 1, 1]], Batch(2, torch.arange(5)))
    assert whole.watched(hidden=4) is whole


METHODS: list[tuple[str, dict[str, Any]]] = [
    ("qpignn", {}),
    ("qpignn", {"lambda_width": 0.05}),
    ("sqr", {}),
    ("mc_dropout", {}),
    ("deep_ensemble", {"layers": 3}),
    ("evidential", {"layers": 1}),
]


@pytest.mark.parametrize(("name", "settings"), METHODS, ids=str)
def test_the_score_is_that_of_the_whole_graph(
    name: str, settings: dict[str, Any], data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.node_weight = torch.linspace(0.5, 2, 100)

    def scores() -> dict[int, float]:
        settled = {"epochs": 10, "dtype": "float64", **settings}
        return make_method(name, **settled).fit(data).history_.held_out

    found = scores()
    monkeypatch.setattr(Seen, "watched", lambda self, hidden: self)
    assert found == pytest.approx(scores(), rel=1e-9)
    assert [*found] == [4, 9]
