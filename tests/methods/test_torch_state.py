"""Settings of the calling program: they change no result, and they are as before afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from qpignn import Conformal, QpiGNN, load_method, make_method, split_nodes
from qpignn.intervals import Intervals
from qpignn.methods.catalog import METHODS, setting_names
from qpignn.runtime.torch_state import torch_defaults

FAST = {"correction_epochs": 5}
SETTINGS = {"corrected": FAST, "cfgnn": FAST, "cfgnn_tuned": {**FAST, "trials": 2}}


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
        assert torch.get_default_dtype() == dtype  # what is inside left it as it was
    finally:
        torch.set_default_dtype(before)


@contextmanager
def default_device(name: str) -> Iterator[None]:
    before = torch.get_default_device()
    torch.set_default_device(name)
    try:
        yield
        assert torch.get_default_device().type == name
    finally:
        torch.set_default_device(before)


@contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
        assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)


def host(name: str) -> AbstractContextManager[object]:
    """Return a context as a calling program may have around a fit."""
    made: dict[str, AbstractContextManager[object]] = {
        "float64": default_dtype(torch.float64),
        "bfloat16": default_dtype(torch.bfloat16),
        "autocast": torch.autocast("cpu", dtype=torch.bfloat16),
        "no_grad": torch.no_grad(),
        "inference_mode": torch.inference_mode(),
        "device": default_device("meta"),
        "deterministic": deterministic(),
        "one thread": threads(1),
        "three threads": threads(3),
        "float errors": np.errstate(all="raise"),
    }
    return made[name]


OF_ALL = ("float64", "autocast", "no_grad")
OTHERS = ("bfloat16", "inference_mode", "device", "deterministic", "one thread", "three threads")


def graph() -> Data:
    draw = torch.Generator().manual_seed(0)
    nodes = 90
    x = torch.rand(nodes, 3, generator=draw)
    ends = torch.randint(0, nodes, (2, 150), generator=draw)
    y = torch.sin(3 * x[:, 0]) + 0.1 * torch.rand(nodes, generator=draw)
    weight = torch.rand(300, generator=draw) + 0.5
    data = Data(x=x, y=y, edge_index=torch.cat([ends, ends.flip(0)], dim=1), edge_weight=weight)
    return split_nodes(data, test=0.3)


def intervals(name: str, data: Data) -> Intervals:
    quick = {"epochs": 12} if "epochs" in setting_names(name) else {}
    method = make_method(name, **quick, **SETTINGS.get(name, {}))
    return method.fit(data).predict_interval(data)


def same_bits(a: Intervals, b: Intervals) -> bool:
    columns = ("prediction", "lower", "upper")
    return all(np.array_equal(getattr(a, column), getattr(b, column)) for column in columns)


@pytest.mark.parametrize("name", METHODS)
def test_fit_under_host_settings_gives_same_bits(name: str) -> None:
    data = graph()
    alone = intervals(name, data)
    for setting in OF_ALL:
        with host(setting):
            assert same_bits(alone, intervals(name, data)), setting


@pytest.mark.parametrize("setting", [*OTHERS, "float errors"])
@pytest.mark.parametrize("name", ["qpignn", "sqr", "conformal:corrected", "evidential"])
def test_fit_under_other_host_settings_gives_same_bits(name: str, setting: str) -> None:
    data = graph()
    alone = intervals(name, data)
    with host(setting):
        assert same_bits(alone, intervals(name, data))


def test_graph_made_in_inference_mode_gives_same_bits() -> None:
    alone = intervals("qpignn", graph())
    with torch.inference_mode():
        data = graph()
        assert data.x.is_inference()
        assert same_bits(alone, intervals("qpignn", data))
    assert same_bits(alone, intervals("qpignn", data))  # outside the mode, too


@pytest.mark.parametrize("setting", [*OF_ALL, *OTHERS])
def test_saved_model_under_host_settings_gives_same_bits(setting: str, tmp_path: Path) -> None:
    data = graph()
    model = QpiGNN(epochs=5).fit(data)
    alone = model.predict_interval(data)
    with host(setting):
        model.save(tmp_path / "model")
        loaded = load_method(tmp_path / "model")
        assert same_bits(alone, loaded.predict_interval(data))
    assert same_bits(alone, load_method(tmp_path / "model").predict_interval(data))


def test_failed_fit_restores_host_settings() -> None:
    with default_dtype(torch.float64), torch.no_grad(), pytest.raises(Exception, match="labelled"):
        QpiGNN().fit(Data(x=torch.ones(3, 1), edge_index=torch.empty(2, 0, dtype=torch.long)))
    with default_dtype(torch.float64), torch.no_grad():
        assert not torch.is_grad_enabled()


class OwnNet(nn.Module):
    """A user's net that relies on the default dtype of the user's program."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.line = nn.Linear(columns, 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.line(x.to(torch.get_default_dtype())) @ torch.eye(1)


def test_users_net_runs_under_users_default_dtype() -> None:
    data = graph()
    with default_dtype(torch.float64):
        model = Conformal.prefit(OwnNet(3), data, data.train_mask)
        assert np.isfinite(model.predict_interval(data).width).all()


def test_threads_under_other_default_dtype_end_with_it_restored() -> None:
    inside, go_on = threading.Event(), threading.Event()
    seen = []

    def first() -> None:
        with torch_defaults():
            inside.set()
            go_on.wait(10)

    def second() -> None:
        with torch_defaults():
            go_on.set()
            started.join(10)
            seen.append(torch.get_default_dtype())

    with default_dtype(torch.float64):
        started = threading.Thread(target=first)
        started.start()
        inside.wait(10)
        other = threading.Thread(target=second)
        other.start()
        other.join(10)
        assert seen == [torch.float32]
        assert torch.get_default_dtype() == torch.float64
