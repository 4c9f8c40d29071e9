"""Methods by name.

``conformal:NAME`` is any method with a conformal step, ``ensemble:NAME`` five of its nets averaged,
``neighbours:NAME`` several of its nets, calibrated on the units that each holds out, with the known
targets of neighbours (``neighbours="auto"``).
A name may also be an object path, ``mine.py:StudentT`` or ``package.module:StudentT``, or one that
an installed package declares as an entry point of the group ``qpignn.methods``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from qpignn.errors import ModelFileError, SettingError, brief, check_choice, check_setting_names
from qpignn.io.files import check_path
from qpignn.io.locks import read_consistent
from qpignn.methods.ablation import Ablation
from qpignn.methods.base import IntervalMethod
from qpignn.methods.bayesian import Bayesian
from qpignn.methods.boosting import Boosting
from qpignn.methods.cfgnn import CorrectedGNN
from qpignn.methods.conformal import Conformal
from qpignn.methods.deep_ensemble import DeepEnsemble
from qpignn.methods.evidential import Evidential
from qpignn.methods.fitted import settings_of
from qpignn.methods.mc_dropout import MCDropout
from qpignn.methods.prefit import Prefit
from qpignn.methods.qpignn import QpiGNN
from qpignn.methods.quantile import QuantileGNN
from qpignn.methods.rqr import RQR
from qpignn.methods.serialization import MODEL_FILES, describe_model
from qpignn.methods.sqr import SQR
from qpignn.names import METHOD_GROUP, PREFIXES
from qpignn.protocols import find_protocol, protocol_names
from qpignn.runtime.entry_points import installed, load_installed
from qpignn.runtime.plugins import is_object_path, load_object

CLASSES: dict[str, type[IntervalMethod]] = {
    "qpignn": QpiGNN,
    "sqr": SQR,
    "rqr": RQR,
    "mc_dropout": MCDropout,
    "bayesian": Bayesian,
    "evidential": Evidential,
    "deep_ensemble": DeepEnsemble,
    "quantile": QuantileGNN,
    "corrected": CorrectedGNN,
    "ablation": Ablation,
    "boosting_quantiles": Boosting,
}
NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "cfgnn": ("conformal:corrected", {}),
    "cfgnn_tuned": ("conformal:corrected", {"trials": 20}),
    "cqr": ("conformal:quantile", {}),
    "qpignn_single": ("qpignn", {"members": 1}),
    "boosting": ("conformal:boosting_quantiles", {}),
}
"""Names for a method with certain settings."""

ALL = (
    *("qpignn", "sqr", "rqr", "mc_dropout", "bayesian", "evidential"),
    *("cfgnn", "deep_ensemble", "cqr"),
)
"""The methods that ``--methods all`` means."""

METHODS = (*CLASSES, *NAMED)
CONFORMAL, ENSEMBLE, NEIGHBOURS = PREFIXES
MEMBERS = 5


def make_method(name: str, protocol: str | None = None, **settings: Any) -> IntervalMethod:
    """Make a method by name.

    Args:
        name: a name of the catalog or of an installed package, or the object path of a class
            (``mine.py:StudentT``), with or without ``conformal:``, ``ensemble:`` or ``neighbours:``
            before it. A file named so is run, as ``import`` does.
        protocol: an experiment protocol whose form of the method is wanted
            (:mod:`qpignn.protocols`).
        **settings: settings that differ from the defaults.

    Returns:
        The method, not fitted.

    Raises:
        UnknownNameError: for an unknown method or protocol.
        SettingError: for a setting that the method does not have or a wrong value, or for an
            object path that does not lead to a method.

    Example:
        >>> make_method("conformal:sqr", score="absolute", hidden=16).method.hidden
        16
    """
    if protocol is not None:
        return find_protocol(protocol).make_method(name, **settings)
    method = _made(name, settings)
    method.check_settings()
    return method


def _made(name: Any, settings: dict[str, Any]) -> IntervalMethod:
    if not isinstance(name, str):
        check_method_name(name)
    if name in NAMED:
        inner, fixed = NAMED[name]
        return _made(inner, {**fixed, **settings})
    if name.startswith(CONFORMAL):
        rest = {**settings}
        outer = {key: rest.pop(key) for key in settings_of(Conformal) if key in rest}
        return Conformal(_made(name.removeprefix(CONFORMAL), rest), **outer)
    if name.startswith(ENSEMBLE):
        return _made(name.removeprefix(ENSEMBLE), {"members": MEMBERS, **settings})
    if name.startswith(NEIGHBOURS):
        return _made(name.removeprefix(NEIGHBOURS), {"neighbours": "auto", **settings})
    cls = find_class(name)
    check_setting_names(f"method {name!r}", settings, settings_of(cls))
    return cls(**settings)


def check_method_name(name: str) -> str:
    """Return the name of a method of the catalog or of an installed package, or raise.

    Raises:
        UnknownNameError: if there is none of that name.

    Args:
        name: the name, without prefixes.
    """
    return check_choice("method", name, [*METHODS, *installed(METHOD_GROUP)])


def find_class(name: str) -> type[IntervalMethod]:
    """Return the class of a method by its name or object path, without prefixes.

    Args:
        name: a name of the catalog or of an installed package, or an object path.

    Returns:
        The class.

    Raises:
        UnknownNameError: for an unknown name.
        SettingError: for an object path that does not lead to a method.
    """
    if is_object_path(name):
        return _checked_class(name, load_object(name))
    check_method_name(name)
    return CLASSES.get(name) or load_installed(METHOD_GROUP, name, IntervalMethod)


def _checked_class(path: object, candidate: object) -> type[IntervalMethod]:
    if not (isinstance(candidate, type) and issubclass(candidate, IntervalMethod)):
        raise SettingError(
            f"{path}: expected a class derived from IntervalMethod, got {brief(candidate)}; see "
            f"docs/research.md, 'A method of your own'"
        )
    return candidate


def setting_names(name: str, protocol: str | None = None) -> list[str]:
    """Return the settings a method takes, those of a method inside it included.

    Args:
        name: as for :func:`make_method`.
        protocol: as for :func:`make_method`.
    """
    method = make_method(name, protocol)
    names = {*method.get_params(deep=False)}
    if isinstance(method, Conformal):
        names |= {*method.method.get_params(deep=False)}
    return sorted(names - {"method"})


_GIVEN: ContextVar[tuple[type[IntervalMethod], ...]] = ContextVar("given", default=())


@contextmanager
def saved_class(method: type[IntervalMethod] | str | None) -> Iterator[None]:
    """Let models of a class outside the package be loaded while the block runs.

    Args:
        method: the class, or its object path; None for none.

    Raises:
        SettingError: if it is not a method.

    Yields:
        None.
    """
    candidate = load_object(method) if isinstance(method, str) else method
    given = () if method is None else (_checked_class(method, candidate),)
    token = _GIVEN.set((*_GIVEN.get(), *given))
    try:
        yield
    finally:
        _GIVEN.reset(token)


def class_named(name: str) -> type[IntervalMethod]:
    """Return the class of a saved method. Nothing is imported that only a model folder names.

    Args:
        name: name of the class, as in ``model.json``.

    Returns:
        A class of this package or of an installed one, or the one given by :func:`saved_class`.

    Raises:
        ModelFileError: if there is no such class.
    """
    own: tuple[type[IntervalMethod], ...]
    own = (*_GIVEN.get(), *CLASSES.values(), Conformal, Prefit)
    protocols = (find_protocol(protocol) for protocol in protocol_names())
    theirs = (cls for protocol in protocols for cls in protocol.method_classes())
    for cls in itertools.chain(own, theirs):
        if cls.__name__ == name:
            return cls
    for entry, path in installed(METHOD_GROUP).items():
        if path.rpartition(":")[2] == name:
            return find_class(entry)
    raise ModelFileError(
        f"expected a saved model of a method of qpignn or of an installed package, got one of "
        f"{brief(name)}; give its class: load_method(folder, method=TheClass), or "
        f"--method mine.py:TheClass on the command line"
    )


def load_method(
    folder: str | Path,
    *,
    method: type[IntervalMethod] | str | None = None,
    encoder: Any = None,
) -> IntervalMethod:
    """Load a saved model of any method.

    Args:
        folder: folder of the model.
        method: class of the model, or of the method inside it, where that is outside this package
            and no installed package declares it; the class itself or its object path. A folder
            cannot name code that is run.
        encoder: the module, class or function it was fitted with, where that is not a named
            encoder.

    Returns:
        The fitted method.

    Raises:
        ModelFileError: if there is no model, a damaged one, or one of an unknown class.
        SettingError: if ``method`` is not a method.
    """
    folder = check_path("folder", folder)

    def load() -> IntervalMethod:
        return class_named(describe_model(folder)["method"]).load(folder, encoder=encoder)

    with saved_class(method):
        return read_consistent(folder, MODEL_FILES, load)
