"""A quantile GNN: bounds at α/2 and 1 − α/2, each by its own pinball loss."""

from dataclasses import dataclass

from qpignn.methods.qpignn import JointLossMethod


@dataclass(kw_only=True, eq=False, repr=False)
class QuantileGNN(JointLossMethod):
    """Plain quantile regression on a graph; wrapped in a conformal step it is CQR.

    Bounds are a value plus and minus half-widths, so they never cross. The pinball losses of both
    bounds together are the joint loss at λ = α/2 (:mod:`qpignn.objectives.joint`), that of the
    median is the joint loss of level 0. Coverage on other units is not guaranteed.
    """
