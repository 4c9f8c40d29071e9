"""A cell: one method on one data set with one seed, and the row of figures it gives."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from qpignn.data.catalog import find_dataset, is_dataset
from qpignn.data.settings import VIEWS, View
from qpignn.data.sources.noise import NOISE, narrowest_width
from qpignn.data.split import SPLIT_ORDERS
from qpignn.errors import SettingError, check_choice, check_integer
from qpignn.experiments.digest import code_digest, data_digest, plugin_digest, versions
from qpignn.experiments.memory import PeakMemory
from qpignn.intervals import Intervals
from qpignn.metrics import summary
from qpignn.names import without_prefixes
from qpignn.protocols import GENERAL, ExperimentProtocol, find_protocol
from qpignn.training.history import History

KEPT = ("history", "intervals")
TEST_SHARE = 0.2
"""Share of the nodes that are test nodes."""
COPIED = (
    *("seed", "protocol", "view", "split", "confidence_level"),
    *("source", "damage", "options", "label_fraction"),
)
"""Fields of a cell that its row repeats."""
MOMENTS = 100  # epochs of a training that are kept


@dataclass(frozen=True)
class Cell:
    """What to run. Two equal cells run by equal code on equal data give equal rows.

    Attributes:
        dataset: a name in the catalog, or the folder of a saved graph
            (:func:`qpignn.save_graph`), which counts by its last name and its bytes.
        method: a name in the catalog, or the object path of a class (``mine.py:StudentT``), which
            counts by its file's name and its source.
        seed: decides split and initial weights, as the protocol says.
        protocol: name of the experiment protocol (:mod:`qpignn.protocols`).
        view, split: see :mod:`qpignn.data.settings` and :mod:`qpignn.data.split`.
        confidence_level: wanted coverage.
        settings: of the method, beyond its defaults.
        source: another data set to fit on; ``dataset`` is then only judged.
        options: of the data set, such as ``nodes``.
        damage: see :func:`qpignn.data.perturb.damage`.
        label_fraction: share of the labelled nodes that methods are given; by default all that
            are not test nodes.
        keep: what to keep beside the figures: ``history`` of the training, ``intervals``.
    """

    dataset: str
    method: str
    seed: int
    protocol: str = GENERAL
    view: str = "transductive"
    split: str = "random"
    confidence_level: float = 0.9
    settings: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    damage: dict[str, float] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    label_fraction: float | None = None

    @property
    def name(self) -> str:
        """What the data set is called: a saved graph by the last name of its folder."""
        return self.dataset if is_dataset(self.dataset) else Path(self.dataset).name

    @property
    def method_name(self) -> str:
        """The method's name in the row: an object path without the folders of its file."""
        plain = without_prefixes(self.method)
        place, _, name = plain.rpartition(":")
        if not place.endswith(".py"):
            return self.method
        return f"{self.method.removesuffix(plain)}{Path(place).name}:{name}"

    def key(self, inputs: dict[str, str] | None = None) -> str:
        """Return a digest of what decides the row: the cell, the code and the data files.

        Args:
            inputs: digests of code and data files; by default those of :meth:`inputs`.
        """
        cell = {**asdict(self), "dataset": self.name, "method": self.method_name}
        content = json.dumps([cell, inputs or self.inputs()], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def inputs(self) -> dict[str, str]:
        """Return the digests of the code, the plug-ins and the data files as they are now."""
        sets = [self.dataset, *([] if self.source is None else [self.source])]
        data = ":".join(data_digest(name, self.options) for name in sets)
        plugins = plugin_digest(self.method, self.settings)
        own = {"plugins": plugins} if plugins else {}
        return {"code": code_digest(), "data": data, **own}

    def run(self) -> dict[str, Any]:
        """Load, split, fit, predict, score.

        ``mpiw_limit`` is the narrowest mean width possible at the coverage attained, where the
        noise is known (:mod:`qpignn.data.sources.noise`). ``inputs`` are the digests of code and
        data files, ``versions`` those of Python and the libraries.

        Returns:
            The row.
        """
        inputs = self.inputs()
        settings = {"confidence_level": self.confidence_level, "seed": self.seed, **self.settings}
        protocol = find_protocol(self.protocol)
        method = protocol.make_method(self.method, **settings)
        view = self._view(protocol)
        weights = protocol.initial_weights(self, method, view)
        with PeakMemory() as memory:
            started = time.perf_counter()
            # a partial fit is no result
            method.fit(view.fit, on_interrupt="raise", initial_weights=weights)
            seconds = time.perf_counter() - started
        intervals = method.predict_interval(view.predict, view.test_mask)
        given = view.fit.y[~view.fit.y.isnan()]
        figures = summary(intervals, view.y_test, y_given=given)
        limit = None
        if self.dataset in NOISE and not (self.source or self.damage or self.options):
            limit = narrowest_width(self.dataset, float(figures["picp"] or 0))
            limit /= float(given.max() - given.min())
        return {
            "dataset": self.name,
            "method": self.method_name,
            **{name: getattr(self, name) for name in COPIED},
            "lambda_width": method.get_params().get("lambda_width"),
            "lambda_found": getattr(method, "lambda_width_", None),
            "n_train": len(given),
            "n_test": len(view.y_test),
            **figures,
            "mpiw_limit": limit,
            "fit_seconds": seconds,
            "peak_mb": memory.megabytes,
            "parameters": method.parameters_,
            "inputs": inputs,
            "versions": versions(),
            **({"history": _moments(method.history_)} if "history" in self.keep else {}),
            **({"intervals": _nodes(intervals, view)} if "intervals" in self.keep else {}),
        }

    def _view(self, protocol: ExperimentProtocol) -> View:
        """Return what is fitted on and what is predicted."""
        view = protocol.make_view(self, self.dataset)
        if self.source is not None:
            view = replace(view, fit=protocol.make_view(self, self.source).fit)
            for graph in (view.fit, view.predict):
                graph.feature_names = None  # columns are taken by their place
        return view


def check_dataset(dataset: str, protocol: str = GENERAL) -> None:
    """Raise unless a data set is in the catalog or is the folder of a saved graph.

    Args:
        dataset: name or folder.
        protocol: name of the protocol it is to be run under.

    Raises:
        UnknownNameError: if it is neither a name nor a folder.
        SettingError: if it is a saved graph and the protocol is for data sets of the catalog only.
    """
    if is_dataset(dataset) or not Path(dataset).is_dir():
        find_dataset(dataset)
    elif not find_protocol(protocol).saved_graphs:
        raise SettingError(
            f"protocol: expected {GENERAL} for a graph of your own ({dataset}), got {protocol}"
        )


def _moments(history: History) -> dict[str, list[float]]:
    """Some epochs of a training, evenly spread, the first and the last among them."""
    last = len(history) - 1
    epochs = sorted({round(last * i / (MOMENTS - 1)) for i in range(MOMENTS)})
    columns = {"loss": history.loss, "coverage": history.coverage, "width": history.width}
    kept = {name: [values[epoch] for epoch in epochs] for name, values in columns.items()}
    return {"epoch": [float(epoch) for epoch in epochs], **kept}


def _nodes(intervals: Intervals, view: View) -> dict[str, list[float]]:
    """The judged nodes, by rising prediction; numbers to six digits."""
    order = intervals.prediction.argsort(kind="stable")
    names = ("prediction", "lower", "upper")
    columns = {name: getattr(intervals, name)[order] for name in names}
    columns["y"] = view.y_test.numpy()[order]
    return {name: [float(f"{x:.6g}") for x in column] for name, column in columns.items()}


def grid(
    datasets: Iterable[str],
    methods: Iterable[str],
    seeds: int,
    *,
    protocol: str = GENERAL,
    view: str | None = None,
    split: str | None = None,
    confidence_levels: Iterable[float] = (0.9,),
    settings: dict[str, Any] | None = None,
    label_fraction: float | None = None,
) -> list[Cell]:
    """Return every combination; names and settings are checked before anything trains.

    Args:
        datasets: names of data sets or folders of saved graphs.
        methods: names or object paths of methods.
        seeds: number of seeds.
        protocol: name of the experiment protocol.
        view: what is known of the test nodes while fitting; by default the protocol's.
        split: how test nodes are chosen, by default at random.
        confidence_levels: wanted coverages.
        settings: settings of all methods.
        label_fraction: share of the labelled nodes that methods are given.

    Returns:
        The cells, data sets first.

    Raises:
        SettingError: for a wrong setting, or a view that the protocol does not have.
        UnknownNameError: for an unknown name.
    """
    chosen, split = find_protocol(protocol), split or "random"
    view = check_choice("view", view or chosen.views[0], VIEWS)
    if view not in chosen.views:
        raise SettingError(
            f"view: expected {' or '.join(chosen.views)} under the protocol {protocol}, got {view}"
        )
    check_choice("split", split, SPLIT_ORDERS)
    check_integer("seeds", seeds)
    datasets, methods = ([*dict.fromkeys(names)] for names in (datasets, methods))
    levels = [*dict.fromkeys(confidence_levels)]
    for kind, names in (("data sets", datasets), ("methods", methods), ("levels", levels)):
        if not names:
            raise SettingError(f"{kind}: expected at least one, got none; name some, by commas")
    for name in datasets:
        check_dataset(name, protocol)
    for method, level in itertools.product(methods, levels):
        chosen.make_method(method, confidence_level=level, **(settings or {}))
    return [
        Cell(
            *(dataset, method, seed, protocol, view, split, level, settings or {}),
            label_fraction=label_fraction,
        )
        for dataset, method, level, seed in itertools.product(
            datasets, methods, levels, range(seeds)
        )
    ]
