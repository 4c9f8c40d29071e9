"""Two processes at once in the same folder, cache or results file.

Both end well, or one ends with a QpignnError; and what is there afterwards is whole: what one
of the two gives alone, not a mixture. Every step towards the disk waits a little, by chance, so
that they meet in ever different ways.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from faults.forks import Child, exit_code
from faults.places import PAPER, PLACES, TABLES, Pieces, Place, fit_arguments, tables
from faults.steps import Fault
from faults.tally import BrokenError, Tally
from faults.trials import Bench, one_line_of_ours

Work = Callable[[], int]
TWO_SEEDS = fit_arguments(), fit_arguments("--seed", 3)
PREDICT = ("predict", "m", "--only", "all", "--out", "o.csv")


def two_tables() -> None:
    """Two pairs of tables with as many nodes: their arrays are of the same size."""
    tables(60, seed=1)
    for name in ("nodes", "edges"):
        Path(f"{name}.csv").rename(f"other-{name}.csv")
    tables(60)


def other(arguments: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(f"other-{word}" if str(word).endswith(".csv") else word for word in arguments)


CONVERT = ("convert", *TABLES, "--out", "g")
PAIRS: dict[str, tuple[Place, Work]] = {
    "two fits": (PLACES["fit over a fit"], lambda: exit_code(*TWO_SEEDS[1])),
    "two predictions": (PLACES["predict"], lambda: exit_code(*PREDICT, "--confidence", 0.8)),
    "two conversions": (
        Place(
            "convert",
            two_tables,
            PLACES["convert"].run,
            PLACES["convert"].again,
            PLACES["convert"].look,
        ),
        lambda: exit_code(*other(CONVERT)),
    ),
    "two paper runs": (PLACES["paper run"], lambda: exit_code(*PAPER)),
    "two downloads": (PLACES["download"], PLACES["download"].run),
}
"""A place, and what the second process does there while the first does what it always does."""


class PairBench(Bench):
    """A place where two processes meet."""

    def __init__(self, place: Place, second: Work, base: Path) -> None:
        super().__init__(place, base)
        self.second = second
        self.fresh()
        self._well(Child(self._at(second), self.folder).end(), "the second alone")
        self.other: Pieces = self._look()

    def meet(self, seed: int, late: float) -> str:
        """Let the two meet, the second a little later; return how that ended."""
        self.fresh()
        slow = Fault("slow")
        first = Child(self._at(self.place.run), self.folder, slow, seed)
        second = Child(self._at(self._later(late)), self.folder, slow, seed + 1)
        codes = []
        for ended in (first.end(), second.end()):
            code = ended.answer if ended.code == 0 else ended.code
            if code not in (0, 2) or (code == 2 and not one_line_of_ours(ended.err)):
                raise BrokenError(f"one ends with {code}: {ended.err[-1500:]}")
            codes.append(code)
        if codes == [2, 2]:
            raise BrokenError("both ended with an error")
        pieces = self._look()
        wanted = [self.new] * (codes[0] == 0) + [self.other] * (codes[1] == 0)
        if pieces not in wanted:
            raise BrokenError(
                f"codes {codes}, and afterwards neither result is there whole: {pieces}"
            )
        return "both ended well, one whole" if codes == [0, 0] else "one named error, one whole"

    def _later(self, seconds: float) -> Work:
        def work() -> int:
            time.sleep(seconds)
            return self.second()

        return work


def try_pair(name: str, base: Path, *, seed: int, times: int = 12) -> Tally:
    """Let two processes meet so many times."""
    tally, draw = Tally(name), random.Random(f"{seed} {name}")
    try:
        bench = PairBench(*PAIRS[name], base)
    except BrokenError as error:
        tally.broken.append(f"{name}: {error}")
        return tally
    for turn in range(times):
        late = draw.uniform(0, bench.seconds) if turn % 3 == 0 else draw.uniform(0, 0.05)
        tally.count(
            f"pair {turn}, the second {late:.4f} s later",
            partial(bench.meet, turn, late),
        )
    return tally
