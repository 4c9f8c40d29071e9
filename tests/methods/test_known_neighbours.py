"""The second stage of a fit: where known neighbours help, whom they reach, and what it never uses.

A node's own target must not reach its interval by way of its neighbours, and no target is read from
the graph that is predicted.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from canary import signs, watch
from correlated import (
    LABELLED,
    NODES,
    changed,
    graph,
    make,
    same,
    score_on_test,
    with_and_without,
    without_neighbours,
)
from qpignn.calibration.neighbours import KnownErrors
from qpignn.errors import QpignnWarning
from qpignn.methods.known_nodes import KnownNodes
from qpignn.methods.net import NetMethod
from qpignn.training.weights import FlatWeights

SEEDS = range(5)


@pytest.fixture(scope="module")
def data() -> Data:
    return graph()


@pytest.fixture(scope="module")
def model(data: Data) -> NetMethod:
    return make().fit(data)


def distances(data: Data, start: list[int]) -> np.ndarray:
    """Return the number of steps from the nearest of some nodes, whatever an edge's direction."""
    edges = nx.Graph(data.edge_index.t().tolist())
    edges.add_nodes_from(range(data.x.shape[0]))
    steps = np.full(data.x.shape[0], np.inf)
    for node, length in nx.multi_source_dijkstra_path_length(edges, set(start)).items():
        steps[node] = length
    return steps


def given_nodes(data: Data) -> list[int]:
    return data.train_mask.nonzero().flatten().tolist()


# ---- where it is used


def test_fit_alike_errors_of_neighbours_gives_better_test_intervals() -> None:
    hits: list[float] = []
    for seed in SEEDS:
        data = graph(seed)
        model = make(seed=seed).fit(data)
        assert model.known_neighbours_ is not None
        better, plain = with_and_without(model, data)
        assert score_on_test(better, data) < 0.8 * score_on_test(plain, data)
        test = data.test_mask.numpy()
        assert better.width[test].mean() < 0.8 * plain.width[test].mean()
        hits += better.select(test).covers(data.y[test]).tolist()
    # 480 nodes, errors of 0.014; more than wanted, because the nets that predict a given node's
    # neighbours were trained on that node, so that held-out nodes gain less than new ones
    assert 0.86 < np.mean(hits) < 0.98


def test_fit_independent_errors_of_neighbours_changes_no_bit() -> None:
    for seed in SEEDS:
        data = graph(seed, alike=False)
        model, off = (make(seed=seed, neighbours=one).fit(data) for one in ("auto", "off"))
        assert model.known_neighbours_ is None
        intervals = model.predict_interval(data)
        assert same(intervals, off.predict_interval(data))
        assert intervals.known_neighbours is None
        assert intervals.width_without is None


def test_fit_few_given_nodes_or_no_edges_has_no_second_stage(data: Data) -> None:
    few = data.train_mask & (data.train_mask.cumsum(0) <= 99)
    assert make().fit(data, few).known_neighbours_ is None
    alone = changed(data, edge_index=torch.empty(2, 0, dtype=torch.long))
    assert make().fit(alone).known_neighbours_ is None


def test_fit_one_member_or_two_has_no_second_stage(data: Data) -> None:
    """Given units that some member held out are too few to train the others on."""
    for members in (1, 2):
        assert make(members=members).fit(data).known_neighbours_ is None


@pytest.mark.parametrize("steps", [0, 7])
def test_fit_interrupted_in_the_second_stage_keeps_the_nets(
    steps: int, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, done, first = FlatWeights.step, 0, len(make(neighbours="off").fit(data).history_)

    def step(weights: FlatWeights) -> None:
        nonlocal done
        if done == first + steps:
            raise KeyboardInterrupt
        done += 1
        plain(weights)

    monkeypatch.setattr(FlatWeights, "step", step)
    with pytest.warns(QpignnWarning, match=f"interrupted after {first + steps} of at most 120"):
        model = make().fit(data)
    assert model.known_neighbours_ is None
    monkeypatch.undo()
    with pytest.warns(QpignnWarning, match="interrupted"):
        intervals = model.predict_interval(data)
    assert same(intervals, make(neighbours="off").fit(data).predict_interval(data))


# ---- whom it reaches


def other_ids(data: Data) -> Data:
    return changed(data, node_id=[f"other {i}" for i in range(NODES)])


def no_ids(data: Data) -> Data:
    return changed(data, node_id=None)


@pytest.mark.parametrize("other", [other_ids, no_ids])
def test_predict_nodes_that_are_not_those_of_the_fit_changes_no_bit(
    other: Any, data: Data, model: NetMethod
) -> None:
    better, plain = with_and_without(model, other(data))
    assert same(better, plain)
    assert (better.known_neighbours == 0).all()
    assert better.width_without == pytest.approx(better.width)


def test_predict_without_ids_uses_known_nodes_in_their_rows_only() -> None:
    data = graph(ids=False)
    model = make().fit(data)
    here, plain = with_and_without(model, data)
    assert not same(here, plain)
    moved, plain = with_and_without(model, changed(data, x=data.x.roll(1, 0)))
    assert same(moved, plain)


def test_predict_nodes_beyond_two_steps_of_known_ones_changes_no_bit(
    data: Data, model: NetMethod
) -> None:
    """Among them the ring apart; and all others do change."""
    off = make(neighbours="off").fit(data)
    better, plain = with_and_without(model, data)
    assert same(plain, off.predict_interval(data))
    # a given node has no known neighbour where all within two steps of it are not given
    around = np.array([_others_within_two_steps(data, node) for node in range(NODES)])
    assert around[LABELLED:].sum() == 0
    assert same(better, plain, ~around)
    assert (better.upper != plain.upper)[around].all()


def _others_within_two_steps(data: Data, node: int) -> bool:
    steps = distances(data, [node])
    return bool(((steps > 0) & (steps <= 2) & data.train_mask.numpy()).any())


# ---- what it never uses


@pytest.fixture(scope="module", params=[False, True], ids=["unweighted", "weighted"])
def messy(request: pytest.FixtureRequest) -> tuple[Data, NetMethod]:
    """Edges in one or both directions, some repeated, and self-loops; and a fit."""
    data, draw = graph(seed=1), torch.Generator().manual_seed(0)
    source, target = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    there, back = (torch.rand(len(source), generator=draw) < 0.6 for _ in range(2))
    there |= ~back
    one = torch.stack([source[there], target[there]])
    other = torch.stack([target[back], source[back]])
    loops = torch.arange(NODES).expand(2, -1)
    edges = torch.cat([one, one[:, ::3], other, other[:, ::4], loops, loops[:, ::2]], dim=1)
    weight = 0.1 + 3 * torch.rand(edges.shape[1], generator=draw)
    data = changed(data, edge_index=edges, edge_weight=weight if request.param else None)
    model = make().fit(data)
    assert model.known_neighbours_ is not None
    return data, model


def with_other_target(model: NetMethod, data: Data, node: int) -> NetMethod:
    """Return the same nets with another stored target of one given node."""
    second = model.known_neighbours_
    assert second is not None
    place = second.nodes.places_in(data)[node]
    is_given, error, target, size = (part.copy() for part in vars(second.errors).values())
    error[place], target[place], size[place] = error[place] + 4, target[place] + 4, size[place] + 4
    other = copy.copy(model)
    other.known_neighbours_ = replace(second, errors=KnownErrors(is_given, error, target, size))
    return other


def test_own_target_reaches_nodes_within_two_steps_but_never_itself(
    messy: tuple[Data, NetMethod],
) -> None:
    data, model = messy
    before = model.predict_interval(data)
    for node in given_nodes(data)[::6]:
        after = with_other_target(model, data, node).predict_interval(data)
        steps = distances(data, [node])
        one, two, beyond = steps == 1, steps == 2, steps > 2
        for name in ("prediction", "lower", "upper"):
            old, new = getattr(before, name), getattr(after, name)
            assert new[node] == pytest.approx(old[node], rel=1e-6, abs=1e-6)
            assert np.array_equal(new[beyond], old[beyond])
            assert (np.abs(new - old)[one] > 1e-4).all()
            assert (np.abs(new - old)[two] > 1e-4).mean() > 0.9 or not two.any()


def test_predict_never_reads_targets_of_the_graph(data: Data, model: NetMethod) -> None:
    intervals = model.predict_interval(data)
    draw = torch.Generator().manual_seed(3)
    noise = 1e6 * torch.randn(NODES, generator=draw, dtype=torch.float64)
    for y in (None, torch.full_like(data.y, torch.nan), data.y + 1, noise):
        assert same(model.predict_interval(changed(data, y=y)), intervals)


@pytest.mark.parametrize("name", ["qpignn", "evidential"])
def test_fit_with_a_second_stage_uses_no_hidden_target(
    name: str, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    saw = watch(monkeypatch)
    assert make(name).fit(data).known_neighbours_ is not None
    assert signs(lambda: make(name), data, data.test_mask, saw) == set()


def test_fit_node_of_weight_zero_is_not_known_to_its_neighbours(data: Data) -> None:
    node = given_nodes(data)[0]
    weight = torch.ones(NODES)
    weight[node] = 0
    y = data.y.clone()
    y[node] += 50
    graphs = [changed(data, node_weight=weight), changed(data, node_weight=weight, y=y)]
    models = [make().fit(one) for one in graphs]
    assert all(one.known_neighbours_ is not None for one in models)
    assert same(*(one.predict_interval(data) for one in models))


# ---- what it reports


def test_known_neighbours_counts_each_given_neighbour_once(data: Data, model: NetMethod) -> None:
    """Nodes 0, 1 and 2 are given, 3 and 4 are new. 0 → 1 three times, 1 ⇄ 3, 2 ⇄ 2, 2 → 3."""
    first, second, third, *_ = given_nodes(data)
    ids = [f"n{first}", f"n{second}", f"n{third}", "new", "newer"]
    edges = torch.tensor([[0, 0, 0, 1, 3, 2, 2], [1, 1, 1, 3, 1, 2, 3]])
    small = Data(x=data.x[:5], edge_index=edges, node_id=ids)
    intervals = model.predict_interval(small)
    assert intervals.known_neighbours.tolist() == [1, 1, 0, 2, 0]
    # 2 reaches 1 by way of 3; nothing leads to 4
    differs = intervals.upper != without_neighbours(model).predict_interval(small).upper
    assert differs.tolist() == [True, True, True, True, False]


def test_known_neighbours_of_weighted_edges_adds_weights_over_those_between_given_nodes(
    data: Data,
) -> None:
    weighted = changed(data, edge_weight=torch.ones(data.edge_index.shape[1]))
    model = make().fit(weighted)
    first, second, *_ = given_nodes(data)
    edges = torch.tensor([[0, 0, 1, 2, 1, 1], [1, 1, 0, 1, 2, 1]])
    # 0 – 1: 1 + 2 one way, 1 the other; 1 – 2: 1 and 5; the self-loop does not count
    small = Data(
        x=data.x[:3],
        edge_index=edges,
        edge_weight=torch.tensor([1.0, 2, 1, 1, 5, 100]),
        node_id=[f"n{first}", f"n{second}", "new"],
    )
    counts = model.predict_interval(small).known_neighbours
    assert counts == pytest.approx([1, 1, 5 / 3])


def test_width_without_is_the_width_of_the_same_fit_without_neighbours(data: Data) -> None:
    model = make(novelty="off", confidence_level=[0.5, 0.9]).fit(data)
    for level in (0.5, 0.9):
        better, plain = with_and_without(model, data, confidence_level=level)
        assert np.array_equal(better.width_without, plain.width)
        assert not np.array_equal(better.width_without, better.width)
        assert (better.epistemic >= 0).all()
        assert (better.epistemic <= better.width).all()


def test_one_sided_bounds_beyond_what_was_learnt_are_wider_with_neighbours_and_without() -> None:
    data = graph()
    model = make(side="upper").fit(data)
    assert model.known_neighbours_ is not None
    moved = changed(data, x=data.x.clone())
    moved.x[0, 0] = 50.0
    before, after = (model.predict_interval(one) for one in (data, moved))
    assert after.novelty[0] > 1
    assert after.upper[0] - after.prediction[0] > before.upper[0] - before.prediction[0]
    assert (after.lower == -np.inf).all()
    assert (after.width_without == np.inf).all()


def test_heavy_edge_between_other_nodes_changes_no_interval(data: Data) -> None:
    """Nodes of the ring have no given neighbours, so their edges say nothing about usual ones."""
    weight = torch.rand(data.edge_index.shape[1], generator=torch.Generator().manual_seed(0)) + 0.5
    weighted = changed(data, edge_weight=weight)
    model = make().fit(weighted)
    assert model.known_neighbours_ is not None
    heavy = weight.clone()
    heavy[(data.edge_index >= LABELLED).all(dim=0).nonzero()[0]] = 1e6
    wanted = model.predict_interval(weighted)
    intervals = model.predict_interval(changed(data, edge_weight=heavy))
    assert same(intervals, wanted, np.arange(LABELLED))
    assert np.array_equal(intervals.known_neighbours, wanted.known_neighbours)


def test_ids_that_are_equal_as_text_are_not_known_nodes(data: Data) -> None:
    nodes = KnownNodes.of(Data(x=torch.zeros(2, 1), node_id=[1, 2]), torch.tensor([True, True]))
    other = Data(x=torch.zeros(3, 1), node_id=[1, "1", 2])
    assert nodes.places_in(other).tolist() == [-1, -1, 1]


def test_weights_of_half_precision_are_used(data: Data) -> None:
    weight = torch.ones(data.edge_index.shape[1], dtype=torch.bfloat16)
    model = make(epochs=2).fit(changed(data, edge_weight=weight))
    assert np.isfinite(model.predict_interval(changed(data, edge_weight=weight)).width).all()
