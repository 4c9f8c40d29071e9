"""The baselines as the published code ran them, mistakes included.

All have its net (two layers of 64, ReLU, no dropout), its scaling (one range for all columns), its
training (Adam, lr = weight decay = 1e-3, 500 epochs, the last one used) and float64. CF-GNN's
printed figures suggest that it ran on data as loaded: its widths are taken to be in the target's
own unit (``mpiw_raw`` of a row).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from qpignn.encoders.base import Encoder, uniform_parameter
from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sage import SageEncoder
from qpignn.encoders.stack import AffineLayer
from qpignn.errors import SettingError, check_setting_names
from qpignn.methods.ablation import Ablation
from qpignn.methods.base import IntervalMethod
from qpignn.methods.catalog import check_method_name
from qpignn.methods.cfgnn import CorrectedGNN
from qpignn.methods.conformal import Conformal
from qpignn.methods.fitted import settings_of
from qpignn.methods.mc_dropout import MCDropout
from qpignn.methods.normal import NormalMethod
from qpignn.methods.qpignn import QpiGNN
from qpignn.methods.rqr import RQR
from qpignn.methods.sqr import SQR, taus_of
from qpignn.nn.heads import BayesianHead, LinearHead
from qpignn.nn.interval_net import IntervalNet
from qpignn.runtime.randomness import torch_rng


class PublishedSQR(SQR):
    """τ goes in as one more feature of every node, as 12·(τ − 0.5), and through the layers."""

    def _new_net(self, columns: int, edge_columns: int = 0) -> IntervalNet:
        if self.encoder != "sage":
            raise SettingError(f"encoder: expected sage in published form, got {self.encoder!r}")
        generator = torch_rng(self.seed, "weights")
        encoder = SageEncoder(columns, self.hidden, 2, generator=generator, activation="relu")
        head = LinearHead(self.hidden, 1, generator=generator)
        taus = taus_of(self.trained_levels())
        whole = _TauThroughLayers(encoder, head, columns, self.hidden, taus)
        return IntervalNet(_Pass(self.hidden, generator=generator), whole).to(torch.float64)


class _Pass(Encoder):
    """Leaves everything to the head."""

    prepare_tensors = SageEncoder.prepare_tensors

    def forward(self, inputs: GraphInputs) -> Any:
        """Return the inputs themselves."""
        return inputs


class _TauThroughLayers(nn.Module):
    """The whole net, because its input changes with τ."""

    def __init__(
        self,
        encoder: SageEncoder,
        head: nn.Module,
        columns: int,
        hidden: int,
        taus: Sequence[float],
    ) -> None:
        super().__init__()
        self.encoder, self.head, self.taus = encoder, head, taus
        shape, generator = (1, 1, hidden), encoder.generator
        self.neighbour_tau = uniform_parameter(shape, columns + 1, generator)
        self.root_tau = uniform_parameter(shape, columns + 1, generator)

    def _at(self, graph: GraphInputs, tau: Tensor) -> Tensor:
        first, second = self.encoder.layers
        assert isinstance(first, AffineLayer)
        fed = 12 * (tau.unsqueeze(1) - 0.5)
        around = graph.matrix.multiply(fed)
        hidden = first.on_features(graph) + around * self.neighbour_tau + fed * self.root_tau
        output: Tensor = self.head(torch.relu(second(torch.relu(hidden), graph.matrix_for(0))))[0]
        return output

    def forward(self, graph: GraphInputs) -> Any:
        """As a quantile head does, from the graph itself."""
        nodes = graph.nodes

        def level(tau: float) -> Tensor:
            return self._at(graph, torch.full((nodes,), tau, dtype=torch.float64))

        def fixed() -> Tensor:
            return torch.stack([level(tau) for tau in self.taus])

        if not self.training:
            return fixed()
        drawn = torch.rand(nodes, generator=self.encoder.generator).double()
        return drawn[: graph.rows], self._at(graph, drawn), fixed


def all_pairs_rqr(
    lower: Tensor,
    upper: Tensor,
    y: Tensor,
    *,
    coverage: float,
    lambda_width: float,
    gamma_order: float,
) -> Tensor:
    """RQR's loss with every interval held against every target: an (N) against an (N, 1) tensor.

    The mean over all N² pairs is computed here from sorted targets in N log N: within an interval
    the sum of (y − lower)(y − upper) needs only the sums of 1, y and y² up to its ends.

    Args:
        lower: (N,) lower bounds.
        upper: (N,) upper bounds.
        y: (N,) targets.
        coverage: wanted coverage.
        lambda_width: width penalty.
        gamma_order: penalty of bounds in the wrong order.

    Returns:
        The loss, a scalar.
    """
    targets = y.sort().values
    powers = torch.stack([torch.ones_like(targets), targets, targets**2])
    sums = torch.nn.functional.pad(powers.cumsum(dim=1), (1, 0))
    start = torch.searchsorted(targets, lower.detach())
    end = torch.searchsorted(targets, upper.detach(), right=True).maximum(start)

    def product(part: Tensor) -> Tensor:
        """Σ (y − lower)(y − upper) over targets with these sums of 1, y and y²."""
        count, total, squares = part
        total_product: Tensor = squares - (lower + upper) * total + lower * upper * count
        return total_product

    everything = product(sums[:, -1:].expand(-1, len(lower)))
    inside = product(sums[:, end] - sums[:, start])
    scaled = (coverage + 2 * lambda_width) * everything - inside
    return (
        scaled.mean() / len(y)
        + lambda_width / 2 * ((upper - lower) ** 2).mean()
        + gamma_order * torch.relu(lower - upper).mean()
    )


class PublishedRQR(RQR):
    """Every interval is compared with every target."""

    def compute_loss(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the mean over all pairs."""
        lower, upper = (bound[0, 0] for bound in self.compute_bounds(outputs))
        (coverage,) = self.trained_levels()
        prices = {"lambda_width": self.lambda_width, "gamma_order": self.gamma_order}
        return all_pairs_rqr(lower, upper, y, coverage=coverage, **prices)


class PublishedAblation(Ablation):
    """The published loss; where it is exchanged for RQR's, that one's mistake comes with it."""

    def _loss_of_bounds(
        self, lower: Tensor, upper: Tensor, y: Tensor, weight: Tensor | None
    ) -> Tensor:
        if self.loss != "rqr":
            return super()._loss_of_bounds(lower, upper, y, weight)
        (coverage,) = self.trained_levels()
        prices = {"lambda_width": self._price(), "gamma_order": 1.0}
        return all_pairs_rqr(lower[0, 0], upper[0, 0], y[0, 0], coverage=coverage, **prices)


class _SampledHead(BayesianHead):
    """Weights and bias are drawn anew in each step of the training."""

    def __init__(self, hidden: int, *, generator: torch.Generator) -> None:
        super().__init__(hidden, generator=generator)
        self.generator = generator
        nn.init.zeros_(self.log_variance)
        nn.init.zeros_(self.log_noise)  # serves as the bias's log-variance

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As the exact head, with one draw in place of the mean while training."""
        mean, doubt, log_bias = super().forward(hidden)
        if self.training:
            weights, bias = (
                torch.randn(log.shape, generator=self.generator).to(log) * (log / 2).exp()
                for log in (self.log_variance, self.log_noise)
            )
            mean = mean + torch.bmm(weights, hidden.mT).squeeze(1) + bias
        return mean, doubt, log_bias


class PublishedBayesian(NormalMethod):
    """A last layer sampled with an initial deviation of 1; no divergence term and no noise.

    Five hundred steps of 1e-3 along noisy gradients can hardly move the deviations, so widths stay
    near 3 everywhere.
    """

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the sampled layer."""
        return _SampledHead(self.hidden, generator=generator)

    def compute_moments(
        self, outputs: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean, no noise, and the variance of weights and bias."""
        mean, doubt, log_bias = outputs
        return mean, torch.zeros_like(mean), doubt + log_bias.exp()

    def compute_costs(self, outputs: tuple[Tensor, Tensor, Tensor], y: Tensor) -> Tensor:
        """Return squared errors."""
        return (y - outputs[0]) ** 2


NET: dict[str, Any] = {
    "hidden": 64,
    "activation": "relu",
    "scaling": "range",
    "dtype": "float64",
    "lr": 1e-3,
    "weight_decay": 1e-3,
    "dropout": 0.0,
    "epochs": 500,
    "patience": None,
    "novelty": "off",
    "neighbours": "off",
    "y_min": None,
    "y_max": None,
}
"""Settings of the published nets and of their training."""
LOSS = {"half_width": "sigmoid", "violation": "violated", "lambda_width": 0.5}
"""Settings of the published loss."""


@dataclass(frozen=True)
class Form:
    """A method's published form.

    Attributes:
        method: its class.
        settings: settings beyond :data:`NET`.
        conformal: whether a conformal step is added.
    """

    method: type[IntervalMethod]
    settings: Mapping[str, Any] = field(default_factory=dict)
    conformal: bool = False


METHODS = {
    "qpignn": Form(QpiGNN, LOSS),
    "sqr": Form(PublishedSQR),
    "rqr": Form(PublishedRQR, {"lambda_width": 0.1}),
    "mc_dropout": Form(MCDropout, {"include_noise": False, "dropout": 0.2}),
    "bayesian": Form(PublishedBayesian),
    "ablation": Form(PublishedAblation, LOSS),
    "cfgnn": Form(CorrectedGNN, {"scaling": "none"}, conformal=True),
    "cfgnn_tuned": Form(CorrectedGNN, {"scaling": "none", "trials": 20}, conformal=True),
}
"""The methods that the authors ran."""


def make_published(
    name: str, settings: Mapping[str, Any], cls: type[IntervalMethod] | None = None
) -> IntervalMethod:
    """Make a method in its published form.

    Args:
        name: one of :data:`METHODS`.
        settings: settings that differ from the published ones.
        cls: another class, such as one derived from the method's.

    Returns:
        The method.

    Raises:
        UnknownNameError: for a name that is not in the catalog.
        SettingError: for a method that the authors did not run, or a setting it does not have.
    """
    if name not in METHODS:
        check_method_name(name)
        raise SettingError(f"method {name!r} has no published form; those with one: {[*METHODS]}")
    form = METHODS[name]
    cls = cls or form.method
    check_setting_names(f"method {name!r}", settings, settings_of(cls))
    made = cls(**{**NET, **form.settings, **settings})
    method = Conformal(made) if form.conformal else made
    method.check_settings()
    return method
