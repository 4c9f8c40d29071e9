from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qpignn import QpiGNN, load_dataset, make_method, make_view, open_graph, split_nodes
from qpignn.data.mapped import write_graph
from qpignn.errors import SettingError
from qpignn.methods import training_set
from qpignn.methods.catalog import ALL
from qpignn.metrics import picp
from qpignn.runtime import distributed


@given(st.integers(16, 500), st.integers(16, 500), st.integers(0, 9), st.integers(0, 3))
def test_batch_positions_hold_every_unit_once_in_equal_batches(
    nodes: int, size: int, seed: int, epoch: int
) -> None:
    parts = [*training_set.batch_positions(nodes, size, seed, epoch)]
    assert sorted(torch.cat(parts).tolist()) == [*range(nodes)]
    assert max(map(len, parts)) <= size
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("several", [2, 3])
def test_ranks_divide_the_batches_of_one(several: int, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [{*part.tolist()} for part in training_set.batch_positions(100, 40, seed=1, epoch=2)]
    monkeypatch.setattr(distributed, "world_size", lambda: several)
    shares = []
    for rank in range(several):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        shares.append(
            [{*part.tolist()} for part in training_set.batch_positions(100, 40, seed=1, epoch=2)]
        )
    for whole, parts in zip(alone, zip(*shares, strict=True), strict=True):
        assert set.union(*parts) == whole
        assert sum(map(len, parts)) == len(whole)


def test_batches_are_chosen_where_all_at_once_would_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = {"nodes": 10**6, "given": 10**6, "hidden": 32, "members": 1}  # a step of 1.3 GB
    monkeypatch.setattr(training_set, "free_memory", lambda: 10 * 10**9)
    assert training_set.chosen_size(None, **sizes) is None
    assert training_set.chosen_size(100, **sizes) == 100
    monkeypatch.setattr(training_set, "free_memory", lambda: 10**9)
    assert training_set.chosen_size(None, **sizes) == training_set.USUAL


def test_tiny_batches_are_refused() -> None:
    with pytest.raises(SettingError, match="batch_size: expected a whole number from 16 up, got 3"):
        QpiGNN(batch_size=3).check_settings()
    with pytest.raises(SettingError, match="fan_out: expected a whole number from 1 up, got 0"):
        QpiGNN(fan_out=0).check_settings()


@pytest.mark.parametrize("name", ALL)
def test_every_method_supports_batch_size(name: str) -> None:
    data = split_nodes(load_dataset("basic", nodes=200))
    fitted = make_method(name, epochs=3, batch_size=32).fit(data)
    intervals = fitted.predict_interval(data)
    assert (intervals.lower <= intervals.upper).all()
    again = make_method(name, epochs=3, batch_size=32).fit(data).predict_interval(data)
    np.testing.assert_array_equal(intervals.lower, again.lower)


def test_batches_reach_the_intervals_of_all_at_once() -> None:
    view = make_view(split_nodes(load_dataset("er", nodes=600)))
    results = []
    for size in (None, 128):
        method = QpiGNN(batch_size=size, members=5).fit(view.fit)
        intervals = method.predict_interval(view.predict, view.test_mask)
        y = view.y_test.numpy()
        results.append((picp(y, intervals.lower, intervals.upper), intervals.width.mean()))
    (all_hits, all_width), (some_hits, some_width) = results
    assert some_hits == pytest.approx(all_hits, abs=0.05)
    assert some_width == pytest.approx(all_width, rel=0.15)


@pytest.mark.parametrize("size", [None, 64])
def test_fit_mapped_graph_equals_fit_in_memory(
    size: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = split_nodes(load_dataset("er", nodes=300))
    settings = {"batch_size": size, "members": 5, "epochs": 10}
    wanted = QpiGNN(**settings).fit(data).predict_interval(data)
    write_graph(tmp_path / "graph", data)
    mapped = open_graph(tmp_path / "graph")
    made: list[int] = []
    monkeypatch.setattr("qpignn.runtime.memory.free_memory", lambda: made.append(1) or 0)
    monkeypatch.setattr(
        "qpignn.runtime.memory.SMALL", 0
    )  # else nothing here is large enough for a file
    monkeypatch.setattr("qpignn.runtime.memory.CHUNK_ROWS", 50)
    monkeypatch.setattr("qpignn.nn.interval_net.CHUNK_ROWS", 50)
    intervals = QpiGNN(**settings).fit(mapped).predict_interval(mapped)
    assert made
    np.testing.assert_allclose(intervals.lower, wanted.lower, rtol=2e-3)
    np.testing.assert_allclose(intervals.upper, wanted.upper, rtol=2e-3)
