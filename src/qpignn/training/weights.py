"""All weights of a net in one vector: one optimiser call per step, one copy to keep the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

FUSED_ADAM = getattr(torch, "_fused_adam_", None)
"""Adam's kernel: private API of torch; None in a version without it."""


class FlatWeights:
    """Adam over the weights of a net, which become views of one vector, as do their gradients.

    On small graphs an optimiser call per weight costs as much as the arithmetic of a step.

    Args:
        weights: parameters of the net.
        lr: learning rate.
        weight_decay: L2 penalty.

    Attributes:
        vector: (parameters,) the weights.
        gradient: (parameters,) their gradient.
    """

    def __init__(self, weights: Iterable[nn.Parameter], lr: float, weight_decay: float) -> None:
        weights = list(weights)
        self.vector = torch.cat([w.detach().flatten() for w in weights])
        self.gradient = torch.zeros_like(self.vector)
        start = 0
        for weight in weights:
            part = slice(start, start + weight.numel())
            weight.data = self.vector[part].view_as(weight)
            weight.grad = self.gradient[part].view_as(weight)
            start += weight.numel()
        self._mean, self._square = torch.zeros_like(self.gradient), torch.zeros_like(self.gradient)
        self._steps = torch.zeros((), device=self.vector.device)
        moments: list[list[Tensor]] = [[self._mean], [self._square], [], [self._steps]]
        self._tensors: Any = ([self.vector], [self.gradient], *moments)
        self._options: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay, "eps": 1e-8}
        self._options |= {"beta1": 0.9, "beta2": 0.999, "amsgrad": False, "maximize": False}

    def clear_gradient(self) -> None:
        """Set the gradient to zero."""
        self.gradient.zero_()

    def step(self) -> None:
        """Take one step of Adam along the gradient.

        The kernel is called directly where torch has it: the public function calls the same one,
        but its checks cost 4 to 5 % of a training step of one net on 1,000 nodes.
        """
        if FUSED_ADAM is None:
            adam(*self._tensors, **self._options | {"fused": True})
        else:
            self._steps += 1
            FUSED_ADAM(*self._tensors, **self._options)

    def state(self) -> dict[str, Tensor]:
        """Return the weights and the state of Adam: the tensors themselves, not copies."""
        return {
            "vector": self.vector,
            "mean": self._mean,
            "square": self._square,
            "steps": self._steps,
        }

    def restore_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what :meth:`state` returned; the weights of the net stay views of the vector.

        Args:
            state: may contain other tensors as well.
        """
        for name, target in self.state().items():
            _copy_exactly(state[name], target)

    def copy(self) -> Tensor:
        """Return a copy of the weights, (parameters,)."""
        return self.vector.clone()

    def restore(self, vector: Tensor) -> None:
        """Replace the weights.

        Args:
            vector: (parameters,) as returned by :meth:`copy`.
        """
        _copy_exactly(vector, self.vector)


def _copy_exactly(values: Tensor, target: Tensor) -> None:
    if (values.shape, values.dtype) != (target.shape, target.dtype):  # copy_ would convert them
        raise ValueError(
            f"expected {tuple(target.shape)} of {target.dtype}, "
            f"got {tuple(values.shape)} of {values.dtype}"
        )
    target.copy_(values)
