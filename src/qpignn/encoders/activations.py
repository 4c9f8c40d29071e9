"""Activations, each declared once: the function and its gradient.

An entry of :data:`ACTIVATIONS` works in every encoder, in the plain and in the fused form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

aten = torch.ops.aten


class Activation(NamedTuple):
    """An activation h = f(z) and its gradient.

    Attributes:
        function: returns f(z), differentiable by autograd; may overwrite z.
        backward: overwrites ∂L/∂h by ∂L/∂z = ∂L/∂h · f′. Its second argument is the tensor that
            ``function`` was given, as it was left: z, or f(z) where ``function`` overwrites it.
    """

    function: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor, Tensor], None]


def _silu_backward(gradient: Tensor, z: Tensor) -> None:
    aten.silu_backward.grad_input(gradient, z, grad_input=gradient)


def _relu_backward(gradient: Tensor, h: Tensor) -> None:
    aten.threshold_backward.grad_input(gradient, h, 0, grad_input=gradient)


ActivationName = Literal["silu", "relu"]
ACTIVATIONS: dict[str, Activation] = {
    "silu": Activation(aten.silu.default, _silu_backward),
    "relu": Activation(torch.relu_, _relu_backward),
}
"""The paper uses ReLU; SiLU is smooth, and so are the functions it fits."""
