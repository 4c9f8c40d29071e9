"""Memory limits of Linux control groups (cgroup v1 and v2): Slurm, systemd, containers.

A process belongs to one group of each hierarchy, and every ancestor of that group may set a limit
of its own, so the memory left to the process is the minimum over all of them:

    min over ancestors g of  limit(g) - (usage(g) - file_cache(g))

The kernel reclaims file cache before it refuses memory, so cache does not count as used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

PROCESS = Path("/proc/self")
ESCAPED = re.compile(r"\\([0-7]{3})")


class Version(NamedTuple):
    """File names of one cgroup version.

    Attributes:
        limits: files with a limit in bytes; ``max`` means no limit.
        usage: file with the bytes in use.
        cache: fields of ``memory.stat`` that count file cache of the group and its descendants.
    """

    limits: tuple[str, ...]
    usage: str
    cache: tuple[str, ...]


V1 = Version(
    ("memory.limit_in_bytes",),
    "memory.usage_in_bytes",
    ("total_active_file", "total_inactive_file"),
)
V2 = Version(("memory.max", "memory.high"), "memory.current", ("active_file", "inactive_file"))
INHERITED = "hierarchical_memory_limit"  # v1: also counts ancestors that a container cannot see


def cgroup_free_memory(process: Path = PROCESS) -> int | None:
    """Return the bytes that the process's control groups still allow.

    Args:
        process: the process's folder in ``/proc``; its ``cgroup`` and ``mountinfo`` name the
            groups and where they are mounted.

    Returns:
        The smallest remainder over all ancestors, at least 0, or ``None`` without any limit.
    """
    free = [
        left
        for version, folder in _group_folders(process)
        if (left := _left(version, folder)) is not None
    ]
    return max(min(free), 0) if free else None


def _group_folders(process: Path) -> Iterator[tuple[Version, Path]]:
    """Yield the folder of the process's own memory group and those of its ancestors."""
    try:
        groups = (process / "cgroup").read_text(encoding="utf-8").splitlines()
        mounts = (process / "mountinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):  # not Linux
        return
    paths: dict[Version, str] = {}
    for line in groups:
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            paths[V2] = path
        elif "memory" in controllers.split(","):
            paths[V1] = path
    for line in mounts:
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        version = {"cgroup": V1, "cgroup2": V2}.get(kind[0])
        if version is None or (version is V1 and "memory" not in kind[2].split(",")):
            continue
        root, mount = (_unescaped(field) for field in fields[3:5])
        if version in paths:
            for part in _ancestors(paths[version], root):
                yield version, Path(mount) / part


def _ancestors(path: str, root: str) -> list[PurePosixPath]:
    """Return a group and its ancestors, relative to the group that is mounted.

    A container may see its own group mounted as the root, while its path names the host's tree
    (or, with a namespace of its own, one above the root: ``/../..``); then only the mounted group
    is visible.
    """
    own, mounted = PurePosixPath(path), PurePosixPath(root)
    if ".." in own.parts or not own.is_relative_to(mounted):
        return [PurePosixPath(".")]
    inside = own.relative_to(mounted)
    return [inside, *inside.parents]


def _left(version: Version, folder: Path) -> int | None:
    """Return how much of a group's limit is left, or ``None`` without a limit."""
    stat: dict[str, int] = {}
    with suppress(OSError, ValueError):
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
        stat = {name: int(value) for name, value in (line.split() for line in lines)}
    limits = [stat[INHERITED]] if version is V1 and INHERITED in stat else []
    for name in version.limits:
        with suppress(OSError, ValueError):  # "max", or a root group, which has no limit
            limits.append(int((folder / name).read_text(encoding="ascii")))
    with suppress(OSError, ValueError):
        used = int((folder / version.usage).read_text(encoding="ascii"))
        cache = sum(stat.get(name, 0) for name in version.cache)
        return min(limits) - max(used - cache, 0) if limits else None
    return None


def _unescaped(field: str) -> str:
    r"""Return a field of ``mountinfo`` with octal escapes (``\040`` is a space) resolved."""
    return ESCAPED.sub(lambda match: chr(int(match[1], 8)), field)
