"""The contract every method keeps: fit, predict_interval, save, load, with scikit-learn's manners.

Public methods check and translate; a method implements ``_fit``, ``_predict``, ``_state`` and
``_restore``. Targets outside the given nodes are NaN before ``_fit`` sees the graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.graph import MASKS, check_graph, labelled, node_ids
from qpignn.data.matrix import is_sparse
from qpignn.data.views import hide_targets
from qpignn.errors import ArrayError, GraphError, ModelFileError, NotFittedError, listed
from qpignn.intervals import Intervals, check_level
from qpignn.methods.folder import read_folder, write_folder


class IntervalMethod(BaseEstimator, ABC):  # type: ignore[misc]
    """A model that gives every node of a graph an interval.

    Constructors take settings only; what ``fit`` learns ends in an underscore.
    """

    confidence_level: float
    seed: int

    def fit(self, data: Data, train_mask: Any = None) -> Self:
        """Learn from the given nodes.

        Args:
            data: a graph with targets on some nodes.
            train_mask: boolean, the nodes whose targets may be used; default the graph's own
                ``train_mask`` and ``val_mask``, or every labelled node where it has none.
                Whatever the method holds out for itself comes from these.
        """
        check_level(self.confidence_level)
        data = check_graph(data)
        given = _given_nodes(data, train_mask)
        self.feature_names_in_ = data.get("feature_names")
        self.n_features_in_ = int(data.x.shape[1])
        self.sparse_in_ = is_sparse(data.x)
        self._fit(check_graph(hide_targets(data, given)), given)
        return self

    def predict_interval(self, data: Data, mask: Any = None) -> Intervals:
        """Return the intervals of all nodes, or of a boolean mask's, in the target's own unit."""
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        data = check_graph(data, need_target=False)
        self._check_columns(data)
        prediction, lower, upper = self._predict(data)
        intervals = Intervals(prediction, lower, upper, self.confidence_level, node_ids(data))
        return intervals if mask is None else intervals.select(_as_mask(mask, len(intervals)))

    def predict(self, data: Data, mask: Any = None) -> npt.NDArray[np.float64]:
        """Return point predictions."""
        return self.predict_interval(data, mask).prediction

    def save(self, folder: str | Path) -> None:
        """Write the fitted method to a folder (no pickle): weights and a readable description."""
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        description = {
            "method": type(self).__name__,
            "settings": self.get_params(),
            "n_features": self.n_features_in_,
            "feature_names": self.feature_names_in_,
            "sparse": self.sparse_in_,
        }
        write_folder(Path(folder), description, self._state())

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Rebuild a method from :meth:`save`'s folder."""
        description, state = read_folder(Path(folder), cls.__name__)
        try:
            method = cls(**description["settings"])
        except TypeError as error:
            raise ModelFileError(
                f"{folder}: the saved settings are of another kind: {error}"
            ) from error
        method.n_features_in_ = description["n_features"]
        method.feature_names_in_ = description["feature_names"]
        method.sparse_in_ = description["sparse"]
        method._restore(state)
        return method

    def _check_columns(self, data: Data) -> None:
        names, columns = data.get("feature_names"), data.x.shape[1]
        known = self.feature_names_in_
        if known is not None and names is not None and list(names) != list(known):
            missing, new = (
                [n for n in known if n not in names],
                [n for n in names if n not in known],
            )
            what = (
                f"missing {listed(missing) or 'none'}, unknown {listed(new) or 'none'}"
                if missing or new
                else "the same ones in another order"
            )
            raise GraphError(
                f"expected the {len(known)} feature columns of the fit ({listed(known)}), got "
                f"{what}; give the graph the columns it was fitted with"
            )
        if columns != self.n_features_in_:
            raise GraphError(
                f"expected {self.n_features_in_} feature columns as in the fit, got {columns}"
            )
        if is_sparse(data.x) != self.sparse_in_:
            kinds = ("dense", "sparse")
            raise GraphError(
                f"expected {kinds[self.sparse_in_]} features as in the fit, "
                f"got {kinds[is_sparse(data.x)]} ones"
            )

    @abstractmethod
    def _fit(self, data: Data, given: Tensor) -> None:
        """Learn from a checked graph; only ``given`` nodes have targets."""

    @abstractmethod
    def _predict(self, data: Data) -> tuple[Tensor, Tensor, Tensor]:
        """Return prediction, lower and upper for every node, in the target's own unit."""

    @abstractmethod
    def _state(self) -> dict[str, Tensor]:
        """Return everything learnt, as tensors."""

    @abstractmethod
    def _restore(self, state: dict[str, Tensor]) -> None:
        """Take back what :meth:`_state` returned."""


def _given_nodes(data: Data, train_mask: Any) -> Tensor:
    if train_mask is not None:
        given = _as_mask(train_mask, data.x.shape[0])
    elif any(data.get(name) is not None for name in MASKS[:2]):
        given = torch.zeros(data.x.shape[0], dtype=torch.bool)
        for name in MASKS[:2]:
            given |= data[name] if data.get(name) is not None else False
    else:
        given = torch.ones(data.x.shape[0], dtype=torch.bool)
    return given & labelled(data)


def _as_mask(mask: Any, nodes: int) -> Tensor:
    array = torch.as_tensor(np.asarray(mask))
    if array.dtype != torch.bool or array.shape != (nodes,):
        raise ArrayError(
            f"mask: expected {nodes} booleans, one a node, "
            f"got {tuple(array.shape)} of {array.dtype}"
        )
    return array
