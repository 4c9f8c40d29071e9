"""A fork server: this process has imported everything; each trial runs in a child of its own.

Starting Python and torch takes seconds, a fork takes milliseconds, so that many hundreds of
processes can be killed in minutes. It is the real command that runs in the child, from its words
to its exit code. Children are forked before torch has done anything here, with one thread.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from faults.steps import Fault, Steps
from qpignn.cli import main

for late in (  # commands import what they need when they are called: here it is there already
    *("data.catalog", "data.convert", "data.readers", "paper.plan", "experiments.run"),
    *("methods.bundle", "reports.content", "paper.tables", "paper.pictures"),
):
    import_module(f"qpignn.{late}")
torch.set_num_threads(1)
gc.freeze()  # what is imported stays as it is, so children share its memory
CRASHED = 70
"""Exit code of a child that ended in an error no command turns into a line."""
LONGEST = 120  # seconds: a child that takes longer hangs


@dataclass
class Ended:
    """How a child ended.

    Attributes:
        code: its exit code; -9 where it was killed.
        err: what it said.
        answer: what its work returned, where it came to its end.
        steps: the steps it took towards the disk, where it came to its end.
        seconds: how long it took.
    """

    code: int
    err: str = ""
    answer: Any = None
    steps: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Child:
    """A process that does one thing and ends."""

    def __init__(
        self, work: Callable[[], Any], root: Path, fault: Fault | None = None, seed: int = 0
    ) -> None:
        self.start = time.monotonic()
        self.err, says = os.pipe()
        self.answers, tells = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.dup2(says, 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            _work(work, tells, Steps(root, fault or Fault(), seed))
        os.close(says)
        os.close(tells)

    def end(self, kill_after: float | None = None) -> Ended:
        """Wait for its end, or kill it after some seconds."""
        received: dict[int, bytes] = {self.err: b"", self.answers: b""}
        deadline: float | None = self.start + (LONGEST if kill_after is None else kill_after)
        with selectors.DefaultSelector() as ready:
            for pipe in received:
                ready.register(pipe, selectors.EVENT_READ)
            while ready.get_map():
                if deadline is not None and time.monotonic() >= deadline:
                    os.kill(self.pid, signal.SIGKILL)
                    deadline = None
                left = None if deadline is None else max(deadline - time.monotonic(), 0)
                for key, _ in ready.select(left):
                    block = os.read(key.fd, 1 << 16)
                    received[key.fd] += block
                    if not block:
                        ready.unregister(key.fd)
                        os.close(key.fd)
        _, status = os.waitpid(self.pid, 0)
        seconds = time.monotonic() - self.start
        if kill_after is None and seconds >= LONGEST:
            raise TimeoutError(f"a child took longer than {LONGEST} seconds")
        ended = Ended(
            os.waitstatus_to_exitcode(status), received[self.err].decode(), seconds=seconds
        )
        if received[self.answers]:
            ended.answer, ended.steps = json.loads(received[self.answers])
        return ended


def in_child(
    work: Callable[[], Any],
    root: Path,
    fault: Fault | None = None,
    kill_after: float | None = None,
    seed: int = 0,
) -> Ended:
    """Do something in a child, to its end or until it is killed."""
    return Child(work, root, fault, seed).end(kill_after)


def _work(work: Callable[[], Any], tells: int, steps: Steps) -> None:
    code, answer = CRASHED, None
    try:
        if steps.fault.kind == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (steps.fault.at, steps.fault.at))
        steps.install()
        answer = work()
        code = 0
    except SystemExit as exit:
        code = int(exit.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os.write(tells, json.dumps([answer, steps.done]).encode())
        os._exit(code)


def command(*arguments: object) -> Callable[[], None]:
    """Return a command of the command line as work for a child."""

    def run() -> None:
        sys.argv = ["qpignn", *map(str, arguments)]
        main()

    return run


def exit_code(*arguments: object) -> int:
    """Run a command here, and return its exit code."""
    try:
        command(*arguments)()
    except SystemExit as exit:
        return int(exit.code or 0)
    return 0
