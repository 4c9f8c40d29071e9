"""What methods built on nets have in common: settings, training, prediction, files."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor, nn

from qpignn.calibration.cross_fit import Calibrator, CrossFit
from qpignn.calibration.width_scaling import MemberOutputs, WidthScaling, nested_bounds
from qpignn.data.scaling import Scaler, TargetScaler
from qpignn.encoders.activations import ACTIVATIONS, ActivationName
from qpignn.encoders.base import Aggregation, Norm
from qpignn.encoders.catalog import (
    EncoderSetting,
    build_encoder,
    check_encoder,
)
from qpignn.encoders.inputs import GraphInputs
from qpignn.errors import (
    SettingError,
    check_bool,
    check_choice,
    check_integer,
    check_non_negative,
)
from qpignn.intervals import check_levels
from qpignn.methods.base import Bounds, IntervalMethod, NoveltySetting
from qpignn.methods.fitted import Fitted
from qpignn.methods.known_neighbours import KnownNeighbours
from qpignn.methods.limits import AUTO, Limit, check_limits
from qpignn.methods.net_state import keep_fit, restore_state, state_of
from qpignn.methods.net_training import (
    encoder_inputs,
    fit_nets,
    member_count,
    prepare_training,
    threads_and_precision,
    training_settings,
)
from qpignn.methods.scaled_data import DTYPES, SCALINGS, Dtype, Scalers, Scaling
from qpignn.methods.training_set import LEAST, TrainingSet
from qpignn.nn.interval_net import IntervalNet, each, run_apart
from qpignn.objectives.joint import mean_over_all, violation, width
from qpignn.runtime.device import PRECISIONS, Precision, find_device
from qpignn.runtime.randomness import torch_rng
from qpignn.tasks.base import FitInputs
from qpignn.tasks.catalog import TaskName
from qpignn.training.fused_steps import FusedResult

if TYPE_CHECKING:
    from torch_geometric.data import Data

NeighboursSetting = Literal["auto", "off"]
NEIGHBOURS_SETTINGS: tuple[str, ...] = get_args(NeighboursSetting)
SMALLEST = 1e-12  # half-width, in the nets' units: softplus ends at 0 for extreme features


class DeprecatedStart:
    """Version 0.1's way to give initial weights; removed in the next release."""

    def start_from(self, weights: Mapping[str, Tensor]) -> Self:
        """Let the next ``fit`` begin at these weights; deprecated, use ``fit(initial_weights=)``.

        Args:
            weights: named as in ``net_``.

        Returns:
            The method itself.
        """
        warnings.warn(
            "start_from is deprecated; use fit(data, initial_weights=weights)",
            DeprecationWarning,
            stacklevel=2,
        )
        self._initial_weights = weights
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class NetMethod(DeprecatedStart, IntervalMethod):
    """One encoder with one head, trained by one loop; several members side by side.

    Members are nets that share the graph and dropout's random numbers, but no weights; each holds
    out another part of the given units.

    A new method is a dataclass of its own settings with three hooks:

    * :meth:`make_head`: hidden vectors → outputs of the net;
    * :meth:`compute_loss`: outputs and targets → the loss;
    * :meth:`compute_bounds`: outputs → lower and upper bounds of every level.

    Others have defaults: :meth:`compute_value` (point predictions), :meth:`combine_members`
    (several nets → one interval), :meth:`calibrator` (widths scaled on held-out units),
    :meth:`held_out_score` (early stopping), :meth:`weight_penalty` and :meth:`fused_step`.
    Outputs are a tensor, or a tuple of tensors, whose last two axes are members and units.

    Args:
        confidence_level: wanted coverage, strictly between 0 and 1, or a list of such; intervals
            of several levels are nested.
        members: how many nets are trained side by side and averaged; each holds out one fifth of
            the given units, five of them all units. Default one, and ten where widths are
            calibrated on held-out units.
        encoder: ``sage``, ``gcn``, ``gin``, ``gat``, ``mlp`` (no graph), a ``torch.nn.Module`` of
            your own, a class or function that makes one of (in_channels, hidden), or
            ``"file.py:Name"``; see :mod:`qpignn.encoders`.
        hidden: number of hidden units per layer.
        layers: number of layers; a module of your own has its own layers.
        activation: after each layer.
        aggregation: how ``sage`` combines neighbours: ``mean``, ``sum`` or ``max``.
        residual: whether layers, from the second on, add their inputs to their outputs.
        norm: ``none``, or ``layer`` for layer normalisation.
        dropout: of hidden units while training.
        lr: Adam's learning rate.
        weight_decay: Adam's.
        epochs: passes over the given units, at most.
        patience: stop when held-out units (a fifth of the given ones, or for a single net the
            graph's ``val_mask``) have not improved their score for so many epochs, and keep the
            best weights. ``None`` trains on all given units for all epochs.
        seed: of initial weights, dropout and held-out units; same seed, same bits.
        scaling: ``standard`` per column, ``range`` for all columns together, or ``none``.
        dtype: ``float32``, or ``float64`` to keep rounding out of a comparison.
        batch_size: train on so many given units at a time, with some of their neighbours; default
            on all at once, unless that would take more memory than there is.
        fan_out: how many neighbours of a node a minibatch draws, at most.
        device: where nets train: ``auto`` (a GPU if there is one), ``cpu``, ``cuda``, ``cuda:1`` …
        precision: of products of float32 numbers, as in torch: ``highest``, or on hardware
            that has them the faster ``high`` (TF32) and ``medium`` (bfloat16).
        y_min: where the target cannot go; bounds and predictions are cut there. ``auto`` sets a
            lower limit of 0 where no given target is negative; ``None`` sets no limit. ``y_min_``
            is the limit that a fit uses.
        y_max: the same from above; ``auto`` sets 0 where no given target is positive.
        novelty: ``widen`` intervals of units beyond what was learnt (features outside the range of
            the given units, unusual combinations of them, no given unit nearby), as much as the
            given units show to be necessary; ``off`` leaves them as the nets predict them.
        neighbours: ``auto`` also learns from the known targets of each unit's neighbours, in a
            second stage on top of nets that are calibrated on held-out units, and uses it where
            held-out intervals are clearly better; ``off`` uses features and edges only.
        task: what a unit is: ``node``.
        verbose: show a progress bar.

    Attributes:
        net_: the trained members.
        scalers_: of features and target, and the target's limits.
        scalings_: of widths, by level; empty without a calibrator.
        known_neighbours_: the second stage; None where it is not used.
        cross_fits: whether outputs are those of members that each hold out other units.
        x_scaler_: of the features.
        y_scaler_: of the target.
        y_min_: the lower limit of bounds and predictions; None where there is none.
        y_max_: the upper limit.
        saved_numbers: attributes that hold one number as a tensor each and belong to the model's
            file, without their underscore.
    """

    settings_before: ClassVar[Mapping[str, Any]] = {
        **{"y_min": None, "y_max": None},
        **{"novelty": "off", "neighbours": "off"},
    }
    cross_fits: ClassVar[bool] = True
    saved_numbers: ClassVar[tuple[str, ...]] = ()

    confidence_level: float | list[float] = field(default=0.9, kw_only=False)
    members: int | None = None
    encoder: EncoderSetting = "sage"
    hidden: int = 32
    layers: int = 2
    activation: ActivationName = "silu"
    aggregation: Aggregation = "mean"
    residual: bool = False
    norm: Norm = "none"
    dropout: float = 0.1
    lr: float = 1e-2
    weight_decay: float = 1e-3
    epochs: int = 500
    patience: int | None = 50
    seed: int = 0
    scaling: Scaling = "standard"
    dtype: Dtype = "float32"
    batch_size: int | None = None
    fan_out: int = 10
    device: str = "auto"
    precision: Precision = "highest"
    y_min: Limit = AUTO
    y_max: Limit = AUTO
    novelty: NoveltySetting = "widen"
    neighbours: NeighboursSetting = "off"
    task: TaskName = "node"
    verbose: bool = False

    net_: IntervalNet = field(init=False)
    scalers_: Scalers = field(init=False)
    scalings_: dict[float, WidthScaling] = field(init=False)
    x_scaler_: Scaler = field(init=False)
    y_scaler_: TargetScaler = field(init=False)
    y_min_: float | None = field(init=False)
    y_max_: float | None = field(init=False)
    known_neighbours_: KnownNeighbours | None = field(init=False, default=None)

    @abstractmethod
    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head: (members, units, ``self.hidden``) → outputs of the net.

        Args:
            generator: of random initial weights.
            members: number of nets.
        """

    @abstractmethod
    def compute_loss(self, outputs: Any, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return what to minimise, summed over members and levels.

        Args:
            outputs: of the head.
            y: (units,), targets in the nets' units.
            weight: (members, units), or None where all units count the same.
        """

    @abstractmethod
    def compute_bounds(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Return lower and upper bounds, (levels, members, units), in the nets' units.

        Args:
            outputs: of the head.
        """

    def compute_value(self, outputs: Any) -> Tensor:
        """Return point predictions, (members, units); default the middle of the first interval.

        Args:
            outputs: of the head.
        """
        lower, upper = self.compute_bounds(outputs)
        return (lower[0] + upper[0]) / 2

    def calibrator(self) -> Calibrator | None:
        """Return what scales widths by the units that members held out.

        By default None, unless neighbours' known targets are wanted: these need such units.
        """
        return CrossFit() if self.neighbours == "auto" else None

    def member_outputs(self, outputs: Any, level: float) -> MemberOutputs:
        """Return values and half-widths of each member for the calibrator.

        Args:
            outputs: of the head.
            level: a wanted level.
        """
        index = self.trained_levels().index(self.trained_level(level))
        with torch.no_grad():  # outputs may be weights, such as a noise level
            value = self.compute_value(outputs).double()
            lower, upper = (bound[index].double() for bound in self.compute_bounds(outputs))
        halves = (np.maximum(half.numpy(), SMALLEST) for half in (value - lower, upper - value))
        return MemberOutputs(value.numpy(), *halves)

    def combine_members(self, outputs: Any, level: float) -> Bounds:
        """Return one interval per unit at a fitted level, in the nets' units.

        Values and bounds of members are averaged; each level's interval contains those of the lower
        levels, and its prediction. ``epistemic`` is a share of the width.

        Args:
            outputs: of the head.
            level: a fitted level.
        """
        if self.scalings_:
            calibrator = self.calibrator()
            fitted = [inner for inner in self.scalings_ if inner <= level]
            members = {inner: self.member_outputs(outputs, inner) for inner in fitted}
            side = "both" if calibrator is None else calibrator.side
            *combined, share = nested_bounds(members, self.scalings_, side=side)
            epistemic = None if share is None else torch.from_numpy(share)
            value, lower, upper = map(torch.from_numpy, combined)
            return Bounds(value, lower, upper, epistemic, side)
        value = self.compute_value(outputs).mean(dim=0)
        lower = upper = value
        bounds = zip(*self.compute_bounds(outputs), self.trained_levels(), strict=True)
        for low, high, inner in bounds:
            if inner <= level:
                low, high = low.mean(dim=0), high.mean(dim=0)  # noqa: PLW2901
                lower = lower.minimum(low).minimum(high)
                upper = upper.maximum(low).maximum(high)
        return Bounds(value, lower, upper)

    def fused_step(
        self, net: IntervalNet, training_set: TrainingSet, weight: Tensor | None
    ) -> Callable[[], FusedResult] | None:
        """Return a faster way to the same loss and gradient; default None, autograd.

        Args:
            net: to be trained.
            training_set: the units of the step.
            weight: (members, units), or None where all units count the same.
        """
        return None

    def weight_penalty(self, net: IntervalNet, units: Tensor) -> Tensor | None:
        """Return a function of the weights that is added to the loss; default None.

        Args:
            net: to be trained.
            units: (members,), number of units that each member is trained on.
        """
        return None

    def held_out_score(self, net: IntervalNet, training_set: TrainingSet) -> float:
        """Return the score of held-out units that training minimises.

        By default the members' Winkler score on the units each holds out, times α/2, over all
        levels.

        Args:
            net: as it stands.
            training_set: with units that are held out.
        """
        watching = training_set.held_out.any(dim=1)
        y = training_set.y.expand(training_set.held_out.shape)[watching]
        outputs = training_set.of_given(self._run(net, training_set.graph))
        lower, upper = (bound[:, watching] for bound in self.compute_bounds(outputs))
        alpha = 1 - torch.tensor(self.trained_levels(), dtype=y.dtype)[:, None, None]
        price = violation(lower, upper, y.expand_as(lower)) + alpha / 2 * width(lower, upper)
        weight = (training_set.weight * training_set.held_out)[watching]
        return float(mean_over_all(price, weight).mean())

    def trained_levels(self) -> list[float]:
        """Return the levels the net has bounds for, rising."""
        return check_levels(self.confidence_level)

    def trained_level(self, level: float) -> float:
        """Return the trained level whose bounds are used for a wanted level; default the same.

        Args:
            level: a wanted level.
        """
        return level

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        check_choice("neighbours", self.neighbours, NEIGHBOURS_SETTINGS)  # members depend on it
        check_integer("members", member_count(self))
        super().check_settings()
        check_choice("scaling", self.scaling, SCALINGS)
        check_choice("dtype", self.dtype, DTYPES)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_encoder(
            self.encoder,
            aggregation=self.aggregation,
            residual=self.residual,
            norm=self.norm,
            batch_size=self.batch_size,
        )
        check_choice("precision", self.precision, PRECISIONS)
        find_device(self.device)
        size = self.batch_size
        if size is not None and check_integer("batch_size", size) < LEAST:
            raise SettingError(f"batch_size: expected a whole number from {LEAST} up, got {size}")
        check_integer("fan_out", self.fan_out)
        check_integer("hidden", self.hidden)
        check_integer("layers", self.layers)
        check_limits(self.y_min, self.y_max)
        if self.neighbours == "auto" and not self.cross_fits:
            raise SettingError(
                f"neighbours: expected 'off' for {type(self).__name__}, whose outputs are not "
                f"those of members that each hold out other units, got 'auto'"
            )
        check_bool("verbose", self.verbose)
        if not check_non_negative("dropout", self.dropout) < 1:
            raise SettingError(f"dropout: expected a share from 0 to below 1, got {self.dropout!r}")
        training_settings(self)

    def _fit(self, inputs: FitInputs) -> int | None:
        scalers, training_set = prepare_training(self, inputs)
        scalers.warn_of_constant_columns(inputs.data)
        fitted = fit_nets(self, scalers, training_set, inputs.initial_weights)
        return keep_fit(self, fitted, inputs)

    def _predict(self, data: "Data", level: float) -> Bounds:
        with torch.no_grad():
            outputs = self._run(self.net_, encoder_inputs(self, data))
            bounds = self.combine_members(outputs, level)
        if self.known_neighbours_ is None:
            return self.scalers_.to_user(bounds)
        better = self.known_neighbours_.apply(self, data, outputs, bounds, level)
        lower, upper = map(self.scalers_.in_target_unit, (bounds.lower, bounds.upper))
        counts = better.known_neighbours
        bounds = self.scalers_.to_user(better)
        return replace(bounds, known_neighbours=counts, width_without=(upper - lower).numpy())

    @property
    def _predicts_any_level(self) -> bool:
        return self.any_level and not self.scalings_

    def _run(self, net: IntervalNet, graph: GraphInputs) -> Any:
        """Return the outputs that bounds are made of, on the CPU."""
        graph = graph.to(next(net.parameters()).device)
        apart = not net.training and run_apart(graph, member_count(self), self.hidden)
        with threads_and_precision(self, graph.nodes):
            outputs = net.by_members(graph) if apart else net(graph)
        return each(outputs, Tensor.cpu)

    def _new_net(self, columns: int, edge_columns: int = 0) -> IntervalNet:
        generator, members = torch_rng(self.seed, "weights"), member_count(self)
        encoder = build_encoder(
            self.encoder,
            columns,
            self.hidden,
            self.layers,
            generator=generator,
            dropout=self.dropout,
            activation=self.activation,
            aggregation=self.aggregation,
            residual=self.residual,
            norm=self.norm,
            members=members,
            edge_columns=edge_columns,
        )
        return IntervalNet(encoder, self.make_head(generator, members)).to(DTYPES[self.dtype])

    def _state(self) -> dict[str, Tensor]:
        return state_of(self)

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        restore_state(self, state, fitted)
