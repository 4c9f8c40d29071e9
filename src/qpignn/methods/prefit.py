"""A net that the user has trained, as a method."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from qpignn.errors import ArrayError, NotFittedError
from qpignn.methods.base import Bounds, IntervalMethod
from qpignn.methods.fitted import Fitted
from qpignn.runtime.torch_state import caller_defaults
from qpignn.tasks.base import FitInputs
from qpignn.tasks.catalog import TaskName, find_task
from qpignn.training.history import History

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(eq=False, repr=False)
class Prefit(IntervalMethod):
    """Wraps ``model(x, edge_index)``; nothing is trained, and the net is never written to a file.

    Args:
        model: returns one number per unit, or two (lower, upper), or three (lower, prediction,
            upper).
        confidence_level: the coverage its intervals are meant for.
        seed: of the units that ``Conformal`` chooses.
        task: what a unit is: ``node``.
    """

    model: Callable[..., Any] | None
    confidence_level: float | list[float] = 0.9
    seed: int = 0
    task: TaskName = "node"

    @property
    def parameters_(self) -> int:  # type: ignore[override]
        """Number of the net's weights, trainable or not."""
        if not isinstance(self.model, nn.Module):
            return 0
        return sum(weight.numel() for weight in self.model.parameters())

    def _fit(self, inputs: FitInputs) -> int | None:
        self.history_ = History(stopped="elsewhere")
        return None

    def _predict(self, data: "Data", level: float) -> Bounds:
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
            outputs = torch.as_tensor(answer).detach().double()
        except (TypeError, ValueError, RuntimeError) as error:  # a tuple of tensors, None, words
            raise ArrayError(
                f"model: expected a tensor of one to three numbers per node, got "
                f"{type(answer).__name__}; let it return one tensor, columns side by side"
            ) from error
        nodes = find_task(self.task).count(data)
        outputs = outputs.reshape(nodes, 1) if outputs.shape == (nodes,) else outputs
        if outputs.dim() != 2 or outputs.shape[0] != nodes or outputs.shape[1] not in (1, 2, 3):
            raise ArrayError(
                f"model: expected ({nodes},), ({nodes}, 1), ({nodes}, 2) or ({nodes}, 3) numbers, "
                f"got {tuple(outputs.shape)}"
            )
        if not bool(torch.isfinite(outputs).all()):
            raise ArrayError("model: expected finite numbers, got some that are not")
        lower, upper = outputs.amin(dim=1), outputs.amax(dim=1)
        value = (lower + upper) / 2 if outputs.shape[1] == 2 else outputs[:, outputs.shape[1] // 2]
        return Bounds(value, lower, upper)

    def _features(self, data: "Data") -> Tensor:
        """Return the features in the type of the net's weights, where it has any."""
        weights = self.model.parameters() if isinstance(self.model, nn.Module) else ()
        types = {weight.dtype for weight in weights if weight.is_floating_point()}
        x: Tensor = data.x
        return x.to(types.pop()) if len(types) == 1 else x

    def _state(self) -> dict[str, Tensor]:
        return {}

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        pass
