"""Settings of methods: typed fields in signatures, and scikit-learn's conventions on top."""

from __future__ import annotations

import ast
import inspect
import typing
from pathlib import Path

import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from torch_geometric.data import Data

import qpignn
from qpignn import QpiGNN, load_dataset
from qpignn.calibration.conformal import SCORES
from qpignn.data.scaling import TRANSFORMS, Transform
from qpignn.encoders.activations import ACTIVATIONS, ActivationName
from qpignn.encoders.base import AGGREGATIONS, NORMS, Aggregation, Norm
from qpignn.methods import SQR, Conformal, DeepEnsemble, IntervalMethod, MCDropout, NetMethod
from qpignn.methods.catalog import CLASSES
from qpignn.methods.fitted import settings_of
from qpignn.nn.heads import POSITIVE, Positive
from qpignn.objectives.joint import VIOLATIONS, WIDTHS, ViolationForm, WidthForm

MOST_METHODS = 20
ROOT = Path(qpignn.__file__).parent


@pytest.fixture(scope="module")
def data() -> Data:
    return load_dataset("basic", nodes=150)


@pytest.mark.parametrize("cls", [*CLASSES.values(), Conformal])
def test_signature_names_every_setting_with_its_type(cls: type[IntervalMethod]) -> None:
    parameters = inspect.signature(cls).parameters.values()
    assert all(one.kind != one.VAR_KEYWORD for one in parameters)
    assert all(one.annotation is not one.empty for one in parameters)
    assert not any(isinstance(one.annotation, str) for one in parameters)  # evaluated: IDEs, help
    assert {one.name for one in parameters} == {*settings_of(cls)}
    if issubclass(cls, NetMethod):
        assert {"confidence_level", "hidden", "lr", "seed"} <= {*settings_of(cls)}


def test_signature_closed_choices_are_literals() -> None:
    hints = {name: one.annotation for name, one in inspect.signature(QpiGNN).parameters.items()}
    assert typing.get_args(hints["activation"]) == ("silu", "relu")
    assert typing.get_args(hints["side"]) == ("both", "lower", "upper")
    assert "Literal['auto', 'tuned']" in str(hints["lambda_width"])
    score = inspect.signature(Conformal).parameters["score"].annotation
    assert typing.get_args(score) == SCORES


@pytest.mark.parametrize(
    ("literal", "registry"),
    [
        (ActivationName, ACTIVATIONS),
        (Aggregation, AGGREGATIONS),
        (Norm, NORMS),
        (Transform, TRANSFORMS),
        (Positive, POSITIVE),
        (ViolationForm, VIOLATIONS),
        (WidthForm, WIDTHS),
    ],
    ids=lambda value: "registry" if isinstance(value, dict | tuple) else None,
)
def test_literal_names_what_its_registry_holds(literal: object, registry: dict) -> None:
    assert typing.get_args(literal) == tuple(registry)


def test_constructor_takes_the_first_settings_by_position() -> None:
    model = QpiGNN(0.8, 0.05)
    assert (model.confidence_level, model.lambda_width) == (0.8, 0.05)
    assert SQR([0.5, 0.9]).confidence_level == [0.5, 0.9]
    assert (MCDropout().dropout, NetMethod.dropout, DeepEnsemble().members) == (0.2, 0.1, 5)
    with pytest.raises(TypeError):
        SQR(0.9, 5)  # only the level has a position
    with pytest.raises(TypeError, match="epochz"):
        SQR(epochz=5)


def test_params_set_get_and_clone() -> None:
    model = QpiGNN(0.8, hidden=16)
    assert model.set_params(hidden=8, side="upper").get_params()["hidden"] == 8
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    nested = Conformal(SQR(hidden=4), score="absolute").set_params(method__hidden=6)
    assert nested.get_params()["method__hidden"] == 6
    assert clone(nested).method.hidden == 6
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(hiden=3)


def test_repr_shows_changed_settings_only() -> None:
    assert repr(QpiGNN(hidden=8)) == "QpiGNN(hidden=8)"


def test_params_of_a_grid_are_fitted_one_by_one(data: Data) -> None:
    grid = ParameterGrid({"hidden": [2, 4], "activation": ["silu", "relu"]})
    fits = [clone(SQR(epochs=2)).set_params(**one).fit(data) for one in grid]
    assert {(fit.hidden, fit.activation) for fit in fits} == {
        (one["hidden"], one["activation"]) for one in grid
    }
    assert len({fit.parameters_ for fit in fits}) == 2


@pytest.mark.parametrize("members", [2, 3, 7])
def test_members_need_not_be_a_multiple_of_the_folds(members: int, data: Data) -> None:
    fitted = DeepEnsemble(members=members, epochs=3).fit(data)
    assert all(len(weight) == members for weight in fitted.net_.parameters())
    assert len(fitted.predict_interval(data)) == 150


def test_members_fewer_than_the_folds_calibrate_on_the_units_they_held_out(data: Data) -> None:
    for members, share in ((1, 0.2), (3, 0.6), (5, 1.0), (7, 1.0)):
        fitted = QpiGNN(members=members, epochs=3).fit(data)
        assert fitted.fitted_.calibrated_on == round(share * 150)


def test_predictions_change_nothing_in_a_fitted_method(data: Data) -> None:
    for model in (SQR(epochs=2), MCDropout(epochs=2, passes=3), QpiGNN(epochs=2)):
        model.fit(data)
        before = {name: id(value) for name, value in vars(model).items()}
        inside = {name: id(value) for name, value in vars(model.net_.encoder).items()}
        head = {name: str(value) for name, value in vars(model.net_.head).items()}
        level = 0.3 if model.any_level else None
        model.predict_interval(data, confidence_level=level)
        assert {name: id(value) for name, value in vars(model).items()} == before
        assert {name: id(value) for name, value in vars(model.net_.encoder).items()} == inside
        assert {name: str(value) for name, value in vars(model.net_.head).items()} == head


def test_fit_checks_a_graph_once(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []
    original = qpignn.data.graph.check_graph

    def counted(*args: object, **options: object) -> Data:
        calls.append(True)
        return original(*args, **options)

    monkeypatch.setattr("qpignn.tasks.node.check_graph", counted)
    model = Conformal(SQR([0.5, 0.9], epochs=2), groups="degree").fit(data)
    assert len(calls) == 1
    model.predict_interval(data)
    assert len(calls) == 2
    model.predict_levels(data)
    assert len(calls) == 3


def test_initial_weights_reach_the_net(data: Data) -> None:
    first = SQR(epochs=1, lr=1e-12).fit(data)
    zeros = {name: torch.zeros_like(w) for name, w in first.net_.state_dict().items()}
    second = SQR(epochs=1, lr=1e-12, weight_decay=0.0).fit(data, initial_weights=zeros)
    assert max(float(w.abs().max()) for w in second.net_.parameters()) < 1e-9


def test_no_class_has_more_than_twenty_methods() -> None:
    for path in sorted((ROOT / "methods").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                count = sum(isinstance(one, ast.FunctionDef) for one in node.body)
                assert count <= MOST_METHODS, (path.name, node.name, count)


def test_qpignn_class_tree_lies_in_three_files() -> None:
    own = [cls for cls in QpiGNN.__mro__ if cls.__module__.startswith("qpignn.")]
    assert len({cls.__module__ for cls in own}) == 3
