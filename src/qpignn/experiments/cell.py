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
from pathlib import Path
from typing import Any

from qpignn.data.catalog import PROTOCOLS, find_dataset, load_dataset
from qpignn.data.sources.noise import NOISE, narrowest_width
from qpignn.data.split import ORDERS, split_nodes
from qpignn.data.views import VIEWS, make_view
from qpignn.errors import SettingError, one_of, whole_number
from qpignn.experiments.published import TEST_SHARE, published_view, start_as_published
from qpignn.methods.catalog import make_method
from qpignn.metrics import summary

ONLY_SHOWS = ("cli", "reports")  # rooms whose code cannot change a figure


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
        """Load, split, fit, predict, score.

        ``mpiw_limit`` is the narrowest mean width possible at the coverage attained, where the
        noise is known (:mod:`qpignn.data.sources.noise`).
        """
        settings = {"confidence_level": self.confidence_level, "seed": self.seed, **self.settings}
        method = make_method(self.method, self.protocol, **settings)
        if self.protocol == "published":
            view, stream = published_view(self.dataset)
            start_as_published(method, view, stream, self.seed)
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
        limit = None
        if self.dataset in NOISE:
            limit = narrowest_width(self.dataset, float(figures["picp"] or 0))
            limit /= float(known.max() - known.min())
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
            "mpiw_limit": limit,
            "fit_seconds": seconds,
            "parameters": method.parameters_,
        }


def grid(
    datasets: Iterable[str],
    methods: Iterable[str],
    seeds: int,
    *,
    protocol: str = "corrected",
    view: str | None = None,
    split: str | None = None,
    confidence_levels: Iterable[float] = (0.9,),
    settings: dict[str, Any] | None = None,
) -> list[Cell]:
    """Return every combination; names and settings are checked before anything trains."""
    one_of("protocol", protocol, PROTOCOLS)
    only = {"published": ("isolated", "random")}.get(protocol)  # what the authors' code did
    if only and ((view or only[0]), (split or only[1])) != only:
        raise SettingError(
            f"the published protocol has the view {only[0]} and the split {only[1]} only, "
            f"got {view} and {split}"
        )
    view, split = only or (view or "transductive", split or "random")
    one_of("view", view, VIEWS)
    one_of("split", split, ORDERS)
    whole_number("seeds", seeds)
    datasets, methods = ([*dict.fromkeys(names)] for names in (datasets, methods))
    levels = [*dict.fromkeys(confidence_levels)]
    for name in datasets:
        find_dataset(name)
    for method, level in itertools.product(methods, levels):
        make_method(method, protocol, confidence_level=level, **(settings or {}))
    return [
        Cell(dataset, method, seed, protocol, view, split, level, settings or {})
        for dataset, method, level, seed in itertools.product(
            datasets, methods, levels, range(seeds)
        )
    ]


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Digest of this package's source files whose change could change a figure."""
    return digest_of(Path(str(files("qpignn"))))


def digest_of(package: Path) -> str:
    """Digest of a package's files, without those of the rooms that only show results."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if inside.parts[0] not in ONLY_SHOWS:
            digest.update(inside.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
