"""Words of findings and of the report page: numbers, and terms for intervals and bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass


def percent(share: float, digits: int | None = None) -> str:
    """Return a share as a percentage, such as ``"97.5 %"``.

    Args:
        share: the share, 0 to 1.
        digits: digits after the decimal point; by default as many as the number has.
    """
    return f"{100 * share:g} %" if digits is None else f"{100 * share:.{digits}f} %"


def format_number(value: float | None) -> str:
    """Return a number with about four significant digits and thousands separators.

    Args:
        value: the number; None and NaN become a dash.
    """
    if value is None or not math.isfinite(value):
        return "–" if value is None or math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size and not 1e-4 <= size < 1e9:
        digits = f"{value:.3e}"
    elif size >= 1000:
        digits = f"{value:,.0f}"
    else:
        digits = f"{float(f'{value:.4g}'):.10f}".rstrip("0").rstrip(".")
    return digits.replace("-", "−")


@dataclass(frozen=True)
class Wording:
    """Terms for one kind of result.

    Attributes:
        one, many: its name, singular and plural, such as interval or upper bound.
        purpose: what it should do; completes "an interval that …".
        covered, missed: position of a true value that is covered, and of one that is not.
        undercoverage, overcoverage: what coverage below, or above, the nominal level means.
        mean: heading of the mean width, or of the mean bound.
    """

    one: str
    many: str
    purpose: str
    covered: str
    missed: str
    undercoverage: str
    overcoverage: str
    mean: str

    @property
    def all_covered(self) -> str:
        """Plural of ``covered``."""
        return self.covered.replace("its", "their") + "s"

    @property
    def all_missed(self) -> str:
        """Plural of ``missed``."""
        return self.missed.replace("its", "their") + "s"


def _bound(side: str, within: str, beyond: str, too: str, excess: str) -> Wording:
    """Return the terms for one-sided bounds; true values should lie ``within`` them."""
    return Wording(
        one=f"{side} bound",
        many=f"{side} bounds",
        purpose=f"should be at or {beyond} the true value",
        covered=f"{within} its bound",
        missed=f"{beyond} its bound",
        undercoverage=f"bounds are too {too}",
        overcoverage=f"bounds are {excess} than necessary",
        mean="Mean bound",
    )


WORDINGS = {
    "both": Wording(
        one="interval",
        many="intervals",
        purpose="should contain the true value",
        covered="inside its interval",
        missed="outside its interval",
        undercoverage="intervals are too narrow",
        overcoverage="intervals are wider than necessary",
        mean="Mean width",
    ),
    "upper": _bound("upper", "below", "above", "low", "higher"),
    "lower": _bound("lower", "above", "below", "high", "lower"),
}
