"""Encoders by name, module, factory or object path."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from qpignn.encoders.base import AGGREGATIONS, NORMS, Encoder, LayeredEncoder
from qpignn.encoders.gat import GatEncoder
from qpignn.encoders.gcn import GcnEncoder
from qpignn.encoders.gin import GinEncoder
from qpignn.encoders.mlp import MlpEncoder
from qpignn.encoders.pyg import ModuleFactory, PygEncoder
from qpignn.encoders.sage import SageEncoder
from qpignn.errors import (
    ModelFileError,
    SettingError,
    UnknownNameError,
    brief,
    check_bool,
    check_choice,
)
from qpignn.runtime.plugins import is_object_path, load_object

ENCODERS: dict[str, type[LayeredEncoder]] = {
    "sage": SageEncoder,
    "gcn": GcnEncoder,
    "gin": GinEncoder,
    "gat": GatEncoder,
    "mlp": MlpEncoder,
}
EncoderSetting = str | nn.Module | ModuleFactory
"""A name in :data:`ENCODERS`, a module, a function that makes one, or an object path."""


def encoder_class(encoder: EncoderSetting) -> type[Encoder]:
    """Return the class of an encoder, which prepares graphs.

    Args:
        encoder: the setting ``encoder`` of a method.
    """
    return ENCODERS.get(encoder, PygEncoder) if isinstance(encoder, str) else PygEncoder


def uses_edge_features(encoder: EncoderSetting) -> bool:
    """Return whether an encoder uses ``edge_attr``; of an unknown function, True is assumed.

    Args:
        encoder: the setting ``encoder`` of a method.
    """
    kind = encoder_class(encoder)
    if kind is not PygEncoder:
        return kind.uses_edge_features
    source: Any = load_object(encoder) if isinstance(encoder, str) else encoder
    forward = getattr(source, "forward", None)
    return forward is None or "edge_attr" in inspect.signature(forward).parameters


def build_encoder(
    encoder: EncoderSetting,
    inputs: int,
    hidden: int,
    layers: int,
    *,
    generator: torch.Generator,
    dropout: float = 0.0,
    activation: str = "silu",
    aggregation: str = "mean",
    residual: bool = False,
    norm: str = "none",
    members: int = 1,
    edge_columns: int = 0,
) -> Encoder:
    """Build an encoder with new weights.

    Args:
        encoder: a name in :data:`ENCODERS`; a module, which is copied and never changed; a class
            or function that makes a module of ``(inputs, hidden)``; or the object path of one of
            these, such as ``"mine.py:Transformer"``.
        inputs: number of input features.
        hidden: length of the hidden vectors.
        layers: number of layers; a user's module has its own.
        generator: draws initial weights and dropout's masks.
        dropout: share of hidden units that are zeroed while training.
        activation: of named encoders.
        aggregation: how neighbours are combined; the graph is prepared with the same.
        residual: whether layers add their inputs to their outputs.
        norm: ``none`` or ``layer``.
        members: number of members.
        edge_columns: number of edge features, for encoders that use them.

    Returns:
        The encoder.

    Raises:
        SettingError: the settings do not fit the encoder.
    """
    check_encoder(encoder, aggregation=aggregation, residual=residual, norm=norm)
    shared: dict[str, Any] = {"generator": generator, "dropout": dropout, "members": members}
    if not (isinstance(encoder, str) and encoder in ENCODERS):
        source: Any = load_object(encoder) if isinstance(encoder, str) else encoder
        return PygEncoder(source, inputs, hidden, **shared)
    shared |= {"activation": activation, "residual": residual, "norm": norm}
    shared |= {"edge_columns": edge_columns}
    return ENCODERS[encoder](inputs, hidden, layers, **shared)


def check_encoder(
    encoder: EncoderSetting,
    *,
    aggregation: str = "mean",
    residual: bool = False,
    norm: str = "none",
    batch_size: int | None = None,
) -> None:
    """Raise if settings of an encoder are outside the values they may take.

    Args:
        encoder: the setting ``encoder``.
        aggregation: how neighbours are combined.
        residual: whether layers add their inputs to their outputs.
        norm: ``none`` or ``layer``.
        batch_size: of minibatches; None for whole graphs.

    Raises:
        SettingError: a value, or a combination of values, that there is not.
        UnknownNameError: a name that is not in the catalog.
    """
    named = isinstance(encoder, str) and encoder in ENCODERS
    if not named and isinstance(encoder, str) and not is_object_path(encoder):
        raise UnknownNameError("encoder", encoder, ENCODERS)
    if not (isinstance(encoder, str | nn.Module) or callable(encoder)):
        raise SettingError(
            f"encoder: expected one of {', '.join(ENCODERS)}, a torch.nn.Module, a class or "
            f'function that makes one, or "file.py:Name", got {brief(encoder)}'
        )
    check_choice("aggregation", aggregation, AGGREGATIONS)
    check_bool("residual", residual)
    check_choice("norm", norm, NORMS)
    supported, name = encoder_class(encoder).aggregations, encoder_description(encoder)
    if aggregation not in supported:
        raise SettingError(
            f"aggregation: expected {' or '.join(supported)} with encoder {name!r}, got "
            f"{aggregation!r}; only sage supports others"
        )
    if batch_size is not None and aggregation not in encoder_class(encoder).sampled_aggregations:
        raise SettingError(
            f"batch_size: expected None with encoder {name!r} and aggregation "
            f"{aggregation!r}, which run on whole graphs only, got {batch_size}; leave it out, or "
            f"use sage, gcn, gin or mlp"
        )
    if not named and (residual or norm != "none"):
        raise SettingError(
            f"residual and norm: expected False and 'none' with a module of your own, got "
            f"{residual} and {norm!r}; put them into {name}"
        )


def encoder_description(encoder: object) -> str:
    """Return what a model file stores of an encoder: its name, never its code or weights.

    Args:
        encoder: a name, a module, a class or a function.
    """
    if isinstance(encoder, str):
        return encoder
    kind = type(encoder) if isinstance(encoder, nn.Module) else encoder
    return f"{kind.__module__}:{getattr(kind, '__qualname__', type(kind).__qualname__)}"


def encoder_of_file(stored: object, given: EncoderSetting | None, place: object) -> EncoderSetting:
    """Return the encoder of a stored model; code is never run because a file names it.

    Args:
        stored: what the model file says.
        given: the encoder that the caller of ``load`` gives; default none.
        place: the folder, for messages.

    Raises:
        ModelFileError: the encoder is a user's own and was not given, or was given for a model
            with a named one.
    """
    named = isinstance(stored, str) and stored in ENCODERS
    if given is None and named:
        return str(stored)
    if given is None:
        raise ModelFileError(
            f"{place}: expected the encoder {brief(stored)} it was fitted with, got none: a model "
            f"folder holds weights and no code; give it as load(folder, encoder=...)"
        )
    if named and given != stored:
        raise ModelFileError(
            f"{place}: expected the encoder {stored!r} it was fitted with, got {brief(given)}; "
            f"leave encoder out"
        )
    return given
