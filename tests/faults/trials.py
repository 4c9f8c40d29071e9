"""One fault at one place: what is left afterwards, and how the repeated command ends.

After a kill a reader finds the earlier result, the new one or a QpignnError. After an error the
command ends with one line of ours and exit code 2, and the earlier result is as it was; or it
ends well with the new one. The repeated command always ends with what an uninterrupted one gives.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from faults.forks import Ended, in_child
from faults.places import NONE, REFUSED, Pieces, Place
from faults.steps import Fault
from faults.tally import BrokenError, Tally

LIMITS = (0, 64, 600, 1500, 3000, 4096, 6000, 10_000, 40_000)
"""Bytes that no file may outgrow: below, within and above the files of the small examples."""
OURS = re.compile(r"^error: .*(expected|could not be downloaded)", re.MULTILINE)


class Bench:
    """A place made ready for trials: each begins with the same files in the same folder."""

    def __init__(self, place: Place, base: Path) -> None:
        self.place, self.folder, self.template = place, base / "work", base / "template"
        self.folder.mkdir(parents=True)
        ready = in_child(self._at(place.prepare), self.folder)
        self._well(Ended(ready.code, ready.err), "making it ready")
        shutil.copytree(self.folder, self.template)
        self.old: Pieces = self._look()
        whole = in_child(self._at(place.run), self.folder)
        self._well(whole, "an uninterrupted run")
        self.steps, self.seconds = whole.steps, whole.seconds
        self.new: Pieces = self._look()
        if self.new == self.old:
            raise BrokenError(
                "an uninterrupted run changed nothing, so no trial could tell anything"
            )

    def trial(self, fault: Fault, kill_after: float | None = None) -> str:
        """Return how a fault ended, in words; raise where it did harm."""
        self.fresh()
        ended = in_child(self._at(self.place.run), self.folder, fault, kill_after)
        return self.evaluate(ended)

    def evaluate(self, ended: Ended) -> str:
        """Check what one run left, and repeat it."""
        code = ended.answer if ended.code == 0 else ended.code
        then = in_child(self._at(self._look_and_repeat), self.folder)
        if then.code:
            raise BrokenError(
                f"reading, or repeating it, ends with {then.code}: {then.err[-1500:]}"
            )
        state, repeated, after = then.answer
        self._check(code, ended.err, state)
        if repeated:
            raise BrokenError(f"repeating it ends with {repeated}: {then.err[-1500:]}")
        if after != self.new:
            raise BrokenError(f"repeated, it gives {_difference(after, self.new)}")
        return _in_words(code, state, self.old, self.new)

    def _look_and_repeat(self) -> tuple[Pieces, int, Pieces]:
        return self.place.look(), self.place.again(), self.place.look()

    def fresh(self) -> None:
        """Put everything back as it was before."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.template, self.folder)

    def _check(self, code: int, err: str, state: Pieces) -> None:
        if code == -9:
            strange = {
                name: value
                for name, value in state.items()
                if value not in (self.old[name], self.new[name], REFUSED)
            }
            if strange:
                raise BrokenError(f"a reader finds neither the old nor the new: {strange}")
        elif code == 0:
            if state != self.new:
                raise BrokenError(f"it said it went well, but gave {_difference(state, self.new)}")
        elif code == 2:
            if not one_line_of_ours(err):
                raise BrokenError(f"expected one line of ours, got {err!r}")
            keeps = self.place.keeps
            lost = {
                name: value
                for name, value in state.items()
                if value != self.old[name]
                and not (self.old[name] == NONE and value == REFUSED)
                and not (keeps and name.startswith(keeps) and value == self.new[name])
            }
            if lost:
                raise BrokenError(f"it failed, but changed {_difference(state, self.old)}; {err!r}")
        else:
            raise BrokenError(f"exit code {code}: {err[-1500:]}")

    def _look(self) -> Pieces:
        ended = in_child(self._at(self.place.look), self.folder)
        if ended.code:
            raise BrokenError(f"reading ends with {ended.code}: {ended.err[-1500:]}")
        pieces: Pieces = ended.answer
        return pieces

    def _at(self, work: Callable[[], Any]) -> Callable[[], Any]:
        def there() -> Any:
            os.chdir(self.folder)
            return work()

        return there

    @staticmethod
    def _well(ended: Ended, what: str) -> None:
        if ended.code or ended.answer:
            raise BrokenError(f"{what} ends with {ended.answer or ended.code}: {ended.err[-1500:]}")


def one_line_of_ours(err: str) -> bool:
    """Whether a command ended with one error line that says what was expected."""
    lines = [line for line in err.splitlines() if line.startswith("error:")]
    return (
        len(lines) == 1
        and OURS.search(err) is not None
        and "Traceback" not in err
        and "this is a bug" not in err
    )


def faults_of(
    bench: Bench, kinds: tuple[str, ...], draw: random.Random, timed: int, most: int
) -> Iterator[tuple[str, Fault, float | None]]:
    """Yield faults with their names: at every step (or so many of them), sizes, and moments."""
    for kind in kinds:
        fault = Fault(kind)
        at = [i for i, step in enumerate(bench.steps, 1) if fault.concerns(step)]
        for i in sorted(draw.sample(at, min(most, len(at)))):
            name = f"{kind} at step {i} of {len(bench.steps)} ({bench.steps[i - 1]})"
            yield name, Fault(kind, i), None
    for size in draw.sample(LIMITS, min(most, len(LIMITS))):
        yield f"limit of {size} bytes", Fault("limit", size), None
    for _ in range(timed):
        seconds = draw.uniform(0, bench.seconds)
        yield f"timed kill after {seconds:.4f} s", Fault(), seconds


def try_place(place: Place, base: Path, *, seed: int, timed: int = 15, most: int = 10_000) -> Tally:
    """Make all trials at a place."""
    tally, draw = Tally(place.name), random.Random(f"{seed} {place.name}")
    try:
        bench = Bench(place, base)
    except BrokenError as error:
        tally.broken.append(f"{place.name}: {error}")
        return tally
    for name, fault, kill_after in faults_of(bench, ("kill", "full", "denied"), draw, timed, most):
        tally.count(name, partial(bench.trial, fault, kill_after))
    return tally


def _difference(pieces: Pieces, wanted: Pieces) -> str:
    return ", ".join(
        f"{name}: {pieces[name]} instead of {wanted[name]}"
        for name in wanted
        if pieces[name] != wanted[name]
    )


def _in_words(code: int, pieces: Pieces, old: Pieces, new: Pieces) -> str:
    prefix = "named error, " if code == 2 else ""
    if pieces == new:
        return f"{prefix}new whole" if code else "done all the same"
    if pieces == old:
        return f"{prefix}{'nothing there' if set(old.values()) == {NONE} else 'old whole'}"
    refused = REFUSED in pieces.values()
    return f"{prefix}{'half refused' if refused else 'each part old or new'}"
