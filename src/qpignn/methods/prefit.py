"""A net the user trained elsewhere, seen as a method."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from qpignn.errors import ArrayError, NotFittedError
from qpignn.methods.base import Bounds, Fitted, IntervalMethod
from qpignn.runtime.torch_state import caller_defaults
from qpignn.training.history import History

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Prefit(IntervalMethod):
    """Wraps ``model(x, edge_index)``; nothing is trained, and the net is never written to a file.

    Args:
        model: returns one number a node, or two (lower, upper), or three (lower, prediction,
            upper).
        confidence_level: the coverage its intervals are meant for.
    """

    def __init__(
        self, model: Callable[..., Any], confidence_level: float | list[float] = 0.9
    ) -> None:
        self.model = model
        self.confidence_level = confidence_level
        self.seed = 0

    @property
    def parameters_(self) -> int:
        """Number of the net's weights, trainable or not."""
        if not isinstance(self.model, nn.Module):
            return 0
        return sum(weight.numel() for weight in self.model.parameters())

    def _fit(self, data: Data, given: Tensor) -> None:
        self.history_ = History(stopped="elsewhere")

    def _predict(self, data: Data, level: float) -> Bounds:
        if not callable(self.model):  # a file cannot hold one
            raise NotFittedError(
                "model: expected the net it was calibrated for, got none; give it as "
                "Conformal.load(folder, model=net)"
            )
        if isinstance(self.model, nn.Module):
            self.model.eval()
        with caller_defaults(), torch.no_grad():
            answer = self.model(self._features(data), data.edge_index)
        try:
            said = torch.as_tensor(answer).detach().double()
        except (TypeError, ValueError, RuntimeError) as error:  # a tuple of tensors, None, words
            raise ArrayError(
                f"model: expected a tensor of one to three numbers a node, got "
                f"{type(answer).__name__}; let it return one tensor, columns side by side"
            ) from error
        nodes = data.x.shape[0]
        said = said.reshape(nodes, 1) if said.shape == (nodes,) else said
        if said.dim() != 2 or said.shape[0] != nodes or said.shape[1] not in (1, 2, 3):
            raise ArrayError(
                f"model: expected ({nodes},), ({nodes}, 1), ({nodes}, 2) or ({nodes}, 3) numbers, "
                f"got {tuple(said.shape)}"
            )
        if not bool(torch.isfinite(said).all()):
            raise ArrayError("model: expected finite numbers, got some that are not")
        lower, upper = said.amin(dim=1), said.amax(dim=1)
        value = (lower + upper) / 2 if said.shape[1] == 2 else said[:, said.shape[1] // 2]
        return Bounds(value, lower, upper)

    def _features(self, data: Data) -> Tensor:
        """Return the features in the type of the net's weights, where it has any."""
        weights = self.model.parameters() if isinstance(self.model, nn.Module) else ()
        types = {weight.dtype for weight in weights if weight.is_floating_point()}
        x: Tensor = data.x
        return x.to(types.pop()) if len(types) == 1 else x

    def _settings(self) -> dict[str, Any]:
        return {"model": None, "confidence_level": self.confidence_level}

    def _as_fitted(self) -> Prefit:
        return self

    def _state(self) -> dict[str, Tensor]:
        return {}

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        pass
