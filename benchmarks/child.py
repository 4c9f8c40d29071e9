"""Something run in a process of its own, which need not import everything once more."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import ParamSpec, TypeVar

FORKED = multiprocessing.get_context("fork")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def in_a_child(
    what: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Result:
    """Return what a call returns that is made in a copy of this process.

    The copy's peak memory begins at what this process holds now. It raises EOFError if the copy
    dies.
    """
    receive, send = FORKED.Pipe(duplex=False)
    child = FORKED.Process(target=lambda: send.send(what(*arguments, **named)))
    child.start()
    send.close()
    try:
        result: Result = receive.recv()
    finally:
        child.join()
    return result
