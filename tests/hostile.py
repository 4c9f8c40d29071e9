"""What an attacker can do: files that say one thing and hold another, with valid digests.

Digests are no secret, so every hostile folder here carries the right ones: a loader that only
compared digests would read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor

from qpignn import QpiGNN, example_tables, from_frames, split_nodes
from qpignn.data.column_roles import ColumnRoles
from qpignn.io.tensors import bytes_to_tensor
from qpignn.methods.bundle import FILES, Fit, Origin, save_fit
from qpignn.training.checkpoint import _digest

ROLES = ColumnRoles(target="pollution", id="id")


def make_fit(folder: Path, nodes: int = 40, **settings: Any) -> Path:
    """Write a small fit as ``qpignn fit`` does."""
    stations, roads = example_tables(nodes)
    data = split_nodes(from_frames(stations, roads, target="pollution"))
    model = QpiGNN(**{"epochs": 1, "hidden": 4, "members": 5, **settings}).fit(data)
    save_fit(folder, Fit(model, data, stations, Origin(None, ROLES)))
    return folder


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sign(folder: Path) -> None:
    """Make the digests of a model's or fit's folder right again."""
    description = folder / "model.json"
    fields = _object(description)
    if fields is not None and (folder / "model.safetensors").is_file():
        fields["weights_sha256"] = sha256(folder / "model.safetensors")
        description.write_text(json.dumps(fields))
    origin = _object(folder / "fit.json")
    if origin is not None:
        there = {name: folder / name for name in FILES}
        origin["digests"] = {name: sha256(path) for name, path in there.items() if path.is_file()}
        (folder / "fit.json").write_text(json.dumps(origin))


def _object(path: Path) -> dict[str, Any] | None:
    """Return what a JSON file says, if it is there and an object; nothing that we cannot sign."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def describe(folder: Path, file: str = "model.json", **changes: Any) -> None:
    """Change fields of a description, and sign the folder."""
    fields = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**fields, **changes}))
    sign(folder)


def retype(folder: Path, file: str = "model.safetensors", **tensors: Tensor | None) -> None:
    """Exchange tensors (dots in their names as two underscores), and sign the folder."""
    named = {name.replace("__", "."): tensor for name, tensor in tensors.items()}
    merged = {**load((folder / file).read_bytes()), **named}
    kept = {name: tensor for name, tensor in merged.items() if tensor is not None}
    (folder / file).write_bytes(save(kept))
    sign(folder)


def safetensors(header: Any, numbers: bytes = b"", length: int | None = None) -> bytes:
    """Return a safetensors file with any header, which claims to be of any length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + numbers


def npy(header: str, numbers: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """Return an ``.npy`` file with any header."""
    text = header.encode("latin-1") + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + numbers


def exchange_array(folder: Path, name: str, content: bytes, **fields: Any) -> None:
    """Put another array into a mapped graph, and describe it by its size, digest and ``fields``."""
    (folder / name).write_bytes(content)
    document = json.loads((folder / "mapped.json").read_text())
    computed = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    document["files"][name] = {**document["files"].get(name, {}), **computed, **fields}
    (folder / "mapped.json").write_text(json.dumps(document))


def checkpoint(path: Path, description: Any, **tensors: Tensor) -> None:
    """Write a training's checkpoint that says anything, with the right digest."""
    every = {**tensors, "words": bytes_to_tensor(json.dumps(description).encode())}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(save({**every, "sha256": bytes_to_tensor(_digest(every))}))


@contextmanager
def within(seconds: float = 10, megabytes: int = 300) -> Iterator[None]:
    """Fail where what is done inside takes long, or much memory."""
    before, start = _peak(), time.monotonic()
    yield
    assert time.monotonic() - start < seconds
    assert _peak() - before < megabytes


class WaitedError(BaseException):
    """Something waits forever; no ``except OSError`` or ``except Exception`` may hide it."""


@contextmanager
def in_time(seconds: float = 10) -> Iterator[None]:
    """Raise where what is done inside waits forever, as for the other end of a pipe."""

    def late(*_: object) -> None:
        raise WaitedError(f"nothing happened for {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


NOT_FILES = ("pipe", "socket", "device", "folder")


def not_a_file(path: Path, kind: str) -> None:
    """Put something else in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


def bombs(trace: Path, count: int) -> np.ndarray[Any, Any]:
    """Return an array of objects that leave a trace when they are unpickled."""
    array = np.empty(count, dtype=object)
    array[:] = [Bomb(trace) for _ in range(count)]
    return array


def integers(*shape: int) -> Tensor:
    """Return zeros of a type that no weight has."""
    return torch.zeros(shape, dtype=torch.int16)
