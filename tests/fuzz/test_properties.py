"""Properties that hold for any input; ``--hypothesis-profile=fuzz`` tries 40 times as many."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from torch_geometric.data import Data

import properties
import strategies
from properties import FITS, FRAMES, GRAPHS, MOVED, SENSIBLE, UNITS

EVERY = settings().max_examples
quick = settings(max_examples=EVERY, deadline=None)
slow = settings(
    max_examples=max(20, EVERY // 4), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@quick
@given(*GRAPHS)
def test_any_graph(data: Data) -> None:
    properties.any_graph(data)


@quick
@given(*FRAMES)
def test_any_tables(tables: properties.Tables) -> None:
    properties.any_frames(tables)


@slow
@given(*FITS)
def test_any_fit(data: Data, chosen: dict[str, Any]) -> None:
    properties.any_fit(data, chosen)


@slow
@given(*SENSIBLE)
def test_any_sensible_fit(data: Data, chosen: dict[str, Any]) -> None:
    properties.any_fit(data, chosen)


@slow
@given(*MOVED)
def test_nodes_by_other_names_have_the_same_intervals(name: str, data: Data, draw: Random) -> None:
    properties.other_names(name, data, draw)


@slow
@given(*MOVED)
def test_edges_in_another_order_change_nothing(name: str, data: Data, draw: Random) -> None:
    properties.other_edges(name, data, draw)


@slow
@given(*UNITS)
def test_another_unit_of_the_target_is_another_unit_of_the_interval(
    data: Data, targets: list[int], scale: float, shift: float, name: str
) -> None:
    properties.other_unit(data, targets, scale, shift, name)


def test_strategies_draw_accepted_and_refused_examples() -> None:
    """The strategies must reach what is accepted as well as what is refused."""
    ended: dict[str, set[str]] = {"graph": set(), "frames": set()}

    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(strategies.graphs(), strategies.frames())
    def look(data: Data, tables: properties.Tables) -> None:
        ended["graph"].add(properties.any_graph(data))
        ended["frames"].add(properties.any_frames(tables))

    look()
    for kinds in ended.values():
        assert {properties.FINE, "GraphError"} <= kinds
