"""Several processes that fit one model: who this is among them, and what they tell each other.

``torchrun`` starts the processes ("ranks") and tells each its number; ``torch.distributed`` carries
the numbers between them. Outside :func:`process_group` a process is alone, whoever started it.
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
"""How long a rank waits for the others before it gives up."""
LOST = (
    "rank {} of {}: expected all ranks to work until the end, but another one has ended (its own "
    "message, or the system's log, says why: often memory); start the job again with --resume, on "
    "as many ranks as you like: it goes on from the last checkpoint"
)
Job = TypeVar("Job")
_together: ContextVar[bool] = ContextVar("together", default=False)


def world_size_wanted() -> int:
    """How many ranks this process was started as one of."""
    return _told_number("WORLD_SIZE", "1")


def rank() -> int:
    """Which of the ranks this is; 0 where there is one only."""
    return _told_number("RANK", "0") if world_size_wanted() > 1 else 0


def local_rank() -> int:
    """Which of the ranks on this machine this is."""
    return _told_number("LOCAL_RANK", "0")


def _told_number(name: str, usual: str) -> int:
    word = os.environ.get(name, usual)
    if not word.isdecimal():
        raise SettingError(
            f"{name}: expected a whole number in the environment, as torchrun puts it there, got "
            f"{word!r}; unset it, or start with torchrun"
        )
    return int(word)


def world_size() -> int:
    """How many ranks work on this fit."""
    return dist.get_world_size() if _together.get() else 1


@contextmanager
def process_group() -> Iterator[None]:
    """Let all ranks work on what follows; every one of them must come here."""
    if world_size_wanted() == 1 or _together.get():
        yield
        return
    try:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
    except (ValueError, RuntimeError) as error:  # no address of the first, or nobody there
        raise RankError(
            f"rank {rank()} of {world_size_wanted()}: expected to meet the other ranks, got "
            f"{error}; start all of them with torchrun, or unset WORLD_SIZE"
        ) from error
    token = _together.set(True)
    try:
        yield
        barrier()
    except RankError:
        raise  # the group is broken: nothing to take leave of
    else:
        gc.collect()  # what still holds on to the group must go before it
        dist.destroy_process_group()
    finally:
        _together.reset(token)


def barrier() -> None:
    """Wait until all ranks have come here."""
    if world_size() > 1:
        _told(dist.barrier)


def average_over_ranks(tensor: Tensor) -> None:
    """Replace a tensor by its mean over all ranks."""
    if world_size() > 1:
        _told(dist.all_reduce, tensor)
        tensor.div_(world_size())


def from_first_rank(number: float) -> float:
    """Return the first rank's number: ranks that decide by it must decide alike."""
    if world_size() == 1:
        return number
    told = torch.tensor(number, dtype=torch.float64)
    _told(dist.broadcast, told, 0)
    return float(told)


def split_work(
    jobs: Sequence[Job], run: Callable[[Job], Tensor], empty: Callable[[Job], Tensor]
) -> Iterator[Tensor]:
    """Yield the results of all jobs in order; each is done by one rank, and told to the others.

    ``empty`` makes room for the result of a job that another rank does.
    """
    several = world_size()
    if several == 1:
        yield from map(run, jobs)
        return
    for start in range(0, len(jobs), several):
        some = jobs[start : start + several]
        own = run(some[rank()]).contiguous() if rank() < len(some) else torch.empty(0)
        for owner, job in enumerate(some):
            found = own if owner == rank() else empty(job)
            _told(dist.broadcast, found, owner)
            yield found


def _told(collective: Callable[..., object], *arguments: object) -> None:
    try:
        collective(*arguments)
    except RuntimeError as error:
        raise RankError(LOST.format(rank(), world_size_wanted())) from error


def exit_on_sigterm() -> None:
    """Say why, when ``torchrun`` ends this process because another one has ended."""

    def stop(number: int, frame: object) -> None:
        raise RankError(LOST.format(rank(), world_size_wanted()))

    signal.signal(signal.SIGTERM, stop)
