"""Every table and figure of the paper: one small file each, found by being here.

A file names data sets, methods, conditions and layout in a ``SPEC``; ``qpignn paper run`` does the
rest. Nothing in this room imports torch.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from runpy import run_path

from qpignn.errors import ReadError, check_choice
from qpignn.paper.spec import Spec

HELPERS = ("spec", "variants")


@cache
def specs() -> dict[str, Spec]:
    """Return all specs by name, in the paper's order."""
    found: list[Spec] = [
        import_module(f"qpignn.paper.{module.name}").SPEC
        for module in iter_modules(__path__)
        if module.name not in HELPERS
    ]
    return {spec.name: spec for spec in sorted(found, key=lambda spec: (spec.place, spec.name))}


def find_spec(name: str) -> Spec:
    """Return a spec by name, or that of a Python file of the user's own; else raise.

    A file is run to be read, as any Python file is: only name one you trust.
    """
    if not name.endswith(".py"):
        return specs()[check_choice("table or figure", name, specs())]
    if not Path(name).is_file():
        raise ReadError(f"{name}: expected a Python file with a SPEC, got no file")
    try:
        spec = run_path(name).get("SPEC")
    except Exception as error:
        raise ReadError(
            f"{name}: expected a Python file with a SPEC, got an error: {error}"
        ) from error
    if not isinstance(spec, Spec):
        raise ReadError(f"{name}: expected a Python file with a SPEC, got {spec!r} for it")
    return spec
