"""Change a module in many small ways, run its tests on each, and list the changes they miss.

    python tests/mutants/run.py
    python tests/mutants/run.py --only metrics.py,objectives/rqr.py --jobs 1

The tests of a module are those of the same name: ``tests/objectives/test_rqr.py`` for
``objectives/rqr.py``. They are collected once; every mutant meets them in a fork of that process.
A mutant survives if all tests pass. Survivors that compute the same as the original are listed with
the reason in ``equivalent.txt``. Exit code 1: there are others, or that list is out of date.

Why not a library: mutmut 3.8 reads a part of pytest that version 9 has no more, and cosmic-ray
starts an interpreter, and so torch, anew for each mutant.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from hypothesis import Phase, settings

from mutations import Mutant, mutants
from swap import swap

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src" / "qpignn"
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
MODULES = (
    "metrics.py",
    "calibration/conformal.py",
    "calibration/cross_fit.py",
    "calibration/width_scaling.py",
    "objectives/evidential.py",
    "objectives/gaussian.py",
    "objectives/joint.py",
    "objectives/pinball.py",
    "objectives/rqr.py",
)
SLOWEST = 10  # times the processor time of the tests on the unchanged module: longer is killed
settings.register_profile(
    "mutants",
    derandomize=True,  # the same mutants survive every time
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # that it fails is enough, the simplest way is not
    database=None,
)


@dataclass
class Judge:
    """A pytest plugin that runs the collected tests once for every mutant."""

    module: str
    jobs: int
    killed: int = 0
    missed: list[Mutant] = field(default_factory=list)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop."""
        path, running = SOURCE / self.module, {}
        source, before = path.read_text(encoding="utf-8"), _seconds_of_children()
        unchanged = Mutant("module", 0, "nothing", compile(source, str(path), "exec"))
        _, status = os.waitpid(self._start(session, unchanged, None), 0)
        if status or session.testsfailed:
            pytest.exit("the tests fail on the unchanged module", 2)
        limit = int(SLOWEST * (_seconds_of_children() - before)) + 1
        waiting: Iterator[Mutant] = mutants(source, str(path))
        while True:
            while len(running) < self.jobs and (mutant := next(waiting, None)):
                running[self._start(session, mutant, limit)] = mutant
            if not running:
                break
            pid, status = os.wait()
            mutant = running.pop(pid)
            self.killed += status != 0
            self.missed += [] if status else [mutant]
        self.missed.sort(key=lambda mutant: mutant.line)
        return True

    def _start(self, session: pytest.Session, mutant: Mutant, limit: int | None) -> int:
        """Run the tests on a mutant in a copy of this process, until the first that fails."""
        pid = os.fork()
        if pid:
            return pid
        passed = False
        try:
            if limit:  # in processor time: a busy machine kills no tests
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            name = f"qpignn.{self.module.removesuffix('.py').replace('/', '.')}"
            swap(importlib.import_module(name), mutant.code)
            for item in session.items:
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if session.testsfailed:
                    break
            passed = not session.testsfailed
        finally:
            os._exit(0 if passed else 1)


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def judge(module: str, jobs: int) -> Judge:
    """Run the tests of a module on every mutant of it."""
    tests = ROOT / "tests" / Path(module).with_name(f"test_{Path(module).name}")
    report = Judge(module, jobs)
    arguments = ["-s", "--tb=no", "--assert=plain", "--noconftest", "-p", "no:cacheprovider"]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        code = pytest.main(
            [*arguments, "--hypothesis-profile=mutants", "--rootdir", str(ROOT), str(tests)],
            [report],
        )
    if code != pytest.ExitCode.OK:
        raise SystemExit(f"{tests}: expected tests that pass on the unchanged module, got {code}")
    return report


def read_equivalent(text: str) -> dict[str, dict[str, str]]:
    """Return module → mutant → why it may survive."""
    equivalents: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            module, _, rest = line.partition(" | ")
            mutant, _, why = rest.rpartition(" | ")
            equivalents.setdefault(module, {})[mutant] = why
    return equivalents


def print_survivors(report: Judge, excused: dict[str, str]) -> int:
    """Print a module's survivors; return how many things are wrong."""
    wrong = 0
    for mutant in report.missed:
        why = excused.get(str(mutant), "SURVIVED")
        wrong += why == "SURVIVED"
        print(f"{report.module}:{mutant.line}: {mutant}  ({why})", flush=True)
    for stale in excused.keys() - {str(mutant) for mutant in report.missed}:
        wrong += 1
        print(f"{report.module}: {stale}  (in {EQUIVALENT.name}, but killed or gone)", flush=True)
    return wrong


def main() -> int:
    """Run, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(MODULES), help="modules, with commas between")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tested at once")
    options = parser.parse_args()
    torch.set_num_threads(1)  # before the first fork
    excused = read_equivalent(EQUIVALENT.read_text(encoding="utf-8"))
    start, rows, wrong = time.monotonic(), [], 0
    for module in options.only.split(","):
        report = judge(module, options.jobs)
        wrong += print_survivors(report, excused.get(module, {}))
        rows.append((module, report.killed, len(report.missed)))
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    print(f"\n{'module':<28}{'killed':>8}{'survived':>10}")
    for module, killed, missed in rows:
        print(f"{module:<28}{killed:>8}{missed:>10}")
    print(f"in {time.monotonic() - start:.0f} s")
    if wrong:
        print(f"{wrong} to look at: test what they change, or say in {EQUIVALENT.name} why not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
