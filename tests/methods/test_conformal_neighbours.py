"""Conformal around a method that uses the known targets of neighbours: it keeps its guarantee.

Sums over neighbours contain the labels of fitted nodes only. Given those, the scores of calibration
and of test nodes are values of one fixed function, whatever the correlation of targets. If the
labelled nodes that were not fitted are divided at random into n calibration and m test nodes, a
test node is covered if its score is at most the k-th smallest of n: the number of covered ones is
beta-binomial with parameters m, k and n + 1 − k, and its mean is m·k/(n + 1).

Labels of calibration nodes in their own sums, or in the nets, would break that; these tests show
that it is noticed. Labels of other calibration nodes in a node's sums break it in theory, too, but
the effect is small: where scores had twice as many known neighbours as predictions, 40 fits covered
one to two points less, 2.6 standard errors of paired differences.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
import torch
from scipy.stats import betabinom, norm
from torch_geometric.data import Data

import qpignn.methods.conformal
import qpignn.methods.neighbour_sample
from correlated import LABELLED, NODES, changed, graph, make, same
from qpignn import Conformal, Intervals
from qpignn.calibration.neighbours import KnownErrors
from qpignn.methods.known_nodes import KnownNodes
from qpignn.methods.neighbour_sample import half_width_of
from qpignn.methods.net import NetMethod
from qpignn.methods.net_training import encoder_inputs
from qpignn.tasks.base import FitInputs

LEVEL, GIVEN, SHARE, FITS = 0.9, 224, 0.4, 40
SCORED, TESTED = round(SHARE * GIVEN), LABELLED - GIVEN
RANK = ceil((SCORED + 1) * LEVEL - 1e-9)
LAW = betabinom(TESTED, RANK, SCORED + 1 - RANK)
RARE = 1e-4
Masks = npt.NDArray[np.bool_]
Predict = Callable[["Division"], Intervals]

pytestmark = pytest.mark.filterwarnings("ignore:.*no target is given")  # the ring apart


@dataclass
class Division:
    """A random division of the labelled nodes, and a fit on it.

    Attributes:
        data: the graph.
        model: the fit.
        fitted: nodes that the method inside was fitted on.
        scored: calibration nodes.
        test: the other labelled nodes.
    """

    data: Data
    model: Conformal
    fitted: Masks
    scored: Masks
    test: Masks

    @classmethod
    def of(cls, data: Data, seed: int) -> Division:
        order = np.random.default_rng(seed).permutation(LABELLED)
        given = np.isin(np.arange(NODES), order[:GIVEN])
        model = Conformal(make(seed=seed, epochs=40), calibration=SHARE)
        model.fit(data, torch.from_numpy(given))
        second = inner(model).known_neighbours_
        assert second is not None
        fitted = second.nodes.found_in(data).numpy()
        test = (np.arange(NODES) < LABELLED) & ~given
        return cls(data, model, fitted, given & ~fitted, test)

    def covered(self, scoring: Predict, predicting: Predict) -> float:
        """Return the share of covered test nodes, with any inner intervals for both steps."""
        y, one, other = self.data.y.numpy(), scoring(self), predicting(self)
        scores = np.maximum(one.lower - y, y - one.upper)[self.scored]
        widening = np.sort(scores)[RANK - 1]
        inside = (other.lower - widening <= y) & (y <= other.upper + widening)
        return float(inside[self.test].mean())


def inner(model: Conformal) -> NetMethod:
    """Return the fitted method inside."""
    assert isinstance(model.method_, NetMethod)
    return model.method_


def p_value(shares: list[float]) -> float:
    """Return how likely a mean as far from k/(n + 1) is; the mean of many fits is normal."""
    error = LAW.std() / TESTED / sqrt(len(shares))
    return 2 * float(norm.sf(abs(np.mean(shares) - RANK / (SCORED + 1)) / error))


@pytest.fixture(scope="module")
def data() -> Data:
    return changed(graph(), train_mask=None, test_mask=None)


@pytest.fixture(scope="module")
def divisions(data: Data) -> list[Division]:
    return [Division.of(data, seed) for seed in range(FITS)]


def as_fitted(division: Division) -> Intervals:
    """Return the intervals of the method inside."""
    return inner(division.model).predict_interval(division.data)


@torch.no_grad()
def with_all_labels(division: Division) -> Intervals:
    """Return those of the same nets with the labels of calibration nodes in the sums too."""
    data, method = division.data, inner(division.model)
    second = method.known_neighbours_
    assert second is not None
    outputs = method._run(method.net_, encoder_inputs(method, data))
    first, nodes = method.member_outputs(outputs, LEVEL).mean(), division.fitted | division.scored
    target = method.scalers_.y.transform(data.y[torch.from_numpy(nodes)], torch.float64).numpy()
    half_width = half_width_of(first, second.narrowest)[nodes]
    errors = KnownErrors.of(target, first.value[nodes], half_width)
    stored = KnownNodes.of(data, torch.from_numpy(nodes))
    other = copy.copy(method)
    other.known_neighbours_ = replace(second, nodes=stored, errors=errors)
    return other.predict_interval(data)


def sums_with_oneself(adjacency: Any, columns: npt.NDArray[np.float64]) -> Any:
    """Return sums that contain the node itself, and the way there and back."""
    loops = adjacency + sp.identity(len(columns), format="csr")
    one = loops @ columns
    return np.hstack([one, loops @ one[:, :3]])


def with_own_labels(division: Division) -> Intervals:
    """Return intervals with the labels of calibration nodes in all sums, also in their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(qpignn.methods.neighbour_sample, "neighbour_sums", sums_with_oneself)
        return with_all_labels(division)


def test_conformal_with_known_neighbours_covers_at_its_exact_rate(
    divisions: list[Division],
) -> None:
    """102 of 113, the rank of 112 scores, in 40 fits with 96 test nodes each."""
    shares = []
    for one in divisions:
        intervals = one.model.predict_interval(one.data).select(one.test)
        shares.append(intervals.covers(one.data.y[one.test]).mean())
        assert shares[-1] == pytest.approx(one.covered(as_fitted, as_fitted))
    assert LAW.mean() / TESTED == pytest.approx(RANK / (SCORED + 1))
    assert p_value(shares) > RARE, np.mean(shares)


@pytest.mark.parametrize("predicting", [as_fitted, with_own_labels])
def test_own_labels_in_the_sums_of_calibration_nodes_cover_too_little(
    predicting: Predict, divisions: list[Division]
) -> None:
    """A calibration node's own label in its sums makes scores too small; test nodes have none."""
    shares = [one.covered(with_own_labels, predicting) for one in divisions]
    assert np.mean(shares) < LEVEL
    assert p_value(shares) < RARE, np.mean(shares)


def test_fit_on_calibration_labels_covers_too_little(
    data: Data, divisions: list[Division], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The method inside is given all labels, in its nets and its sums."""

    def keep_all(inputs: FitInputs, **_: Any) -> FitInputs:
        return inputs

    monkeypatch.setattr(qpignn.methods.conformal, "replace", keep_all)
    shares = []
    for seed, one in enumerate(divisions[: FITS // 2]):
        intervals = Division.of(data, seed).model.predict_interval(data).select(one.test)
        shares.append(intervals.covers(data.y[one.test]).mean())
    assert np.mean(shares) < LEVEL
    assert p_value(shares) < RARE, np.mean(shares)


def test_target_of_a_calibration_node_changes_the_widening_only(
    data: Data, divisions: list[Division]
) -> None:
    """The method inside predicts the same bits, and every bound moves by one amount."""
    first = divisions[0]
    assert first.scored.sum() == SCORED
    y = data.y.clone()
    y[first.scored] += torch.linspace(-30, 30, SCORED, dtype=y.dtype)
    other = Division.of(changed(data, y=y), 0)
    before, after = as_fitted(first), as_fitted(other)
    assert same(before, after)
    assert before.known_neighbours is not None
    assert (before.width != before.width_without).sum() > LABELLED / 2
    (old,), (new,) = (one.model.widenings_[LEVEL].values() for one in (first, other))
    assert new > old + 1
    for model, widening in ((first.model, old), (other.model, new)):
        bounds = model.predict_interval(data)
        np.testing.assert_allclose(bounds.lower, before.lower - widening, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(bounds.upper, before.upper + widening, rtol=1e-12, atol=1e-12)
