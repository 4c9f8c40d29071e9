"""A short part of ``make fuzz``: every target on some inputs, and the driver itself."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from choices import Choices, corrupt_bytes
from run import FOLDERS, SHARES, Count, table
from targets import MAKERS, make

HERE = Path(__file__).parent
EXAMPLES = {"fit": 15, "sensible fit": 15, "checkpoint": 25, "frames": 60, "order": 15, "unit": 10}
LAWS = ("order", "unit", "sensible fit")
"""What is right always: there is nothing to refuse."""


def test_driver_shares_cover_every_target() -> None:
    assert SHARES.keys() == MAKERS.keys()


@pytest.mark.parametrize("name", MAKERS)
def test_target_accepts_or_raises_named_errors_only(name: str, tmp_path: Path) -> None:
    target, draw = make(name, tmp_path), random.Random(0)
    ended: Counter[str] = Counter()
    for _ in range(EXAMPLES.get(name, 100)):
        content = draw.choice(target.seeds)
        if name in FOLDERS:
            content = draw.randbytes(draw.randrange(2, 40))
        else:
            content = corrupt_bytes(content, Choices(draw.randbytes(80)))
        ended[target.run(content)] += 1
    # not all alike: the inputs reach different places
    assert len(ended) > 1 or name in LAWS, ended


@pytest.mark.parametrize(
    "name", ["text", "excel", "parquet", "graphml", "model", "conformal", "mapped"]
)
def test_target_accepts_one_of_its_seeds(name: str, tmp_path: Path) -> None:
    target = make(name, tmp_path)
    assert "fine" in [target.run(content) for content in target.seeds]


def test_driver_without_crashes_prints_a_table_and_stores_none(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "run.py"), "--seconds", "12", "--targets", "graph"]
    command += ["--by-chance", "--crashes", str(tmp_path / "crashes"), "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("graph "))
    assert int(line.split()[3].replace(",", "")) > 0
    assert not (tmp_path / "crashes").exists()


def test_table_counts_examples_errors_and_crashes() -> None:
    count = Count("text", "random", 10, Counter({"fine": 7, "ReadError": 2, "crash": 1}))
    (head, line, total) = table([count]).splitlines()
    assert head.split()[-1] == "crashes"
    assert line.split()[3:] == ["10", "7", "2", "(1", "kinds)", "1"]
    assert total.split()[-4:] == ["10", "7", "2", "1"]


FAILING = """
import sys
sys.path[:0] = [{here!r}]
import run
class Target:
    seeds = [b"ab"]
    def run(self, data):
        if data != b"ab":
            raise ZeroDivisionError("found")
        return "fine"
class Targets:
    def make(self, name, folder):
        return Target()
run._targets = lambda: Targets()
from pathlib import Path
run.work("text", Path({folder!r}), Path({crashes!r}), 2, 0, guided=False)
"""


def test_worker_stores_one_input_per_place_of_a_crash(tmp_path: Path) -> None:
    folder, crashes = tmp_path / "work", tmp_path / "crashes"
    code = FAILING.format(here=str(HERE), folder=str(folder), crashes=str(crashes))
    subprocess.run([sys.executable, "-c", code], check=True)
    counts = json.loads((folder / "count.json").read_text())
    assert counts["finished"]
    assert counts["outcomes"]["crash"] > 10
    assert [*counts["crashes"]] == ["ZeroDivisionError at <string>:9"]
    (kept,) = crashes.glob("text-*.bin")
    assert kept.read_bytes() != b"ab"
    assert "ZeroDivisionError: found" in kept.with_suffix(".txt").read_text()
