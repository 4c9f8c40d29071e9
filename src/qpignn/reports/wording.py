"""The words for a result: intervals, or bounds on one side."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """How the page speaks of a result.

    Attributes:
        one, many: its name, such as interval or upper bound.
        meant: completes "... that", said of the true value and a level.
        kept, missed: where a true value is that is covered, and one that is not.
        tight, loose: what is wrong where coverage is below, or above, the wanted one.
        mean: heading of the mean width, or of the mean bound.
    """

    one: str
    many: str
    meant: str
    kept: str
    missed: str
    tight: str
    loose: str
    mean: str

    @property
    def all_kept(self) -> str:
        """Where several true values are that are covered."""
        return self.kept.replace("its", "their")

    @property
    def all_missed(self) -> str:
        """Where several true values are that are not."""
        return self.missed.replace("its", "their")


WORDINGS = {
    "both": Wording(
        one="interval",
        many="intervals",
        meant="is meant to hold the true value",
        kept="inside its interval",
        missed="outside its interval",
        tight="intervals are too narrow",
        loose="wider than need be",
        mean="Mean width",
    ),
    "upper": Wording(
        one="upper bound",
        many="upper bounds",
        meant="the true value is meant not to exceed",
        kept="below its bound",
        missed="above its bound",
        tight="bounds are too low",
        loose="higher than need be",
        mean="Mean bound",
    ),
    "lower": Wording(
        one="lower bound",
        many="lower bounds",
        meant="the true value is meant not to fall below",
        kept="above its bound",
        missed="below its bound",
        tight="bounds are too high",
        loose="lower than need be",
        mean="Mean bound",
    ),
}
