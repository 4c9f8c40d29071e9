"""Gradient-boosted trees for quantiles, on columns of each node and of its neighbours."""

import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from qpignn.errors import (
    SettingError,
    check_bool,
    check_choice,
    check_integer,
    check_non_negative,
)
from qpignn.intervals import check_levels
from qpignn.methods.base import Bounds, IntervalMethod, NoveltySetting
from qpignn.methods.boosting_columns import (
    TARGET_COLUMNS,
    WIDE,
    GraphColumns,
    KnownTargets,
    fit_components,
)
from qpignn.methods.fitted import Fitted
from qpignn.methods.known_nodes import KnownNodes
from qpignn.methods.limits import AUTO, Limit, Limits, check_limits, settings_range
from qpignn.methods.net_training import part_of
from qpignn.methods.novelty import Novelty
from qpignn.methods.sqr import taus_of
from qpignn.metrics import pinball_loss
from qpignn.runtime.randomness import numpy_rng
from qpignn.tasks.base import FitInputs
from qpignn.tasks.catalog import TaskName
from qpignn.training.history import History

if TYPE_CHECKING:
    from torch_geometric.data import Data

Floats = npt.NDArray[np.float64]
Neighbours = Literal["auto", "off"]
NEIGHBOURS: tuple[str, ...] = get_args(Neighbours)
MOST_ROUNDS = 5_000
"""Largest ``max_iter``: what a folder from elsewhere can make a computer do is limited."""
ENOUGH = 50  # given nodes below which none are held out for early stopping
WORTH_THREADS = 50_000  # nodes; several threads that share a core are many times slower than one
NO_HASHES = np.empty(0, dtype=np.uint64)
SAME = 1e-6
"""Difference of quantiles, over the range of the targets, up to which two fits are the same."""


@dataclass(kw_only=True, eq=False, repr=False)
class Boosting(IntervalMethod):
    """Quantiles by gradient-boosted trees (scikit-learn's ``HistGradientBoostingRegressor``).

    Each bound of each level, and the median as prediction, has trees of its own, which minimise the
    pinball loss. The name ``boosting`` stands for this method with a conformal step
    (``conformal:boosting_quantiles``): conformalised quantile regression. Alone, its coverage on
    other nodes is not guaranteed.

    The columns of a node are its features, the mean of its neighbours' features, and the sum of the
    weights of its edges. With ``neighbours="auto"`` there are four more: the mean target of the
    neighbours with known targets and the number of these, and the same over neighbours of
    neighbours. A node's own target is in none of its columns: there are no self-loops, and ways of
    two edges that lead back are left out. Edges count in both directions, by their weights.

    Known are only the targets that the fit was given. ``Conformal`` hides those of the nodes that
    it scores, so these nodes see exactly what new ones see, and the finite-sample guarantee holds.
    Predictions for other graphs look the nodes of the fit up by ``node_id``, or without ids by row
    and features (:class:`qpignn.methods.known_nodes.KnownNodes`); ``data.y`` is never read.

    More than 64 feature columns are replaced by 64 components (a truncated singular value
    decomposition of the features of the fit's graph, saved with the model).

    A saved model holds the columns, targets and weights of the given nodes, because scikit-learn
    has no format for trees but pickle, which can run code. Trees are trained again on loading,
    which takes as long as the fit and gives the same bits with the same versions of the
    libraries; if the quantiles differ from the saved ones by more than rounding, loading fails.
    Training uses one thread, so that no bit depends on how many there are.

    Args:
        confidence_level: wanted coverage, strictly between 0 and 1, or a list of such; intervals
            of several levels are nested.
        neighbours: ``auto`` uses the known targets of neighbours, ``off`` features only.
        max_iter: number of trees for each quantile, at most 5,000.
        learning_rate: factor of each tree.
        max_leaf_nodes: largest number of leaves of a tree.
        min_samples_leaf: smallest number of given nodes in a leaf.
        l2_regularization: penalty on the values of leaves in the choice of splits.
        max_features: share of the columns that are drawn for each split.
        early_stopping: hold a tenth of the given nodes out, and stop where their loss has not
            fallen for ten trees.
        y_min: lower limit of the target: a number, None, or ``auto`` (0 where no given target is
            negative).
        y_max: upper limit: the same, ``auto`` being 0 where no given target is positive.
        novelty: ``widen`` gives nodes beyond what was learnt wider intervals, ``off`` does not; see
            :mod:`qpignn.methods.novelty`.
        seed: of the columns drawn, of the nodes held out and of the components.
        task: what a unit is: ``node``.
        verbose: show progress; trees are trained too quickly to show any.

    Attributes:
        trees_: fitted regressors: lower quantiles by rising level, upper ones, the median.
        known_targets_: the given nodes with their targets; None if not used.
        components_: (features, components), what wide features are multiplied by; None for others.
        training_: what the trees were trained on.

    Example:
        >>> from qpignn import load_dataset, make_method
        >>> data = load_dataset("basic", nodes=80)
        >>> model = make_method("boosting", max_iter=20).fit(data)
        >>> len(model.predict_interval(data))
        80
    """

    confidence_level: float | list[float] = 0.9
    neighbours: Neighbours = "auto"
    max_iter: int = 200
    learning_rate: float = 0.05
    max_leaf_nodes: int = 31
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    max_features: float = 0.3
    early_stopping: bool = False
    y_min: Limit = AUTO
    y_max: Limit = AUTO
    novelty: NoveltySetting = "widen"
    seed: int = 0
    task: TaskName = "node"
    verbose: bool = False

    trees_: list[Any] = field(init=False)
    known_targets_: KnownTargets | None = field(init=False, default=None)
    components_: Floats | None = field(init=False, default=None)
    training_: "TrainingTable" = field(init=False)

    @property
    def parameters_(self) -> int:  # type: ignore[override]
        """Number of trees; scikit-learn does not publish how many leaves they have."""
        return sum(int(regressor.n_iter_) for regressor in self.trees_)

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        super().check_settings()
        check_choice("neighbours", self.neighbours, NEIGHBOURS)
        if check_integer("max_iter", self.max_iter) > MOST_ROUNDS:
            raise SettingError(
                f"max_iter: expected at most {MOST_ROUNDS:,} trees, got {self.max_iter:,}"
            )
        check_share("learning_rate", self.learning_rate)
        check_share("max_features", self.max_features)
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 2, 31)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1, 31)
        check_non_negative("l2_regularization", self.l2_regularization)
        check_bool("early_stopping", self.early_stopping)
        check_limits(self.y_min, self.y_max)
        check_bool("verbose", self.verbose)

    def _fit(self, inputs: FitInputs) -> int | None:
        if inputs.initial_weights is not None:
            raise SettingError(
                "initial_weights: expected none for boosted trees, which have no weights to start "
                "from"
            )
        data, task, targets = inputs.data, inputs.task, inputs.targets.numpy()
        self.limits_ = Limits.find(self.y_min, self.y_max, targets)
        y, weight = targets.astype(np.float64), task.weights(data)
        self.components_ = fit_components(data.x, _random_state(self.seed, "components"))
        self.known_targets_ = None
        if self.neighbours == "auto":
            self.known_targets_ = KnownTargets(KnownNodes.of(data, inputs.given), y)
        columns = GraphColumns.of(data, self.components_, self.known_targets_)
        rows = inputs.given.nonzero().flatten().numpy()
        weights = None if weight is None else weight[inputs.given].double().numpy()
        self.training_ = TrainingTable(columns.rows(rows), y, weights)
        self.trees_, self.training_ = self._trained(self.training_)
        self.history_ = self._history()
        return None

    def _trained(self, table: "TrainingTable") -> tuple[list[Any], "TrainingTable"]:
        """Return a regressor for every quantile, and the table with their predictions."""
        from sklearn.ensemble import HistGradientBoostingRegressor  # takes time to import

        regressors, columns = [], table.columns
        # scikit-learn cannot bin a column without a number; no tree splits at a constant one
        columns = np.where(np.isnan(columns).all(axis=0), 0.0, columns)
        with threadpool_limits(limits=1):
            for tau in taus_of(check_levels(self.confidence_level)):
                regressor = HistGradientBoostingRegressor(
                    loss="quantile",
                    quantile=tau,
                    max_iter=int(self.max_iter),
                    learning_rate=float(self.learning_rate),
                    max_leaf_nodes=int(self.max_leaf_nodes),
                    min_samples_leaf=int(self.min_samples_leaf),
                    l2_regularization=float(self.l2_regularization),
                    max_features=float(self.max_features),
                    early_stopping=bool(self.early_stopping) and len(table.y) >= ENOUGH,
                    random_state=_random_state(self.seed, "boosting"),
                )
                regressors.append(regressor.fit(columns, table.y, table.weights))
            quantiles = np.stack([one.predict(columns) for one in regressors])
        return regressors, TrainingTable(table.columns, table.y, table.weights, quantiles)

    def _history(self) -> History:
        """Return loss, coverage and width on the given nodes, of the highest level."""
        y, quantiles = self.training_.y, self.training_.quantiles
        levels = check_levels(self.confidence_level)
        lower, upper, _ = nested(quantiles, len(levels))
        taus = zip(quantiles, taus_of(levels), strict=True)
        loss = float(np.mean([pinball_loss(y, one, tau=tau) for one, tau in taus]))
        inside = np.mean((lower <= y) & (y <= upper))
        return History([loss], [float(inside)], [float((upper - lower).mean())], best_epoch=0)

    def _predict(self, data: "Data", level: float) -> Bounds:
        levels = check_levels(self.confidence_level)
        inner = sum(one <= level for one in levels)
        graph = GraphColumns.of(data, self.components_, self.known_targets_)
        wanted = [*range(inner), *range(len(levels), len(levels) + inner), 2 * len(levels)]
        nodes = len(graph.x)
        with threadpool_limits(limits=1 if nodes < WORTH_THREADS else None):
            parts = [
                np.stack([self.trees_[place].predict(columns) for place in wanted])
                for columns in graph.chunks()
            ]
        bounds = nested(np.concatenate(parts, axis=1), inner)
        lower, upper, value = (self.limits_.cut(torch.from_numpy(one)) for one in bounds)
        counts = None if self.known_targets_ is None else graph.sums[:, 0]
        return Bounds(value, lower, upper, known_neighbours=counts)

    def _without_neighbours(self) -> Self:
        plain = copy.copy(self)
        if self.known_targets_ is not None:
            plain.known_targets_ = KnownTargets(
                replace(self.known_targets_.nodes, hashes=NO_HASHES), np.empty(0)
            )
        return plain

    def _state(self) -> dict[str, Tensor]:
        state = self.training_.state()
        if self.known_targets_ is not None:
            state["known_nodes"] = self.known_targets_.nodes.state()
        if self.components_ is not None:
            state["components"] = torch.from_numpy(self.components_)
        if AUTO in (self.y_min, self.y_max):  # else the settings say it all
            state["limits"] = self.limits_.state()
        if self.novelty_ is not None:
            state |= {f"novelty.{name}": part for name, part in self.novelty_.state().items()}
        return state

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        self.limits_ = Limits(*settings_range(self.y_min, self.y_max))
        if AUTO in (self.y_min, self.y_max):
            self.limits_ = Limits.from_state(state["limits"], self.y_min, self.y_max)
        self.components_ = None
        if fitted.columns > WIDE:
            self.components_ = checked("components", state["components"], (fitted.columns, None))
        features = fitted.columns if self.components_ is None else self.components_.shape[1]
        more = 1 if self.neighbours == "off" else 1 + TARGET_COLUMNS
        quantiles = len(taus_of(check_levels(self.confidence_level)))
        saved = TrainingTable.from_state(state, 2 * features + more, quantiles)
        self.known_targets_ = None
        if self.neighbours == "auto":
            nodes = KnownNodes.from_state(state["known_nodes"])
            if len(nodes.hashes) != len(saved.y):
                raise ValueError("known_nodes: expected one hash per given node, got others")
            self.known_targets_ = KnownTargets(nodes, saved.y)
        self.trees_, trained = self._trained(saved)
        if not np.allclose(trained.quantiles, saved.quantiles, rtol=0, atol=SAME * saved.span()):
            raise ValueError(
                "expected the quantiles that were saved from training on the saved columns again, "
                "got others: the model was saved with another version of scikit-learn, or changed; "
                "fit again"
            )
        self.training_ = saved
        if self.novelty == "widen":
            self.novelty_ = Novelty.from_state(part_of(state, "novelty"), fitted.columns)


@dataclass(frozen=True)
class TrainingTable:
    """What trees are trained on: one row per given node.

    Attributes:
        columns: (given, columns), NaN where a node has no such neighbours.
        y: (given,), targets.
        weights: (given,), of the nodes; None if all count the same.
        quantiles: (quantiles, given), what the trees predict for these rows; empty before training.
    """

    columns: Floats
    y: Floats
    weights: Floats | None
    quantiles: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def span(self) -> float:
        """Return the range of the targets."""
        return float(self.y.max() - self.y.min())

    def state(self) -> dict[str, Tensor]:
        """Return the arrays as tensors, by name."""
        arrays = {"columns": self.columns, "targets": self.y, "quantiles": self.quantiles}
        if self.weights is not None:
            arrays["weights"] = self.weights
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    @classmethod
    def from_state(cls, state: dict[str, Tensor], columns: int, quantiles: int) -> Self:
        """Return the table that :meth:`state` described.

        Args:
            state: as read from a file; unchecked.
            columns: how many there must be.
            quantiles: how many there must be.

        Raises:
            ValueError: if the tensors do not describe such a table.
        """
        y = checked("targets", state["targets"], (None,))
        table = cls(
            checked("columns", state["columns"], (len(y), columns), missing=True),
            y,
            checked("weights", state["weights"], (len(y),)) if "weights" in state else None,
            checked("quantiles", state["quantiles"], (quantiles, len(y))),
        )
        if table.weights is not None and not (table.weights > 0).all():
            raise ValueError("weights: expected numbers above 0, got others")
        return table


def nested(quantiles: Floats, levels: int) -> tuple[Floats, Floats, Floats]:
    """Return lower and upper bounds of the highest level, and predictions, (nodes,) each.

    Quantiles may cross. The interval of a level contains those of lower levels and the prediction.

    Args:
        quantiles: (2 · levels + 1, nodes), lower ones, upper ones, the median.
        levels: number of levels.
    """
    value = quantiles[-1]
    lower = quantiles[[*range(levels), -1]].min(axis=0)
    upper = quantiles[levels:].max(axis=0)
    return lower, upper, value


def check_share(name: str, value: Any) -> None:
    """Check a setting that must be above 0 and at most 1.

    Args:
        name: of the setting.
        value: as the user gave it.

    Raises:
        SettingError: if it is not.
    """
    if not 0 < check_non_negative(name, value) <= 1:
        raise SettingError(f"{name}: expected a number above 0, up to 1, got {value!r}")


def checked(
    name: str, tensor: Tensor, shape: tuple[int | None, ...], *, missing: bool = False
) -> Floats:
    """Return a tensor as an array after checking type, shape and values.

    Args:
        name: of the tensor, for the message.
        tensor: as read from a file.
        shape: the right one; None for any length from 1 up.
        missing: whether NaN is a valid number.

    Raises:
        ValueError: if something is wrong.
    """
    fits = tensor.dim() == len(shape) and all(
        got == length if length is not None else got > 0
        for got, length in zip(tensor.shape, shape, strict=False)
    )
    if not fits or tensor.dtype != torch.float64:
        raise ValueError(
            f"{name}: expected {shape} numbers, float64, got {tuple(tensor.shape)} of "
            f"{tensor.dtype}"
        )
    values: Floats = tensor.numpy()
    if np.isinf(values).any() or not (missing or np.isfinite(values).all()):
        raise ValueError(f"{name}: expected finite numbers, got others")
    return values


def _random_state(seed: int, purpose: str) -> int:
    """Return a seed as scikit-learn takes it."""
    return int(numpy_rng(seed, purpose).integers(2**32))
