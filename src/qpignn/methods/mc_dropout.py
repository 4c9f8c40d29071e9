"""MC dropout: the spread of many nets with units left out, plus the noise that is left over."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.sparse import Operands
from qpignn.errors import SettingError, check_bool, check_integer
from qpignn.io.tensors import check_scalar
from qpignn.methods.base import Fitted
from qpignn.methods.normal import NormalMethod
from qpignn.methods.training_set import Seen
from qpignn.nn.heads import LinearHead
from qpignn.runtime.randomness import torch_rng

MOST_PASSES = 10_000


class MCDropout(NormalMethod):
    """Dropout kept on when predicting (Gal & Ghahramani 2016), read as doubt about the net.

    A net trained by squared error is run many times, each time with other units left out, the
    same for all nodes. The spread of the passes says how sure the net is, not how noisy targets
    are: with ``include_noise`` the interval adds the mean squared error on nodes held out of the
    fit, which is what makes it a prediction interval. One noise level serves all nodes. No promise
    of coverage.

    Args:
        passes: how many; at most 10,000, which are kept in memory side by side.
        include_noise: ``False`` is the paper's variant, spread of passes only.
        dropout: of hidden units, while training and predicting.
        net: settings of every net method, see :class:`qpignn.methods.net.NetMethod`.
    """

    def __init__(
        self,
        confidence_level: float | list[float] = 0.9,
        *,
        passes: int = 100,
        include_noise: bool = True,
        dropout: float = 0.2,
        **net: Any,
    ) -> None:
        super().__init__(confidence_level, dropout=dropout, **net)
        self.passes = passes
        self.include_noise = include_noise

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        super().check_settings()
        if check_integer("passes", self.passes, 2) > MOST_PASSES:  # all are kept until the last
            raise SettingError(f"passes: expected at most {MOST_PASSES:,}, got {self.passes:,}")
        check_bool("include_noise", self.include_noise)

    def _head(self, generator: torch.Generator) -> nn.Module:
        return LinearHead(self.hidden, 1, generator=generator, members=self._members())

    def _moments(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One pass knows no doubt; its noise is what was measured."""
        mean = outputs[0]
        return mean, self.noise_.expand_as(mean), torch.zeros_like(mean)

    def _costs(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (y - outputs[0]) ** 2

    def _held_out_score(self, seen: Seen) -> float:
        """Mean squared error: a point prediction is what is trained."""
        return self._squared_error(self._run(seen, self._once)[0], seen)

    def _squared_error(self, mean: Tensor, seen: Seen) -> float:
        """Over the nodes each member holds out; over all, where none does."""
        judged = seen.held_out if bool(seen.held_out.any()) else ~seen.held_out
        weight = seen.weight * judged
        return float((((seen.y - mean) ** 2) * weight).sum() / weight.sum())

    def _train(self, seen: Seen) -> None:
        self.noise_ = torch.ones((), dtype=seen.y.dtype)  # unknown yet
        super()._train(seen)
        passes = self._run(seen).reshape(self.passes, self._members(), -1)
        found = self._squared_error(passes.mean(dim=0), seen) if self.include_noise else 0.0
        self.noise_ = torch.tensor(found, dtype=seen.y.dtype)

    def _outputs(self, graph: Operands) -> Tensor:
        """Return one row for every pass of every member; the same for the same net and graph."""
        encoder = self.net_.encoder
        assert isinstance(encoder, SageEncoder)
        encoder.generator = torch_rng(self.seed, "passes")
        encoder.drop_whole_units = True
        encoder.train()
        with torch.no_grad():
            passes = torch.cat([*map(self.net_.head, encoder.passes(graph, self.passes))], dim=1)
        encoder.eval()
        return passes

    def _state(self) -> dict[str, Tensor]:
        return {**super()._state(), "noise": self.noise_}

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        super()._restore(state, fitted)
        self.noise_ = check_scalar(state["noise"])
