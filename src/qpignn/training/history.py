"""The record of a training: loss, coverage, width and held-out score by epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import pandas as pd


@dataclass
class History:
    """Loss, and coverage and mean width on the training nodes, one entry per epoch.

    Attributes:
        loss: on the training nodes, in scaled-target units; averaged over the steps of an epoch.
        coverage, width: likewise. They are computed in the first epoch, in every epoch that is
            evaluated on held-out nodes (net methods: every fifth) and in the last; the other
            epochs repeat the previous value.
        held_out: score on held-out nodes by epoch, for the epochs that were evaluated.
        best_epoch: the epoch whose weights were kept (counted from 0).
        stopped: ``epochs`` (trained to the end), ``patience``, ``interrupted``, or the reason that
            a callback gave.
        done, planned: of an interrupted fit, the epochs trained and the largest number that would
            have been, over all its trainings; 0 otherwise.
    """

    loss: list[float] = field(default_factory=list)
    coverage: list[float] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    held_out: dict[int, float] = field(default_factory=dict)
    best_epoch: int = -1
    stopped: str = "epochs"
    done: int = 0
    planned: int = 0

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def interrupted(self) -> bool:
        """Whether training was stopped by the user before its end."""
        return self.stopped == "interrupted"

    def interrupt(self, done: int, planned: int) -> None:
        """Mark the training as interrupted.

        Args:
            done: epochs that were trained, over all trainings of the fit.
            planned: epochs that would have been trained, at most.
        """
        self.stopped, self.done, self.planned = "interrupted", done, planned

    def warning(self) -> str | None:
        """Return the warning that every use of a partly trained model shows; None for others."""
        if not self.interrupted:
            return None
        planned = f" of at most {self.planned:,}" if self.planned else ""
        return (
            f"training was interrupted after {self.done or len(self):,}{planned} epochs, so these "
            f"intervals come from a partly trained model; fit again, or finish the training with "
            f"'qpignn fit --resume'"
        )

    def drop_unfinished_epoch(self) -> None:
        """Shorten the curves to the epochs that all of them have, after an interrupt."""
        curves = (self.loss, self.coverage, self.width)
        epochs = min(map(len, curves))
        for curve in curves:
            del curve[epochs:]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the history that ``dataclasses.asdict`` converted, after a round trip as JSON.

        Args:
            values: the fields by name.

        Returns:
            The history.

        Raises:
            KeyError, TypeError, ValueError: if the values are not those of a history.
        """
        held_out = {int(epoch): score for epoch, score in values["held_out"].items()}
        history = cls(**{**values, "held_out": held_out})
        curves = (history.loss, history.coverage, history.width)
        numbers = (*curves, history.held_out.values())
        valid = (
            all(isinstance(curve, list) and len(curve) == len(history.loss) for curve in curves)
            and all(isinstance(number, float) for values in numbers for number in values)
            and type(history.best_epoch) is int
            and isinstance(history.stopped, str)
            and all(type(count) is int and count >= 0 for count in (history.done, history.planned))
        )
        if not valid:
            raise ValueError("history: expected lists of numbers, one per epoch, got other values")
        return history

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per epoch."""
        frame = pd.DataFrame({"loss": self.loss, "coverage": self.coverage, "width": self.width})
        frame.index.name = "epoch"
        return frame.assign(held_out=pd.Series(self.held_out)) if self.held_out else frame
