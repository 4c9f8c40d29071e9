"""QpiGNN: a value and half-widths per unit, trained from labels alone by the joint loss."""

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from scipy.stats import skew
from torch import Tensor, nn

from qpignn.calibration.cross_fit import FEW, TAILS, Calibrator, CrossFit, Tails
from qpignn.calibration.width_scaling import AS_TRAINED, MemberOutputs, WidthScaling
from qpignn.data.scaling import TRANSFORMS, Transform
from qpignn.errors import SettingError, SplitError, check_choice, check_integer, check_number
from qpignn.intervals import SIDES, Side, check_levels
from qpignn.io.tensors import check_scalar
from qpignn.methods.fitted import Fitted
from qpignn.methods.net import SMALLEST, NeighboursSetting, NetMethod
from qpignn.methods.net_state import keep_fit
from qpignn.methods.net_training import (
    FittedNets,
    fit_nets,
    member_count,
    prepare_training,
    train_nets,
)
from qpignn.methods.scaled_data import DTYPES
from qpignn.methods.training_set import TrainingSet, assign_folds
from qpignn.nn.heads import POSITIVE, IntervalHead, Positive
from qpignn.nn.interval_net import IntervalNet
from qpignn.objectives.joint import (
    VIOLATIONS,
    WIDTHS,
    ViolationForm,
    WidthForm,
    covered,
    joint_loss,
    mean_over_all,
    width,
)
from qpignn.runtime.plugins import load_object
from qpignn.tasks.base import FitInputs
from qpignn.training.fused_steps import FusedResult, joint_steps
from qpignn.training.loop import keeps_interrupted
from qpignn.training.search import minimise

Outputs = tuple[Tensor, Tensor, Tensor]
"""value (members, units); half-widths below and above (levels, members, units)."""
LambdaChoice = Literal["auto", "tuned"]
HELPING_LEVELS = (0.5, 0.8)  # trained too when self-calibrating: they stabilise the value
# skewness of targets from 0 up from which logarithms are tried: a few are far larger than the rest;
# an exponential law has 2
HEAVY_TAIL = 1.5
TRIED: tuple[Transform, ...] = ("none", "log1p")  # transforms of a heavy-tailed target that compete
SEARCHED = {"all": (0.005, 0.5), "product": (0.005, 0.5), "violated": (0.1, 1.0)}
"""Range in which λ is searched, by the form of the violation."""


class JointLossMethod(NetMethod):
    """A value and half-widths per unit, trained by the joint loss.

    Attributes:
        lambda_width: ``auto`` is α/2 of each level; the value is then trained, too, as the
            interval of level 0. Otherwise all levels have the price ``lambda_width_``.
        tails: as for QpiGNN.
        half_width: as for QpiGNN.
        violation: as for QpiGNN.
        width: as for QpiGNN.
    """

    lambda_width: float | LambdaChoice = "auto"
    tails: Tails | None = None
    half_width: Positive = "softplus"
    violation: ViolationForm = "all"
    width: WidthForm = "l1"
    lambda_width_: float

    @property
    def _auto_lambda(self) -> bool:
        """Whether λ is α/2 of each level."""
        return isinstance(self.lambda_width, str) and self.lambda_width == "auto"

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head: a value and half-widths."""
        tails = self.tails or ("free" if self._auto_lambda else "symmetric")
        return IntervalHead(
            self.hidden,
            self.half_width,
            generator=generator,
            levels=len(self.trained_levels()),
            symmetric=tails == "symmetric",
            members=members,
        )

    def compute_value(self, outputs: Outputs) -> Tensor:
        """Return the value that half-widths are counted from."""
        return outputs[0]

    def compute_bounds(self, outputs: Outputs) -> tuple[Tensor, Tensor]:
        """Return value − half-width below, value + half-width above."""
        value, below, above = outputs
        return value - below, value + above

    def _prices(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the trained levels and their λ, (levels, 1) each."""
        levels = torch.tensor(self.trained_levels(), dtype=dtype).unsqueeze(1)
        if self._auto_lambda:
            return levels, (1 - levels) / 2
        return levels, torch.full_like(levels, self.lambda_width_)

    def fused_step(
        self, net: IntervalNet, training_set: TrainingSet, weight: Tensor | None
    ) -> Callable[[], FusedResult] | None:
        """Return the hand-written step of the joint loss in its usual form."""
        if (self.violation, self.width) != ("all", "l1"):
            return None
        levels, prices = self._prices(training_set.y.dtype)
        return joint_steps(
            *(net, training_set.graph, training_set.y, weight),
            levels=levels,
            prices=prices,
            anchored=self._auto_lambda,
        )

    def compute_loss(self, outputs: Outputs, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the joint loss, see :mod:`qpignn.objectives.joint`."""
        lower, upper = self.compute_bounds(outputs)
        levels, price = (part.to(y.device) for part in self._prices(y.dtype))
        if self._auto_lambda:
            # the value itself is the interval of level 0: α = 1, no width, λ = 1/2
            value = outputs[0].unsqueeze(0)
            lower, upper = torch.cat([value, lower]), torch.cat([value, upper])
            levels = nn.functional.pad(levels, (0, 0, 1, 0))
            price = nn.functional.pad(price, (0, 0, 1, 0), value=0.5)
        return joint_loss(
            lower,
            upper,
            y.expand_as(lower),
            confidence_level=levels,
            lambda_width=price,
            violation_form=self.violation,
            width_form=self.width,
            weight=weight,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class QpiGNN(JointLossMethod):
    """Quantile-free prediction intervals: a value ŷ and half-widths d > 0 from one net.

    By default it calibrates itself, and needs no λ: ten small nets are trained side by side at
    λ = α/2, each without another fifth of the given units; all stop at the epoch with the best
    score on those fifths; and the widths of the average interval are scaled until the held-out
    units are covered at the wanted level (:mod:`qpignn.calibration.cross_fit`). This gives coverage
    close to the wanted one, on average over units like the given ones. It does not give a
    finite-sample guarantee (factors are fitted on averages of two nets and used on the average of
    ten), coverage in every group of units, or any coverage for units that differ from the given
    ones. Unit weights count in training, not in this calibration: coverage is that of units, each
    counted once. With fewer held-out units than a level needs (9 for 90 %) bounds are infinite, and
    a warning says so.

    All settings of :class:`qpignn.methods.net.NetMethod` apply: nets, training, limits, devices.

    Args:
        confidence_level: wanted coverage, strictly between 0 and 1, or a list of such; intervals
            of several levels are nested.
        lambda_width: price of width. ``"auto"`` calibrates itself as described above. A number
            fixes it and trains one net, as in the paper, without examining coverage on other units;
            α/2 is the calibrated value on the units trained on (:mod:`qpignn.objectives.joint`).
            ``"tuned"`` searches the number by Bayesian optimisation on held-out units.
        side: ``both``, or only a ``lower`` or ``upper`` bound, which spends all of α on that side.
        tails: ``free`` (default of ``auto``): half-widths of their own below and above the value,
            and the share of misses on each side chosen on held-out units, where that makes
            intervals clearly shorter. ``equal``: as many misses below as above.
            ``symmetric`` (default otherwise): [ŷ − d, ŷ + d].
        target_transform: ``log1p`` or ``sqrt`` train on a rising function of the target (mirrored
            for negative ones), so that bounds map back exactly. ``auto`` also tries ``log1p`` where
            targets from 0 up have a heavy tail (a skewness above 1.5), and keeps the form that
            is better for a typical held-out unit: by the median width and the geometric mean of
            Winkler scores, which the few largest targets do not decide; with fewer than 200 given
            units it takes ``log1p`` there without a trial (only when self-calibrating; otherwise
            ``none``).
        members: how many nets; default ten for ``auto``, else one. Each holds out one fifth of the
            given units, five of them all: fewer than five nets calibrate on fewer units.
        trials: of the search for λ.
        half_width: ``softplus`` or ``sigmoid``.
        violation: averaged over ``all`` units (as printed), over the ``violated`` ones, or the
            footnote's ``product`` form; ``auto`` needs ``all``.
        width: ``l1`` or ``l2`` penalty; ``auto`` needs ``l1``.
        neighbours: ``auto`` (default here) uses the known targets of neighbours where held-out
            intervals get clearly better by it; ``off`` does not.

    Attributes:
        lambda_width_: the λ of the fit; of the highest level where it differs between levels.

    Example:
        >>> from qpignn import QpiGNN, load_dataset
        >>> data = load_dataset("basic", nodes=60)
        >>> model = QpiGNN([0.5, 0.9], epochs=5).fit(data)
        >>> model.predict_interval(data, confidence_level=0.5).to_frame().columns.tolist()
        ['id', 'prediction', 'lower', 'upper']
    """

    lambda_width: float | LambdaChoice = field(default="auto", kw_only=False)
    side: Side = "both"
    tails: Tails | None = None
    target_transform: Transform | Literal["auto"] = "auto"
    members: int | None = None
    trials: int = 20
    half_width: Positive = "softplus"
    violation: ViolationForm = "all"
    width: WidthForm = "l1"
    neighbours: NeighboursSetting = "auto"

    lambda_width_: float = field(init=False)

    @classmethod
    def published(cls, lambda_width: float | LambdaChoice = 0.5, **settings: Any) -> Self:
        """Return the form of the paper's experiments; deprecated.

        Args:
            lambda_width: width penalty.
            **settings: other settings.
        """
        warnings.warn(
            'QpiGNN.published is deprecated; use make_method("qpignn", "published")',
            DeprecationWarning,
            stacklevel=2,
        )
        make = load_object("qpignn.paper.published.methods:make_published")
        made: Self = make("qpignn", {"lambda_width": lambda_width, **settings}, cls)
        return made

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        super().check_settings()
        check_choice("side", self.side, SIDES)
        check_choice("tails", "free" if self.tails is None else self.tails, TAILS)
        check_choice("target_transform", self.target_transform, ("auto", *TRANSFORMS))
        lowest = check_levels(self.confidence_level)[0]
        if self.side != "both" and lowest <= 0.5:
            raise SettingError(
                f"side: expected levels above 0.5 for a {self.side} bound, got {lowest:g}"
            )
        if self.scaling == "range" and self.target_transform not in ("auto", "none"):
            raise SettingError(
                f"target_transform: expected none with scaling 'range', got "
                f"{self.target_transform!r}"
            )
        check_choice("half_width", self.half_width, POSITIVE)
        check_choice("violation", self.violation, VIOLATIONS)
        check_choice("width", self.width, WIDTHS)
        check_integer("trials", self.trials)
        self._check_lambda()

    def _check_lambda(self) -> None:
        lam: Any = self.lambda_width
        if not (isinstance(lam, str) and lam in get_args(LambdaChoice)):
            check_number("lambda_width", lam, 0, '"auto", "tuned" or a number from 0 up')
            largest = torch.finfo(DTYPES[self.dtype]).max
            if lam > largest:
                raise SettingError(
                    f"lambda_width: expected at most {largest:.2g}, the largest {self.dtype}, got "
                    f"{float(lam):g}; the usual range is 0 to 1"
                )
        if self._auto_lambda:
            if (self.violation, self.width) != ("all", "l1"):
                raise SettingError(
                    f'lambda_width: expected a number or "tuned" with violation '
                    f'{self.violation!r} and width {self.width!r}, got "auto", which is derived '
                    f"for 'all' and 'l1'"
                )
            return
        several = len(check_levels(self.confidence_level)) > 1
        needs = {"several levels": several, "one side": self.side != "both"}
        needs["free tails"] = self.tails == "free"
        for what, wanted in needs.items():
            if wanted:
                raise SettingError(f'lambda_width: expected "auto" for {what}, got {lam!r}')

    def calibrator(self) -> Calibrator | None:
        """Return a cross-fitting calibrator, or None with a λ that is fixed or searched."""
        tails = "free" if self.tails is None else self.tails  # not checked yet
        return CrossFit(self.side, tails) if self._auto_lambda else None

    def free_levels(self) -> tuple[float, ...]:
        """Return the helping levels, which are trained anyway."""
        return HELPING_LEVELS if self._auto_lambda and self.side == "both" else ()

    def trained_level(self, level: float) -> float:
        """Return the level of the two-sided interval one of whose bounds is the wanted one."""
        return level if self.side == "both" else round(2 * level - 1, 12)

    def trained_levels(self) -> list[float]:
        """Return the levels the net has bounds for, helping levels among them, rising."""
        wanted = [self.trained_level(level) for level in check_levels(self.confidence_level)]
        return sorted({*wanted, *HELPING_LEVELS}) if self._auto_lambda else wanted

    def _fit(self, inputs: FitInputs) -> int | None:
        """Fit with every transform that competes, and keep the one of the lowest price."""
        y = inputs.targets.double().numpy()
        # in units of the largest: cubes of 1e200 overflow
        heavy = bool(0 <= y.min() < y.max() and skew(y / y.max()) > HEAVY_TAIL)
        transforms = self._transforms(heavy, len(y))
        best: FittedNets | None = None
        epochs, interrupted = 0, False
        for transform in transforms:
            try:
                scalers, training_set = prepare_training(self, inputs, transform)
                if best is None:
                    scalers.warn_of_constant_columns(inputs.data)
                    self.lambda_width_ = self._choose_lambda(training_set, inputs)
                fitted = fit_nets(
                    self, scalers, training_set, inputs.initial_weights, heavy_tailed=heavy
                )
            except KeyboardInterrupt:  # before an epoch was done: the first fit is kept
                if best is None or not keeps_interrupted():
                    raise
                interrupted = True
                break
            epochs, interrupted = epochs + len(fitted.history), fitted.history.interrupted
            if best is None or (fitted.price < best.price and not interrupted):
                best = fitted
            if interrupted:
                break
        assert best is not None
        if interrupted:
            best.history.interrupt(epochs, len(transforms) * self.epochs)
        if not best.scalings:
            levels = check_levels(self.confidence_level)
            best = replace(best, scalings=dict.fromkeys(levels, AS_TRAINED))
        return keep_fit(self, best, inputs)

    def _transforms(self, heavy_tailed: bool, labels: int) -> tuple[Transform, ...]:
        """Return which transforms of the target to try.

        With few labels transforms do not compete, as forms of intervals do not: the winner would
        cover too little.
        """
        if self.target_transform != "auto":
            return (self.target_transform,)
        compares = self._auto_lambda and self.side == "both" and self.scaling == "standard"
        if not (compares and heavy_tailed):
            return ("none",)
        return TRIED if labels >= FEW else TRIED[-1:]

    def _choose_lambda(self, training_set: TrainingSet, inputs: FitInputs) -> float:
        """Return λ: α/2 of the highest level, the setting, or the outcome of a search.

        The search returns the λ whose held-out intervals are narrowest among those that cover
        enough.
        """
        if self._auto_lambda:
            return (1 - self.trained_level(check_levels(self.confidence_level)[-1])) / 2
        if self.lambda_width != "tuned":
            return float(self.lambda_width)
        if not bool(training_set.held_out.any()):
            folds = assign_folds(len(training_set.y), member_count(self), self.seed)
            training_set = replace(training_set, held_out=folds)
        if not bool(training_set.held_out.any()):
            raise SplitError(
                f"lambda_width: expected given nodes to hold out of a search, got "
                f"{len(training_set.y)}; give more, or a number"
            )
        (level,) = check_levels(self.confidence_level)
        weight = training_set.weight * training_set.held_out

        def score(tried: dict[str, float]) -> float:
            trial = copy.copy(self)
            trial.lambda_width_ = tried["lambda_width"]
            net, history = train_nets(trial, training_set, inputs.initial_weights)
            if history.interrupted:  # no λ was chosen yet, so there is nothing to keep
                raise KeyboardInterrupt
            with torch.no_grad():
                outputs = training_set.of_given(trial._run(net, training_set.graph))
                lower, upper = trial.compute_bounds(outputs)
            inside = covered(lower, upper, training_set.y.expand_as(lower)).double()
            hits = mean_over_all(inside, weight)
            mean_width = mean_over_all(width(lower, upper).double(), weight)
            return float((mean_width + 100 * (level - hits).clamp_min(0)).nanmean())

        ranges = {"lambda_width": SEARCHED[self.violation]}
        return minimise(score, ranges, trials=self.trials, seed=self.seed)["lambda_width"]

    def member_outputs(self, outputs: Outputs, level: float) -> MemberOutputs:
        """Return values and half-widths of each member at a wanted level."""
        value, below, above = (part.double().numpy() for part in outputs)
        index = self.trained_levels().index(self.trained_level(level))
        halves = (np.maximum(half[index], SMALLEST) for half in (below, above))
        return MemberOutputs(value, *halves)

    @property
    def stretches_(self) -> dict[float, WidthScaling]:
        """Deprecated name of ``scalings_``."""
        warnings.warn("stretches_ is deprecated; use scalings_", DeprecationWarning, stacklevel=2)
        return self.scalings_

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        super()._restore(state, fitted)
        if not self.scalings_:
            raise ValueError("stretches: expected one for every level of the fit, got none")
        self.lambda_width_ = float(check_scalar(state["lambda_width"]))

    def _state(self) -> dict[str, Tensor]:
        lam = torch.tensor(self.lambda_width_, dtype=torch.float64)
        return {**super()._state(), "lambda_width": lam}
