"""Names of version 0.1 that have moved: they work for one more release, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

RENAMED = {
    "qpignn.data.coding.Coding": "qpignn.data.encoding.FeatureEncoder",
    "qpignn.data.growth.join_frames": "qpignn.data.append.join_frames",
    "qpignn.data.order.reorder_nodes": "qpignn.data.reorder.reorder_nodes",
    "qpignn.data.views.make_view": "qpignn.data.settings.make_view",
    "qpignn.methods.corrected.CorrectedGNN": "qpignn.methods.cfgnn.CorrectedGNN",
    "qpignn.methods.fits.load_fit": "qpignn.methods.bundle.load_fit",
}
"""Documented names of 0.1 and the names that replace them; removed in 0.3."""


def with_old_names(module: str, load: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a module-level ``__getattr__`` that also knows the old names of a module.

    Args:
        module: name of the module.
        load: its ``__getattr__`` for every other name.
    """

    def find(name: str) -> Any:
        old = f"{module}.{name}"
        if old not in RENAMED:
            return load(name)
        new = RENAMED[old]
        message = f"{old} is deprecated and will be removed in 0.3; use {new}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        home, _, renamed = new.rpartition(".")
        return getattr(import_module(home), renamed)

    return find


class _OldModules:
    """Import the modules of RENAMED that no longer exist, after all other finders have failed.

    It has no base class: importing ``importlib.abc`` would double the time of ``import qpignn``.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_old = any(old.rpartition(".")[0] == name for old in RENAMED)
        return ModuleSpec(name, self) if is_old else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        def load(name: str) -> Any:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__getattr__ = with_old_names(module.__name__, load)  # type: ignore[method-assign]


sys.meta_path.append(_OldModules())
