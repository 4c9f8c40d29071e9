"""Helpers for ``torch.distributed``: rank, world size, averaging, splitting work.

``torchrun`` starts the processes ("ranks") that fit one model and sets the rank of each in the
environment. Outside :func:`process_group` every process works alone.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from qpignn.errors import RankError, SettingError

PATIENCE = timedelta(minutes=30)
"""How long a rank waits for the others."""
LOST = (
    "rank {} of {}: expected all ranks to work until the end, but another one has ended (its own "
    "message, or the system's log, says why: often memory); start the job again with --resume, on "
    "as many ranks as you like: it goes on from the last checkpoint"
)
Job = TypeVar("Job")
_in_group: ContextVar[bool] = ContextVar("in process group", default=False)


def world_size_wanted() -> int:
    """Return the number of ranks that were started together."""
    return _environment_number("WORLD_SIZE", "1")


def rank() -> int:
    """Return the rank of this process; 0 if it is the only one."""
    return _environment_number("RANK", "0") if world_size_wanted() > 1 else 0


def local_rank() -> int:
    """Return the rank among those on this machine."""
    return _environment_number("LOCAL_RANK", "0")


def _environment_number(name: str, default: str) -> int:
    value = os.environ.get(name, default)
    if not value.isdecimal():
        raise SettingError(
            f"{name}: expected a whole number in the environment, as set by torchrun, got "
            f"{value!r}; unset it, or start with torchrun"
        )
    return int(value)


def world_size() -> int:
    """Return the number of ranks that work on this fit."""
    return dist.get_world_size() if _in_group.get() else 1


@contextmanager
def process_group() -> Iterator[None]:
    """Let all ranks work on the block together; every rank must enter it.

    Yields:
        Nothing.

    Raises:
        RankError: if the other ranks cannot be reached, or one has ended.
    """
    if world_size_wanted() == 1 or _in_group.get():
        yield
        return
    try:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
    except (ValueError, RuntimeError) as error:  # no address of the first rank, or no answer
        raise RankError(
            f"rank {rank()} of {world_size_wanted()}: expected to meet the other ranks, got "
            f"{error}; start all of them with torchrun, or unset WORLD_SIZE"
        ) from error
    token = _in_group.set(True)
    try:
        yield
        barrier()
    except RankError:
        raise  # the group is broken and cannot be destroyed
    else:
        gc.collect()  # objects that refer to the group must be deleted before it
        dist.destroy_process_group()
    finally:
        _in_group.reset(token)


def barrier() -> None:
    """Wait until all ranks have reached this call."""
    if world_size() > 1:
        _run_collective(dist.barrier)


def average_over_ranks(tensor: Tensor) -> None:
    """Replace a tensor by its mean over all ranks, in place.

    Args:
        tensor: of the same shape on all ranks.
    """
    if world_size() > 1:
        _run_collective(dist.all_reduce, tensor)
        tensor.div_(world_size())


def from_first_rank(number: float) -> float:
    """Return the number of the first rank, so that all ranks decide alike.

    Args:
        number: of this rank.
    """
    if world_size() == 1:
        return number
    shared = torch.tensor(number, dtype=torch.float64)
    _run_collective(dist.broadcast, shared, 0)
    return float(shared)


def split_work(
    jobs: Sequence[Job], run: Callable[[Job], Tensor], empty: Callable[[Job], Tensor]
) -> Iterator[Tensor]:
    """Yield the results of all jobs in order; each is run by one rank and sent to the others.

    Args:
        jobs: the same on all ranks.
        run: runs a job.
        empty: allocates the result of a job that another rank runs.
    """
    several = world_size()
    if several == 1:
        yield from map(run, jobs)
        return
    for start in range(0, len(jobs), several):
        some = jobs[start : start + several]
        own = run(some[rank()]).contiguous() if rank() < len(some) else torch.empty(0)
        for owner, job in enumerate(some):
            result = own if owner == rank() else empty(job)
            _run_collective(dist.broadcast, result, owner)
            yield result


def _run_collective(collective: Callable[..., object], *arguments: object) -> None:
    try:
        collective(*arguments)
    except RuntimeError as error:
        raise RankError(LOST.format(rank(), world_size_wanted())) from error


def exit_on_sigterm() -> None:
    """Raise RankError when ``torchrun`` ends this process because another rank has ended."""

    def stop(number: int, frame: object) -> None:
        raise RankError(LOST.format(rank(), world_size_wanted()))

    signal.signal(signal.SIGTERM, stop)
