"""Methods by name.

``conformal:NAME`` is any method with a conformal step, ``ensemble:NAME`` five of its nets averaged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qpignn.errors import SettingError, UnknownNameError, check_choice, check_setting_names
from qpignn.io.files import check_path
from qpignn.io.locks import read_consistent
from qpignn.methods.ablation import Ablation
from qpignn.methods.base import IntervalMethod
from qpignn.methods.bayesian import Bayesian
from qpignn.methods.cfgnn import CorrectedGNN
from qpignn.methods.conformal import Conformal
from qpignn.methods.deep_ensemble import DeepEnsemble
from qpignn.methods.evidential import Evidential
from qpignn.methods.mc_dropout import MCDropout
from qpignn.methods.prefit import Prefit
from qpignn.methods.published import PUBLISHED, make_published
from qpignn.methods.qpignn import QpiGNN
from qpignn.methods.quantile import QuantileGNN
from qpignn.methods.rqr import RQR
from qpignn.methods.serialization import MODEL_FILES, describe_model
from qpignn.methods.sqr import SQR
from qpignn.names import PROTOCOLS

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
}
NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "cfgnn": ("conformal:corrected", {}),
    "cfgnn_tuned": ("conformal:corrected", {"trials": 20}),
    "cqr": ("conformal:quantile", {}),
    "qpignn_single": ("qpignn", {"members": 1}),
}
"""Names for a method with certain settings."""

ALL = (
    *("qpignn", "sqr", "rqr", "mc_dropout", "bayesian", "evidential"),
    *("cfgnn", "deep_ensemble", "cqr"),
)
"""What ``--methods all`` means."""

METHODS = (*CLASSES, *NAMED)
CONFORMAL, ENSEMBLE, MEMBERS = "conformal:", "ensemble:", 5


def make_method(name: str, protocol: str = "corrected", **settings: Any) -> IntervalMethod:
    """Make a method by name, in its ``corrected`` or ``published`` form.

    Example:
        >>> make_method("conformal:sqr", score="absolute", hidden=16).method.hidden
        16
    """
    check_choice("protocol", protocol, PROTOCOLS)
    if not isinstance(name, str):
        raise UnknownNameError("method", name, METHODS)
    method = _published(name, settings) if protocol == "published" else _made(name, settings)
    method.check_settings()
    return method


def _made(name: str, settings: dict[str, Any]) -> IntervalMethod:
    if name in NAMED:
        inner, fixed = NAMED[name]
        return _made(inner, {**fixed, **settings})
    if name.startswith(CONFORMAL):
        own = set(Conformal._get_param_names())
        outer = {key: value for key, value in settings.items() if key in own}
        rest = {key: value for key, value in settings.items() if key not in own}
        return Conformal(_made(name.removeprefix(CONFORMAL), rest), **outer)
    if name.startswith(ENSEMBLE):
        return _made(name.removeprefix(ENSEMBLE), {"members": MEMBERS, **settings})
    cls = CLASSES[check_choice("method", name, METHODS)]
    check_setting_names(f"method {name!r}", settings, cls._get_param_names())
    return cls(**settings)


def _published(name: str, settings: dict[str, Any]) -> IntervalMethod:
    if name not in PUBLISHED:
        check_choice("method", name, METHODS)
        raise SettingError(f"method {name!r} has no published form; those with one: {[*PUBLISHED]}")
    check_setting_names(f"method {name!r}", settings, PUBLISHED[name][0]._get_param_names())
    return make_published(name, settings)


def setting_names(name: str, protocol: str = "corrected") -> list[str]:
    """Return the settings a method takes, those of a method inside it among them."""
    method = make_method(name, protocol)
    found = {*method._get_param_names()}
    if isinstance(method, Conformal):
        found |= {*method.method._get_param_names()}
    return sorted(found - {"method"})


def class_named(name: str) -> type[IntervalMethod]:
    """Return the class of a saved method."""
    published = [cls for cls, _ in PUBLISHED.values()]
    found: list[type[IntervalMethod]] = [*CLASSES.values(), *published, Conformal, Prefit]
    classes = {cls.__name__: cls for cls in found}
    return classes[check_choice("saved method", name, classes)]


def load_method(folder: str | Path) -> IntervalMethod:
    """Load a saved model of whatever method it is."""
    folder = check_path("folder", folder)

    def load() -> IntervalMethod:
        return class_named(describe_model(folder)["method"]).load(folder)

    return read_consistent(folder, MODEL_FILES, load)
