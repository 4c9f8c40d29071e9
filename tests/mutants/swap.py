"""Exchange what a module does, also for modules that have already imported from it."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isclass, isfunction
from types import CodeType, ModuleType
from typing import Any


def swap(module: ModuleType, code: CodeType) -> None:
    """Let a module's functions, methods and constants be those of other code, in place."""
    new: dict[str, Any] = {"__name__": module.__name__}
    exec(code, new)
    _exchange(module, new)
    for name, there in new.items():
        here = vars(module).get(name)
        if isclass(here) and isclass(there) and here is not there:
            _exchange(here, dict(vars(there)))


def _exchange(holder: Any, new: Mapping[str, Any]) -> None:
    for name, there in new.items():
        here = vars(holder).get(name)
        if isfunction(_plain(here)) and isfunction(_plain(there)):
            _become(_plain(here), _plain(there))
        elif not (name.startswith("__") or isclass(there) or here is there):
            setattr(holder, name, there)


def _plain(value: Any) -> Any:
    """Return the function in a static or class method."""
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def _become(here: Any, there: Any) -> None:
    here.__code__ = there.__code__
    here.__defaults__ = there.__defaults__
    here.__kwdefaults__ = there.__kwdefaults__
