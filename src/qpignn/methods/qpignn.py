"""QpiGNN: a value and half-widths per node, trained from labels alone by the joint loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from qpignn.errors import SettingError, SplitError, check_choice, check_integer, check_number
from qpignn.intervals import check_levels
from qpignn.io.tensors import check_scalar
from qpignn.methods.base import Fitted
from qpignn.methods.limits import AUTO
from qpignn.methods.net import DTYPES
from qpignn.methods.selfcalibrating import Outputs, SelfCalibrating
from qpignn.methods.training_set import Seen, fold_turns
from qpignn.nn.heads import POSITIVE, IntervalHead
from qpignn.objectives.joint import VIOLATIONS, WIDTHS, covered, joint_loss, mean_over_all, width
from qpignn.runtime.plugins import load_object
from qpignn.training.byhand import Stepped, joint_steps
from qpignn.training.loop import StepResult
from qpignn.training.search import minimise

SEARCHED = {"all": (0.005, 0.5), "product": (0.005, 0.5), "violated": (0.1, 1.0)}
"""Where λ is sought, by the form of the violation."""


class QpiGNN(SelfCalibrating):
    """Quantile-free prediction intervals: a value ŷ and half-widths d > 0 from one net.

    By default it calibrates itself, and needs no λ: ten small nets are trained side by side at
    λ = α/2, each without another fifth of the given nodes; all stop at the epoch that serves those
    fifths best; and the average interval is stretched until the held-out nodes are covered at the
    wanted level (:mod:`qpignn.calibration.cross_fit`). What that promises: coverage close to the
    wanted one, on average over nodes like the given ones. What it does not: a finite-sample
    guarantee (the stretch is fitted on averages of two nets and used on the average of ten),
    coverage in every group of nodes, or anything where the nodes to predict differ. Node weights
    count in training, not in this calibration: coverage is that of nodes, each counted once. With
    fewer given nodes than a level needs (9 for 90 %) bounds are infinite, and a warning says so.

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
            for negative ones), so that bounds map back exactly. ``auto`` also tries ``log1p`` where
            targets from 0 up have a heavy tail (a skewness above 1.5), and keeps the form that
            serves a typical held-out node better: by the median width and the geometric mean of
            Winkler scores, which the few largest targets do not decide; with fewer than 200 given
            nodes it takes ``log1p`` there without a trial (only when self-calibrating; otherwise
            ``none``).
        y_min, y_max: where the target cannot go; bounds are cut there. By default (``auto``) at 0
            where no given target is negative, or none positive; ``None`` cuts nowhere.
        members: how many nets: 1 or a multiple of five. Default ten for ``auto``, else one.
        trials: of the search for λ.
        half_width: ``softplus`` or ``sigmoid``.
        violation: averaged over ``all`` nodes (as printed), over the ``violated`` ones, or the
            footnote's ``product`` form; ``auto`` needs ``all``.
        width: ``l1`` or ``l2`` penalty; ``auto`` needs ``l1``.
        net: settings of the nets and their training, as for every method: ``hidden=32``,
            ``layers=2``, ``activation="silu"``, ``dropout=0.1``, ``lr=0.01``,
            ``weight_decay=0.001``, ``epochs=500``, ``patience=50``, ``seed=0``,
            ``scaling="standard"``, ``dtype="float32"``, ``verbose=False``; see
            :class:`qpignn.methods.net.NetMethod`.

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
        y_min: float | str | None = AUTO,
        y_max: float | str | None = AUTO,
        members: int | None = None,
        trials: int = 20,
        half_width: str = "softplus",
        violation: str = "all",
        width: str = "l1",
        **net: Any,
    ) -> None:
        super().__init__(confidence_level, members=members, y_min=y_min, y_max=y_max, **net)
        self.lambda_width = lambda_width
        self.side = side
        self.tails = tails
        self.target_transform = target_transform
        self.trials = trials
        self.half_width = half_width
        self.violation = violation
        self.width = width

    @classmethod
    def published(cls, lambda_width: float | str = 0.5, **settings: Any) -> Self:
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
        """Raise if a setting is outside the values it may take."""
        super().check_settings()
        check_choice("half_width", self.half_width, POSITIVE)
        check_choice("violation", self.violation, VIOLATIONS)
        check_choice("width", self.width, WIDTHS)
        check_integer("trials", self.trials)
        self._check_price()

    def _check_price(self) -> None:
        lam: Any = self.lambda_width
        if not (isinstance(lam, str) and lam in ("auto", "tuned")):
            check_number("lambda_width", lam, 0, '"auto", "tuned" or a number from 0 up')
            largest = torch.finfo(DTYPES[self.dtype]).max
            if lam > largest:
                raise SettingError(
                    f"lambda_width: expected at most {largest:.2g}, the largest {self.dtype}, got "
                    f"{float(lam):g}; the usual range is 0 to 1"
                )
        levels = check_levels(self.confidence_level)
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

    def _calibrates(self) -> bool:
        return isinstance(self.lambda_width, str) and self.lambda_width == "auto"

    def _train_seen(self, seen: Seen) -> None:
        self.lambda_width_ = self._searched(seen) if self.lambda_width == "tuned" else self._price()
        self._train(seen)

    def _price(self) -> float:
        if self._calibrates():
            return (1 - self._two_sided(check_levels(self.confidence_level)[-1])) / 2
        return float(self.lambda_width)

    def _searched(self, seen: Seen) -> float:
        """Return the λ whose held-out intervals are narrowest among those that cover enough."""
        if not bool(seen.held_out.any()):
            turns = fold_turns(len(seen.y), self._members(), self.seed)
            seen = replace(seen, held_out=turns)
        if not bool(seen.held_out.any()):
            raise SplitError(
                f"lambda_width: expected given nodes to hold out of a search, got "
                f"{len(seen.y)}; give more, or a number"
            )
        (level,) = check_levels(self.confidence_level)

        def score(tried: dict[str, float]) -> float:
            self.lambda_width_ = tried["lambda_width"]
            self._train(seen)
            if self.history_.interrupted:  # no λ was chosen yet, so there is nothing to keep
                raise KeyboardInterrupt
            with torch.no_grad():
                lower, upper = self._bounds(self._run(seen))
            weight = seen.weight * seen.held_out
            hits = mean_over_all(covered(lower, upper, seen.y.expand_as(lower)).double(), weight)
            wide = mean_over_all(width(lower, upper).double(), weight)
            return float((wide + 100 * (level - hits).clamp_min(0)).nanmean())

        ranges = {"lambda_width": SEARCHED[self.violation]}
        return minimise(score, ranges, trials=self.trials, seed=self.seed)["lambda_width"]

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        super()._restore(state, fitted)
        self.lambda_width_ = float(check_scalar(state["lambda_width"]))

    def _state(self) -> dict[str, Tensor]:
        return {
            **super()._state(),
            "lambda_width": torch.tensor(self.lambda_width_, dtype=torch.float64),
        }

    def _head(self, generator: torch.Generator) -> nn.Module:
        return IntervalHead(
            self.hidden,
            self.half_width,
            generator=generator,
            levels=len(self._trained_levels()),
            symmetric=self._tails() == "symmetric",
            members=self._members(),
        )

    def _prices(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the wanted coverages and their λ, (levels, 1) each."""
        levels = torch.tensor(self._trained_levels(), dtype=dtype).unsqueeze(1)
        calibrated = (1 - levels) / 2
        own = self._calibrates()
        return levels, calibrated if own else torch.full_like(levels, self.lambda_width_)

    def _by_hand(self, seen: Seen, weight: Tensor | None) -> Callable[[], Stepped] | None:
        if (self.violation, self.width) != ("all", "l1"):
            return None
        levels, prices = self._prices(seen.y.dtype)
        anchored = self._calibrates()
        return joint_steps(
            *(self.net_, seen.graph, seen.y, weight),
            levels=levels,
            prices=prices,
            anchored=anchored,
        )

    def _loss(self, outputs: Outputs, y: Tensor, weight: Tensor | None) -> StepResult:
        lower, upper = self._bounds(outputs)
        levels, price = (part.to(y.device) for part in self._prices(y.dtype))
        if self._calibrates():
            # the value itself is the interval of level 0: α = 1, no width, λ = 1/2
            value = outputs[0].unsqueeze(0)
            lower, upper = torch.cat([value, lower]), torch.cat([value, upper])
            levels = nn.functional.pad(levels, (0, 0, 1, 0))
            price = nn.functional.pad(price, (0, 0, 1, 0), value=0.5)
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
        return self._measured(loss, outputs, y, weight)
