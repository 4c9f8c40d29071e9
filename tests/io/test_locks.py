"""Locks on folders, and readers that meet writers."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from qpignn.errors import LockedError, ModelFileError, ReadError
from qpignn.io.files import atomic_files
from qpignn.io.locks import LOCK_NAME, lock_folder, read_consistent

HOLDER = """
import sys, time
from pathlib import Path
from qpignn.io import locks
if sys.argv[2] == "soft":
    import errno, fcntl
    def flock(*_): raise OSError(errno.ENOLCK, "No locks available")
    fcntl.flock = flock
with locks.lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def holding(folder: Path, how: str = "native") -> subprocess.Popen[bytes]:
    """Start a process that holds the lock of a folder until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), how], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def no_flock(*_: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def test_locked_in_two_threads_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(10):
            with lock_folder(tmp_path):
                inside += 1
                most = max(most, inside)
                time.sleep(0.001)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.mark.parametrize("how", ["native", "soft"])
def test_locked_by_another_process_raises_and_is_free_once_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """``soft`` is a file system without locks, as some network drives are."""
    if how == "soft":
        monkeypatch.setattr(fcntl, "flock", no_flock)
    process = holding(tmp_path, how)
    try:
        with (
            pytest.raises(LockedError, match=r"another process has locked .*wait until"),
            lock_folder(tmp_path, wait=0.1),
        ):
            pass
    finally:
        process.kill()
        process.communicate()
    start = time.monotonic()
    with lock_folder(tmp_path, wait=30):
        assert time.monotonic() - start < 10


def test_locked_with_a_lock_file_of_a_dead_process_is_free(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("1 some-other-host")
    with lock_folder(tmp_path, wait=0):
        pass


def test_locked_through_a_link_writes_nothing_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"), lock_folder(tmp_path):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def write_pair(folder: Path, content: str) -> None:
    with atomic_files() as files:
        for name in ("a", "b"):
            files.write(folder / name, content.encode())


def read_pair(folder: Path, pause: float = 0) -> str:
    """Read two files that must be equal."""
    try:
        first = (folder / "a").read_text()
        time.sleep(pause)
        second = (folder / "b").read_text()
    except OSError as error:
        raise ReadError(str(error)) from error
    if first != second:
        raise ReadError("mixed")
    return first


def test_read_whole_of_files_replaced_while_reading_reads_them_again(tmp_path: Path) -> None:
    """Two equal files of different writers: only the change itself shows that they do not fit."""
    write_pair(tmp_path, "old")
    reads = []

    def read() -> str:
        reads.append((tmp_path / "a").read_text())
        if len(reads) == 1:
            write_pair(tmp_path, "new")
        return reads[-1] + (tmp_path / "b").read_text()

    assert read_consistent(tmp_path, ("a", "b"), read) == "newnew"


def test_read_whole_during_an_exchange_waits_for_its_end(tmp_path: Path) -> None:
    write_pair(tmp_path, "old")
    begun = threading.Event()

    def exchange() -> None:
        with lock_folder(tmp_path):
            (tmp_path / "a").write_text("new")
            begun.set()
            time.sleep(0.3)
            (tmp_path / "b").write_text("new")

    writer = threading.Thread(target=exchange)
    writer.start()
    begun.wait()
    assert read_consistent(tmp_path, ("a", "b"), lambda: read_pair(tmp_path)) == "new"
    writer.join()


def test_read_whole_of_damaged_files_raises_what_reading_raised(tmp_path: Path) -> None:
    write_pair(tmp_path, "old")
    (tmp_path / "a").write_text("damaged")
    reads = 0

    def read() -> str:
        nonlocal reads
        reads += 1
        return read_pair(tmp_path)

    with pytest.raises(ReadError, match="mixed"):
        read_consistent(tmp_path, ("a", "b"), read)
    assert reads == 1  # no process was writing, so once is enough


def test_read_whole_without_the_right_to_lock_reads_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pair(tmp_path, "old")
    plain = os.open

    def denied(path: object, flags: int, *arguments: int) -> int:
        if str(path).endswith(LOCK_NAME):
            raise PermissionError(errno.EACCES, "Permission denied")
        return plain(path, flags, *arguments)  # type: ignore[arg-type]

    reads = 0

    def read() -> str:
        nonlocal reads
        reads += 1
        if reads < 3:
            raise ModelFileError("an exchange is going on")
        return "whole"

    monkeypatch.setattr(os, "open", denied)
    assert read_consistent(tmp_path, ("a", "b"), read) == "whole"


def test_read_whole_of_files_that_never_stay_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qpignn.io.locks.PAUSE", 0)
    count = 0

    def read() -> None:
        nonlocal count
        count += 1
        (tmp_path / "a").write_text("x" * count)

    with pytest.raises(ReadError, match="expected files that stay as they are"):
        read_consistent(tmp_path, ("a",), read)
