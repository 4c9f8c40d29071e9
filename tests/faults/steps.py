"""Every step by which a process changes the disk, counted; one of them, or all, can fail.

Inside a child process the ways from Python to the disk are replaced: opening for writing, each
write that reaches the system, ``fsync``, renaming, deleting, making folders, Arrow's writer and
SQLite's statements and commits. The code under test is not touched; it asks the system as always,
and gets what a full disk, a missing right or a kill would give it.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

NEEDS_ROOM = ("open", "write", "fsync", "mkdir", "arrow", "sqlite")
NEEDS_RIGHT = ("open", "mkdir", "replace", "link", "unlink", "rmdir", "arrow", "sqlite")
SQLITE_MESSAGES = {
    errno.ENOSPC: "database or disk is full",
    errno.EACCES: "attempt to write a readonly database",
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Fault:
    """What goes wrong.

    Attributes:
        kind: ``kill`` (once, before the step), ``full`` (from the step on nothing finds room),
            ``denied`` (once), ``slow`` (every step waits a little: two processes meet more often),
            ``limit`` (no file may grow beyond ``at`` bytes: the system itself refuses) or ``none``.
        at: which step, counted from 1.
    """

    kind: str = "none"
    at: int = 0

    def concerns(self, step: str) -> bool:
        """Whether a step is one that such a fault can strike."""
        kinds = {"full": NEEDS_ROOM, "denied": NEEDS_RIGHT}.get(self.kind)
        return kinds is None or step.partition(" ")[0] in kinds


@dataclass
class Steps:
    """Counts steps below a folder, and lets them go wrong."""

    root: Path
    fault: Fault = Fault()
    seed: int = 0
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = f"{self.root.resolve()}{os.sep}"
        self.draw = random.Random(self.seed)

    def concerned(self, place: Any) -> bool:
        """Whether a path, or what a number of an open file stands for, lies below the folder."""
        if isinstance(place, int):
            try:
                place = os.readlink(f"/proc/self/fd/{place}")
            except OSError:
                return False
        return os.path.abspath(os.fsdecode(place)).startswith(self.start)

    def step(self, kind: str, place: Any = None) -> None:
        """Count a step; it may be the one that goes wrong."""
        if place is not None and not self.concerned(place):
            return
        self.done.append(kind)
        now, fault = len(self.done), self.fault
        if fault.kind == "slow":
            time.sleep(self.draw.choice((0, 0, 0.001, 0.01)))
        if fault.kind == "kill" and now == fault.at:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.kind == "full" and now >= fault.at and fault.concerns(kind):
            self._refuse(errno.ENOSPC, kind, place)
        if fault.kind == "denied" and now == fault.at and fault.concerns(kind):
            self._refuse(errno.EACCES, kind, place)

    @staticmethod
    def _refuse(number: int, kind: str, place: Any) -> None:
        if kind.startswith("sqlite"):
            raise sqlite3.OperationalError(SQLITE_MESSAGES[number])
        named = (os.fspath(place),) if place is not None and not isinstance(place, int) else ()
        raise OSError(number, os.strerror(number), *named)

    def install(self) -> None:
        """Stand between this process and the disk, for as long as it lives."""
        opened = _counted_open(self)
        io.open = builtins.open = opened  # type: ignore[assignment]
        for name in ("replace", "rename"):
            self._replace(os, name, "replace", which=1)
        self._replace(os, "link", "link", which=1)
        for name in ("unlink", "remove"):
            self._replace(os, name, "unlink")
        for name in ("mkdir", "rmdir", "fsync"):
            self._replace(os, name, name)
        self._replace_os_open()
        for name in ("__init__", "write_table", "close"):
            self._replace_arrow(name)
        plain_connect = sqlite3.connect
        connection = _counted_connection(self)

        def connect(path: Any, **options: Any) -> sqlite3.Connection:
            self.step("sqlite connect", path)
            return plain_connect(path, factory=connection, **options)

        sqlite3.connect = connect  # type: ignore[assignment]

    def _replace(self, module: Any, name: str, kind: str, which: int = 0) -> None:
        plain: Callable[..., Any] = getattr(module, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            if "dir_fd" not in options or options["dir_fd"] is None:
                self.step(kind, arguments[which])
            return plain(*arguments, **options)

        setattr(module, name, counted)

    def _replace_os_open(self) -> None:
        plain = os.open

        def counted(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            if flags & WRITES:
                self.step("open", path)
            return plain(path, flags, *arguments, **options)

        os.open = counted  # type: ignore[assignment]

    def _replace_arrow(self, name: str) -> None:
        plain = getattr(pq.ParquetWriter, name)

        def counted(writer: Any, *arguments: Any, **options: Any) -> Any:
            if name == "__init__":
                writer.goes_to = arguments[0]
            if isinstance(writer.goes_to, str | os.PathLike):
                self.step(f"arrow {name.strip('_')}", writer.goes_to)
            return plain(writer, *arguments, **options)

        setattr(pq.ParquetWriter, name, counted)


def _counted_open(steps: Steps) -> Callable[..., Any]:
    plain = io.open

    class Raw(io.FileIO):
        def write(self, content: Any) -> int | None:
            steps.step("write", self.fileno())
            return super().write(content)

    def opened(
        file: Any, mode: str = "r", buffering: int = -1, *arguments: Any, **options: Any
    ) -> Any:
        if not set(mode) & set("wxa+") or isinstance(file, int) or not steps.concerned(file):
            return plain(file, mode, buffering, *arguments, **options)
        opener = options.pop("opener", None)
        if opener is None:  # else it opens by os.open, which is counted too
            steps.step("open", file)
        raw = Raw(file, mode.replace("b", "").replace("t", ""), opener=opener)
        binary = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return binary if "b" in mode else io.TextIOWrapper(binary, *arguments, **options)

    return opened


def _counted_connection(steps: Steps) -> type[sqlite3.Connection]:
    class Counted(sqlite3.Connection):
        def execute(self, query: str, *arguments: Any) -> sqlite3.Cursor:
            if not query.lstrip().startswith("SELECT"):
                steps.step("sqlite execute")
            return super().execute(query, *arguments)

        def __exit__(self, *error: Any) -> Any:
            steps.step("sqlite commit")
            return super().__exit__(*error)

    return Counted
