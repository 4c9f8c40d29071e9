"""Encoders: a graph in, one hidden vector per node and member out."""

from __future__ import annotations

from qpignn.encoders.activations import ACTIVATIONS, Activation
from qpignn.encoders.base import Encoder
from qpignn.encoders.catalog import ENCODERS, build_encoder
from qpignn.encoders.gat import GatEncoder
from qpignn.encoders.gcn import GcnEncoder
from qpignn.encoders.gin import GinEncoder
from qpignn.encoders.mlp import MlpEncoder
from qpignn.encoders.pyg import PygEncoder
from qpignn.encoders.sage import SageEncoder

__all__ = [
    "ACTIVATIONS",
    "ENCODERS",
    "Activation",
    "Encoder",
    "GatEncoder",
    "GcnEncoder",
    "GinEncoder",
    "MlpEncoder",
    "PygEncoder",
    "SageEncoder",
    "build_encoder",
]
