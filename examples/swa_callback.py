"""Stochastic weight averaging as a callback: the final weights are the mean over late epochs.

After epoch s the average of the weights w of n epochs is updated by

    w̄ ← w̄ + (w − w̄) / n

and replaces the weights when training ends (Izmailov et al. 2018,
https://arxiv.org/abs/1803.05407). Run it anywhere:

    python examples/swa_callback.py
"""

from __future__ import annotations

from typing import Any

import torch

from qpignn import QpiGNN, load_dataset, split_nodes
from qpignn.metrics import picp
from qpignn.training.callbacks import Callback
from qpignn.training.state import TrainingState


class WeightAveraging(Callback):
    """Averages the weights from an epoch on.

    Args:
        start: first epoch of the average, counted from 0.
    """

    def __init__(self, start: int) -> None:
        self.start = start

    def on_train_begin(self, state: TrainingState) -> None:
        """Start with an empty average; a fit may train several nets."""
        self.average, self.epochs = torch.zeros_like(state.weights.vector), 0

    def on_epoch_end(self, state: TrainingState) -> None:
        """Add the weights of the epoch."""
        if state.epoch >= self.start:
            self.epochs += 1
            self.average += (state.weights.vector - self.average) / self.epochs

    def on_train_end(self, state: TrainingState) -> None:
        """Replace the final weights by their average."""
        if self.epochs:
            state.weights.restore(self.average)

    def state_dict(self) -> dict[str, Any]:
        """Return what checkpoints save."""
        return {"average": self.average, "epochs": self.epochs}

    def load_state_dict(self, values: dict[str, Any]) -> None:
        """Restore what a checkpoint has saved."""
        self.average, self.epochs = values["average"], values["epochs"]


if __name__ == "__main__":
    data = split_nodes(load_dataset("er"), test=0.3, seed=0)
    test = data.test_mask.numpy()
    for label, callbacks in (("last epoch", []), ("average", [WeightAveraging(start=150)])):
        model = QpiGNN(epochs=200, patience=None).fit(data, callbacks=callbacks)
        intervals, y = model.predict_interval(data, test), data.y[test].numpy()
        coverage, width = picp(y, intervals.lower, intervals.upper), intervals.width.mean()
        print(f"{label:10}  coverage {coverage:.3f}  width {width:.3f}")
