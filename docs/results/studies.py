"""Studies that the pages of results show: comparisons and tables of the paper, with their commands.

A study defines both its cells and the command that runs them, so that the command on a page and the
figures beside it cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from qpignn.data.catalog import BENCHMARK, missing_message
from qpignn.experiments.cell import Cell, grid
from qpignn.methods.catalog import ALL, setting_names
from qpignn.paper import find_spec
from qpignn.paper.plan import QUICK, QUICK_SETS, Plan, make_plan

JOBS = 2
LINE = 100  # characters of a command's line


@dataclass(frozen=True)
class Scale:
    """How much of every study is run.

    Attributes:
        seeds: largest number of seeds; None runs each study's own number.
        quick: two data sets and two epochs, to check that everything works.
    """

    seeds: int | None = None
    quick: bool = False

    def capped(self, seeds: int) -> int:
        """Return how many of a study's seeds are run."""
        return min(seeds, self.seeds or seeds)


@dataclass(frozen=True)
class Comparison:
    """Methods on all data sets of the paper, by ``qpignn compare``.

    Attributes:
        methods: names of the catalog.
        seeds: how many.
        shows: options of the command that change what it prints, not what it runs.
        levels: wanted coverages.
        view, split: see :class:`qpignn.experiments.cell.Cell`.
    """

    methods: tuple[str, ...]
    seeds: int
    shows: str = ""
    levels: tuple[float, ...] = (0.9,)
    view: str = "transductive"
    split: str = "random"

    @property
    def fits(self) -> bool:
        """Whether anything is fitted."""
        return True

    def scaled(self, scale: Scale) -> Comparison:
        """Return the study with as many seeds as are run."""
        return replace(self, seeds=scale.capped(self.seeds))

    def cells(self, scale: Scale) -> list[Cell]:
        """Return what is run, on the data sets that are on this machine."""
        names = datasets_here()
        what: dict[str, Any] = {
            "view": self.view,
            "split": self.split,
            "confidence_levels": self.levels,
        }
        if not scale.quick:
            return grid(names, self.methods, self.scaled(scale).seeds, **what)
        cells: list[Cell] = []
        for method in self.methods:
            allowed = setting_names(method)
            what["settings"] = {k: v for k, v in QUICK.items() if k in allowed}
            cells += grid(names[:QUICK_SETS], [method], scale.capped(2), **what)
        return cells

    def command(self, scale: Scale) -> str:
        """Return the command that runs these cells."""
        more = self.methods[len(ALL) :] if self.methods[: len(ALL)] == ALL else None
        methods = ",".join(self.methods if more is None else ("all", *more))
        parts = [f"--methods {methods}"] if self.methods != ("qpignn",) else []
        parts += [f"--seeds {self.scaled(scale).seeds} --jobs {JOBS}"]
        parts += (
            [f"--confidence {','.join(map(str, self.levels))}"] if self.levels != (0.9,) else []
        )
        parts += [f"--view {self.view}"] if self.view != "transductive" else []
        parts += [f"--split {self.split}"] if self.split != "random" else []
        parts.append(self.shows)
        return wrapped("qpignn compare --datasets all", [part for part in parts if part])


@dataclass(frozen=True)
class PaperTable:
    """A table or figure of the paper, by ``qpignn paper run``.

    Attributes:
        name: of the spec.
        protocol: ``corrected`` or ``published``.
        seeds: how many; None is the spec's own number.
    """

    name: str
    protocol: str = "corrected"
    seeds: int | None = None

    @property
    def fits(self) -> bool:
        """Whether anything is fitted, or the table is one of words or counts."""
        return bool(find_spec(self.name).variants)

    def scaled(self, scale: Scale) -> PaperTable:
        """Return the study with as many seeds as are run."""
        own = self.seeds or find_spec(self.name).seeds
        seeds = scale.capped(own)
        return self if seeds == own else replace(self, seeds=seeds)

    def plan(self, scale: Scale) -> Plan:
        """Return the cells and their places in the table."""
        seeds = self.scaled(scale).seeds
        return make_plan(find_spec(self.name), self.protocol, seeds=seeds, quick=scale.quick)

    def cells(self, scale: Scale) -> list[Cell]:
        """Return what is run, on the data sets that are on this machine."""
        return [planned.cell for planned in self.plan(scale).cells]

    def command(self, scale: Scale) -> str:
        """Return the command that runs these cells."""
        study = self.scaled(scale)
        parts = [f"--protocol {self.protocol}"] if self.protocol != "corrected" else []
        parts += [f"--seeds {study.seeds}"] if study.seeds is not None else []
        return wrapped(f"qpignn paper run {self.name}", [*parts, f"--jobs {JOBS}"])


Study = Comparison | PaperTable


def datasets_here() -> list[str]:
    """Return the data sets of the paper that can be loaded without a download."""
    return [name for name, entry in BENCHMARK.items() if missing_message(entry) is None]


def wrapped(start: str, parts: list[str]) -> str:
    """Return a command with its options, continued on another line where one is too long."""
    lines = [start]
    for part in parts:
        if len(lines[-1]) + 1 + len(part) > LINE:
            lines.append(f"    {part}")
        else:
            lines[-1] += f" {part}"
    return " \\\n".join(lines)
