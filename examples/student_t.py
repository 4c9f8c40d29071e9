"""A method of your own in one file: a Student-t law per node, calibrated on held-out nodes.

The net predicts location m and scale s of a Student-t law with ν degrees of freedom, trained by its
negative log-likelihood. The interval at level c is m ± s·t, where t is the law's (1 + c)/2
quantile; it is then scaled until the nodes that each net held out are covered (``CrossFit``).

    python examples/student_t.py
"""

from dataclasses import dataclass

import torch
from scipy.special import stdtrit
from torch import Tensor, nn

from qpignn import load_dataset, metrics, split_nodes
from qpignn.calibration import Calibrator, CrossFit
from qpignn.errors import check_bool, check_positive
from qpignn.methods import NetMethod
from qpignn.nn.heads import LinearHead
from qpignn.objectives.joint import mean_over_all


@dataclass(kw_only=True, eq=False, repr=False)
class StudentT(NetMethod):
    """Heteroscedastic Student-t regression.

    Args:
        degrees: of freedom ν; few make the law heavy-tailed.
        calibrated: whether widths are scaled on held-out nodes.
        members: number of nets; default ten if calibrated, else one.
    """

    degrees: float = 4.0
    calibrated: bool = True
    members: int | None = None

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        super().check_settings()
        check_positive("degrees", self.degrees)
        check_bool("calibrated", self.calibrated)

    def calibrator(self) -> Calibrator | None:
        """Return the cross-fitting calibrator."""
        return CrossFit() if self.calibrated else None

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return a linear layer with two outputs per node."""
        return LinearHead(self.hidden, 2, generator=generator, members=members)

    def compute_value(self, outputs: Tensor) -> Tensor:
        """Return the location, (members, nodes)."""
        return outputs[0]

    def compute_loss(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the negative log-likelihood."""
        location, scale = outputs[0], nn.functional.softplus(outputs[1]) + 1e-6
        law = torch.distributions.StudentT(self.degrees, location, scale)
        return mean_over_all(-law.log_prob(y.expand_as(location)), weight).sum()

    def compute_bounds(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return quantiles of the law, (levels, members, nodes)."""
        location, scale = outputs[0], nn.functional.softplus(outputs[1]) + 1e-6
        steps = [float(stdtrit(self.degrees, (1 + level) / 2)) for level in self.trained_levels()]
        half = torch.stack([step * scale for step in steps])
        return location - half, location + half


if __name__ == "__main__":
    data = split_nodes(load_dataset("er"))
    intervals = StudentT(0.9).fit(data).predict_interval(data, data.test_mask)
    y = data.y[data.test_mask]
    print(f"coverage {metrics.picp(y, intervals.lower, intervals.upper):.3f}")
    print(f"mean width {metrics.mpiw(y, intervals.lower, intervals.upper):.3f}")
