"""The errors a user can meet. Each message says what was expected, what came, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from numbers import Integral, Real
from reprlib import Repr
from typing import Any

import numpy as np


class QpignnError(Exception):
    """Base of every error this library raises on purpose."""


class QpignnWarning(UserWarning):
    """Something legal that deserves a second look."""


class GraphError(QpignnError, ValueError):
    """A graph, or the frames it is made from, breaks a rule."""


class ReadError(QpignnError, ValueError):
    """A file cannot be read as the table it should hold."""


class SplitError(QpignnError, ValueError):
    """A wanted division of the nodes is not possible."""


class SettingError(QpignnError, ValueError):
    """A setting is outside the values it may take."""


class ArrayError(QpignnError, ValueError):
    """Per-node numbers do not line up, or are not the numbers they must be."""


class WriteError(QpignnError, OSError):
    """A file or folder could not be written: no room, no right, or something else is there."""


class LockedError(WriteError):
    """A folder is locked by another process."""


class DataFileError(QpignnError, OSError):
    """A data set's file is neither on this machine nor could it be fetched intact."""


class TrainingError(QpignnError, ArithmeticError):
    """Training broke down."""


class RankError(QpignnError, RuntimeError):
    """One of several processes that fit a model together has ended."""


class NotFittedError(QpignnError, ValueError, AttributeError):
    """A method was asked to predict or save before it was fitted."""


class ModelFileError(QpignnError, ValueError):
    """A saved model's folder is incomplete, damaged or from something else."""


class UnknownNameError(QpignnError, LookupError):
    """A name is not in the catalog it was looked up in."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        known = list(known)
        near = get_close_matches(str(name), known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}known are {', '.join(known)}")


EXTRAS = {
    "matplotlib": "plot",
    "openpyxl": "excel",
    "optuna": "search",
    "pooch": "data",
    "ray": "ray",
}
"""Packages that are not installed by default, and the extra that brings each."""


def import_optional(name: str, what: str) -> Any:
    """Import a package that is not installed by default.

    Args:
        name: the package.
        what: what needs it, as the subject of a sentence: "a search".

    Raises:
        SettingError: naming the extra, if the package is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise SettingError(
            f'{what} needs {name}, which is not installed; pip install "qpignn[{EXTRAS[name]}]"'
        ) from error


def similar_to(name: object, known: Iterable[object]) -> str:
    """Ask whether one of a few similar names was meant, or say nothing."""
    near = get_close_matches(str(name), [str(one) for one in known], n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def check_choice(kind: str, name: str, known: Iterable[str]) -> str:
    """Return ``name`` if it is known, else raise with the nearest valid names."""
    known = list(known)
    if not isinstance(name, str) or name not in known:
        raise UnknownNameError(kind, name, known)
    return name


def check_setting_names(who: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise where a setting was given that there is not."""
    known = sorted(known)
    for name in given:
        if name not in known:
            raise SettingError(
                f"{who} has no setting {name!r}; it has {', '.join(known)}{similar_to(name, known)}"
            )


def check_number(name: str, value: Any, low: float = -math.inf, what: str = "a number") -> float:
    """Return a setting that must be a finite number, from ``low`` up, or raise."""
    right = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if right else math.nan
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not (math.isfinite(number) and number >= low):
        raise SettingError(f"{name}: expected {what}, got {brief(value)}")
    return number


def check_bool(name: str, value: Any) -> bool:
    """Return a setting that must be true or false, or raise: ``"False"`` would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{name}: expected true or false, got {brief(value)}")
    return bool(value)


def check_non_negative(name: str, value: Any) -> float:
    """Return a setting that must be a finite number from 0 up, or raise."""
    return check_number(name, value, 0, "a number from 0 up")


def check_positive(name: str, value: Any) -> float:
    """Return a setting that must be a finite number above 0, or raise."""
    number = check_non_negative(name, value)
    if number == 0:
        raise SettingError(f"{name}: expected a number above 0, got {brief(value)}")
    return number


def check_integer(name: str, value: Any, least: int = 1, bits: int = 63) -> int:
    """Return a setting as an int from ``least`` up, of at most so many bits, or raise."""
    right = isinstance(value, Integral) and not isinstance(value, bool)
    if not (right and value >= least):
        raise SettingError(f"{name}: expected a whole number from {least} up, got {brief(value)}")
    if value >= 2**bits:
        raise SettingError(
            f"{name}: expected a whole number from {least} up, below 2**{bits}, got {brief(value)}"
        )
    return int(value)


def brief(value: object) -> str:
    """Return a value for an error message, in one line that is not too long."""
    return " ".join(_BRIEFLY.repr(value).split())


_BRIEFLY = Repr()
_BRIEFLY.maxstring = _BRIEFLY.maxother = 60


def plural(number: int, what: str) -> str:
    """Return a number with its noun: "1 edge", "2,000 edges"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def quoted(items: Iterable[object], most: int = 5) -> str:
    """First few items for an error message, and how many more there are."""
    items = list(items)
    plain = [item.item() if isinstance(item, np.generic) else item for item in items[:most]]
    shown = ", ".join(repr(item) for item in plain)
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"
