"""QpiGNN: a value and half-widths per node, trained from labels alone by the joint loss."""

from __future__ import annotations

import math
import warnings
from dataclasses import astuple, replace
from numbers import Real
from typing import Any, Self

import numpy as np
import torch
from scipy.stats import skew
from torch import Tensor, nn
from torch_geometric.data import Data

from qpignn.calibration import (
    SIDES,
    TAILS,
    Floats,
    Reach,
    Stretch,
    calibrate_members,
    disagreement,
    enough_for,
)
from qpignn.data.scaling import TRANSFORMS
from qpignn.errors import SettingError, one_of, whole_number
from qpignn.intervals import check_levels
from qpignn.methods.base import Bounds
from qpignn.methods.net import FOLDS, NetMethod, Seen, fold_turns
from qpignn.nn.heads import POSITIVE, IntervalHead
from qpignn.objectives.joint import VIOLATIONS, WIDTHS, covered, joint_loss, mean_over_all, width
from qpignn.search import minimise
from qpignn.training.loop import Measured

Outputs = tuple[Tensor, Tensor, Tensor]
"""value (members, nodes); half-widths below and above (levels, members, nodes)."""

HELPING_LEVELS = (0.5, 0.8)  # trained too when self-calibrating: they steady the value
HEAVY_TAIL = 1.5  # skewness from which a logarithm is tried; an exponential law has 2
SEARCHED = {"all": (0.005, 0.5), "product": (0.005, 0.5), "violated": (0.1, 1.0)}
"""Where λ is sought, by the form of the violation."""
AS_TRAINED = Stretch(1.0, 1.0)


class QpiGNN(NetMethod):
    """Quantile-free prediction intervals: a value ŷ and half-widths d > 0 from one net.

    By default it calibrates itself, and needs no λ: ten small nets are trained side by side at
    λ = α/2, each without another fifth of the given nodes; all stop at the epoch that serves those
    fifths best; and the average interval is stretched until the held-out nodes are covered at the
    wanted level (:mod:`qpignn.calibration`). What that promises: coverage close to the wanted one,
    on average over nodes like the given ones. What it does not: a finite-sample guarantee (the
    stretch is fitted on averages of two nets and used on the average of ten), coverage in every
    group of nodes, or anything where the nodes to predict differ from the given ones.

    Args:
        confidence_level: wanted coverage, strictly between 0 and 1, or a list of such; intervals
            of several levels are nested.
        lambda_width: price of width. ``"auto"`` calibrates itself as said above. A number fixes it
            and trains one net, as in the paper, with no look at coverage on other nodes; α/2 is
            the calibrated value on the nodes trained on (:mod:`qpignn.objectives.joint`).
            ``"tuned"`` searches the number by Bayesian optimisation on held-out given nodes.
        side: ``both``, or only a ``lower`` or ``upper`` bound, which then has the whole miss.
        tails: ``free`` (default of ``auto``): half-widths of their own below and above the value,
            and the share of the miss between the two sides chosen on held-out nodes, where that
            makes intervals clearly shorter. ``equal``: as much miss below as above.
            ``symmetric`` (default otherwise): [ŷ − d, ŷ + d].
        target_transform: ``log1p`` or ``sqrt`` train on a rising function of the target (mirrored
            for negative ones), so that bounds map back exactly; ``auto`` also tries ``log1p`` for
            heavy-tailed targets from 0 up and keeps it if held-out intervals are better by it
            (only when self-calibrating; otherwise ``none``).
        y_min, y_max: where the target cannot go; bounds are cut there.
        members: how many nets: 1 or a multiple of five. Default ten for ``auto``, else one.
        trials: of the search for λ.
        hidden, layers, activation: of the GraphSAGE encoder.
        dropout: of hidden units while training.
        lr, weight_decay, epochs: Adam's.
        patience: stop when held-out nodes (a fifth of the given ones, or for a single net the
            graph's ``val_mask``) have not improved their Winkler score for so many epochs, and
            keep the best weights. ``None`` goes through all epochs, with a fixed λ on all nodes.
        seed: initial weights, dropout and held-out nodes; same seed, same bits.
        half_width: ``softplus`` (paper) or ``sigmoid`` (published code).
        violation: averaged over ``all`` nodes (as printed), over the ``violated`` ones (published
            code), or the footnote's ``product`` form; ``auto`` needs ``all``.
        width: ``l1`` or ``l2`` penalty; ``auto`` needs ``l1``.
        scaling: ``standard`` per column, or ``range`` as in the published code.
        dtype: ``float32``, or ``float64`` to keep rounding out of a comparison.
        verbose: show a progress bar.

    Example:
        >>> from qpignn import QpiGNN, load_dataset
        >>> data = load_dataset("basic", nodes=60)
        >>> model = QpiGNN([0.5, 0.9], epochs=5).fit(data)
        >>> model.predict_interval(data, confidence_level=0.5).to_frame().columns.tolist()
        ['id', 'prediction', 'lower', 'upper']
    """

    def __init__(
        self,
        confidence_level: float | list[float] = 0.9,
        lambda_width: float | str = "auto",
        *,
        side: str = "both",
        tails: str | None = None,
        target_transform: str = "auto",
        y_min: float | None = None,
        y_max: float | None = None,
        members: int | None = None,
        trials: int = 20,
        hidden: int = 32,
        layers: int = 2,
        activation: str = "silu",
        dropout: float = 0.1,
        lr: float = 1e-2,
        weight_decay: float = 1e-3,
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
        self.side = side
        self.tails = tails
        self.target_transform = target_transform
        self.y_min = y_min
        self.y_max = y_max
        self.members = members
        self.trials = trials
        self.hidden = hidden
        self.layers = layers
        self.activation = activation
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
    def published(cls, lambda_width: float | str = 0.5, **settings: Any) -> Self:
        """Return the variant behind the paper's figures, which differs from its text.

        Sigmoid half-width, violation averaged over violated nodes, one global range for scaling,
        lr = weight decay = 1e-3, no dropout, 500 epochs and the last one used. Computed in
        float64: this loss amplifies rounding so much that in float32 a run's width can differ by
        a third with the order in which numbers are summed.
        """
        variant = {
            "hidden": 64,
            "activation": "relu",
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
        one_of("side", self.side, SIDES)
        one_of("tails", self.tails or "free", TAILS)
        one_of("target_transform", self.target_transform, ("auto", *TRANSFORMS))
        one_of("half_width", self.half_width, POSITIVE)
        one_of("violation", self.violation, VIOLATIONS)
        one_of("width", self.width, WIDTHS)
        whole_number("trials", self.trials)
        if whole_number("members", self._members()) > 1 and self._members() % FOLDS:
            raise SettingError(f"members: expected 1 or a multiple of {FOLDS}, got {self.members}")
        self._check_price()
        self._check_range()

    def _check_price(self) -> None:
        lam: Any = self.lambda_width
        words = ("auto", "tuned")
        if lam not in words and not (isinstance(lam, Real) and 0 <= float(lam) < math.inf):
            raise SettingError(
                f'lambda_width: expected "auto", "tuned" or a number from 0 up, got {lam!r}'
            )
        levels = check_levels(self.confidence_level)
        if self.side != "both" and levels[0] <= 0.5:
            raise SettingError(
                f"side: expected levels above 0.5 for a {self.side} bound, got {levels[0]:g}"
            )
        if self._calibrates():
            if (self.violation, self.width) != ("all", "l1"):
                raise SettingError(
                    f'lambda_width: expected a number or "tuned" with violation '
                    f'{self.violation!r} and width {self.width!r}, got "auto", which is derived '
                    f"for 'all' and 'l1'"
                )
            return
        needs = {"several levels": len(levels) > 1, "one side": self.side != "both"}
        needs["free tails"] = self.tails == "free"
        for what, wanted in needs.items():
            if wanted:
                raise SettingError(f'lambda_width: expected "auto" for {what}, got {lam!r}')

    def _check_range(self) -> None:
        low, high = self._range()
        if not low < high:
            raise SettingError(f"y_min: expected a number below y_max, got {low!r} and {high!r}")

    def _range(self) -> tuple[float, float]:
        return (
            -math.inf if self.y_min is None else float(self.y_min),
            math.inf if self.y_max is None else float(self.y_max),
        )

    def _calibrates(self) -> bool:
        return self.lambda_width == "auto"

    def _members(self) -> int:
        return (10 if self._calibrates() else 1) if self.members is None else self.members

    def _holds_out(self) -> bool:
        return self._calibrates() or super()._holds_out()

    def _tails(self) -> str:
        return self.tails or ("free" if self._calibrates() else "symmetric")

    def _two_sided(self, level: float) -> float:
        """Return the level of the two-sided interval one of whose bounds is the wanted one."""
        return level if self.side == "both" else 2 * level - 1

    def _trained_levels(self) -> list[float]:
        wanted = [self._two_sided(level) for level in check_levels(self.confidence_level)]
        return sorted({*wanted, *HELPING_LEVELS}) if self._calibrates() else wanted

    def _fit(self, data: Data, given: Tensor) -> None:
        known = data.y[given].double()
        low, high = self._range()
        if bool(((known < low) | (known > high)).any()):
            raise SettingError(
                f"y_min, y_max: expected the given targets between {low:g} and {high:g}, got some "
                f"from {known.min():g} to {known.max():g}"
            )
        names = self._transforms(known.numpy())
        best, best_price = self._fit_transformed(data, given, names[0])
        for name in names[1:]:
            if self.history_.stopped == "interrupted":
                break
            learnt, price = self._fit_transformed(data, given, name)
            if price < best_price:
                best, best_price = learnt, price
        self.__dict__.update(best)

    def _transforms(self, known: Floats) -> list[str]:
        """Which transforms of the target to try."""
        if self.target_transform != "auto":
            return [self.target_transform]
        compares = self._calibrates() and self.side == "both"
        heavy = known.min() >= 0 and skew(known) > HEAVY_TAIL
        return ["none", "log1p"] if compares and heavy else ["none"]

    def _fit_transformed(
        self, data: Data, given: Tensor, transform: str
    ) -> tuple[dict[str, Any], float]:
        """Train, and calibrate if asked to; return all that was learnt, and its price."""
        self._fit_scalers(data, given, transform)
        seen = self._see(data, given, self._held_out(data, given))
        self.lambda_width_ = self._searched(seen) if self.lambda_width == "tuned" else self._price()
        self._train(seen)
        self.stretches_, price = {}, 0.0
        for level in check_levels(self.confidence_level):
            self.stretches_[level], cost = self._stretched(seen, level)
            price += cost
        learnt = ("net_", "x_scaler_", "y_scaler_", "history_", "stretches_")
        return {name: getattr(self, name) for name in learnt}, price

    def _price(self) -> float:
        if self._calibrates():
            return (1 - self._two_sided(check_levels(self.confidence_level)[-1])) / 2
        return float(self.lambda_width)

    def _searched(self, seen: Seen) -> float:
        """Return the λ whose held-out intervals are narrowest among those that cover enough."""
        if not bool(seen.held_out.any()):
            turns = fold_turns(seen.weight > 0, self._members(), self.seed)
            seen = replace(seen, held_out=turns)
        (level,) = check_levels(self.confidence_level)

        def score(lam: float) -> float:
            self.lambda_width_ = lam
            self._train(seen)
            with torch.no_grad():
                lower, upper = self._bounds(self.net_(seen.graph))
            weight = seen.weight * seen.held_out
            hits = mean_over_all(covered(lower, upper, seen.y.expand_as(lower)).double(), weight)
            wide = mean_over_all(width(lower, upper).double(), weight)
            return float((wide + 100 * (level - hits).clamp_min(0)).nanmean())

        low, high = SEARCHED[self.violation]
        return minimise(score, low, high, trials=self.trials, seed=self.seed)

    def _stretched(self, seen: Seen, level: float) -> tuple[Stretch, float]:
        """Return a level's stretch, and the price of the held-out intervals it makes."""
        if not self._calibrates():
            return AS_TRAINED, 0.0
        held_out = (seen.held_out & (seen.weight > 0)).numpy()
        judged = int(held_out.any(axis=0).sum())
        if judged < enough_for(level):
            warnings.warn(
                f"{judged} held-out nodes are too few to calibrate a level of {level:g} "
                f"({enough_for(level)} are needed): its intervals may cover less",
                stacklevel=6,
            )
        if judged == 0:
            return AS_TRAINED, 0.0
        with torch.no_grad():
            outputs = self.net_(seen.graph)
        return calibrate_members(
            self._reach(outputs, level),
            held_out,
            seen.y.double().numpy(),
            level,
            side=self.side,
            tails=self._tails(),
            unit=lambda z: self.y_scaler_.inverse(torch.from_numpy(z)).numpy(),
        )

    def _reach(self, outputs: Outputs, level: float) -> Reach:
        """Return what each member says at a wanted level."""
        value, below, above = (part.double().numpy() for part in outputs)
        trained = self._trained_levels().index(self._two_sided(level))
        return Reach(value, below[trained], above[trained])

    def _restore(self, state: dict[str, Tensor], columns: int) -> None:
        super()._restore(state, columns)
        self.lambda_width_ = float(state["lambda_width"])
        rows = state["stretches"].tolist()
        self.stretches_ = {level: Stretch(*numbers) for level, *numbers in rows}

    def _state(self) -> dict[str, Tensor]:
        rows = [[level, *astuple(stretch)] for level, stretch in self.stretches_.items()]
        learnt = {"stretches": rows, "lambda_width": self.lambda_width_}
        numbers = {name: torch.tensor(n, dtype=torch.float64) for name, n in learnt.items()}
        return {**super()._state(), **numbers}

    def _head(self, generator: torch.Generator) -> nn.Module:
        return IntervalHead(
            self.hidden,
            self.half_width,
            generator=generator,
            levels=len(self._trained_levels()),
            symmetric=self._tails() == "symmetric",
            members=self._members(),
        )

    def _bounds(self, outputs: Outputs) -> tuple[Tensor, Tensor]:
        value, below, above = outputs
        return value - below, value + above

    def _interval(self, outputs: Outputs, level: float) -> Bounds:
        value = outputs[0].double().mean(dim=0).numpy()
        lower = upper = value  # and every level's interval holds those of the levels inside it
        for inner in check_levels(self.confidence_level):
            if inner <= level:
                low, high = self.stretches_[inner].bounds(self._reach(outputs, inner).mean())
                lower, upper = np.minimum(lower, low), np.maximum(upper, high)
        share = None
        if self._members() > 1 and self.side == "both":
            share = torch.from_numpy(disagreement(self._reach(outputs, level), level))
        return Bounds(
            torch.from_numpy(value), torch.from_numpy(lower), torch.from_numpy(upper), share
        )

    def _loss(self, outputs: Outputs, y: Tensor, weight: Tensor | None) -> Measured:
        lower, upper = self._bounds(outputs)
        with torch.no_grad():
            hits = covered(lower[-1], upper[-1], y.expand_as(lower[-1])).to(y.dtype)
            coverage = mean_over_all(hits, weight).mean()
            wide = mean_over_all(width(lower[-1], upper[-1]), weight).mean()
        levels = torch.tensor(self._trained_levels(), dtype=y.dtype).unsqueeze(1)
        price: float | Tensor = self.lambda_width_
        if self._calibrates():
            # the value itself is the interval of level 0: α = 1, no width, λ = 1/2
            value = outputs[0].unsqueeze(0)
            lower, upper = torch.cat([value, lower]), torch.cat([value, upper])
            levels = torch.cat([torch.zeros_like(levels[:1]), levels])
            price = (1 - levels) / 2
        loss = joint_loss(
            lower,
            upper,
            y.expand_as(lower),
            confidence_level=levels,
            lambda_width=price,
            violation_form=self.violation,
            width_form=self.width,
            weight=weight,
        )
        return Measured(loss, coverage, wide)
