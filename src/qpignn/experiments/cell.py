"""A cell: one method on one data set with one seed, and the row of figures it gives."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from qpignn.data.catalog import PROTOCOLS, load_dataset
from qpignn.data.split import ORDERS, split_nodes
from qpignn.data.views import VIEWS, make_view
from qpignn.errors import SettingError, one_of
from qpignn.experiments.published import published_view, published_weights
from qpignn.methods.catalog import make_method
from qpignn.metrics import summary

TEST_SHARE = 0.2
DEPENDS_ON = ("data", "intervals.py", "methods", "metrics.py", "nn", "objectives", "training")


@dataclass(frozen=True)
class Cell:
    """What to run. Two equal cells run by equal code give equal rows.

    Attributes:
        dataset, method: names in the catalogs.
        seed: under ``corrected`` it decides split and initial weights; under ``published`` it
            counts runs, which differ in their initial weights only.
        protocol: ``corrected`` or ``published``, never mixed.
        view, split: see :mod:`qpignn.data.views` and :mod:`qpignn.data.split`.
        confidence_level: wanted coverage.
        settings: of the method, beyond its defaults.
    """

    dataset: str
    method: str
    seed: int
    protocol: str = "corrected"
    view: str = "transductive"
    split: str = "random"
    confidence_level: float = 0.9
    settings: dict[str, Any] = field(default_factory=dict)

    def key(self) -> str:
        """Digest of everything that decides the row: the cell, and the code that computes it."""
        content = json.dumps([asdict(self), code_digest()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def run(self) -> dict[str, Any]:
        """Load, split, fit, predict, score."""
        settings = {"confidence_level": self.confidence_level, "seed": self.seed, **self.settings}
        method = make_method(self.method, self.protocol, **settings)
        if self.protocol == "published":
            view, stream = published_view(self.dataset)
            columns = view.fit.x.shape[1]
            method.start_from(published_weights(stream, self.seed, columns, method.hidden))
        else:
            data = load_dataset(self.dataset)
            data = split_nodes(data, test=TEST_SHARE, by=self.split, seed=self.seed)
            view = make_view(data, self.view)
        started = time.perf_counter()
        method.fit(view.fit)
        seconds = time.perf_counter() - started
        if method.history_.stopped == "interrupted":  # half a fit is no result
            raise KeyboardInterrupt
        intervals = method.predict_interval(view.predict, view.test_mask)
        known = view.fit.y[~view.fit.y.isnan()]
        figures = summary(intervals, view.y_test, y_given=known)
        return {
            "dataset": self.dataset,
            "method": self.method,
            "seed": self.seed,
            "protocol": self.protocol,
            "view": self.view,
            "split": self.split,
            "confidence_level": self.confidence_level,
            "lambda_width": method.get_params().get("lambda_width"),
            "n_train": len(known),
            "n_test": len(view.y_test),
            **figures,
            "fit_seconds": seconds,
            "parameters": method.parameters_,
        }


def grid(
    datasets: Iterable[str],
    methods: Iterable[str],
    seeds: int,
    *,
    protocol: str = "corrected",
    view: str = "transductive",
    split: str = "random",
    confidence_levels: Iterable[float] = (0.9,),
    settings: dict[str, Any] | None = None,
) -> list[Cell]:
    """Return every combination; names and settings are checked before anything trains."""
    one_of("protocol", protocol, PROTOCOLS)
    if protocol == "published":
        view, split = "isolated", "random"  # what the authors' code did, and nothing else
    one_of("view", view, VIEWS)
    one_of("split", split, ORDERS)
    if seeds < 1:
        raise SettingError(f"seeds: expected 1 or more, got {seeds}")
    methods = list(methods)
    for method in methods:
        make_method(method, protocol, **(settings or {}))
    return [
        Cell(dataset, method, seed, protocol, view, split, level, settings or {})
        for dataset, method, level, seed in itertools.product(
            datasets, methods, confidence_levels, range(seeds)
        )
    ]


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Digest of the source files whose change could change a figure."""
    digest = hashlib.sha256()
    package = files("qpignn")
    for name in DEPENDS_ON:
        for path in sorted(_python_files(package / name), key=str):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _python_files(place: Any) -> list[Any]:
    if place.is_file():
        return [place] if place.name.endswith(".py") else []
    return [file for inside in place.iterdir() for file in _python_files(inside)]
