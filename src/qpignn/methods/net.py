"""What methods built on one net share: scale, prepare, train, predict."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from qpignn.data.scaling import (
    Scaler,
    fit_feature_scaler,
    fit_range_scalers,
    fit_target_scaler,
)
from qpignn.errors import SettingError, SplitError, one_of, whole_number
from qpignn.methods.base import IntervalMethod
from qpignn.metrics import winkler_score
from qpignn.nn.encoders import SageEncoder
from qpignn.nn.propagate import Operands, prepare
from qpignn.randomness import numpy_rng, torch_rng
from qpignn.training.loop import Measured, TrainingSettings, train

SCALINGS = ("standard", "range")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
HELD_OUT_SHARE = 0.2


class IntervalNet(nn.Module):
    """An encoder and a head. Outputs are whatever the method's ``_bounds`` understands."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, graph: Operands) -> Any:
        """Run encoder and head."""
        return self.head(self.encoder(graph))


class NetMethod(IntervalMethod):
    """One encoder with one head, trained by the one loop.

    A method says which head it has, how its outputs become bounds, and what it minimises.
    """

    hidden: int
    layers: int
    dropout: float
    lr: float
    weight_decay: float
    epochs: int
    patience: int | None
    scaling: str
    dtype: str
    verbose: bool

    @abstractmethod
    def _head(self, generator: torch.Generator) -> nn.Module:
        """Make the head for ``self.hidden`` inputs."""

    @abstractmethod
    def _bounds(self, outputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Turn the net's outputs into prediction, lower and upper, in scaled units."""

    @abstractmethod
    def _loss(self, outputs: Any, y: Tensor, weight: Tensor | None) -> Measured:
        """Return what to minimise on the training nodes."""

    @property
    def parameters_(self) -> int:
        """Number of trained weights."""
        return sum(weight.numel() for weight in self.net_.parameters())

    def start_from(self, weights: dict[str, Tensor]) -> Self:
        """Let the next ``fit`` begin at these weights, named as in ``net_``, not at drawn ones."""
        self._initial_weights = weights
        return self

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        super().check_settings()
        one_of("scaling", self.scaling, SCALINGS)
        one_of("dtype", self.dtype, DTYPES)
        whole_number("hidden", self.hidden)
        whole_number("layers", self.layers)
        if not 0 <= self.dropout < 1:
            raise SettingError(f"dropout: expected a share from 0 to below 1, got {self.dropout!r}")
        self._training()

    def _training(self) -> TrainingSettings:
        return TrainingSettings(
            self.epochs, self.lr, self.weight_decay, self.patience, self.verbose
        )

    def _fit(self, data: Data, given: Tensor) -> None:
        self._fit_scalers(data, given)
        self.net_ = self._new_net(data.x.shape[1])
        if (weights := self.__dict__.pop("_initial_weights", None)) is not None:
            try:
                self.net_.load_state_dict(weights)
            except RuntimeError as error:
                raise SettingError(
                    f"start_from: the weights do not fit the net: {error}"
                ) from error
        train_nodes, held_out = self._held_out(data, given)
        graph = self._operands(data, torch.cat([train_nodes, held_out]))
        y = self.y_scaler_.transform(data.y, DTYPES[self.dtype])
        weight = data.get("node_weight")
        y_train, count = y[train_nodes], len(train_nodes)
        train_weight = None if weight is None else weight[train_nodes].to(y.dtype)

        def measure() -> Measured:
            outputs = self.net_(graph)
            return self._loss(_first(outputs, count), y_train, train_weight)

        def held_out_score() -> float:
            _, lower, upper = (column[count:] for column in self._bounds(self.net_(graph)))
            if not bool(torch.isfinite(upper - lower).all()):
                return math.nan
            return winkler_score(y[held_out], lower, upper, confidence_level=self.confidence_level)

        score = held_out_score if len(held_out) else None
        self.history_ = train(self.net_, measure, self._training(), score)

    def _predict(self, data: Data) -> tuple[Tensor, Tensor, Tensor]:
        with torch.no_grad():
            bounds = self._bounds(self.net_(self._operands(data)))
        prediction, lower, upper = (self.y_scaler_.inverse(column) for column in bounds)
        return prediction, lower, upper

    def _fit_scalers(self, data: Data, given: Tensor) -> None:
        if self.scaling == "range":
            self.x_scaler_, self.y_scaler_ = fit_range_scalers(data.x, data.y, given)
        else:
            self.x_scaler_ = fit_feature_scaler(data.x, given)
            self.y_scaler_ = fit_target_scaler(data.y, given)

    def _new_net(self, columns: int) -> IntervalNet:
        generator = torch_rng(self.seed, "weights")
        encoder = SageEncoder(columns, self.hidden, self.layers, self.dropout, generator)
        return IntervalNet(encoder, self._head(generator)).to(DTYPES[self.dtype])

    def _held_out(self, data: Data, given: Tensor) -> tuple[Tensor, Tensor]:
        """Return positions of training nodes and of nodes watched for early stopping.

        None are watched without ``patience``, nor where there are too few to spare any.
        """
        watched = torch.zeros_like(given)
        if self.patience is not None:
            chosen = data.get("val_mask")
            if chosen is not None and bool((chosen & given).any()):
                watched = chosen & given
            else:
                positions = given.nonzero().flatten().numpy()
                order = numpy_rng(self.seed, "held out").permutation(positions)
                watched[torch.from_numpy(order[: int(HELD_OUT_SHARE * len(order))])] = True
        if bool((watched == given).all()):
            raise SplitError(
                f"expected nodes to train on, got {int(given.sum())} given nodes that are all in "
                f"the val_mask; give train nodes too"
            )
        return (given & ~watched).nonzero().flatten(), watched.nonzero().flatten()

    def _operands(self, data: Data, first: Tensor | None = None) -> Operands:
        x = self.x_scaler_.transform(data.x, next(self.net_.parameters()).dtype)
        return prepare(x, data.edge_index, data.get("edge_weight"), first=first)

    def _state(self) -> dict[str, Tensor]:
        state = {f"net.{name}": tensor for name, tensor in self.net_.state_dict().items()}
        for name, scaler in (("x_scaler", self.x_scaler_), ("y_scaler", self.y_scaler_)):
            state |= {f"{name}.{part}": tensor for part, tensor in scaler.state().items()}
        return state

    def _restore(self, state: dict[str, Tensor], columns: int) -> None:
        self.net_ = self._new_net(columns)
        self.net_.load_state_dict(_part(state, "net"))
        self.x_scaler_ = Scaler.from_state(_part(state, "x_scaler"))
        self.y_scaler_ = Scaler.from_state(_part(state, "y_scaler"))
        self.net_.eval()


def _first(outputs: Any, count: int) -> Any:
    if isinstance(outputs, tuple):
        return tuple(column[:count] for column in outputs)
    return outputs[:count]


def _part(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    prefix = f"{name}."
    return {
        key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)
    }
