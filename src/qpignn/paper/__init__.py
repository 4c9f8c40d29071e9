"""Replication of the paper: its tables and figures, and the protocol ``published``.

Every module of :mod:`qpignn.paper.entries` is one table or figure: its ``SPEC`` names data sets,
methods, conditions and layout, and ``qpignn paper run`` does the rest. Specs import no torch.
:mod:`qpignn.paper.published` imitates the authors' code.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from runpy import run_path

from qpignn.errors import ReadError, check_choice
from qpignn.paper import entries
from qpignn.paper.spec import Spec, fact_names


@cache
def specs() -> dict[str, Spec]:
    """Return all specs by name, in the paper's order."""
    every = []
    for module in iter_modules(entries.__path__):
        spec = import_module(f"{entries.__name__}.{module.name}").SPEC
        facts = module.name if module.name in fact_names() else spec.facts
        every.append(replace(spec, name=module.name, facts=facts))
    return {spec.name: spec for spec in sorted(every, key=lambda spec: (spec.place, spec.name))}


def find_spec(name: str) -> Spec:
    """Return a spec by name, or that of a Python file of the user's own.

    Args:
        name: name of a table or figure, or path of a Python file with a ``SPEC``. The file is run,
            as ``import`` does: only name one you trust.

    Returns:
        The spec.

    Raises:
        UnknownNameError: if there is no table or figure of that name.
        ReadError: if the file cannot be read or has no ``SPEC``.
    """
    if not name.endswith(".py"):
        return specs()[check_choice("table or figure", name, specs())]
    expected = f"{name}: expected a Python file with a SPEC, got"
    if not Path(name).is_file():
        raise ReadError(f"{expected} no file")
    try:
        spec = run_path(name).get("SPEC")
    except Exception as error:
        raise ReadError(f"{expected} an error: {error}") from error
    if not isinstance(spec, Spec):
        raise ReadError(f"{expected} {spec!r} for it")
    return replace(spec, name=spec.name or Path(name).stem)
