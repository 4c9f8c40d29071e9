"""Errors and checks. A message says what was expected, what was given, and what to do."""

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
    """Base class of all errors that this package raises on purpose."""


class QpignnWarning(UserWarning):
    """Base class of all warnings of this package: valid input that is probably a mistake."""


class GraphError(QpignnError, ValueError):
    """A graph, or the frames it is made from, breaks a rule."""


class ReadError(QpignnError, ValueError):
    """A file cannot be read as the table it should hold."""


class SplitError(QpignnError, ValueError):
    """A wanted division of the nodes is not possible."""


class SettingError(QpignnError, ValueError):
    """A setting is outside the values it may take."""


class ArrayError(QpignnError, ValueError):
    """Arrays have unequal lengths or shapes, or invalid values."""


class WriteError(QpignnError, OSError):
    """A file or folder could not be written: no space, no permission, or the path is taken."""


class LockedError(WriteError):
    """A folder is locked by another process."""


class DataFileError(QpignnError, OSError):
    """A file of a data set is not on this machine and could not be downloaded intact."""


class TrainingError(QpignnError, ArithmeticError):
    """Training failed: the loss or the score is no longer finite."""


class RankError(QpignnError, RuntimeError):
    """One of several processes that fit a model together has ended."""


class NotFittedError(QpignnError, ValueError, AttributeError):
    """A method was used before it was fitted."""


class ModelFileError(QpignnError, ValueError):
    """A folder of a saved model is incomplete, damaged, or holds something else."""


class UnknownNameError(QpignnError, LookupError):
    """A name is not among the valid ones.

    Args:
        kind: what the name stands for, such as "method".
        name: the name.
        choices: the valid names.
    """

    def __init__(self, kind: str, name: object, choices: Iterable[str]) -> None:
        choices = list(choices)
        near = get_close_matches(str(name), choices, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}known are {', '.join(choices)}")


EXTRAS = {
    "duckdb": "large",
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

    Returns:
        The module.

    Raises:
        SettingError: naming the extra, if the package is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise SettingError(
            f'{what} needs {name}, which is not installed; pip install "qpignn[{EXTRAS[name]}]"'
        ) from error


def similar_to(name: object, choices: Iterable[object]) -> str:
    """Return the question whether a similar name was meant, or an empty string.

    Args:
        name: an invalid name.
        choices: the valid names.
    """
    near = get_close_matches(str(name), [str(one) for one in choices], n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def check_choice(kind: str, name: str, choices: Iterable[str]) -> str:
    """Return a name if it is one of the valid ones.

    Args:
        kind: what the name stands for.
        name: the name.
        choices: the valid names.

    Raises:
        UnknownNameError: if it is not; the message has the most similar names.
    """
    choices = list(choices)
    if not isinstance(name, str) or name not in choices:
        raise UnknownNameError(kind, name, choices)
    return name


def check_setting_names(
    owner: str, given: Iterable[str], choices: Iterable[str], kind: str = "setting"
) -> None:
    """Check that settings exist.

    Args:
        owner: name of what has the settings, such as a class.
        given: names of the settings that were passed.
        choices: names of all settings.
        kind: what they are called in the message.

    Raises:
        SettingError: if one does not exist.
    """
    choices = sorted(choices)
    for name in given:
        if name not in choices:
            raise SettingError(
                f"{owner} has no {kind} {name!r}; it has {', '.join(choices)}"
                f"{similar_to(name, choices)}"
            )


def check_number(name: str, value: Any, low: float = -math.inf, what: str = "a number") -> float:
    """Return a setting that must be a finite number.

    Args:
        name: of the setting.
        value: as the user gave it.
        low: smallest valid number.
        what: description of valid values for the message.

    Raises:
        SettingError: if it is not.
    """
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_real else math.nan
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not (math.isfinite(number) and number >= low):
        raise SettingError(f"{name}: expected {what}, got {brief(value)}")
    return number


def check_bool(name: str, value: Any) -> bool:
    """Return a setting that must be a boolean; the string ``"False"`` would count as true.

    Args:
        name: of the setting.
        value: as the user gave it.

    Raises:
        SettingError: if it is not.
    """
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{name}: expected true or false, got {brief(value)}")
    return bool(value)


def check_non_negative(name: str, value: Any) -> float:
    """Return a setting that must be a finite number from 0 up.

    Args:
        name: of the setting.
        value: as the user gave it.
    """
    return check_number(name, value, 0, "a number from 0 up")


def check_positive(name: str, value: Any) -> float:
    """Return a setting that must be a finite number above 0.

    Args:
        name: of the setting.
        value: as the user gave it.

    Raises:
        SettingError: if it is not.
    """
    number = check_non_negative(name, value)
    if number == 0:
        raise SettingError(f"{name}: expected a number above 0, got {brief(value)}")
    return number


def check_integer(name: str, value: Any, least: int = 1, bits: int = 63) -> int:
    """Return a setting that must be an integer.

    Args:
        name: of the setting.
        value: as the user gave it.
        least: smallest valid number.
        bits: the number must be below 2**bits.

    Raises:
        SettingError: if it is not.
    """
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not (is_integer and value >= least):
        raise SettingError(f"{name}: expected a whole number from {least} up, got {brief(value)}")
    if value >= 2**bits:
        raise SettingError(
            f"{name}: expected a whole number from {least} up, below 2**{bits}, got {brief(value)}"
        )
    return int(value)


def brief(value: object) -> str:
    """Return the representation of a value for an error message: one short line.

    Args:
        value: any object.
    """
    return " ".join(_BRIEFLY.repr(value).split())


_BRIEFLY = Repr()
_BRIEFLY.maxstring = _BRIEFLY.maxother = 60


def plural(number: int, what: str) -> str:
    """Return a number with its noun: "1 edge", "2,000 edges".

    Args:
        number: the count.
        what: the noun in the singular.
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def quoted(items: Iterable[object], most: int = 5) -> str:
    """Return the first items for an error message, and how many more there are.

    Args:
        items: any objects.
        most: how many are shown.
    """
    items = list(items)
    plain = [item.item() if isinstance(item, np.generic) else item for item in items[:most]]
    shown = ", ".join(repr(item) for item in plain)
    return shown if len(items) <= most else f"{shown} and {len(items) - most:,} more"
