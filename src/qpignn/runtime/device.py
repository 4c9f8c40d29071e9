"""Device, precision of matrix products, and number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import torch

from qpignn.errors import SettingError, brief
from qpignn.runtime import distributed

WORTH_THREADS = 2**20  # numbers in a layer of all members
Precision = Literal["highest", "high", "medium"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


def find_device(name: str) -> torch.device:
    """Return a device by its name.

    Args:
        name: ``auto``, ``cpu``, ``cuda`` or ``cuda:1`` …; ``auto`` is a GPU if there is one (each
            rank of a machine has its own), else the CPU.

    Raises:
        SettingError: if there is no such device.
    """
    if isinstance(name, str) and name == "auto":
        if not torch.cuda.is_available():
            return CPU
        return torch.device("cuda", distributed.local_rank() % torch.cuda.device_count())
    try:
        device = torch.device(name) if isinstance(name, str) else None
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise SettingError(f"device: expected auto, cpu or cuda, got {brief(name)}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise SettingError(
            f"device: expected one that is here, got {name!r} with {torch.cuda.device_count()} "
            f"GPUs; use cpu"
        )
    return device


CPU = torch.device("cpu")


@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """Set ``torch.set_float32_matmul_precision`` within the block.

    Args:
        name: ``highest``, ``high`` or ``medium``.

    Yields:
        Nothing.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def limit_threads(numbers: int) -> Iterator[None]:
    """Use one thread within the block if a layer has few numbers.

    Two threads gain at most a quarter there, and lose several times as much when another process
    uses the same core: each operation waits for the slower thread.

    Args:
        numbers: in a layer of all members.

    Yields:
        Nothing.
    """
    before = torch.get_num_threads()
    if numbers >= WORTH_THREADS or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
