"""From a table's spec to the cells it needs; every name is checked before anything trains."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import NamedTuple

from qpignn.data.catalog import find_dataset, missing_message
from qpignn.data.perturb import PERTURBATIONS
from qpignn.data.settings import VIEWS
from qpignn.data.split import SPLIT_ORDERS
from qpignn.errors import SettingError, check_choice, check_integer, quoted
from qpignn.experiments.cell import KEPT, Cell
from qpignn.methods.catalog import make_method, setting_names
from qpignn.names import PROTOCOLS
from qpignn.paper.spec import SEED, Spec
from qpignn.protocols import find_protocol

AXES = ("dataset", "variant", "condition")
METRICS = (
    *("picp", "mpiw", "mpiw_raw", "nmpiw", "mpe", "sharpness", "winkler", "winkler_one", "cwc"),
    *("mae", "rmse", "mean_bound", "miss_rate", "pinball"),
    *("mpiw_limit", "fit_seconds", "peak_mb", "parameters", "lambda_found", "coverage_error"),
)
COUNTS = ("nodes", "edges", "features")
FIELDS = ("view", "split", "confidence_level", "settings", "source", "options", "damage")
QUICK = {"epochs": 2, "trials": 2, "correction_epochs": 2, "passes": 3}
QUICK_SETS, QUICK_CONDITIONS = 2, 3


class Planned(NamedTuple):
    """A cell, and where in the table it belongs.

    Attributes:
        dataset: name of the data set.
        variant: label of the variant.
        condition: label of the condition.
        cell: the cell.
    """

    dataset: str
    variant: str
    condition: str
    cell: Cell


class Plan(NamedTuple):
    """What a spec needs under a protocol.

    Attributes:
        spec, protocol: of what.
        missing: which data sets are not here and why, in words.
        cells: what to run.
    """

    spec: Spec
    protocol: str
    missing: tuple[str, ...]
    cells: tuple[Planned, ...]


def make_plan(
    spec: Spec,
    protocol: str = "corrected",
    *,
    seeds: int | None = None,
    quick: bool = False,
    everywhere: bool = False,
) -> Plan:
    """Return the cells of a table or figure.

    Args:
        spec: which.
        protocol: ``corrected`` or ``published``.
        seeds: how many; default the spec's own.
        quick: two data sets, three conditions, one seed and two epochs: to see that it works, not
            what it gives.
        everywhere: also data sets that are not on this machine; their rows may be.
    """
    check_choice("protocol", protocol, PROTOCOLS)
    check_spec(spec)
    count = check_integer("seeds", 1 if quick else spec.seeds if seeds is None else seeds)
    checked = () if everywhere else spec.datasets
    reasons = {name: missing_message(find_dataset(name)) for name in checked}
    here = [name for name in spec.datasets if reasons.get(name) is None]
    here = here[: QUICK_SETS if quick else None]
    conditions = spec.conditions[: QUICK_CONDITIONS if quick else None]
    cells = []
    for dataset, condition, variant in itertools.product(here, conditions, spec.variants):
        if getattr(variant, protocol) is None:
            continue
        fields = {"view": find_protocol(protocol).views[0], **condition.cell}
        settings = {  # a data set's own value where a setting has one for each
            name: value[dataset] if isinstance(value, Mapping) else value
            for name, value in getattr(variant, protocol).items()
        }
        settings |= fields.pop("settings", {})
        if quick:
            names = setting_names(variant.method, protocol)
            settings |= {name: value for name, value in QUICK.items() if name in names}
        level = {k: v for k, v in fields.items() if k == "confidence_level"}
        make_method(variant.method, protocol, **settings, **level)
        options = fields.pop("options", {})
        what = {"protocol": protocol, "settings": settings, "keep": spec.keep, **fields}
        for seed in range(min(count, variant.seeds or count)):
            own = {name: seed if value == SEED else value for name, value in options.items()}
            cell = Cell(dataset, variant.method, seed, options=own, **what)
            cells.append(Planned(dataset, variant.label, condition.label, cell))
    missing = tuple(f"{name} ({reason})" for name, reason in reasons.items() if reason)
    return Plan(spec, protocol, missing, tuple(cells))


def check_spec(spec: Spec) -> None:
    """Raise if a spec names a data set, method, setting, metric or condition that is not there.

    Args:
        spec: the table or figure.

    Raises:
        SettingError: for labels given twice, rows that are columns, or nothing to run.
        UnknownNameError: for an unknown name.
    """
    for name in spec.datasets:
        find_dataset(name)
    _check_all("metric", spec.metrics, COUNTS if spec.table == "statistics" else METRICS)
    _check_all("axis", (spec.rows, spec.columns), AXES)
    _check_all("thing to keep", spec.keep, KEPT)
    if spec.rows == spec.columns:
        raise SettingError(f"{spec.name}: expected other rows than columns, got {spec.rows} twice")
    for what, names in (
        ("data sets", spec.datasets),
        ("labels of variants", [variant.label for variant in spec.variants]),
        ("labels of conditions", [condition.label for condition in spec.conditions]),
    ):
        if len({*names}) < len(names):
            raise SettingError(f"{spec.name}: expected different {what}, got {quoted(names)}")
    if not spec.text and spec.table != "statistics" and not (spec.variants and spec.datasets):
        raise SettingError(f"{spec.name}: expected data sets and variants, got none")
    for variant, protocol in itertools.product(spec.variants, PROTOCOLS):
        if settings := getattr(variant, protocol):
            names = setting_names(variant.method, protocol)
            _check_all(f"setting of {variant.method}", settings, names)
    for fields in (condition.cell for condition in spec.conditions):
        _check_all("field of a condition", fields, FIELDS)
        check_choice("view", fields.get("view", Cell.view), VIEWS)
        check_choice("split", fields.get("split", Cell.split), SPLIT_ORDERS)
        _check_all("damage", fields.get("damage", {}), PERTURBATIONS)
        if "source" in fields:
            find_dataset(fields["source"])
        for name in spec.datasets:
            options = signature(find_dataset(name).loader).parameters
            _check_all(f"option of {name}", fields.get("options", {}), options)


def _check_all(kind: str, names: Iterable[str], choices: Iterable[str]) -> None:
    for name in names:
        check_choice(kind, name, choices)


def shared_cells(plans: Sequence[Plan]) -> list[Cell]:
    """Return the cells of several plans, each once.

    Args:
        plans: the plans.
    """
    cells = {planned.cell.key(): planned.cell for plan in plans for planned in plan.cells}
    return list(cells.values())
