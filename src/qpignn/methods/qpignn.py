"""QpiGNN: a value and a half-width per node, trained from labels alone by the joint loss."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from qpignn.errors import SettingError, one_of
from qpignn.methods.net import NetMethod
from qpignn.nn.heads import POSITIVE, DualHead
from qpignn.objectives.joint import VIOLATIONS, WIDTHS, joint_loss
from qpignn.training.loop import Measured


class QpiGNN(NetMethod):
    """Quantile-free prediction intervals: [ŷ − d, ŷ + d] from one net with two heads.

    Args:
        confidence_level: wanted coverage, strictly between 0 and 1.
        lambda_width: price of width. ``"auto"`` is α/2, the calibrated value of the printed loss
            (see :mod:`qpignn.objectives.joint`): coverage then settles at the wanted one on the
            nodes trained on, and often somewhat below it on others. A number fixes it.
        hidden, layers: width and number of GraphSAGE layers.
        dropout: of hidden units while training.
        lr, weight_decay, epochs: Adam's.
        patience: stop when a fifth of the given nodes (or the graph's ``val_mask``), held out for
            this, has not improved its Winkler score for so many epochs, and keep the best weights.
            ``None`` trains on all given nodes for all epochs.
        seed: initial weights, dropout and held-out nodes; same seed, same bits.
        half_width: ``softplus`` (paper) or ``sigmoid`` (published code).
        violation: averaged over ``all`` nodes (as printed), over the ``violated`` ones (published
            code), or the footnote's ``product`` form.
        width: ``l1`` or ``l2`` penalty.
        scaling: ``standard`` per column, or ``range`` as in the published code.
        dtype: ``float32``, or ``float64`` to keep rounding out of a comparison.
        verbose: show a progress bar.

    Example:
        >>> from qpignn import QpiGNN, load_dataset
        >>> data = load_dataset("basic", nodes=60)
        >>> QpiGNN(epochs=5).fit(data).predict_interval(data).to_frame().columns.tolist()
        ['id', 'prediction', 'lower', 'upper']
    """

    def __init__(
        self,
        confidence_level: float = 0.9,
        lambda_width: float | str = "auto",
        *,
        hidden: int = 64,
        layers: int = 2,
        dropout: float = 0.1,
        lr: float = 5e-3,
        weight_decay: float = 0.0,
        epochs: int = 500,
        patience: int | None = 100,
        seed: int = 0,
        half_width: str = "softplus",
        violation: str = "all",
        width: str = "l1",
        scaling: str = "standard",
        dtype: str = "float32",
        verbose: bool = False,
    ) -> None:
        self.confidence_level = confidence_level
        self.lambda_width = lambda_width
        self.hidden = hidden
        self.layers = layers
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.seed = seed
        self.half_width = half_width
        self.violation = violation
        self.width = width
        self.scaling = scaling
        self.dtype = dtype
        self.verbose = verbose

    @classmethod
    def published(cls, lambda_width: float = 0.5, **settings: Any) -> Self:
        """Return the variant behind the paper's figures, which differs from its text.

        Sigmoid half-width, violation averaged over violated nodes, one global range for scaling,
        lr = weight decay = 1e-3, no dropout, 500 epochs and the last one used. Computed in
        float64: this loss amplifies rounding so much that in float32 a run's width can differ by
        a third with the order in which numbers are summed.
        """
        variant = {
            "half_width": "sigmoid",
            "violation": "violated",
            "scaling": "range",
            "dtype": "float64",
            "lr": 1e-3,
            "weight_decay": 1e-3,
            "dropout": 0.0,
            "epochs": 500,
            "patience": None,
        }
        return cls(lambda_width=lambda_width, **{**variant, **settings})

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        super().check_settings()
        one_of("half_width", self.half_width, POSITIVE)
        one_of("violation", self.violation, VIOLATIONS)
        one_of("width", self.width, WIDTHS)
        price: Any = self.lambda_width
        if price != "auto" and not (isinstance(price, Real) and 0 <= float(price) < math.inf):
            raise SettingError(
                f'lambda_width: expected "auto" or a number from 0 up, got {price!r}'
            )

    def _fit(self, data: Data, given: Tensor) -> None:
        self.lambda_width_ = self._price()
        super()._fit(data, given)

    def _restore(self, state: dict[str, Tensor], columns: int) -> None:
        super()._restore(state, columns)
        self.lambda_width_ = self._price()

    def _price(self) -> float:
        if self.lambda_width == "auto":
            return float(1 - self.confidence_level) / 2
        return float(self.lambda_width)

    def _head(self, generator: torch.Generator) -> nn.Module:
        return DualHead(self.hidden, self.half_width, generator)

    def _bounds(self, outputs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        value, half_width = outputs
        return value, value - half_width, value + half_width

    def _loss(self, outputs: tuple[Tensor, Tensor], y: Tensor, weight: Tensor | None) -> Measured:
        _, lower, upper = self._bounds(outputs)
        loss = joint_loss(
            lower,
            upper,
            y,
            confidence_level=self.confidence_level,
            lambda_width=self.lambda_width_,
            violation_form=self.violation,
            width_form=self.width,
            weight=weight,
        )
        return Measured(loss, lower, upper, y)
