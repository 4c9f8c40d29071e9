"""What methods built on nets share: scale, prepare, hold out, train, predict."""

from __future__ import annotations

import copy
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn

from qpignn.data.matrix import best_layout, is_sparse
from qpignn.data.scaling import (
    Scaler,
    TargetScaler,
    count_nodes_that_differ,
    fit_feature_scaler,
    fit_range_scalers,
    fit_target_scaler,
)
from qpignn.encoders.sage import ACTIVATIONS, SageEncoder
from qpignn.encoders.sampling import Sampler
from qpignn.encoders.sparse import Operands, prepare
from qpignn.errors import (
    QpignnWarning,
    SettingError,
    SplitError,
    check_bool,
    check_choice,
    check_integer,
    check_non_negative,
    check_setting_names,
    plural,
    quoted,
)
from qpignn.intervals import check_levels
from qpignn.io.tensors import check_tensors
from qpignn.methods.base import Bounds, Fitted, IntervalMethod
from qpignn.methods.batches import check_batch_size, chosen_size, deal
from qpignn.methods.limits import AUTO, Limits, check_limits, settings_range
from qpignn.methods.training_set import FOLDS, Batch, Seen, fold_turns
from qpignn.nn.interval_net import IntervalNet, each, run_apart
from qpignn.objectives.joint import covered, mean_over_all, violation, width
from qpignn.runtime import distributed
from qpignn.runtime.device import PRECISIONS, find_device, limit_threads, matmul_precision
from qpignn.runtime.randomness import torch_rng
from qpignn.training.byhand import Stepped, step_of
from qpignn.training.checkpoint import recorded_choice
from qpignn.training.loop import StepResult, Steps, once, train
from qpignn.training.state import TrainingSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data

SCALINGS = ("standard", "range", "none")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
LOOK_EVERY = 5  # epochs: a look costs half a step


class NetMethod(IntervalMethod):
    """One encoder with one head, trained by the one loop; several members side by side.

    A method says which head it has, how its outputs become bounds, and what it minimises. Members
    are nets that share the graph and dropout's draws, no weights; each holds out another part of
    the given nodes.

    Args:
        confidence_level: wanted coverage, strictly between 0 and 1, or a list of such; intervals
            of several levels are nested.
        members: how many nets are trained side by side and averaged: 1 or a multiple of five.
        hidden, layers, activation: of the GraphSAGE encoder.
        dropout: of hidden units while training.
        lr, weight_decay, epochs: Adam's.
        patience: stop when held-out nodes (a fifth of the given ones, or for a single net the
            graph's ``val_mask``) have not improved their score for so many epochs, and keep the
            best weights. ``None`` trains on all given nodes for all epochs.
        seed: initial weights, dropout and held-out nodes; same seed, same bits.
        scaling: ``standard`` per column, ``range`` for all columns together, or ``none``.
        dtype: ``float32``, or ``float64`` to keep rounding out of a comparison.
        batch_size: train on so many given nodes at a time, with some of their neighbours; default
            on all at once, unless that would take more memory than there is.
        fan_out: how many neighbours of a node a minibatch draws, at most.
        device: where nets train: ``auto`` (a GPU if there is one), ``cpu``, ``cuda``, ``cuda:1`` …
        precision: of products of float32 numbers, in torch's words: ``highest``, or on hardware
            that has them the faster ``high`` (TF32) and ``medium`` (bfloat16).
        y_min, y_max: where the target cannot go; bounds and predictions are cut there. ``auto``
            sets a lower limit of 0 where no given target is negative, and an upper one of 0 where
            none is positive; ``None`` sets no limit. ``y_min_`` and ``y_max_`` say what a fit uses.
        verbose: show a progress bar.
    """

    def __init__(
        self,
        confidence_level: float | list[float] = 0.9,
        *,
        members: int | None = 1,
        hidden: int = 32,
        layers: int = 2,
        activation: str = "silu",
        dropout: float = 0.1,
        lr: float = 1e-2,
        weight_decay: float = 1e-3,
        epochs: int = 500,
        patience: int | None = 50,
        seed: int = 0,
        scaling: str = "standard",
        dtype: str = "float32",
        batch_size: int | None = None,
        fan_out: int = 10,
        device: str = "auto",
        precision: str = "highest",
        y_min: float | str | None = AUTO,
        y_max: float | str | None = AUTO,
        verbose: bool = False,
        **unknown: Any,
    ) -> None:
        check_setting_names(type(self).__name__, unknown, self._get_param_names())
        self.confidence_level = confidence_level
        self.members = members
        self.hidden = hidden
        self.layers = layers
        self.activation = activation
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.seed = seed
        self.scaling = scaling
        self.dtype = dtype
        self.batch_size = batch_size
        self.fan_out = fan_out
        self.device = device
        self.precision = precision
        self.y_min = y_min
        self.y_max = y_max
        self.verbose = verbose

    @abstractmethod
    def _head(self, generator: torch.Generator) -> nn.Module:
        """Make the head for ``self.hidden`` inputs."""

    @abstractmethod
    def _bounds(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Turn the net's outputs into lower and upper, (levels, members, nodes), scaled units."""

    @abstractmethod
    def _loss(self, outputs: Any, y: Tensor, weight: Tensor | None) -> StepResult:
        """Return what to minimise; ``weight`` is (members, nodes), or None for all nodes alike."""

    def _value(self, outputs: Any) -> Tensor:
        """Turn the net's outputs into point predictions, (members, nodes); default mid-interval."""
        lower, upper = self._bounds(outputs)
        return (lower[0] + upper[0]) / 2

    def _interval(self, outputs: Any, level: float) -> Bounds:
        """Turn the net's outputs into the nodes' intervals at a fitted level, in scaled units.

        ``epistemic`` is a share of the width. Bounds of members are averaged; each level's
        interval holds those of the levels inside it, and its prediction.
        """
        value = self._value(outputs).mean(dim=0)
        lower = upper = value
        for low, high, inner in zip(*self._bounds(outputs), self._trained_levels(), strict=True):
            if inner <= level:
                low, high = low.mean(dim=0), high.mean(dim=0)  # noqa: PLW2901
                lower = lower.minimum(low).minimum(high)
                upper = upper.maximum(low).maximum(high)
        return Bounds(value, lower, upper)

    def _members(self) -> int:
        """How many nets are trained side by side."""
        return 1 if self.members is None else self.members

    def _measured(self, loss: Tensor, outputs: Any, y: Tensor, weight: Tensor | None) -> StepResult:
        """Put coverage and mean width of the highest level beside a loss."""

        def shown() -> tuple[float, float]:
            level = self._trained_levels().index(self._shown_level())
            lower, upper = (bound[level] for bound in self._bounds(outputs))
            hits = covered(lower, upper, y.expand_as(lower)).to(y.dtype)
            wide = mean_over_all(width(lower, upper), weight)
            return mean_over_all(hits, weight).mean().item(), wide.mean().item()

        return StepResult(loss, shown)

    def _shown_level(self) -> float:
        """The trained level whose coverage and width the history shows."""
        return self._trained_levels()[-1]

    def _holds_out(self) -> bool:
        """Whether some given nodes are kept from the gradient."""
        return self.patience is not None

    def _trained_levels(self) -> list[float]:
        """Levels the net has bounds for, rising."""
        return check_levels(self.confidence_level)

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
        check_integer("members", self._members())
        super().check_settings()
        check_choice("scaling", self.scaling, SCALINGS)
        check_choice("dtype", self.dtype, DTYPES)
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("precision", self.precision, PRECISIONS)
        find_device(self.device)
        check_batch_size(self.batch_size)
        check_integer("fan_out", self.fan_out)
        if self._members() > 1 and self._members() % FOLDS:
            raise SettingError(f"members: expected 1 or a multiple of {FOLDS}, got {self.members}")
        check_integer("hidden", self.hidden)
        check_integer("layers", self.layers)
        check_limits(self.y_min, self.y_max)
        check_bool("verbose", self.verbose)
        if not check_non_negative("dropout", self.dropout) < 1:
            raise SettingError(f"dropout: expected a share from 0 to below 1, got {self.dropout!r}")
        self._training()

    def _training(self) -> TrainingSettings:
        return TrainingSettings(
            self.epochs,
            self.lr,
            self.weight_decay,
            self.patience,
            evaluate_every=LOOK_EVERY,
            verbose=self.verbose,
        )

    def _fit_on(self, data: Data, given: Tensor) -> Self:
        self.limits_ = Limits.find(self.y_min, self.y_max, data.y[given].numpy())
        data = copy.copy(data)
        data.x = best_layout(data.x)
        return super()._fit_on(data, given)

    def _limits(self) -> Limits:
        return self.limits_

    @property
    def y_min_(self) -> float | None:
        """The lower limit of bounds and predictions; None where there is none."""
        return None if math.isinf(self.limits_.low) else self.limits_.low

    @property
    def y_max_(self) -> float | None:
        """The upper limit of bounds and predictions; None where there is none."""
        return None if math.isinf(self.limits_.high) else self.limits_.high

    def _fit(self, data: Data, given: Tensor) -> None:
        self._fit_scalers(data, given)
        self._warn_of_left_out(data)
        self._train(self._see(data, given, self._held_out(data, given)))

    def _train(self, seen: Seen) -> None:
        """Train all members together, each without the nodes it holds out."""
        self.net_ = self._new_net(seen.graph.columns)
        if (weights := self.__dict__.get("_initial_weights")) is not None:
            try:
                self.net_.load_state_dict(weights)
            except RuntimeError as error:
                told = " ".join(str(error).split())  # torch writes several lines
                raise SettingError(f"start_from: the weights do not fit the net: {told}") from error
        device = find_device(self.device)
        self.net_.to(device)
        there = seen if seen.batch is not None else seen.to(device)
        trained = there.trained()
        steps = self._batch_steps(trained) if trained.batch else once(self._measure(trained))
        score = None
        if bool(seen.held_out.any()):
            watched = replace(seen, graph=there.graph)  # outputs are judged on the CPU
            if isinstance(self.net_.encoder, SageEncoder) and self.layers > 1:
                watched = watched.watched(self.hidden)
            score = partial(self._held_out_score, watched)
        with self._pace(seen.graph.nodes):
            self.history_ = train(self.net_, steps, self._training(), score)

    @contextmanager
    def _pace(self, nodes: int) -> Iterator[None]:
        """Run nets as exactly as asked for, on as many threads as are worth it."""
        numbers = nodes * self.hidden * self._members()
        with matmul_precision(self.precision), limit_threads(numbers):
            yield

    def _batch_steps(self, seen: Seen) -> Steps:
        """Return what makes an epoch's steps, on some given nodes each."""
        batch, given = seen.batch, len(seen.y)
        assert batch is not None
        sampler = Sampler(seen.graph, self.layers, self.fan_out)

        def steps(epoch: int) -> Iterator[StepResult]:
            draw = torch_rng(self.seed, f"neighbours {epoch} {distributed.rank()}")
            for part in deal(given, batch.size, self.seed, epoch):
                some = Seen(
                    sampler.batch(batch.positions[part], draw),
                    seen.y[part],
                    seen.weight[part],
                    seen.held_out[:, part],
                )
                yield self._measure(some.to(find_device(self.device)))()

        return steps

    def _measure(self, seen: Seen) -> Callable[[], StepResult]:
        """Return what runs the net on some given nodes and says what that costs."""
        trained = seen.weight * ~seen.held_out
        alike = None if bool((trained == 1).all()) else trained

        step = self._by_hand(seen, alike)
        if step is None:
            return step_of(
                self.net_, seen.graph, lambda outputs: self._loss(outputs, seen.y, alike)
            )

        def by_hand() -> StepResult:
            loss, outputs, gradient = step()
            return replace(self._measured(loss, outputs, seen.y, alike), gradient=gradient)

        return by_hand

    def _by_hand(self, seen: Seen, weight: Tensor | None) -> Callable[[], Stepped] | None:
        """Return a faster way to the same loss and gradient, where a method has one."""
        return None

    def _held_out_score(self, seen: Seen) -> float:
        """Winkler score of the members on the nodes each holds out, times α/2, over all levels."""
        watching = seen.held_out.any(dim=1)
        y = seen.y.expand(seen.held_out.shape)[watching]
        lower, upper = (bound[:, watching] for bound in self._bounds(self._run(seen)))
        alpha = 1 - torch.tensor(self._trained_levels(), dtype=y.dtype)[:, None, None]
        price = violation(lower, upper, y.expand_as(lower)) + alpha / 2 * width(lower, upper)
        return float(mean_over_all(price, (seen.weight * seen.held_out)[watching]).mean())

    def _predict(self, data: Data, level: float) -> Bounds:
        with torch.no_grad():
            found = self._interval(self._outputs(self._operands(data)), level)
        columns = (found.prediction, found.lower, found.upper)
        told = [self.y_scaler_.inverse(column) for column in columns]
        self._tell_cut(told[0])
        prediction, lower, upper = (self.limits_.cut(column) for column in told)
        share = None if found.epistemic is None else found.epistemic * (upper - lower)
        return Bounds(prediction, lower, upper, share, found.side)

    def _run(self, seen: Seen, run: Callable[[Operands], Any] | None = None) -> Any:
        """Run the net, as it stands, on all that a fit sees; outputs of the given nodes."""
        outputs = (run or self._outputs)(seen.graph)
        if seen.batch is None:
            return outputs
        positions = seen.batch.positions
        return each(outputs, lambda numbers: numbers[..., positions])

    def _outputs(self, graph: Operands) -> Any:
        """Run the net, as it stands, for bounds."""
        return self._once(graph)

    def _once(self, graph: Operands) -> Any:
        """Run the net, as it stands; outputs come back to the CPU."""
        graph = graph.to(next(self.net_.parameters()).device)
        apart = not self.net_.training and run_apart(graph, self._members(), self.hidden)
        with self._pace(graph.nodes):
            outputs = self.net_.by_members(graph) if apart else self.net_(graph)
        return each(outputs, Tensor.cpu)

    def _tell_cut(self, prediction: Tensor) -> None:
        """Warn where most predictions lie where targets cannot."""
        low, high = self.limits_.low, self.limits_.high
        cut = int(((prediction < low) | (prediction > high)).sum())
        if 2 * cut > len(prediction):
            warnings.warn(
                f"y_min, y_max: {cut:,} of {len(prediction):,} predictions were outside {low:g} to "
                f"{high:g} and are cut there; are the limits in the target's unit, and these nodes "
                f"like those of the fit?",
                QpignnWarning,
                stacklevel=4,
            )

    def _fit_scalers(self, data: Data, given: Tensor, transform: str = "none") -> None:
        if self.scaling == "range":
            self.x_scaler_, self.y_scaler_ = fit_range_scalers(data.x, data.y, given)
        elif self.scaling == "none":
            self.x_scaler_ = Scaler.nothing(data.x.shape[1])
            self.y_scaler_ = TargetScaler(transform, Scaler.nothing())
        else:
            self.x_scaler_ = fit_feature_scaler(data.x, given)
            self.y_scaler_ = fit_target_scaler(data.y, given, transform)

    def _warn_of_left_out(self, data: Data) -> None:
        """Warn of columns that vary, but not on the given nodes."""
        counts = count_nodes_that_differ(data.x, self.x_scaler_)
        if not counts:
            return
        names = data.get("feature_names")
        columns = [column if names is None else names[column] for column in counts]
        warnings.warn(
            f"feature columns {quoted(columns)}: constant on the labelled nodes, with other values "
            f"on up to {plural(max(counts.values()), 'other node')}. Nothing can be learnt from "
            f"such columns, and they are left out; if the target depends on one, intervals cover "
            f"less on those nodes: label some of them",
            QpignnWarning,
            stacklevel=6,
        )

    def _new_net(self, columns: int) -> IntervalNet:
        generator = torch_rng(self.seed, "weights")
        encoder = SageEncoder(
            columns,
            self.hidden,
            self.layers,
            generator=generator,
            dropout=self.dropout,
            activation=self.activation,
            members=self._members(),
        )
        return IntervalNet(encoder, self._head(generator)).to(DTYPES[self.dtype])

    def _see(self, data: Data, given: Tensor, held_out: Tensor) -> Seen:
        """Return what a fit sees of the graph, in the net's units."""
        dtype = DTYPES[self.dtype]
        order = held_out.all(dim=0).to(torch.uint8).argsort(stable=True)
        nodes, held_out = given.nonzero().flatten()[order], held_out[:, order]
        y = self.y_scaler_.transform(data.y[nodes], dtype)
        weight = data.get("node_weight")
        counts = torch.ones_like(y) if weight is None else weight[nodes].to(dtype)
        size = chosen_size(
            self.batch_size,
            nodes=data.x.shape[0],
            given=len(nodes),
            hidden=self.hidden,
            members=self._members(),
        )
        size = recorded_choice("batch size", size)
        if size is None:
            return Seen(self._operands(data, nodes), y, counts, held_out)
        return Seen(self._operands(data), y, counts, held_out, Batch(size, nodes))

    def _held_out(self, data: Data, given: Tensor) -> Tensor:
        """Return (members, given nodes): which nodes a member is not trained on.

        None where nothing is learnt from them, nor where there are too few to spare any. A single
        member holds out the graph's ``val_mask`` or a fifth; several take turns, a fifth each.
        """
        if not self._holds_out():
            return torch.zeros(self._members(), int(given.sum()), dtype=torch.bool)
        chosen = data.get("val_mask")
        if self._members() > 1 or chosen is None or not bool((chosen & given).any()):
            return fold_turns(int(given.sum()), self._members(), self.seed)
        if bool((chosen & given == given).all()):
            raise SplitError(
                f"expected nodes to train on, got {int(given.sum())} given nodes that are all in "
                f"the val_mask; give train nodes too"
            )
        held_out: Tensor = chosen[given].unsqueeze(0)
        return held_out

    def _operands(self, data: Data, first: Tensor | None = None) -> Operands:
        x, dtype, offset = best_layout(data.x), DTYPES[self.dtype], None
        if is_sparse(x):
            x, offset = self.x_scaler_.transform_sparse(x, dtype)
        else:
            x = self.x_scaler_.transform(x, dtype)
        weight = data.get("edge_weight")
        return prepare(x, data.edge_index, weight, first=first, offset=offset)

    def _state(self) -> dict[str, Tensor]:
        state = {f"net.{name}": tensor for name, tensor in self.net_.state_dict().items()}
        for name, scaler in (("x_scaler", self.x_scaler_), ("y_scaler", self.y_scaler_)):
            state |= {f"{name}.{part}": tensor for part, tensor in scaler.state().items()}
        if AUTO in (self.y_min, self.y_max):  # else the settings say it all
            state["limits"] = self.limits_.state()
        return state

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        weights = part_of(state, "net")
        if self.layers > len(weights):
            raise ValueError(f"expected {self.layers} layers, got {len(weights)} tensors")
        self.net_ = restored(lambda: self._new_net(fitted.columns), weights)
        self.x_scaler_ = Scaler.from_state(part_of(state, "x_scaler"), fitted.columns)
        self.y_scaler_ = TargetScaler.from_state(part_of(state, "y_scaler"))
        self.limits_ = Limits(*settings_range(self.y_min, self.y_max))
        if AUTO in (self.y_min, self.y_max):
            self.limits_ = Limits.from_state(state["limits"], self.y_min, self.y_max)

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        """Make a method from stored settings; one saved when it had no limits has none."""
        return cls(**{"y_min": None, "y_max": None, **settings})


def restored(make: Callable[[], IntervalNet], weights: dict[str, Tensor]) -> IntervalNet:
    """Make a net with stored weights, if they are its own; only then does it take memory."""
    with torch.device("meta"):
        check_tensors(weights, make().state_dict())
    net = make()
    net.load_state_dict(weights)
    return net.eval()


def part_of(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the tensors under a name, without it."""
    prefix = f"{name}."
    return {
        key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)
    }
