"""Calibrators: from the errors on held-out units to bounds. Numbers in, numbers out."""

from qpignn.calibration.conformal import (
    SplitConformal,
    conformal_quantile,
    conformal_rank,
    enough_for,
)
from qpignn.calibration.cross_fit import Calibrator, CrossFit
from qpignn.calibration.width_scaling import MemberOutputs, WidthScaling

__all__ = [
    "Calibrator",
    "CrossFit",
    "MemberOutputs",
    "SplitConformal",
    "WidthScaling",
    "conformal_quantile",
    "conformal_rank",
    "enough_for",
]
