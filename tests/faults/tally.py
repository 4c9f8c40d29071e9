"""Counting how trials ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field


class BrokenError(Exception):
    """A fault did what it must not do."""


@dataclass
class Tally:
    """How the trials at one place ended, and what a reader got meanwhile, where there was one."""

    place: str
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    readings: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def count(self, fault: str, trial: Callable[[], str]) -> None:
        """Make a trial, and remember how it ended."""
        self.faults[fault.partition(" ")[0]] += 1
        try:
            self.outcomes[trial()] += 1
        except BrokenError as error:
            self.broken.append(f"{self.place}, {fault}: {error}")
