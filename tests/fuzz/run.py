"""Fuzz everything that reads what others wrote, for a while, and report how it ended.

    python tests/fuzz/run.py --seconds 600
    python tests/fuzz/run.py --targets text,model --seconds 30
    python tests/fuzz/run.py --targets text --replay fuzz-crashes/text-0123456789.bin

Guided by coverage where atheris is installed, else by chance. Every target runs in a process of its
own, so that one that is killed by the system is noticed and costs nothing else. Inputs that crash
are kept, one for each place they crash at. Exit code 1: there were crashes.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGE = ROOT / "src" / "qpignn"
SHARES = {
    "text": 3.0,
    "excel": 1.0,
    "parquet": 2.0,
    "graphml": 2.0,
    "model": 2.0,
    "conformal": 1.0,
    "mapped": 2.0,
    "checkpoint": 0.5,
    "graph": 1.0,
    "frames": 1.5,
    "fit": 1.5,
    "sensible fit": 1.0,
    "order": 1.0,
    "unit": 1.0,
}
"""Targets and their share of the time."""
LONGEST_INPUT = 4096
SLOWEST = 60  # seconds: what takes longer is a crash
MOST_MEMORY = 1000  # megabytes that one example may add
FOLDERS = ("model", "conformal", "mapped", "checkpoint")
"""Targets whose bytes are decisions about a folder, not a file's content."""


@dataclass
class Count:
    """How the examples of one target ended."""

    target: str
    engine: str = "none"
    examples: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    crashes: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    finished: bool = False

    def write(self, path: Path) -> None:
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(self.__dict__))
        os.replace(temporary, path)

    @classmethod
    def read(cls, target: str, path: Path) -> Count:
        if not path.is_file():
            return cls(target)
        values = json.loads(path.read_text())
        return cls(**{**values, "outcomes": Counter(values["outcomes"])})


# ---- one target, in a process of its own


class Worker:
    """Runs one target until its time is over."""

    def __init__(
        self, target: Any, count: Count, crashes: Path, folder: Path, until: float
    ) -> None:
        self.target, self.count, self.crashes, self.folder = target, count, crashes, folder
        self.until, self.start, self.reported = until, time.monotonic(), 0.0

    def one(self, data: bytes) -> None:
        """Run one example; what crashes is kept and counted."""
        (self.folder / "current").write_bytes(data)
        before = _peak()
        try:
            how = self.target.run(data)
            if _peak() - before > MOST_MEMORY:
                raise MemoryError(f"took {_peak() - before:.0f} MB")
        except Exception as error:
            how = "crash"
            self._keep(data, error)
        self.count.examples += 1
        self.count.outcomes[how] += 1
        now = time.monotonic()
        if now - self.reported > 1:
            self.tell()
            self.reported = now
        if now > self.until:
            self.count.finished = True
            self.tell()
            sys.stdout.flush()
            os._exit(0)  # the fuzzer would go on forever

    def tell(self) -> None:
        self.count.seconds = time.monotonic() - self.start
        self.count.write(self.folder / "count.json")

    def _keep(self, data: bytes, error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [one for one in frames if Path(one.filename).is_relative_to(PACKAGE)]
        ours = ours or list(frames)
        where = f"{type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}"
        if where in self.count.crashes:
            return
        name = f"{self.count.target.replace(' ', '-')}-{hashlib.sha256(data).hexdigest()[:10]}"
        self.count.crashes[where] = name
        self.crashes.mkdir(parents=True, exist_ok=True)
        (self.crashes / f"{name}.bin").write_bytes(data)
        text = "".join(traceback.format_exception(error))
        (self.crashes / f"{name}.txt").write_text(text, encoding="utf-8", errors="replace")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def work(
    name: str, folder: Path, crashes: Path, seconds: float, seed: int, *, guided: bool
) -> None:
    """Fuzz one target; never returns."""
    until = time.monotonic() + seconds
    folder.mkdir(parents=True, exist_ok=True)
    atheris, watching = _atheris() if guided else (None, nullcontext())
    with watching:
        target = _targets().make(name, folder)
    count = Count(name, "atheris" if atheris else "random")
    worker = Worker(target, count, crashes, folder, until)
    worker.tell()
    if atheris is None:
        by_chance(worker.one, target.seeds, random.Random(seed), name in FOLDERS)
    corpus = folder / "corpus"
    corpus.mkdir()
    for i, content in enumerate(target.seeds):
        (corpus / f"seed-{i}").write_bytes(content)
    options = {
        "max_len": LONGEST_INPUT,
        "timeout": SLOWEST,
        "rss_limit_mb": 8 * MOST_MEMORY,
        "seed": seed + 1,
        "verbosity": 0,
        "artifact_prefix": f"{crashes}/{name.replace(' ', '-')}-",
    }
    crashes.mkdir(parents=True, exist_ok=True)
    arguments = [sys.argv[0], str(corpus), *(f"-{key}={value}" for key, value in options.items())]
    atheris.Setup(arguments, worker.one)
    atheris.Fuzz()


def _atheris() -> tuple[Any, Any]:
    import atheris

    return atheris, atheris.instrument_imports(include=["qpignn"])


def _targets() -> Any:
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    import torch

    import targets

    torch.set_num_threads(1)
    return targets


def by_chance(
    run: Callable[[bytes], None], seeds: list[bytes], draw: random.Random, decisions: bool
) -> None:
    """Change seeds at random, and the changed ones again, until ``run`` ends the process."""
    sys.path[:0] = [str(HERE)]
    from choices import Choices, corrupt_bytes

    signal.signal(signal.SIGALRM, _too_slow)
    for content in seeds:
        _timed(run, content)
    while True:
        content = draw.choice(seeds) if draw.random() < 0.9 or decisions else b""
        if decisions and draw.random() < 0.8:
            content = draw.randbytes(draw.randrange(2, 40))
        for _ in range(draw.choice((1, 1, 2, 4))):
            content = corrupt_bytes(content, Choices(draw.randbytes(80)))
        _timed(run, content[:LONGEST_INPUT])


def _timed(run: Callable[[bytes], None], content: bytes) -> None:
    signal.alarm(SLOWEST)
    run(content)
    signal.alarm(0)


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"took longer than {SLOWEST} seconds")


# ---- all targets


def fuzz(
    names: list[str], seconds: float, crashes: Path, jobs: int, seed: int, *, guided: bool
) -> list[Count]:
    """Fuzz targets side by side, each for its share of the time."""
    shares = {name: SHARES.get(name, 1.0) for name in names}
    each = seconds * min(jobs, len(names)) / sum(shares.values())
    waiting = sorted(names, key=lambda name: -shares[name])
    running: dict[str, subprocess.Popen[bytes]] = {}
    counts = {}
    base = Path(tempfile.mkdtemp(prefix="qpignn-fuzz-", dir=_quick_disk()))
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                command = [sys.executable, str(HERE / "run.py"), "--worker", name]
                command += ["--folder", str(base / name), "--crashes", str(crashes)]
                command += ["--seconds", str(max(each * shares[name], 1)), "--seed", str(seed)]
                command += [] if guided else ["--by-chance"]
                log = (base / f"{name}.log").open("wb")
                running[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)
            time.sleep(0.2)
            for name in [name for name, process in running.items() if process.poll() is not None]:
                code = running.pop(name).returncode
                counts[name] = _ended(name, code, base, crashes)
    finally:
        for process in running.values():
            process.kill()
        shutil.rmtree(base, ignore_errors=True)
    return [counts[name] for name in names]


def _ended(name: str, code: int, base: Path, crashes: Path) -> Count:
    count = Count.read(name, base / name / "count.json")
    if not count.finished:  # killed, or ended by the fuzzer: too slow, too much memory
        log = (base / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        kept = f"{name.replace(' ', '-')}-ended"
        crashes.mkdir(parents=True, exist_ok=True)
        (crashes / f"{kept}.txt").write_text(f"exit code {code}\n{log[-20_000:]}")
        last = base / name / "current"
        if last.is_file():
            shutil.copy(last, crashes / f"{kept}.bin")
        count.crashes[f"ended with exit code {code}"] = kept
        count.outcomes["crash"] += 1
    return count


def _quick_disk() -> str | None:
    memory = Path("/dev/shm")
    return str(memory) if os.access(memory, os.W_OK) else None


def table(counts: list[Count]) -> str:
    """Return how all targets ended, as a table."""
    head = ("target", "engine", "seconds", "examples", "fine", "named errors", "crashes")
    rows = [head]
    total: Counter[str] = Counter()
    for count in counts:
        crashed, fine = count.outcomes["crash"], count.outcomes["fine"]
        named = count.examples - fine - min(crashed, count.examples)
        kinds = sum(1 for kind in count.outcomes if kind not in ("fine", "crash"))
        rows.append(
            (
                *(count.target, count.engine, f"{count.seconds:.0f}", f"{count.examples:,}"),
                *(f"{fine:,}", f"{named:,} ({kinds} kinds)", f"{crashed:,}"),
            )
        )
        total += Counter(examples=count.examples, fine=fine, named=named, crash=crashed)
    numbers = (f"{total[key]:,}" for key in ("examples", "fine", "named", "crash"))
    rows.append(("all", "", f"{sum(count.seconds for count in counts):.0f}", *numbers))
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def replay(name: str, path: Path) -> None:
    """Run one kept input; its traceback is the answer."""
    with tempfile.TemporaryDirectory() as folder:
        print(_targets().make(name, Path(folder)).run(path.read_bytes()))


def main() -> int:
    """Read the options and do what they say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--targets", default=",".join(SHARES), help="some of them, by commas")
    parser.add_argument("--crashes", type=Path, default=ROOT / "fuzz-crashes")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--by-chance", action="store_true", help="even if atheris is installed")
    parser.add_argument("--replay", type=Path, help="run one kept input of one target")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    guided = not asked.by_chance and importlib.util.find_spec("atheris") is not None
    if asked.worker:
        work(asked.worker, asked.folder, asked.crashes, asked.seconds, asked.seed, guided=guided)
    names = asked.targets.split(",")
    unknown = [name for name in names if name not in SHARES]
    if unknown:
        parser.error(f"unknown targets {', '.join(unknown)}; known are {', '.join(SHARES)}")
    if asked.replay:
        replay(names[0], asked.replay)
        return 0
    how = "guided by coverage (atheris)" if guided else "by chance (atheris is not installed)"
    print(f"fuzzing {len(names)} targets for {asked.seconds:g} s, {how}, seed {asked.seed}")
    counts = fuzz(names, asked.seconds, asked.crashes, asked.jobs, asked.seed, guided=guided)
    print(table(counts))
    for count in counts:
        for where, kept in count.crashes.items():
            print(f"crash in {count.target}: {where}; kept as {asked.crashes / kept}.bin")
    return 1 if any(count.crashes for count in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
