"""How the nets of a method are trained, calibrated and run."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from qpignn.calibration.conformal import enough_for
from qpignn.calibration.width_scaling import UNBOUNDED, Floats, WidthScaling
from qpignn.data.matrix import best_layout, is_sparse
from qpignn.data.scaling import Scaler
from qpignn.encoders.catalog import encoder_class
from qpignn.encoders.inputs import GraphInputs
from qpignn.errors import QpignnWarning, SettingError, plural
from qpignn.intervals import check_levels
from qpignn.io.tensors import check_tensors
from qpignn.methods.limits import Limits
from qpignn.methods.scaled_data import DTYPES, Scalers
from qpignn.methods.training_set import (
    Batch,
    TrainingSet,
    batch_positions,
    chosen_size,
    hold_out,
)
from qpignn.nn.interval_net import IntervalNet
from qpignn.objectives.joint import covered, mean_over_all, width
from qpignn.runtime import distributed
from qpignn.runtime.device import find_device, limit_threads, matmul_precision
from qpignn.runtime.randomness import torch_rng
from qpignn.tasks.base import FitInputs
from qpignn.training.checkpoint import recorded_choice
from qpignn.training.fused_steps import step_of
from qpignn.training.history import History
from qpignn.training.loop import StepResult, Steps, once, train
from qpignn.training.state import TrainingSettings

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from qpignn.methods.net import NetMethod

MEMBERS = 10  # nets of a method that calibrates itself on held-out units
LOOK_EVERY = 5  # epochs: scoring held-out units costs half a step


@dataclass(frozen=True)
class FittedNets:
    """What a fit of nets has learnt.

    Attributes:
        scalers: of features and target.
        net: the trained members.
        history: of the training.
        scalings: of widths, by wanted level; empty for a method without a calibrator.
        price: of the held-out intervals, summed over levels; 0 where nothing was calibrated.
        calibrated_on: number of held-out units, None for a method without a calibrator.
        outputs: of the members for the given units, on which widths were calibrated.
        training_set: what was trained on.
        heavy_tailed: whether a few targets are far larger than the others.
    """

    scalers: Scalers
    net: IntervalNet
    history: History
    scalings: dict[float, WidthScaling]
    price: float
    calibrated_on: int | None
    outputs: Any
    training_set: TrainingSet
    heavy_tailed: bool


def member_count(method: NetMethod) -> int:
    """Return how many nets are trained side by side.

    Args:
        method: its ``members``, if not None; else ten if it has a calibrator.
    """
    if method.members is not None:
        return method.members
    return 1 if method.calibrator() is None else MEMBERS


def training_settings(method: NetMethod) -> TrainingSettings:
    """Return the settings of the training loop; their constructor checks them.

    Args:
        method: whose settings.
    """
    return TrainingSettings(
        method.epochs,
        method.lr,
        method.weight_decay,
        method.patience,
        evaluate_every=LOOK_EVERY,
        verbose=method.verbose,
    )


def prepare_training(
    method: NetMethod, inputs: FitInputs, transform: str = "none"
) -> tuple[Scalers, TrainingSet]:
    """Scale features and targets, and choose the units that members hold out.

    Args:
        method: the method to be fitted.
        inputs: of the fit.
        transform: a rising function of the target, see :data:`qpignn.data.scaling.TRANSFORMS`.

    Returns:
        Scalers and training set.
    """
    data, given, task = copy.copy(inputs.data), inputs.given, inputs.task
    data.x = best_layout(data.x)
    limits = Limits.find(method.y_min, method.y_max, inputs.targets.numpy())
    scalers = Scalers.fit(data, given, method.scaling, limits, transform)
    members = member_count(method)
    units, held_out = given_units(method, inputs)
    y = scalers.y.transform(task.targets(data)[units], DTYPES[method.dtype])
    weight = task.weights(data)
    counts = torch.ones_like(y) if weight is None else weight[units].to(y.dtype)
    size = chosen_size(
        method.batch_size,
        nodes=data.x.shape[0],
        given=len(units),
        hidden=method.hidden,
        members=members,
    )
    if method.aggregation not in encoder_class(method.encoder).sampled_aggregations:
        size = None  # this encoder runs on whole graphs only
    size = recorded_choice("batch size", size)
    batch = None if size is None else Batch(size, units)
    graph = encoder_inputs(method, data, scalers.x, units if batch is None else None)
    return scalers, TrainingSet(graph, y, counts, held_out, batch)


def encoder_inputs(
    method: NetMethod, data: Data, scaler: Scaler | None = None, first: Tensor | None = None
) -> GraphInputs:
    """Return the constants of a graph for a method's encoder.

    Args:
        method: whose encoder.
        data: a checked graph.
        scaler: of the features; default that of the fit.
        first: positions of rows that come first.
    """
    scaler = method.scalers_.x if scaler is None else scaler
    x, dtype, offset = best_layout(data.x), DTYPES[method.dtype], None
    if is_sparse(x):
        x, offset = scaler.transform_sparse(x, dtype)
    else:
        x = scaler.transform(x, dtype)
    return encoder_class(method.encoder).prepare(
        x,
        data.edge_index,
        data.get("edge_weight"),
        edge_attr=data.get("edge_attr"),
        first=first,
        offset=offset,
        aggregation=method.aggregation,
    )


def given_units(method: NetMethod, inputs: FitInputs) -> tuple[Tensor, Tensor]:
    """Return the positions of the given units, and which of them each member holds out.

    Args:
        method: the method to be fitted.
        inputs: of the fit.

    Returns:
        (given,), those that no member is trained on last; and (members, given).
    """
    members, given = member_count(method), inputs.given
    if method.patience is not None or method.calibrator() is not None:
        held_out = hold_out(inputs, members, method.seed)
    else:
        held_out = torch.zeros(members, int(given.sum()), dtype=torch.bool)
    order = held_out.all(dim=0).to(torch.uint8).argsort(stable=True)
    return given.nonzero().flatten()[order], held_out[:, order]


def fit_nets(
    method: NetMethod,
    scalers: Scalers,
    training_set: TrainingSet,
    initial_weights: Mapping[str, Tensor] | None = None,
    *,
    heavy_tailed: bool = False,
) -> FittedNets:
    """Train a method's nets and calibrate their widths at every wanted level.

    Args:
        method: the method to be fitted; it is not changed.
        scalers: of features and target.
        training_set: what to train on.
        initial_weights: where training starts; default random weights.
        heavy_tailed: whether a few targets are far larger than the others.

    Returns:
        Everything that was learnt.
    """
    net, history = train_nets(method, training_set, initial_weights)
    outputs = None
    if method.calibrator() is not None and bool(training_set.held_out.any()):
        with torch.no_grad():
            outputs = training_set.of_given(method._run(net, training_set.graph))
    scalings, price = _calibrated(method, scalers, training_set, outputs, heavy_tailed)
    calibrated_on = int(training_set.held_out.any(dim=0).sum()) if scalings else None
    return FittedNets(
        *(scalers, net, history, scalings, price, calibrated_on),
        *(outputs, training_set, heavy_tailed),
    )


def train_nets(
    method: NetMethod,
    training_set: TrainingSet,
    initial_weights: Mapping[str, Tensor] | None = None,
) -> tuple[IntervalNet, History]:
    """Train all members together, each without the units it holds out.

    Args:
        method: whose nets; it is not changed.
        training_set: what to train on.
        initial_weights: where training starts; default random weights.

    Returns:
        The trained net and what happened.

    Raises:
        SettingError: if the initial weights are not those of the net.
    """
    net = method._new_net(training_set.graph.columns, training_set.graph.edge_columns)
    if initial_weights is not None:
        try:
            net.load_state_dict(initial_weights)
        except RuntimeError as error:
            message = " ".join(str(error).split())  # torch writes several lines
            raise SettingError(
                f"initial_weights: the weights do not fit the net: {message}"
            ) from error
    device = find_device(method.device)
    net.to(device)
    there = training_set if training_set.batch is not None else training_set.to(device)
    trained = there.trained()
    whole = trained.batch is None
    steps = once(measure(method, net, trained)) if whole else batch_steps(method, net, trained)
    score = None
    if bool(training_set.held_out.any()):
        watched = replace(training_set, graph=there.graph)  # outputs are scored on the CPU
        score = partial(method.held_out_score, net, watched.watched(net.encoder))
    with threads_and_precision(method, training_set.graph.nodes):
        history = train(net, steps, training_settings(method), score)
    for weight in net.parameters():  # aligned in memory as after loading, for the same bits
        weight.data = weight.data.clone()
    return net, history


def batch_steps(method: NetMethod, net: IntervalNet, training_set: TrainingSet) -> Steps:
    """Return a function that yields an epoch's steps, on some given units each.

    Args:
        method: whose loss is minimised.
        net: to be trained.
        training_set: with a batch size.

    Returns:
        From the number of an epoch to its steps.
    """
    batch, given = training_set.batch, len(training_set.y)
    assert batch is not None
    sampler = net.encoder.sampler(training_set.graph, method.fan_out)
    assert sampler is not None
    units = _training_units(training_set)

    def steps(epoch: int) -> Iterator[StepResult]:
        draw = torch_rng(method.seed, f"neighbours {epoch} {distributed.rank()}")
        for part in batch_positions(given, batch.size, method.seed, epoch):
            some = TrainingSet(
                sampler.batch(batch.positions[part], draw),
                training_set.y[part],
                training_set.weight[part],
                training_set.held_out[:, part],
            )
            yield measure(method, net, some.to(find_device(method.device)), units)()

    return steps


def _training_units(training_set: TrainingSet) -> Tensor:
    """Return the number of units that each member is trained on, (members,)."""
    return (training_set.weight * ~training_set.held_out > 0).sum(dim=1)


def measure(
    method: NetMethod, net: IntervalNet, training_set: TrainingSet, units: Tensor | None = None
) -> Callable[[], StepResult]:
    """Return a function that runs the net on some given units and returns their loss.

    Args:
        method: whose loss is minimised.
        net: to be trained.
        training_set: the units of the step.
        units: (members,), number of units that each member is trained on in all steps together;
            default those of ``training_set``.

    Returns:
        One training step.
    """
    trained = training_set.weight * ~training_set.held_out
    weight = None if bool((trained == 1).all()) else trained
    count = _training_units(training_set) if units is None else units

    step = method.fused_step(net, training_set, weight)
    if step is None:

        def cost(outputs: Any) -> StepResult:
            loss = method.compute_loss(outputs, training_set.y, weight)
            penalty = method.weight_penalty(net, count)
            if penalty is not None:
                loss = loss + penalty
            return measured(method, loss, outputs, training_set.y, weight)

        return step_of(net, training_set.graph, cost)

    def fused() -> StepResult:
        loss, outputs, gradient = step()
        return measured(method, loss, outputs, training_set.y, weight, gradient=gradient)

    return fused


def measured(
    method: NetMethod,
    loss: Tensor,
    outputs: Any,
    y: Tensor,
    weight: Tensor | None,
    *,
    gradient: Callable[[], None] | None = None,
) -> StepResult:
    """Return a loss together with coverage and mean width of the highest wanted level.

    Args:
        method: whose bounds are shown.
        loss: of a step.
        outputs: of the net.
        y: (units,), targets in the nets' units.
        weight: (members, units), or None where all units count the same.
        gradient: computes the gradients of the weights; default autograd.
    """

    def shown() -> tuple[float, float]:
        wanted = method.trained_level(check_levels(method.confidence_level)[-1])
        level = method.trained_levels().index(wanted)
        lower, upper = (bound[level] for bound in method.compute_bounds(outputs))
        hits = covered(lower, upper, y.expand_as(lower)).to(y.dtype)
        mean_width = mean_over_all(width(lower, upper), weight)
        return mean_over_all(hits, weight).mean().item(), mean_width.mean().item()

    return StepResult(loss, shown, gradient)


def _calibrated(
    method: NetMethod,
    scalers: Scalers,
    training_set: TrainingSet,
    outputs: Any,
    heavy_tailed: bool,
) -> tuple[dict[float, WidthScaling], float]:
    """Return the scaling of widths at every wanted level, and the sum of their prices.

    With fewer held-out units than a level needs, its bounds are infinite, and a warning is given.
    """
    calibrator = method.calibrator()
    if calibrator is None:
        return {}, 0.0
    held_out, y = training_set.held_out.numpy(), training_set.y.double().numpy()
    scored = int(held_out.any(axis=0).sum())

    def unit(z: Floats) -> Any:
        return scalers.in_target_unit(torch.from_numpy(z)).numpy()

    scalings, total = {}, 0.0
    for level in check_levels(method.confidence_level):
        if scored < enough_for(level):
            warnings.warn(
                f"{plural(scored, 'held-out node')} of {len(y):,} labelled: too few to "
                f"calibrate a level of {level:g}, which needs {enough_for(level)}; its intervals "
                f"are infinite. Label more nodes, or ask for a lower level",
                QpignnWarning,
                stacklevel=6,
            )
            scalings[level] = UNBOUNDED
            continue
        members = method.member_outputs(outputs, level)
        scalings[level], price = calibrator.fit(
            members, held_out, y, level, unit=unit, heavy_tailed=heavy_tailed
        )
        total += price
    return scalings, total


@contextmanager
def threads_and_precision(method: NetMethod, nodes: int) -> Iterator[None]:
    """Run nets with the wanted precision, on as many threads as are worth it.

    Args:
        method: its settings.
        nodes: of the graph.

    Yields:
        Nothing.
    """
    numbers = nodes * method.hidden * member_count(method)
    with matmul_precision(method.precision), limit_threads(numbers):
        yield


def restored_net(make: Callable[[], IntervalNet], weights: dict[str, Tensor]) -> IntervalNet:
    """Return a net with stored weights; memory is taken only if they are the net's.

    Args:
        make: returns a new net.
        weights: as read from a file; unchecked.
    """
    with torch.device("meta"):
        check_tensors(weights, make().state_dict())
    net = make()
    net.load_state_dict(weights)
    return net.eval()


def part_of(state: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, without the prefix.

    Args:
        state: tensors by name.
        name: the prefix, without its dot.
    """
    parts = ((key.partition("."), value) for key, value in state.items())
    return {rest: value for (prefix, _, rest), value in parts if prefix == name}
