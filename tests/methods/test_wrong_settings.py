"""Invalid settings: every setting of every method refuses a wrong type or size with a message.

What is not refused must work: the method can be fitted, saved and loaded with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import load_method, make_method
from qpignn.errors import QpignnError, SettingError, UnknownNameError
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import METHODS, setting_names

NAMES = (*METHODS, "conformal:sqr")
WRONG: dict[str, Any] = {
    "number as text": "0.1",
    "word": "wide",
    "no text": "",
    "half": 3.5,
    "negative": -1,
    "zero": 0,
    "NaN": float("nan"),
    "infinite": float("inf"),
    "beyond float": 10**400,
    "complex": 1j,
    "none": None,
    "true": True,
    "list": [0.5, 0.9],
    "no list": [],
    "nested": [[0.5]],
    "dictionary": {"a": 1},
    "array": np.array([1.0, 2.0]),
    "words": np.array(["a", "b"]),
    "tensor": torch.ones(2),
    "type": torch.float32,
    "object": object(),
    "function": print,
}
QUICK = {"epochs": 1, "members": 1, "hidden": 2, "patience": 1}
CASES = [(name, setting) for name in NAMES for setting in setting_names(name)]


@pytest.fixture(scope="module")
def graph() -> Data:
    place = torch.arange(30)
    x = torch.sin(place.float()).unsqueeze(1)
    ring = torch.stack([place, (place + 1) % 30])
    return Data(x=x, y=x[:, 0] ** 2, edge_index=torch.cat([ring, ring.flip(0)], dim=1))


def quick(name: str) -> dict[str, Any]:
    more = {"correction_epochs": 1, "trials": 0} if name in ("corrected", "cfgnn") else {}
    if "epochs" not in setting_names(name):
        return {"max_iter": 2}
    return {**QUICK, **more, **({"passes": 2} if name == "mc_dropout" else {})}


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_invalid_setting_is_refused_with_its_name_and_expectation(name: str, setting: str) -> None:
    refused = 0
    for what, value in WRONG.items():
        try:
            made = make_method(name, **{setting: value})
        except (SettingError, UnknownNameError) as error:
            refused += 1
            message = str(error)
            assert setting.replace("_", " ").split()[0] in message.replace("_", " "), (
                what,
                message,
            )
            assert "expected" in message or "unknown" in message, (what, message)
            assert "\n" not in message
        else:
            assert isinstance(made, IntervalMethod)
    assert refused >= len(WRONG) // 2  # no setting takes just anything


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "name", ["qpignn", "mc_dropout", "cfgnn", "rqr", "ablation", "evidential", "boosting"]
)
def test_accepted_setting_can_be_fitted_saved_and_loaded(
    name: str, graph: Data, tmp_path: Path
) -> None:
    for setting in setting_names(name):
        for what, value in WRONG.items():
            try:
                made = make_method(name, **{**quick(name), setting: value})
            except (SettingError, UnknownNameError):
                continue
            try:
                made.fit(graph)
            except QpignnError:
                continue  # a limit that targets break, or a rate so high that training breaks down
            made.save(tmp_path)
            intervals = load_method(tmp_path).predict_interval(graph)
            assert len(intervals) == 30, (setting, what)
