"""Saved models: whole, or refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qpignn import QpiGNN, load_dataset, load_method
from qpignn.errors import ModelFileError


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    QpiGNN(epochs=2).fit(load_dataset("basic", nodes=50)).save(tmp_path / "model")
    return tmp_path / "model"


def test_save_writes_weights_and_a_readable_description(saved: Path) -> None:
    there = sorted(path.name for path in saved.iterdir())
    assert there == [".qpignn.lock", "model.json", "model.safetensors"]
    description = json.loads((saved / "model.json").read_text())
    assert description["settings"]["epochs"] == 2
    assert description["names"] == ["x0", "x1", "x2", "x3", "x4"]
    assert set(description["versions"]) == {"qpignn", "torch"}


@pytest.mark.parametrize("cut", [0, 7, 200, -1])
def test_load_truncated_weights_is_refused(saved: Path, cut: int) -> None:
    weights = saved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:cut])
    with pytest.raises(ModelFileError, match=r"model.safetensors: .*cut short, damaged"):
        QpiGNN.load(saved)


def test_load_weights_of_another_model_is_refused(saved: Path, tmp_path: Path) -> None:
    QpiGNN(epochs=2, hidden=8).fit(load_dataset("basic", nodes=50)).save(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").replace(saved / "model.safetensors")
    with pytest.raises(ModelFileError, match="from another model"):
        QpiGNN.load(saved)


def test_load_settings_that_do_not_fit_the_weights_is_refused(saved: Path) -> None:
    description = json.loads((saved / "model.json").read_text())
    description["settings"]["hidden"] = 8
    (saved / "model.json").write_text(json.dumps(description))
    with pytest.raises(ModelFileError, match="does not fit the weights"):
        QpiGNN.load(saved)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "expected JSON"),
        ("[]", "expected the fields"),
        ('{"method": "QpiGNN"}', "expected the fields"),
    ],
)
def test_load_damaged_description_is_refused(saved: Path, content: str, message: str) -> None:
    (saved / "model.json").write_text(content)
    with pytest.raises(ModelFileError, match=message):
        load_method(saved)


def change(saved: Path, **fields: object) -> None:
    description = json.loads((saved / "model.json").read_text())
    (saved / "model.json").write_text(json.dumps({**description, **fields}))


def test_load_unknown_format_or_method_is_refused(saved: Path) -> None:
    change(saved, format=99)
    with pytest.raises(ModelFileError, match="expected format 2, got 99"):
        load_method(saved)
    change(saved, format=2, method="OtherGNN")
    with pytest.raises(ModelFileError, match="got one of 'OtherGNN'; give its class"):
        load_method(saved)
    with pytest.raises(ModelFileError, match="expected a saved QpiGNN, got a OtherGNN"):
        QpiGNN.load(saved)


def test_load_unknown_settings_is_refused(saved: Path) -> None:
    description = json.loads((saved / "model.json").read_text())
    change(saved, settings={**description["settings"], "colour": "red"})
    with pytest.raises(ModelFileError, match="settings"):
        QpiGNN.load(saved)


@pytest.mark.parametrize(
    "fields", [{"settings": {}}, {"settings": 5}, {"columns": "5"}, {"names": 5}]
)
def test_load_invalid_fields_is_refused(saved: Path, fields: dict[str, object]) -> None:
    change(saved, **fields)
    with pytest.raises(ModelFileError, match="the description does not fit"):
        QpiGNN.load(saved)


def test_load_restores_the_width_penalty(saved: Path) -> None:
    assert QpiGNN.load(saved).lambda_width_ == pytest.approx(0.05)


def test_load_missing_model_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ModelFileError, match=r"expected a saved model with model\.json, got no such folder"
    ):
        QpiGNN.load(tmp_path / "nowhere")
    (saved / "model.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"expected the file model\.safetensors, got none"):
        QpiGNN.load(saved)


def test_save_replaces_an_older_model(saved: Path) -> None:
    QpiGNN(epochs=3).fit(load_dataset("basic", nodes=50)).save(saved)
    assert QpiGNN.load(saved).epochs == 3
    assert len(list(saved.iterdir())) == 3  # the lock


def test_save_with_an_unsupported_setting_keeps_the_older_model(saved: Path) -> None:
    method = QpiGNN.load(saved)
    method.fitted_.settings["seed"] = object()
    with pytest.raises(TypeError, match="cannot be saved"):
        method.save(saved)
    assert QpiGNN.load(saved).epochs == 2
