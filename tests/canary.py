"""A secret in the place of hidden targets, and the signs that it got out.

The secret is far outside everything else: whoever averages, ranks or scales with it shows. Three
signs are looked for: a ``_fit`` that is handed it (in any tensor of the graph), a fit that is
another with it than without, and a fitted method that keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn.methods.base import IntervalMethod
from qpignn.methods.fitted import as_fitted
from qpignn.tasks.base import FitInputs

SECRET = 7.25e299
Make = Callable[[], IntervalMethod]


def plant(data: Data, hidden: Tensor, value: float = SECRET) -> Data:
    """Return the graph with another target on the hidden nodes."""
    out = Data(**data.to_dict())
    out.y = data.y.double().masked_fill(hidden, value)
    return out


def holds_secret(thing: Any, depth: int = 6) -> bool:
    """Whether the secret is somewhere in an object, its parts or theirs."""
    if torch.is_tensor(thing):
        thing = thing.detach().to_dense().double().numpy() if thing.is_floating_point() else 0
    if isinstance(thing, float | np.ndarray):
        return bool(np.any(np.asarray(thing) == SECRET))
    if depth == 0 or isinstance(thing, str | bytes | int):
        return False
    if isinstance(thing, dict):
        return any(holds_secret(part, depth - 1) for part in thing.values())
    if isinstance(thing, list | tuple):
        return any(holds_secret(part, depth - 1) for part in thing)
    if isinstance(thing, Data):
        return holds_secret(thing.to_dict(), depth)
    return holds_secret(getattr(thing, "__dict__", {}), depth - 1)


def _classes(cls: type = IntervalMethod) -> Iterator[type]:
    yield cls
    for child in cls.__subclasses__():
        yield from _classes(child)


def watch(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Look over the shoulder of every fit from now on; return the list of those that saw."""
    saw: list[str] = []
    for cls in {*_classes()}:
        if "_fit" in vars(cls):
            monkeypatch.setattr(cls, "_fit", _watched(vars(cls)["_fit"], saw))
    return saw


def _watched(fit: Callable[..., int | None], saw: list[str]) -> Callable[..., int | None]:
    def watched(self: IntervalMethod, inputs: FitInputs) -> int | None:
        data, given = inputs.data, inputs.given
        # a class may call its parent's with fewer nodes than it was given: these are its own
        first = not self.__dict__.get("_watched")
        if holds_secret(data) or (first and not bool(data.y[~given].isnan().all())):
            saw.append(type(self).__name__)
        self.__dict__["_watched"] = True
        try:
            return fit(self, inputs)
        finally:
            self.__dict__["_watched"] = not first

    return watched


def signs(make: Make, data: Data, hidden: Tensor, saw: list[str]) -> set[str]:
    """Fit without the hidden targets and with the secret in their place; say what got out."""
    del saw[:]
    blank = make().fit(plant(data, hidden, float("nan")))
    secret = make().fit(plant(data, hidden))
    detected = {"handed to _fit"} if saw else set()
    if holds_secret(secret):
        detected.add("kept")
    if learnt(blank) != learnt(secret):
        detected.add("another fit")
    return detected


def learnt(method: IntervalMethod) -> tuple[object, ...]:
    """Return all that a fit learnt, to the last bit."""
    state = as_fitted(method)._state()
    tensors = {name: tensor.detach().numpy().tobytes() for name, tensor in state.items()}
    return tensors, method.history_
