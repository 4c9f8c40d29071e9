"""What happened while a net trained, epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import pandas as pd


@dataclass
class History:
    """Per epoch: the loss, and coverage and mean width on the nodes it was computed on.

    Attributes:
        loss: on the training nodes, in scaled-target units; an average, if an epoch has more than
            one step.
        coverage, width: likewise, as of the last time somebody looked: at the first epoch, at
            every epoch that looks at held-out nodes (net methods: every fifth) and at the last.
        held_out: score on held-out nodes by epoch, for the epochs that looked at some.
        best_epoch: the epoch whose weights were kept (counted from 0).
        stopped: ``epochs`` (ran to the end), ``patience`` or ``interrupted``.
        done, planned: of an interrupted fit, the epochs that were trained and the most that would
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
        """Return the sentence that every use of a partly trained model shows; None for others."""
        if not self.interrupted:
            return None
        planned = f" of at most {self.planned:,}" if self.planned else ""
        return (
            f"training was interrupted after {self.done or len(self):,}{planned} epochs, so these "
            f"intervals come from a partly trained model; fit again, or finish the training with "
            f"'qpignn fit --resume'"
        )

    def drop_unfinished_epoch(self) -> None:
        """Cut the curves to the epochs that all of them have: an interrupt can come in between."""
        curves = (self.loss, self.coverage, self.width)
        epochs = min(map(len, curves))
        for curve in curves:
            del curve[epochs:]

    @classmethod
    def from_dict(cls, words: dict[str, Any]) -> Self:
        """Take back what ``dataclasses.asdict`` made of a history, through JSON.

        Raises:
            KeyError, TypeError, ValueError: where the words are not of a history.
        """
        made = cls(**{**words, "held_out": {int(k): v for k, v in words["held_out"].items()}})
        curves = (made.loss, made.coverage, made.width)
        right = (
            all(isinstance(curve, list) and len(curve) == len(made.loss) for curve in curves)
            and all(isinstance(n, float) for c in (*curves, made.held_out.values()) for n in c)
            and type(made.best_epoch) is int
            and isinstance(made.stopped, str)
            and all(type(number) is int and number >= 0 for number in (made.done, made.planned))
        )
        if not right:
            raise ValueError("history: expected curves of numbers, one an epoch, got others")
        return made

    def to_frame(self) -> pd.DataFrame:
        """Return one row an epoch."""
        frame = pd.DataFrame({"loss": self.loss, "coverage": self.coverage, "width": self.width})
        frame.index.name = "epoch"
        return frame.assign(held_out=pd.Series(self.held_out)) if self.held_out else frame
