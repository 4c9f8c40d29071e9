"""Two writers save fits to one folder at the same moment, while a reader loads it again and again.

The writers are two processes with equal process ids (each is process 1 of its own pid namespace,
as in two containers) or two threads. After every round the folder must hold the whole fit of one
of them. A reader must get a whole fit at any moment, or an error of this library.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # a writer is started by the path of this file
    sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

import torch

from faults.tally import BrokenError, Tally
from qpignn import QpiGNN, example_tables, from_frames, split_nodes
from qpignn.data.column_roles import ColumnRoles
from qpignn.errors import QpignnError
from qpignn.methods.bundle import Fit, Origin, load_fit, save_fit

WRITERS = (1, 2)
LATEST = 0.01  # seconds by which one writer may start after the other
PID_ONE = "import os; os.getpid = lambda: 1\n"
SAVERS = {"savers with equal pids": "processes", "savers in threads": "threads"}
"""Names of the two measurements, for ``make faults``."""

Save = Callable[[float], str]
"""Saves after a delay in seconds; returns ``saved`` or the message of an error."""


def make_fit(writer: int) -> Fit:
    """Return a fit whose every part carries the writer's number."""
    stations, roads = example_tables(40)
    data = split_nodes(from_frames(stations, roads, target="pollution"))
    model = QpiGNN(epochs=1, hidden=4, members=5, seed=writer).fit(data)
    data.y = torch.full_like(data.y, writer)
    roles = ColumnRoles(target="pollution", id="id")
    return Fit(model, data, stations.assign(writer=writer), Origin(None, roles))


def writer_of(fit: Fit) -> int:
    """Return the writer of all parts of a fit, or raise."""
    assert fit.table is not None
    writers = {fit.model.get_params()["seed"], *fit.data.y.tolist(), *fit.table["writer"]}
    if len(writers) != 1:
        raise BrokenError(f"a fit mixed from the writers {sorted(writers)} was loaded as whole")
    return int(writers.pop())


def save_after(folder: Path, fit: Fit, delay: float) -> str:
    """Save a fit after a delay; an error of this library is returned as text."""
    time.sleep(delay)
    try:
        save_fit(folder, fit)
    except QpignnError as error:
        return f"error: {error}"
    return "saved"


# ---- processes with equal ids


def namespace() -> list[str] | None:
    """Return the arguments that start a command as process 1 of a new pid namespace, if allowed."""
    tool = shutil.which("unshare")
    for user in ((), ("--user", "--map-root-user")):
        command = [str(tool), *user, "--pid", "--fork", "--kill-child", "--mount-proc"]
        if tool and subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
            continue
        return command if tool else None
    return None


@contextmanager
def processes(folder: Path) -> Iterator[dict[int, Save]]:
    """Yield two writers, each a process that believes its id is 1."""
    begin = namespace()
    command = [*(begin or []), sys.executable, __file__]
    if begin is None:  # namespaces are not permitted here: the ids are equal all the same
        program = f"{PID_ONE}import runpy; runpy.run_path({__file__!r}, run_name='__main__')"
        command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    started = {
        writer: subprocess.Popen(
            [*command, str(folder), str(writer)], stdin=pipe, stdout=pipe, text=True
        )
        for writer in WRITERS
    }
    try:
        ids = {_answer(process) for process in started.values()}
        if ids != {"ready, process 1"}:
            raise BrokenError(f"expected two processes with the id 1, got {ids}")
        yield {writer: _asking(process) for writer, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
            process.communicate()


def _asking(process: subprocess.Popen[str]) -> Save:
    def save(delay: float) -> str:
        assert process.stdin is not None
        process.stdin.write(f"{delay}\n")
        process.stdin.flush()
        return _answer(process)

    return save


def _answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip() or f"a process that ended with {process.wait()}"


def answer_requests(folder: Path, writer: int) -> None:
    """Be one of the processes: save whenever a line with a delay comes in."""
    import os

    torch.set_num_threads(1)
    fit = make_fit(writer)
    print(f"ready, process {os.getpid()}", flush=True)
    for line in sys.stdin:
        try:
            print(save_after(folder, fit, float(line)), flush=True)
        except Exception as error:  # not an error of this library
            print(f"failed: {error!r}", flush=True)


# ---- threads


@contextmanager
def threads(folder: Path) -> Iterator[dict[int, Save]]:
    """Yield two writers of this process; :func:`meet` calls each in a thread of its own."""
    fits = {writer: make_fit(writer) for writer in WRITERS}

    def saving(writer: int) -> Save:
        return lambda delay: save_after(folder, fits[writer], delay)

    yield {writer: saving(writer) for writer in WRITERS}


# ---- the measurement


class Reader(threading.Thread):
    """Loads a folder again and again until :meth:`finish`; counts what it got."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.ended = folder, threading.Event()
        self.got: Counter[str] = Counter()
        self.broken: list[str] = []

    def run(self) -> None:
        """Load until ``finish`` is called."""
        while not self.ended.is_set():
            try:
                writer_of(load_fit(self.folder))
                self.got["whole"] += 1
            except QpignnError:
                self.got["refused"] += 1
            except Exception as error:
                self.broken.append(repr(error))

    def finish(self) -> None:
        """Stop loading."""
        self.ended.set()
        self.join()


def meet(folder: Path, savers: dict[int, Save], draw: random.Random) -> str:
    """Let both save at the same moment; return how that ended, or raise."""
    answers: dict[int, Any] = {}

    def ask(writer: int, delay: float) -> None:
        try:
            answers[writer] = savers[writer](delay)
        except Exception as error:
            answers[writer] = f"failed: {error!r}"

    asking = [
        threading.Thread(target=ask, args=(writer, draw.uniform(0, LATEST))) for writer in savers
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    strange = [answer for answer in answers.values() if answer != "saved"]
    if strange:  # both write to the same folder and there is room: nothing may fail
        raise BrokenError(f"a save failed: {strange}")
    try:
        left = writer_of(load_fit(folder))
    except QpignnError as error:
        raise BrokenError(f"afterwards the folder is unreadable: {error}") from error
    if left not in savers:
        raise BrokenError(f"afterwards the folder holds the fit of {left}")
    rubbish = [path.name for path in folder.rglob(".*") if path.name != ".qpignn.lock"]
    if rubbish:
        raise BrokenError(f"temporary files were left behind: {rubbish}")
    return "both saved, one whole"


def try_savers(name: str, base: Path, *, seed: int, times: int = 200) -> Tally:
    """Let two writers meet so many times, with a reader that looks on."""
    tally, draw = Tally(name), random.Random(f"{seed} {name}")
    folder = base / "fit"
    base.mkdir(parents=True, exist_ok=True)
    save_fit(folder, make_fit(WRITERS[0]))
    with {"processes": processes, "threads": threads}[SAVERS[name]](folder) as savers:
        reader = Reader(folder)
        reader.start()
        for turn in range(times):
            tally.count(f"pair {turn}", lambda: meet(folder, savers, draw))
        reader.finish()
    tally.readings |= {"read whole": reader.got["whole"], "read refused": reader.got["refused"]}
    tally.broken += [f"{name}, reader: {message}" for message in reader.broken]
    if not reader.got["whole"]:
        tally.broken.append(f"{name}: the reader never got a whole fit")
    return tally


if __name__ == "__main__":
    answer_requests(Path(sys.argv[1]), int(sys.argv[2]))
