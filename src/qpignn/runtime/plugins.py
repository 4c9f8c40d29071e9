"""Objects outside the package, named by a string: ``mine.py:StudentT`` or ``package.module:Name``.

Loading runs the code of the file or module, as ``import`` does: load only what you would import.
"""

from __future__ import annotations

import hashlib
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from qpignn.errors import SettingError, brief, similar_to

FORMS = '"file.py:Name" or "package.module:Name"'


def is_object_path(value: object) -> bool:
    """Return whether a value has the form of an object path, a place and a name.

    Args:
        value: any value, for instance a setting.
    """
    if not isinstance(value, str):
        return False
    place, _, name = value.rpartition(":")
    module = place.endswith(".py") or all(part.isidentifier() for part in place.split("."))
    return module and name.isidentifier()


def load_object(spec: str) -> Any:
    """Return the object that an object path names.

    A file is run once as long as its content stays the same, so that the same path gives the same
    object; relative paths start at the working directory.

    Args:
        spec: ``"file.py:Name"`` or ``"package.module:Name"``.

    Returns:
        The class, function or other object of that name.

    Raises:
        SettingError: the string has another form, the file or module cannot be found or fails
            while it is imported, or has no object of that name.

    Example:
        >>> load_object("math:tau")
        6.283185307179586
    """
    place, name = _parts(spec)
    try:
        module = _module_of_file(Path(place)) if place.endswith(".py") else import_module(place)
    except SettingError:
        raise
    except Exception as error:
        raise SettingError(
            f"{spec}: expected a {'file' if place.endswith('.py') else 'module'} that can be "
            f"imported, got {type(error).__name__}: {error}; correct {place}"
        ) from error
    if not hasattr(module, name):
        public = [key for key in vars(module) if not key.startswith("_")]
        raise SettingError(
            f"{spec}: expected an object named {name!r} in {place}, got none; "
            f"name one that it defines{similar_to(name, public)}"
        )
    return getattr(module, name)


def source_of(spec: str) -> bytes:
    """Return the source text of the file or module that an object path names, for digests.

    Args:
        spec: ``"file.py:Name"`` or ``"package.module:Name"``.

    Returns:
        The bytes of the source file; the file that holds the object, not those it imports.

    Raises:
        SettingError: the string has another form, or there is no such source file.
    """
    place, _ = _parts(spec)
    if place.endswith(".py"):
        return _read(Path(place))
    try:
        module_spec = find_spec(place)
    except (ImportError, ValueError) as error:
        raise SettingError(
            f"{spec}: expected a module that can be found, got {type(error).__name__}: {error}; "
            f"install it, or name a file"
        ) from error
    if module_spec is None or not (
        module_spec.has_location and str(module_spec.origin).endswith(".py")
    ):
        raise SettingError(
            f"{spec}: expected a module with a source file, got none; install it, or name a file"
        )
    return _read(Path(str(module_spec.origin)))


def _parts(spec: str) -> tuple[str, str]:
    if not is_object_path(spec):
        raise SettingError(f"expected an object path of the form {FORMS}, got {brief(spec)}")
    place, _, name = spec.rpartition(":")
    return place, name


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingError(
            f"{path}: expected a Python file, got {error.strerror}; name a file that can be read, "
            f"by its path from {Path.cwd()}"
        ) from error


def _module_of_file(path: Path) -> ModuleType:
    """Run a file as a module, once for every content; ``sys.modules`` keeps it under its digest."""
    path = path.resolve()
    digest = hashlib.sha256(str(path).encode() + b"\0" + _read(path)).hexdigest()[:16]
    name = f"qpignn_plugin_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    module_spec = spec_from_file_location(name, path)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = module_from_spec(module_spec)
    sys.modules[name] = module  # before it runs, as ``import`` does: dataclasses look it up
    try:
        module_spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
