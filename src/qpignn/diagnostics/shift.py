"""Whether the nodes without a target look like those with one.

What was measured on held-out labelled nodes carries over to the others only as far as they are of
one kind. A classifier that is shown features and place in the graph, and can tell the two apart on
nodes it was not trained on, says that they are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

from qpignn.data.graph import labelled
from qpignn.data.matrix import is_sparse
from qpignn.data.structure import adjacency, degrees
from qpignn.randomness import numpy_rng

FEWEST = 20  # nodes of each kind, below which nothing can be said
MOST = 2_000  # nodes of each kind the classifier is shown
COLUMNS = 50  # columns it is shown
NOTABLE = 0.6  # area under the curve from which a difference is worth a warning


@dataclass(frozen=True)
class Shift:
    """How well labelled and unlabelled nodes can be told apart.

    Attributes:
        labelled, unlabelled: how many there are of each.
        auc: chance that the classifier ranks an unlabelled node above a labelled one; 0.5 = alike.
        error: standard error of ``auc``.
        columns: what differs most, with the largest gap between the two distributions (0 to 1).
    """

    labelled: int
    unlabelled: int
    auc: float
    error: float
    columns: list[tuple[str, float]]

    @property
    def found(self) -> bool:
        """Whether the two kinds differ, clearly beyond chance."""
        return self.auc >= NOTABLE and self.auc - 2 * self.error > 0.5


def label_shift(data: Data, seed: int = 0) -> Shift | None:
    """Compare nodes with and without a target; None where one kind has too few nodes."""
    known = labelled(data).numpy()
    if min(known.sum(), (~known).sum()) < FEWEST:
        return None
    rng = numpy_rng(seed, "shift")
    chosen = np.concatenate([_some(np.flatnonzero(kind), rng) for kind in (known, ~known)])
    absent = ~known[chosen]
    names, table = _described(data, known, chosen)
    gaps = [float(ks_2samp(column[absent], column[~absent]).statistic) for column in table.T]
    first = np.argsort(gaps)[::-1][:COLUMNS]
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    classifier = HistGradientBoostingClassifier(max_iter=50, random_state=seed)
    with threadpool_limits(1):  # threads fight over so small a table
        told = cross_val_predict(
            classifier, table[:, first], absent, cv=folds, method="predict_proba"
        )
    auc = float(roc_auc_score(absent, told[:, 1]))
    shown = [(names[i], gaps[i]) for i in first[:3]]
    error = _auc_error(auc, int(absent.sum()), int((~absent).sum()))
    return Shift(int(known.sum()), int((~known).sum()), auc, error, shown)


def _some(nodes: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    return nodes if len(nodes) <= MOST else rng.choice(nodes, MOST, replace=False)


def _described(
    data: Data, known: npt.NDArray[np.bool_], nodes: npt.NDArray[np.int64]
) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Return what the classifier sees: features, degree, and how many neighbours are labelled."""
    if is_sparse(data.x):
        starts = data.x.crow_indices().numpy()
        names, features = ["number of features"], np.diff(starts)[nodes, None]
    else:
        found = data.get("feature_names")
        names = list(found or (f"feature {i}" for i in range(data.x.shape[1])))
        features = data.x[torch.from_numpy(nodes)].double().numpy()
    degree = degrees(data)[nodes].astype(np.float64)
    told = (adjacency(data) @ known.astype(np.float64))[nodes]
    share = np.divide(told, degree, out=np.full(len(degree), -1.0), where=degree > 0)
    table = np.column_stack([features, degree, share])
    return [*names, "degree", "share of labelled neighbours"], table


def _auc_error(auc: float, ones: int, zeros: int) -> float:
    """Standard error by Hanley and McNeil's formula."""
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    spread = auc * (1 - auc) + (ones - 1) * (q1 - auc**2) + (zeros - 1) * (q2 - auc**2)
    return float(np.sqrt(max(spread, 0) / (ones * zeros)))


def graph_shift(fitted: Data, other: Data) -> Shift | None:
    """Placeholder."""
    return None
