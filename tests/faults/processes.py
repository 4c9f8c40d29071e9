"""``qpignn paper run --jobs 2``, killed as a user would kill it: started by its name, in processes
of its own. A kill that hits only the first of them must not leave the others behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from faults.forks import Ended
from faults.places import PAPER, SALT, SPEC, Place, exit_code, older_rows, written
from faults.tally import BrokenError, Tally
from faults.trials import Bench

TWO_JOBS = (*PAPER, "--jobs", 2)
PATIENCE = 60  # seconds that processes have to notice that they are alone


def more_rows() -> None:
    older_rows()
    Path("matplotlibrc").write_text(f"svg.hashsalt: {SALT}\n")
    Path("new.py").write_text(SPEC.format(seeds=8, picture="scatter"))


def command_line(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "qpignn", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


class TwoJobs(Bench):
    """The paper run as processes; what they give together is what one gives alone."""

    def __init__(self, base: Path) -> None:
        place = Place(
            "paper run --jobs 2",
            more_rows,
            lambda: exit_code(*PAPER),
            lambda: exit_code(*PAPER),
            written,
            keeps=("row",),
        )
        super().__init__(place, base)
        self.fresh()
        os.chdir(self.folder)
        begun = time.monotonic()
        if command_line(*TWO_JOBS).wait() != 0:
            raise BrokenError("an uninterrupted run fails")
        self.seconds = time.monotonic() - begun
        if self._look() != self.new:
            raise BrokenError("two jobs give something else than one")

    def killed(self, seconds: float, *, all_of_them: bool, first_row: bool) -> str:
        """Kill it after some seconds, maybe from the first row on: all processes, or the first."""
        self.fresh()
        os.chdir(self.folder)
        before = Path("r.sqlite").stat().st_mtime_ns
        with command_line(*TWO_JOBS) as process:
            while first_row and Path("r.sqlite").stat().st_mtime_ns == before:
                if process.poll() is not None:
                    break
                time.sleep(0.001)
            time.sleep(seconds)
            if all_of_them:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            code = process.wait()
            self._alone(process.pid)
        return self.evaluate(Ended(code, answer=0))

    @staticmethod
    def _alone(session: int) -> None:
        """Wait until no process of a session is left, or raise."""
        until = time.monotonic() + PATIENCE
        while left := members(session):
            if time.monotonic() > until:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                raise BrokenError(f"{len(left)} processes go on although the first was killed")
            time.sleep(0.05)


def members(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    results = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its = path.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        if int(its) == session and state != "Z":
            results.append(int(path.parent.name))
    return results


def try_two_jobs(base: Path, *, seed: int, times: int = 6) -> Tally:
    """Kill so many runs of two jobs, spread over their whole time."""
    tally, draw = Tally("paper run --jobs 2"), random.Random(f"{seed} two jobs")
    try:
        bench = TwoJobs(base)
    except BrokenError as error:
        tally.broken.append(str(error))
        return tally
    for turn in range(times):  # by turns at any time, and while rows and tables are written
        rows, every = turn % 2 == 1, turn % 4 > 1
        after = draw.uniform(0, 0.5) if rows else draw.uniform(0.2, 1) * bench.seconds
        name = f"timed kill of {'all' if every else 'the first'}, {after:.3f} s after the "
        tally.count(
            name + ("first row" if rows else "beginning"),
            partial(bench.killed, after, all_of_them=every, first_row=rows),
        )
    return tally
