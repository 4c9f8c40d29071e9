"""Names imported before the exchange refer to the new code after it."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from swap import swap

SOURCE = """
from dataclasses import dataclass

STEP = 1

def moved(x, by=10):
    return x + by * STEP

@dataclass
class Place:
    x: int = 3

    def next(self):
        return moved(self.x)

    @staticmethod
    def far(x):
        return x + 100
"""


def test_functions_methods_defaults_and_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("exchanged")
    monkeypatch.setitem(sys.modules, "exchanged", module)
    exec(SOURCE, vars(module))
    moved, place = module.moved, module.Place  # as ``from exchanged import moved, Place`` does
    assert (moved(1), place().next(), place.far(1)) == (11, 13, 101)
    for old, new, wanted in (
        ("STEP = 1", "STEP = 2", (21, 23, 101)),
        ("by=10", "by=20", (21, 23, 101)),
        ("x + by", "x - by", (-9, -7, 101)),
        ("int = 3", "int = 4", (11, 14, 101)),
        ("self.x)", "-self.x)", (11, 7, 101)),
        ("x + 100", "x - 100", (11, 13, -99)),
        ("nothing", "changed", (11, 13, 101)),
    ):
        swap(module, compile(SOURCE.replace(old, new), "exchanged", "exec"))
        assert (moved(1), place().next(), place.far(1)) == wanted
