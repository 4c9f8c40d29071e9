"""MC dropout: the spread of many passes with random dropout, plus the remaining noise."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from qpignn.encoders.inputs import GraphInputs
from qpignn.errors import SettingError, check_bool, check_integer
from qpignn.methods.net_state import keep_fit
from qpignn.methods.net_training import fit_nets, member_count, prepare_training
from qpignn.methods.normal import NormalMethod
from qpignn.methods.training_set import TrainingSet
from qpignn.nn.heads import LinearHead
from qpignn.nn.interval_net import IntervalNet
from qpignn.runtime.randomness import torch_rng
from qpignn.tasks.base import FitInputs

MOST_PASSES = 10_000


@dataclass(kw_only=True, eq=False, repr=False)
class MCDropout(NormalMethod):
    """Dropout kept on when predicting (Gal & Ghahramani 2016), as a model of epistemic uncertainty.

    A net trained by squared error is run many times, each time with other hidden units dropped, the
    same for all nodes. The spread of the passes measures the uncertainty of the net, not the noise
    of the targets: with ``include_noise`` the interval adds the mean squared error on units held
    out of the fit, which is what makes it a prediction interval. All units share one noise level.
    Coverage is not guaranteed.

    Args:
        passes: how many; at most 10,000, because all are kept in memory.
        include_noise: ``False`` is the paper's variant, spread of passes only.
        dropout: of hidden units, while training and predicting.

    Attributes:
        noise_: variance of the noise, in the nets' units.
    """

    saved_numbers: ClassVar[tuple[str, ...]] = ("noise",)
    cross_fits: ClassVar[bool] = False

    passes: int = 100
    include_noise: bool = True
    dropout: float = 0.2

    noise_: Tensor = field(init=False)

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        super().check_settings()
        if check_integer("passes", self.passes, 2) > MOST_PASSES:  # all are kept until the last
            raise SettingError(f"passes: expected at most {MOST_PASSES:,}, got {self.passes:,}")
        check_bool("include_noise", self.include_noise)

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head."""
        return LinearHead(self.hidden, 1, generator=generator, members=members)

    def compute_moments(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean and noise; a single pass has no variance of its mean."""
        mean = outputs[0]
        return mean, self.noise_.expand_as(mean), torch.zeros_like(mean)

    def compute_costs(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return squared errors."""
        return (y - outputs[0]) ** 2

    def held_out_score(self, net: IntervalNet, training_set: TrainingSet) -> float:
        """Return the mean squared error: a point prediction is what is trained."""
        outputs = training_set.of_given(super()._run(net, training_set.graph))
        return _squared_error(outputs[0], training_set)

    def _fit(self, inputs: FitInputs) -> int | None:
        scalers, training_set = prepare_training(self, inputs)
        scalers.warn_of_constant_columns(inputs.data)
        self.noise_ = torch.ones((), dtype=training_set.y.dtype)  # not estimated yet
        fitted = fit_nets(self, scalers, training_set, inputs.initial_weights)
        outputs = training_set.of_given(self._run(fitted.net, training_set.graph))
        mean = outputs.reshape(self.passes, member_count(self), -1).mean(dim=0)
        noise = _squared_error(mean, training_set) if self.include_noise else 0.0
        self.noise_ = torch.tensor(noise, dtype=training_set.y.dtype)
        return keep_fit(self, fitted, inputs)

    def _run(self, net: IntervalNet, graph: GraphInputs) -> Tensor:
        """Return the outputs of every pass of every member; the same for the same net and graph."""
        generator = torch_rng(self.seed, "passes")
        with torch.no_grad():
            passes = net.encoder.dropout_passes(graph, self.passes, generator)
            return torch.cat([*map(net.head, passes)], dim=1)


def _squared_error(mean: Tensor, training_set: TrainingSet) -> float:
    """Return the mean over the units each member holds out; over all, where none does."""
    held_out = training_set.held_out
    scored = held_out if bool(held_out.any()) else ~held_out
    weight = training_set.weight * scored
    return float((((training_set.y - mean) ** 2) * weight).sum() / weight.sum())
