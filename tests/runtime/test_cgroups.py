"""Made-up trees of control groups, as the kernel, systemd, Slurm and containers lay them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from qpignn.runtime.cgroups import cgroup_free_memory

UNLIMITED = 9223372036854771712  # what cgroup v1 says where there is no limit


def process(root: Path, cgroup: str, *mounts: str) -> Path:
    folder = root / "proc"
    folder.mkdir()
    (folder / "cgroup").write_text(cgroup)
    (folder / "mountinfo").write_text("23 1 0:21 / /proc rw - proc proc rw\n" + "\n".join(mounts))
    return folder


def v2(folder: Path, limit: int | str, used: int, cache: int = 0, high: int | str = "max") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.high").write_text(f"{high}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\nactive_file {cache}\ninactive_file {cache}\n")


def v1(folder: Path, limit: int, used: int, cache: int = 0, inherited: int = UNLIMITED) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(
        f"active_file 7\nhierarchical_memory_limit {inherited}\n"
        f"total_active_file {cache}\ntotal_inactive_file {cache}\n"
    )


def test_cgroup_free_memory_nested_v2_takes_the_smallest_ancestor(tmp_path: Path) -> None:
    top = tmp_path / "sys"
    folder = process(
        tmp_path, "0::/slice/job/step\n", f"30 23 0:26 / {top} rw - cgroup2 cgroup2 rw"
    )
    top.mkdir()  # the kernel's root group has no limit files
    v2(top / "slice", 10_000, 4_000)
    v2(top / "slice" / "job", 5_000, 3_500)
    v2(top / "slice" / "job" / "step", "max", 3_000)
    assert cgroup_free_memory(folder) == 1_500
    v2(top / "slice", 10_000, 9_000)
    assert cgroup_free_memory(folder) == 1_000
    v2(top / "slice" / "job" / "step", "max", 3_000, high=3_200)  # systemd: MemoryHigh=
    assert cgroup_free_memory(folder) == 200
    v2(top / "slice" / "job", 5_000, 6_000)
    assert cgroup_free_memory(folder) == 0


def test_cgroup_free_memory_v2_does_not_count_file_cache(tmp_path: Path) -> None:
    top = tmp_path / "sys"
    folder = process(tmp_path, "0::/job\n", f"30 23 0:26 / {top} rw - cgroup2 cgroup2 rw")
    v2(top / "job", 5_000, 4_900, cache=1_000)
    assert cgroup_free_memory(folder) == 2_100


def test_cgroup_free_memory_v1_slurm_job_and_step(tmp_path: Path) -> None:
    top = tmp_path / "memory"
    folder = process(
        tmp_path,
        "9:name=systemd:/\n4:cpu,memory:/slurm/uid_5/job_7/step_0\n0::/\n",
        f"34 31 0:31 / {tmp_path / 'cpuset'} rw - cgroup cgroup rw,cpuset",
        f"35 31 0:32 / {top} rw,relatime shared:9 - cgroup cgroup rw,cpu,memory",
    )
    v1(top, UNLIMITED, 20_000)
    v1(top / "slurm", UNLIMITED, 19_000)
    v1(top / "slurm" / "uid_5", UNLIMITED, 15_000)
    v1(top / "slurm" / "uid_5" / "job_7", 8_000, 6_000, cache=500)
    v1(top / "slurm" / "uid_5" / "job_7" / "step_0", UNLIMITED, 5_000)
    assert cgroup_free_memory(folder) == 3_000


def test_cgroup_free_memory_v1_container_sees_its_own_group_as_root(tmp_path: Path) -> None:
    """Without a namespace the path names the host's tree, and the mount's root the same group."""
    top = tmp_path / "memory with space"
    mount = str(top).replace(" ", r"\040")
    folder = process(
        tmp_path,
        "4:memory:/docker/ab/inner\n",
        f"35 31 0:32 /docker/ab {mount} ro - cgroup c memory",
    )
    v1(top, 6_000, 1_000, inherited=4_000)  # an ancestor outside the container allows less
    v1(top / "inner", 5_000, 500)
    assert cgroup_free_memory(folder) == 3_000


@pytest.mark.parametrize("path", ["/", "/../other", "/elsewhere"])
def test_cgroup_free_memory_v2_namespace_reads_the_mounted_group(tmp_path: Path, path: str) -> None:
    top = tmp_path / "sys"
    root = "/" if path == "/" else "/docker/ab"
    folder = process(tmp_path, f"0::{path}\n", f"30 23 0:26 {root} {top} rw - cgroup2 cgroup2 rw")
    v2(top, 5_000, 2_000)
    assert cgroup_free_memory(folder) == 3_000


def test_cgroup_free_memory_without_limits_or_files_is_none(tmp_path: Path) -> None:
    assert cgroup_free_memory(tmp_path) is None
    top = tmp_path / "sys"
    folder = process(tmp_path, "0::/job\n", f"30 23 0:26 / {top} rw - cgroup2 cgroup2 rw", "odd")
    assert cgroup_free_memory(folder) is None
    v2(top / "job", "max", 100)
    assert cgroup_free_memory(folder) is None
