"""What a table or figure of the paper is made of: names only, nothing here computes."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from qpignn.errors import check_choice

SYNTHETIC = ("basic", "gaussian", "uniform", "outlier", "edge", "ba", "er", "grid", "tree")
REAL = (
    *("education", "election", "income", "unemployment", "twitch"),
    *("chameleon", "crocodile", "squirrel", "anaheim", "chicago"),
)
SEED = "seed"
FACTS = files("qpignn.paper").joinpath("facts")


@dataclass(frozen=True)
class Variant:
    """A method with settings, under the name a table shows.

    Attributes:
        label: as shown, and as in the facts.
        method: a name of the catalog.
        corrected, published: settings under each protocol; a mapping as a value gives one for
            each data set; None leaves the variant out there.
        seeds: at most so many, for a variant that costs many fits.
    """

    label: str
    method: str
    corrected: Mapping[str, Any] | None = field(default_factory=dict)
    published: Mapping[str, Any] | None = field(default_factory=dict)
    seeds: int | None = None


@dataclass(frozen=True)
class Condition:
    """What is done to the data, under the name a table shows.

    Attributes:
        label: as shown, and as in the facts.
        cell: fields of :class:`qpignn.experiments.cell.Cell`, such as ``split`` or ``damage``; an
            option :data:`SEED` of the data set is the cell's own seed.
    """

    label: str = ""
    cell: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One table or figure: every data set × variant × condition × seed is a cell.

    Attributes:
        name: for the command line; by default that of its file.
        title: one line.
        place: where the paper has it.
        datasets, variants, conditions: what is run.
        metrics: figures of a row that are shown.
        rows, columns: of the table: ``dataset``, ``variant`` or ``condition`` each.
        seeds: how many.
        facts: the file of the paper's own figures, if it gives some; by default that of its name.
        picture: which picture to draw, see :data:`qpignn.paper.pictures.PICTURES`.
        table: which table to make, see :data:`qpignn.paper.tables.TABLES`.
        keep: what cells keep beside their figures.
        text: a table that nothing computes: headings, then rows.
        note: what a reader should know beside it.
    """

    name: str = ""
    title: str
    place: str
    datasets: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    conditions: tuple[Condition, ...] = (Condition(),)
    metrics: tuple[str, ...] = ("picp", "mpiw")
    rows: str = "dataset"
    columns: str = "variant"
    seeds: int = 5
    facts: str | None = None
    picture: str | None = None
    table: str = "grid"
    keep: tuple[str, ...] = ()
    text: tuple[tuple[str, ...], ...] = ()
    note: str = ""


def on_real(spec: Spec) -> Spec:
    """Return a table of the synthetic data sets with the real ones in their place.

    Args:
        spec: the table; its title and place say "synthetic".

    Returns:
        The same on the real data sets; title and place say "real".
    """
    title, place = (text.replace("synthetic", "real") for text in (spec.title, spec.place))
    return replace(spec, datasets=REAL, title=title, place=place)


def fact_names() -> list[str]:
    """Return the tables whose figures the paper prints: the files of ``facts/``."""
    return [path.name.removesuffix(".csv") for path in FACTS.iterdir()]


def read_facts(name: str) -> list[dict[str, str]]:
    """Return the paper's own figures: variant, condition, dataset, metric, value.

    Args:
        name: name of a file of ``facts/``.
    """
    path = FACTS.joinpath(f"{check_choice('facts', name, fact_names())}.csv")
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def best_lambdas() -> dict[str, float]:
    """Return the λ the paper reports as best for each data set."""
    rows = read_facts("lambda_opt")
    return {row["dataset"]: float(row["value"]) for row in rows if row["metric"] == "lambda_found"}
