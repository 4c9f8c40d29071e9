"""Test everything that writes under kills, full disks and concurrent processes.

    python tests/faults/run.py --seed 1
    python tests/faults/run.py --places 'fit,two fits' --seed 1

Which step a fault strikes, or after how many seconds, is decided by the seed and printed
where something breaks. Every place is tried in a process of its own. Exit code 1: something broke.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

import matplotlib as mpl

from faults.pairs import PAIRS, try_pair
from faults.places import PLACES, SALT
from faults.processes import try_two_jobs
from faults.served import serving
from faults.tally import Tally
from faults.trials import try_place
from faults.writers import SAVERS, try_savers

TWO_JOBS = "paper run --jobs 2"
ALL = (*PLACES, *PAIRS, TWO_JOBS, *SAVERS)
KILLS = ("kill", "timed")


def tried(name: str, base: Path, seed: int, *, timed: int, most: int, saves: int) -> Tally:
    """Try one place."""
    begun = time.monotonic()
    with serving(base / "work" / "cache"):
        if name == TWO_JOBS:
            tally = try_two_jobs(base, seed=seed, times=min(6, most))
        elif name in SAVERS:
            tally = try_savers(name, base, seed=seed, times=saves)
        elif name in PAIRS:
            tally = try_pair(name, base, seed=seed, times=min(12, most))
        else:
            tally = try_place(PLACES[name], base, seed=seed, timed=timed, most=most)
    tally.seconds = time.monotonic() - begun
    return tally


def try_all(names: list[str], base: Path, seed: int, jobs: int, **much: int) -> list[Tally]:
    """Try places side by side, each in a process of its own."""
    waiting, running = list(names), dict[int, str]()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that processes are ended, below
    tallies = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                pid = os.fork()
                if not pid:
                    _work(name, base, seed, **much)
                running[pid] = name
            pid, status = os.wait()
            name = running.pop(pid)
            record = base / f"{name}.json"
            tallies[name] = Tally(name, broken=[f"{name}: the trials ended with {status}"])
            if record.is_file():
                tallies[name] = Tally(**json.loads(record.read_text()))
            tally = tallies[name]
            print(f"{name}: {sum(tally.faults.values())} tried in {tally.seconds:.0f} s")
            print("".join(f"failed: {message}\n" for message in tally.broken), end="", flush=True)
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
    return [tallies[name] for name in names]


def _work(name: str, base: Path, seed: int, **much: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        tally = tried(name, base / name, seed, **much)
        (base / f"{name}.json").write_text(json.dumps(tally.__dict__))
    finally:
        os._exit(0)


def table(tallies: list[Tally]) -> str:
    """Return how all places ended, as a table."""
    rows = [("place", "seconds", "kills", "errors", "pairs", "failed", "outcomes")]
    total: Counter[str] = Counter()
    for tally in tallies:
        kills = sum(tally.faults.get(kind, 0) for kind in KILLS)
        pairs = tally.faults.get("pair", 0)
        errors = sum(tally.faults.values()) - kills - pairs
        counts = {"kills": kills, "errors": errors, "pairs": pairs, "failed": len(tally.broken)}
        total += Counter(counts)
        endings = [*Counter(tally.outcomes).most_common(), *Counter(tally.readings).most_common()]
        ends = ", ".join(f"{n} {how}" for how, n in endings)
        shown = (f"{count:,}" for count in counts.values())
        rows.append((tally.place, f"{tally.seconds:.0f}", *shown, ends))
    seconds = f"{sum(tally.seconds for tally in tallies):.0f}"
    sums = (f"{total[name]:,}" for name in ("kills", "errors", "pairs", "failed"))
    rows.append(("all", seconds, *sums, ""))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 0 < i < 6 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def main() -> int:
    """Read the options and do what they say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--places", default=",".join(ALL), help="some of them, by commas")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--timed", type=int, default=15, help="kills at random moments a place")
    parser.add_argument("--most", type=int, default=10_000, help="steps of each kind of fault")
    parser.add_argument(
        "--saves", type=int, default=200, help="rounds of two writers to one folder"
    )
    parser.add_argument("--jobs", type=int, default=min(2, len(os.sched_getaffinity(0))))
    asked = parser.parse_args()
    names = asked.places.split(",")
    unknown = [name for name in names if name not in ALL]
    if unknown:
        parser.error(f"unknown places {', '.join(unknown)}; known are {', '.join(ALL)}")
    os.environ |= {"SOURCE_DATE_EPOCH": "0", "COLUMNS": "200"}  # pictures without dates; long lines
    mpl.rcParams["svg.hashsalt"] = SALT
    print(f"faults at {len(names)} places, seed {asked.seed}", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="qpignn-faults-", dir=quick_disk()) as base:
        much = {"timed": asked.timed, "most": asked.most, "saves": asked.saves}
        tallies = try_all(names, Path(base), asked.seed, asked.jobs, **much)
    print(table(tallies))
    failed = sum(len(tally.broken) for tally in tallies)
    passed = sum(sum(tally.outcomes.values()) for tally in tallies)
    print(f"{time.monotonic() - begun:.0f} s: {passed} passed, {failed} failed")
    return 1 if failed else 0


def quick_disk() -> str | None:
    """Return a folder in memory, where there is one: ``fsync`` costs nothing there."""
    memory = Path("/dev/shm")
    return str(memory) if os.access(memory, os.W_OK) else None


if __name__ == "__main__":
    sys.exit(main())
