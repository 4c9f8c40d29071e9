"""Methods by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qpignn.data.catalog import PROTOCOLS
from qpignn.errors import SettingError, one_of
from qpignn.methods.base import IntervalMethod
from qpignn.methods.bayesian import Bayesian
from qpignn.methods.deep_ensemble import DeepEnsemble
from qpignn.methods.evidential import Evidential
from qpignn.methods.folder import read_description
from qpignn.methods.mc_dropout import MCDropout
from qpignn.methods.qpignn import QpiGNN
from qpignn.methods.rqr import RQR
from qpignn.methods.sqr import SQR

METHODS: dict[str, type[IntervalMethod]] = {
    "qpignn": QpiGNN,
    "sqr": SQR,
    "rqr": RQR,
    "mc_dropout": MCDropout,
    "bayesian": Bayesian,
    "evidential": Evidential,
    "deep_ensemble": DeepEnsemble,
}


def make_method(name: str, protocol: str = "corrected", **settings: Any) -> IntervalMethod:
    """Make a method by name, in its ``corrected`` or ``published`` form."""
    cls = METHODS[one_of("method", name, METHODS)]
    one_of("protocol", protocol, PROTOCOLS)
    make = cls if protocol == "corrected" else getattr(cls, "published", None)
    if make is None:
        raise SettingError(f"method {name!r} has no published form")
    known = cls().get_params()
    for setting in settings:
        if setting not in known:
            raise SettingError(f"method {name!r} has no setting {setting!r}; it has {list(known)}")
    method: IntervalMethod = make(**settings)
    method.check_settings()
    return method


def load_method(folder: str | Path) -> IntervalMethod:
    """Load a saved model of whatever method it is."""
    saved = read_description(Path(folder))["method"]
    classes = {cls.__name__: cls for cls in METHODS.values()}
    return classes[one_of("saved method", saved, classes)].load(folder)
