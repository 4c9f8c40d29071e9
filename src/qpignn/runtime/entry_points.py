"""Plug-ins of installed packages: objects that packages declare as entry points."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any

from qpignn.errors import SettingError
from qpignn.runtime.plugins import load_object


@lru_cache(maxsize=16)
def installed(group: str) -> dict[str, str]:
    """Return what installed packages declare in a group of entry points; imports none of it.

    Args:
        group: name of the group, such as ``qpignn.methods``.

    Returns:
        For each name its object path, ``package.module:Name``.
    """
    return {point.name: point.value for point in entry_points(group=group)}


def load_installed(group: str, name: str, kind: type) -> Any:
    """Import what an installed package declares under a name.

    Args:
        group: name of the group of entry points.
        name: one of :func:`installed`.
        kind: class that the object must be an instance of, or a subclass of if it is a class.

    Returns:
        The object.

    Raises:
        SettingError: if it cannot be imported, or is of another kind.
    """
    path = installed(group)[name]
    candidate = load_object(path)
    is_class = isinstance(candidate, type) and issubclass(candidate, kind)
    if not (is_class or isinstance(candidate, kind)):
        raise SettingError(
            f"{name}: expected the entry point {path} of the group {group} to be a "
            f"{kind.__name__}, got {candidate!r}; update or uninstall the package"
        )
    return candidate
