"""What the published code did to the baselines, against plain re-makings of its mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from qpignn import load_dataset, load_method, make_method
from qpignn.errors import SettingError
from qpignn.experiments.cell import Cell
from qpignn.paper.published.methods import METHODS, PublishedRQR, make_published


def test_every_interval_is_compared_with_every_target() -> None:
    """The sums over sorted targets equal the N × N broadcast, in value and gradient."""
    draw = torch.Generator().manual_seed(0)
    y = torch.randn(40, generator=draw, dtype=torch.float64)
    raw = torch.randn(2, 1, 40, generator=draw, dtype=torch.float64).requires_grad_()
    method = make_published("rqr", {})
    assert isinstance(method, PublishedRQR)
    loss = method.compute_loss(raw, y, None)
    lower, upper = raw[0, 0].unsqueeze(1), raw[1, 0].unsqueeze(1)  # (N, 1) against (N)
    inside = ((lower <= y) & (y <= upper)).double()
    product = (y - lower) * (y - upper)
    wanted = (
        ((0.9 + 2 * 0.1 - inside) * product).mean()
        + 0.1 / 2 * ((upper - lower) ** 2).mean()
        + torch.relu(lower - upper).mean()
    )
    assert loss.item() == pytest.approx(wanted.item())
    gradients = [torch.autograd.grad(term, raw)[0] for term in (loss, wanted)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", METHODS)
def test_published_forms_have_the_published_net(name: str, tmp_path: Path) -> None:
    tuned = {"trials": 2} if name == "cfgnn_tuned" else {}
    method = make_method(name, "published", epochs=2, seed=1, **tuned)
    conformal = name.startswith("cfgnn")  # run on data as loaded
    net = method.method if conformal else method
    scaling = "none" if conformal else "range"
    wanted = {"hidden": 64, "activation": "relu", "scaling": scaling, "lr": 1e-3, "patience": None}
    assert wanted.items() <= net.get_params().items()
    data = load_dataset("tree", "published")
    intervals = method.fit(data).predict_interval(data)
    assert len(intervals) == 511
    method.save(tmp_path)
    again = load_method(tmp_path).predict_interval(data)
    assert again.lower.tolist() == intervals.lower.tolist()


def test_make_method_without_a_published_form_is_refused() -> None:
    with pytest.raises(SettingError, match="'evidential' has no published form; those with one"):
        make_method("evidential", "published")


@pytest.mark.parametrize(
    ("name", "picp", "mpiw"),
    [("sqr", 0.80, 0.26), ("rqr", 0.85, 0.68), ("mc_dropout", 0.64, 0.2), ("bayesian", 1.0, 3.0)],
)
def test_published_methods_are_near_the_figures_of_tree(
    name: str, picp: float, mpiw: float
) -> None:
    """One run against the paper's mean: enough to tell the published form from the right one."""
    row = Cell("tree", name, 0, protocol="published").run()
    assert row["picp"] == pytest.approx(picp, abs=0.12)
    assert row["mpiw"] == pytest.approx(mpiw, rel=0.25)
