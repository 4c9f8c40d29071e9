"""Terms of the report page for two-sided intervals, upper bounds and lower bounds."""

from __future__ import annotations

from dataclasses import dataclass


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
    "upper": Wording(
        one="upper bound",
        many="upper bounds",
        purpose="should be at or above the true value",
        covered="below its bound",
        missed="above its bound",
        undercoverage="bounds are too low",
        overcoverage="bounds are higher than necessary",
        mean="Mean bound",
    ),
    "lower": Wording(
        one="lower bound",
        many="lower bounds",
        purpose="should be at or below the true value",
        covered="above its bound",
        missed="below its bound",
        undercoverage="bounds are too high",
        overcoverage="bounds are lower than necessary",
        mean="Mean bound",
    ),
}
