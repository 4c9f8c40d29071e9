from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from qpignn.runtime import memory


def test_chunks_cover_every_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CHUNK_ROWS", 4)
    assert [range(10)[part] for part in memory.row_chunks(10)] == [
        range(4),
        range(4, 8),
        range(8, 10),
    ]
    assert [*memory.row_chunks(0)] == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_allocate_tensor_beyond_memory_uses_an_unlinked_file(
    dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(memory, "free_memory", lambda: 10)
    resident = Path("/proc/self/smaps")
    large = memory.allocate_tensor((300, 1000), dtype)
    large.fill_(1.5)
    assert (large.shape, large.dtype) == ((300, 1000), dtype)
    assert float(large.double().sum()) == 450_000
    assert not list(tmp_path.iterdir())
    if resident.exists():
        assert str(tmp_path) in resident.read_text()
    del large
    if resident.exists():
        assert str(tmp_path) not in resident.read_text()


def test_free_memory_takes_the_smallest_of_machine_and_groups(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 4000 kB\n")
    assert memory.free_memory(tmp_path) == 4000 * 1024
    group = tmp_path / "group"
    group.mkdir()
    (group / "memory.max").write_text("5000\n")
    (group / "memory.current").write_text("2000\n")
    (tmp_path / "self" / "cgroup").write_text("0::/\n")
    (tmp_path / "self" / "mountinfo").write_text(f"31 23 0:28 / {group} rw - cgroup2 cgroup2 rw\n")
    assert memory.free_memory(tmp_path) == 3000


def test_free_memory_follows_a_limit_on_the_address_space() -> None:
    code = """
import resource
from qpignn.runtime.memory import free_memory
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
free = free_memory()
assert 2**29 < free < 2**31, free
block = bytearray(2**28)
assert 2**28 <= free - free_memory() < 2**28 + 2**22
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_freed_blocks_are_kept_for_the_next_step() -> None:
    """A block that glibc maps by itself goes back when it is freed; one of its heap stays."""
    code = """
import ctypes, sys, torch
from qpignn.runtime.memory import retain_freed_memory
library = ctypes.CDLL(None)
if not hasattr(library, "mallinfo2"):
    sys.exit("no glibc")
class Counts(ctypes.Structure):  # the fifth of ten counts: bytes of blocks mapped by themselves
    _fields_ = [(f"count{i}", ctypes.c_size_t) for i in range(10)]
library.mallinfo2.restype = Counts
if sys.argv[1] == "kept":
    retain_freed_memory()
before = library.mallinfo2().count4
block = torch.empty(20 * 2**20, dtype=torch.uint8)
print(library.mallinfo2().count4 - before)
"""
    mapped = {}
    for how in ("kept", "not"):
        command = [sys.executable, "-c", code, how]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "no glibc" in done.stderr:
            pytest.skip("needs glibc from 2.33 on")
        mapped[how] = int(done.stdout)
    assert mapped["kept"] == 0
    assert mapped["not"] >= 20 * 2**20


LARGE = """
import numpy
parts = [numpy.ones(2**13) for _ in range(512)]  # 32 MB in small blocks, which lie in the heap
lines = open("/proc/self/smaps_rollup").read().splitlines()
print(sum(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages")))
"""


def huge_kilobytes() -> int:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_processes_started_meanwhile_have_large_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not enabled.exists() or "[madvise]" not in enabled.read_text():
        pytest.skip("needs a kernel that gives large pages to those who ask")
    name, version = platform.libc_ver()
    if name != "glibc" or int(version.split(".")[1]) < 35:
        pytest.skip("needs glibc from 2.35 on")
    monkeypatch.delenv(memory.TUNABLES, raising=False)
    before = huge_kilobytes()
    with memory.huge_pages():
        assert huge_kilobytes() > before + 10_000
    assert huge_kilobytes() == before


def test_huge_pages_keeps_tunables_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.TUNABLES, "glibc.malloc.check=0")
    with memory.huge_pages():
        assert os.environ[memory.TUNABLES] == "glibc.malloc.check=0"
    assert os.environ[memory.TUNABLES] == "glibc.malloc.check=0"


FULL_DISK = """
import sys
from qpignn.runtime import memory
from qpignn.cli import main
memory.free_memory = lambda: 10
memory.SMALL = 0
sys.argv = ["qpignn", "fit", "--dataset", "basic", "--epochs", "1", "--out", sys.argv[1]]
main()
"""


def test_fit_with_a_full_tmpdir_ends_with_one_sentence_not_with_sigbus(tmp_path: Path) -> None:
    """``TMPDIR`` is a real file system of 16 kB; a mapped file there would end in SIGBUS."""
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=16k tmpfs '{small}'"
    tool = shutil.which("unshare")
    begin = next(
        (
            command
            for user in ([], ["--user", "--map-root-user"])
            if (command := [str(tool), *user, "--mount", "sh", "-c"])
            and tool
            and not subprocess.run([*command, mount], capture_output=True, check=False).returncode
        ),
        None,
    )
    if begin is None:
        pytest.skip("needs the right to mount a file system: unshare --mount")
    program = f'{mount} && exec "$0" -c "$1" "$2"'
    done = subprocess.run(
        [*begin, program, sys.executable, FULL_DISK, str(tmp_path / "model")],
        env={**os.environ, "TMPDIR": str(small), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 2, (done.returncode, done.stderr[-2000:])
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"error: {small}: expected ")
    assert "bytes of free disk space" in last
    assert "No space left on device; free some space, or set TMPDIR" in last
    assert not (tmp_path / "model" / "model.json").exists()
