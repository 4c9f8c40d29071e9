"""Times of several things, interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

Run = Callable[[], object]
TURN = 0.02  # seconds: what is quicker runs several times in its turn
WARM = 4  # runs, before anything counts
SLOW = 2.0  # seconds: what takes longer is not warmed up; its first run counts


def interleaved(runs: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    """Return the seconds that one run of each took, turn by turn.

    They take turns, so that whatever else the machine does meets all of them. In its turn a thing
    runs for a fiftieth of a second, at least once, as it would in training: behind itself, not
    behind the numbers of its rivals.
    """
    seconds: dict[str, list[float]] = {}
    times: dict[str, int] = {}
    for name, run in runs.items():
        took = _seconds(run)
        seconds[name] = [took] if took > SLOW else []
        if took <= SLOW:
            took = min(_seconds(run) for _ in range(WARM - 1))
        times[name] = max(1, round(TURN / took))
    for _ in range(rounds):
        for name, run in runs.items():
            if len(seconds[name]) < rounds:
                seconds[name].append(_seconds(run, times[name]))
    return seconds


def _seconds(run: Run, times: int = 1) -> float:
    started = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - started) / times
