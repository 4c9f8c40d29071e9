"""The errors a user can meet. Each message says what was expected, what came, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real
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


def near_names(name: object, known: Iterable[object]) -> str:
    """Ask whether one of a few similar names was meant, or say nothing."""
    near = get_close_matches(str(name), [str(one) for one in known], n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def one_of(kind: str, name: str, known: Iterable[str]) -> str:
    """Return ``name`` if it is known, else raise with the nearest valid names."""
    known = list(known)
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return name


def real_number(name: str, value: Any, low: float = -math.inf, what: str = "a number") -> float:
    """Return a setting that must be a finite number, from ``low`` up, or raise."""
    right = isinstance(value, Real) and not isinstance(value, bool)
    number = float(value) if right else math.nan
    if not (math.isfinite(number) and number >= low):
        raise SettingError(f"{name}: expected {what}, got {value!r}")
    return number


def not_negative(name: str, value: Any) -> float:
    """Return a setting that must be a finite number from 0 up, or raise."""
    return real_number(name, value, 0, "a number from 0 up")


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """Return a setting as an int from ``least`` up, or raise."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise SettingError(f"{name}: expected a whole number from {least} up, got {value!r}")
    return int(value)


def listed(items: Iterable[object], most: int = 5) -> str:
    """First few items for an error message, and how many more there are."""
    items = list(items)
    plain = [item.item() if isinstance(item, np.generic) else item for item in items[:most]]
    shown = ", ".join(repr(item) for item in plain)
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"
