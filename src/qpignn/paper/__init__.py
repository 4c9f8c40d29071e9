"""Every table and figure of the paper: one small file each, found by being here.

A file names data sets, methods, conditions and layout in a ``SPEC``; ``qpignn paper run`` does the
rest. Nothing in this room imports torch.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from qpignn.errors import one_of
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
    """Return a spec, or raise with the nearest names."""
    return specs()[one_of("table or figure", name, specs())]
