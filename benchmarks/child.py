"""Something run in a process of its own, which need not import everything once more."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import ParamSpec, TypeVar

FORKED = multiprocessing.get_context("fork")
Words = ParamSpec("Words")
Found = TypeVar("Found")


def in_a_child(what: Callable[Words, Found], *words: Words.args, **named: Words.kwargs) -> Found:
    """Return what a call returns that is made in a copy of this process.

    The copy's peak memory begins at what this process holds now. It raises EOFError if the copy
    dies.
    """
    receive, send = FORKED.Pipe(duplex=False)
    child = FORKED.Process(target=lambda: send.send(what(*words, **named)))
    child.start()
    send.close()
    try:
        found: Found = receive.recv()
    finally:
        child.join()
    return found
