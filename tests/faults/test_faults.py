"""A short part of ``make faults``, and that its driver detects a place that is not safe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from faults.steps import Fault
from faults.tally import Tally
from faults.trials import one_line_of_ours

HERE = Path(__file__).parent
REAL = ("fit over a fit", "convert over a graph", "download", "two conversions")
# a place whose writer opens the real name: every fault within it must be found
PROGRAM = f"""
import os, sys
from pathlib import Path
sys.path[:0] = [{str(HERE.parent)!r}]
from faults.places import PLACES, Place, file

def write():
    with open("out", "w") as out:
        for word in "new":
            out.write(word)
            out.flush()
    return 0

PLACES["careless"] = Place(
    "careless", lambda: Path("out").write_text("old"), write, write, lambda: {{"out": file("out")}}
)
from faults import run
sys.exit(run.main())
"""


def test_driver_passes_real_places_and_fails_a_careless_one() -> None:
    arguments = ["--places", ",".join((*REAL, "careless")), "--seed", "0", "--most", "2"]
    arguments += ["--timed", "1", "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("failed: ")]
    assert failed
    assert all(line.startswith("failed: careless, ") for line in failed), done.stdout
    for kind in ("kill at step", "full at step"):
        assert any(kind in line for line in failed), done.stdout
    assert done.stdout.splitlines()[-1].endswith(f" passed, {len(failed)} failed")


def test_table_counts_kills_errors_and_pairs() -> None:
    from faults.run import table

    tally = Tally("fit", seconds=3)
    for fault in ("kill at step 1", "timed kill", "full at step 2", "denied", "pair 0"):
        tally.count(fault, lambda: "old whole")
    head, line, total = table([tally]).splitlines()
    assert head.split() == ["place", "seconds", "kills", "errors", "pairs", "failed", "outcomes"]
    assert line.split() == ["fit", "3", "2", "2", "1", "0", "5", "old", "whole"]
    assert total.split() == ["all", "3", "2", "2", "1", "0"]


def test_one_line_of_ours_accepts_one_named_error_only() -> None:
    ours = "error: m/fit.json: expected a place to write to, got No space left on device; …\n"
    assert one_line_of_ours(f"training 2/2\n{ours}")
    assert not one_line_of_ours("error: [Errno 28] No space left on device\n")
    assert not one_line_of_ours(ours + ours)
    assert not one_line_of_ours(f"Traceback (most recent call last):\n{ours}")
    assert not one_line_of_ours("")


def test_fault_concerns_steps_of_its_kind_only() -> None:
    assert Fault("full", 1).concerns("write")
    assert not Fault("full", 1).concerns("unlink")
    assert Fault("denied", 1).concerns("sqlite commit")
    assert not Fault("denied", 1).concerns("write")
