"""Heavy-tailed targets: what each form of the target gives, and which one ``auto`` takes.

    python benchmarks/heavy_tails.py [--sets chameleon,squirrel,twitch,views,lognormal] [--seeds 5]

For each data set and form: coverage, median width, mean width, Winkler score and the share of lower
bounds below zero on test nodes, at 90 %, averaged over random 80/20 splits of the whole graph.
Widths and scores are in units of the given targets' range, median widths in thousandths of it.

``no limit`` trains on the target as it is, with ``y_min=None``; all others keep the default limit.
``views`` are the raw views behind twitch's target; ``lognormal`` is the target of er, standardised,
doubled and exponentiated.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from qpignn import QpiGNN, load_dataset, metrics, split_nodes
from qpignn.data.settings import View, make_view
from qpignn.data.sources.files import fetch
from qpignn.data.sources.musae import files_of
from qpignn.errors import QpignnWarning

FORMS: dict[str, dict[str, Any]] = {
    "no limit": {"target_transform": "none", "y_min": None},
    "none": {"target_transform": "none"},
    "sqrt": {"target_transform": "sqrt"},
    "log1p": {"target_transform": "log1p"},
    "auto": {},
}
LEVEL = 0.9
COLUMNS = ("coverage", "median width ‰", "mean width", "Winkler", "below 0")


def views() -> Data:
    """Twitch users with their views as they were counted."""
    data = load_dataset("twitch")
    table = pd.read_csv(fetch(files_of("twitch", "PTBR")["target.csv"])).set_index("new_id")
    counts = table["views"].reindex(range(data.x.shape[0])).to_numpy(dtype=np.float64)
    return Data(x=data.x, y=torch.from_numpy(counts), edge_index=data.edge_index)


def lognormal() -> Data:
    """The er graph with a target whose logarithm has a deviation of 2."""
    data = load_dataset("er")
    y = data.y.double()
    return Data(x=data.x, y=torch.exp(2 * (y - y.mean()) / y.std()), edge_index=data.edge_index)


OWN = {"views": views, "lognormal": lognormal}


def measured(view: View, seed: int, settings: dict[str, Any]) -> tuple[list[float], str]:
    """Fit once; return what the columns show, and the transform that was used."""
    model = QpiGNN(LEVEL, seed=seed, **settings).fit(view.fit)
    intervals = model.predict_interval(view.predict, view.test_mask)
    bounds = (view.y_test, intervals.lower, intervals.upper)
    targets = view.fit.y[~view.fit.y.isnan()]
    span = float(targets.max() - targets.min())
    figures = [
        metrics.picp(*bounds),
        1000 * float(np.median(intervals.width)) / span,
        metrics.mpiw(*bounds) / span,
        metrics.winkler_score(*bounds, confidence_level=LEVEL) / span,
        float((intervals.lower < 0).mean()),
    ]
    return figures, model.y_scaler_.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="chameleon,squirrel,twitch,views,lognormal")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(f"| data set | form | {' | '.join(COLUMNS)} | transforms |")
    print("|---|---|" + "---|" * (len(COLUMNS) + 1))
    for name in options.sets.split(","):
        data = OWN[name]() if name in OWN else load_dataset(name)
        for form, settings in FORMS.items():
            rows, chosen = [], Counter[str]()
            for seed in range(options.seeds):
                view = make_view(split_nodes(data, test=0.2, seed=seed))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", QpignnWarning)
                    figures, transform = measured(view, seed, settings)
                rows.append(figures)
                chosen[transform] += 1
            shown = [f"{figure:.4g}" for figure in np.mean(rows, axis=0)]
            used = ", ".join(f"{name} {count}" for name, count in chosen.items())
            print(f"| {name} | {form} | {' | '.join(shown)} | {used} |", flush=True)


if __name__ == "__main__":
    main()
