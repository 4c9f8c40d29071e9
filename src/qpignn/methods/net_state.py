"""What a fit leaves in a method on nets: kept after the fit, saved as tensors, and restored."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from qpignn.calibration.width_scaling import WidthScaling
from qpignn.data.scaling import Scaler, TargetScaler
from qpignn.encoders.catalog import ENCODERS
from qpignn.intervals import check_levels
from qpignn.io.tensors import check_scalar
from qpignn.methods.fitted import Fitted
from qpignn.methods.known_neighbours import KnownNeighbours
from qpignn.methods.limits import AUTO, Limits, settings_range
from qpignn.methods.net_training import FittedNets, part_of, restored_net
from qpignn.methods.novelty import Novelty
from qpignn.methods.scaled_data import Scalers
from qpignn.nn.interval_net import IntervalNet
from qpignn.tasks.base import FitInputs
from qpignn.training.loop import keeps_interrupted

if TYPE_CHECKING:
    from qpignn.methods.net import NetMethod


def keep(
    method: NetMethod, net: IntervalNet, scalers: Scalers, scalings: dict[float, WidthScaling]
) -> None:
    """Store in a method what its nets have learnt.

    Args:
        method: the method that is being fitted or loaded.
        net: the trained members.
        scalers: of features and target.
        scalings: of widths, by level.
    """
    method.net_, method.scalers_, method.scalings_ = net, scalers, scalings
    method.parameters_ = sum(weight.numel() for weight in net.parameters())
    method.x_scaler_, method.y_scaler_, method.limits_ = scalers.x, scalers.y, scalers.limits
    method.y_min_, method.y_max_ = scalers.limits.as_settings()


def keep_fit(method: NetMethod, fitted: FittedNets, inputs: FitInputs) -> int | None:
    """Store in a method what a fit has learnt, and fit its second stage.

    Args:
        method: the method that is being fitted.
        fitted: what was learnt.
        inputs: of the fit.

    Returns:
        The number of units that determined the widths.
    """
    keep(method, fitted.net, fitted.scalers, fitted.scalings)
    method.history_, method.known_neighbours_ = fitted.history, None
    wanted = method.neighbours == "auto" and fitted.outputs is not None
    if wanted and not fitted.history.interrupted:
        trained, interrupted = len(fitted.history), False
        try:
            method.known_neighbours_, history = KnownNeighbours.fit(method, inputs, fitted)
            if history is not None:
                trained, interrupted = trained + len(history), history.interrupted
        except KeyboardInterrupt:  # before an epoch was done: the nets are kept
            if not keeps_interrupted():
                raise
            interrupted = True
        if interrupted:
            method.history_.interrupt(trained, 2 * method.epochs)
    return fitted.calibrated_on


def state_of(method: NetMethod) -> dict[str, Tensor]:
    """Return everything that a method on nets has learnt, as tensors.

    Args:
        method: a fitted method.
    """
    state = {f"net.{name}": tensor for name, tensor in method.net_.state_dict().items()}
    state |= method.scalers_.state()
    state |= {name: getattr(method, f"{name}_") for name in method.saved_numbers}
    if method.known_neighbours_ is not None:
        second = method.known_neighbours_.state()
        state |= {f"second.{name}": part for name, part in second.items()}
    if method.novelty_ is not None:
        state |= {f"novelty.{name}": part for name, part in method.novelty_.state().items()}
    if AUTO in (method.y_min, method.y_max):  # else the settings say it all
        state["limits"] = method.limits_.state()
    if method.scalings_:
        rows = [[level, *astuple(scaling)] for level, scaling in method.scalings_.items()]
        state["stretches"] = torch.tensor(rows, dtype=torch.float64)
    return state


def restore_state(method: NetMethod, state: dict[str, Tensor], fitted: Fitted) -> None:
    """Take back what :func:`state_of` returned.

    Args:
        method: the method that is being loaded.
        state: as read from a file; unchecked.
        fitted: what the fit was made with.

    Raises:
        ValueError: if the tensors are not those of such a fit.
    """
    weights = part_of(state, "net")
    if method.encoder in ENCODERS and method.layers > len(weights):
        raise ValueError(f"expected {method.layers} layers, got {len(weights)} tensors")
    x_scaler = Scaler.from_state(part_of(state, "x_scaler"), fitted.columns)
    y_scaler = TargetScaler.from_state(part_of(state, "y_scaler"))
    limits = Limits(*settings_range(method.y_min, method.y_max))
    if AUTO in (method.y_min, method.y_max):
        limits = Limits.from_state(state["limits"], method.y_min, method.y_max)
    rows = state["stretches"].tolist() if "stretches" in state else []
    scalings = {level: WidthScaling(*numbers) for level, *numbers in rows}
    if scalings and [*scalings] != check_levels(method.confidence_level):
        raise ValueError("stretches: expected one for every level of the fit, got others")
    net = restored_net(lambda: method._new_net(fitted.columns, fitted.edge_columns), weights)
    keep(method, net, Scalers(x_scaler, y_scaler, limits), scalings)
    second = part_of(state, "second")
    if second and method.neighbours == "auto":
        levels = check_levels(method.confidence_level)
        method.known_neighbours_ = KnownNeighbours.from_state(method, second, levels)
    if method.novelty == "widen":
        method.novelty_ = Novelty.from_state(part_of(state, "novelty"), fitted.columns)
    for name in method.saved_numbers:
        setattr(method, f"{name}_", check_scalar(state[name]))
