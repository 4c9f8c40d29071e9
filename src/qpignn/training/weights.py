"""All weights of a net in one vector: one optimiser call a step, one copy to keep the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn


class FlatWeights:
    """Adam over a net's weights, which become views of one vector (as do their gradients).

    On small graphs an optimiser call per weight costs as much as the arithmetic of the step.
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
        self._lr, self._weight_decay = lr, weight_decay
        self._mean, self._square = torch.zeros_like(self.gradient), torch.zeros_like(self.gradient)
        self._steps = torch.zeros((), device=self.vector.device)

    def clear_gradient(self) -> None:
        """Start a step."""
        self.gradient.zero_()

    def step(self) -> None:
        """Move along the gradient that ``backward`` has filled in.

        Adam's kernel itself: ``torch.optim.Adam`` and its functional form spend several times as
        long on their housekeeping as on the arithmetic of a small net.
        """
        self._steps += 1
        torch._fused_adam_(
            [self.vector],
            [self.gradient],
            [self._mean],
            [self._square],
            [],
            [self._steps],
            lr=self._lr,
            beta1=0.9,
            beta2=0.999,
            weight_decay=self._weight_decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the weights and what Adam remembers: the tensors themselves, not copies."""
        return {
            "vector": self.vector,
            "mean": self._mean,
            "square": self._square,
            "steps": self._steps,
        }

    def restore_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what :meth:`state` returned; the net's weights stay views of the vector."""
        for name, place in self.state().items():
            _put(state[name], place)

    def copy(self) -> Tensor:
        """Return the weights as they are now."""
        return self.vector.clone()

    def restore(self, vector: Tensor) -> None:
        """Put back weights taken with :meth:`copy`."""
        _put(vector, self.vector)


def _put(values: Tensor, place: Tensor) -> None:
    if (values.shape, values.dtype) != (place.shape, place.dtype):  # copy_ would bend them
        raise ValueError(
            f"expected {tuple(place.shape)} of {place.dtype}, "
            f"got {tuple(values.shape)} of {values.dtype}"
        )
    place.copy_(values)
