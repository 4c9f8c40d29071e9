"""A model folder from an untrusted source: read as it says it is, or refused by name."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from hostile import (
    ROLES,
    checkpoint,
    describe,
    integers,
    retype,
    safetensors,
    sha256,
    sign,
    within,
)
from qpignn import QpiGNN, load_dataset, load_method, make_method
from qpignn.data.mapped import graph_digest
from qpignn.data.storage import load_graph
from qpignn.errors import ModelFileError, QpignnError, ReadError, SettingError, WriteError
from qpignn.io import tensors as reading
from qpignn.io.files import LARGEST_JSON, write_atomically
from qpignn.methods.bundle import load_fit, save_fit
from qpignn.reports.content import write_report
from qpignn.training.checkpoint import checkpoints, clear_checkpoints, fit_key

ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def test_load_fit_of_a_signed_valid_folder(model: Path) -> None:
    sign(model)  # the tests below sign what they change: that alone must not be refused
    fit = load_fit(model)
    intervals = fit.model.predict_interval(fit.data)
    assert np.isfinite(intervals.width).all()


@pytest.mark.parametrize(
    "content",
    [
        safetensors({}, length=2**60),
        safetensors({}, length=2**64 - 1),
        safetensors({"a": ONE}, bytes(4), length=10**8),
        safetensors({"a": {**ONE, "shape": [2**62, 4]}}),
        safetensors({"a": {**ONE, "shape": [2**40, 2**40]}}),
        safetensors({"a": {**ONE, "data_offsets": [0, 2**40]}}, bytes(4)),
        safetensors({"a": {**ONE, "data_offsets": [4, 0]}}, bytes(4)),
        safetensors({"a": ONE, "b": ONE}, bytes(4)),
        safetensors({"a": {**ONE, "dtype": "OBJ"}}, bytes(4)),
        safetensors({"a": {**ONE, "dtype": "F4", "shape": [8]}}, bytes(4)),
        safetensors(b'{"a":' + b"[" * 50_000),
        safetensors(b"\xff\xfe{}"),
        b"",
        b"PK\x03\x04" + bytes(60),  # what torch.save begins with
    ],
    ids=lambda content: f"{content[:14]!r} {len(content)}",
)
def test_load_fit_header_beyond_the_file_is_refused(model: Path, content: bytes) -> None:
    (model / "model.safetensors").write_bytes(content)
    sign(model)
    with within(), pytest.raises(ModelFileError, match=r"model\.safetensors"):
        load_fit(model)


@pytest.mark.parametrize(
    "tensors",
    [
        {"net__head__bias": integers(5, 7, 1)},
        {"net__head__bias": torch.zeros(5, 7, 1, dtype=torch.float64)},
        {"net__head__bias": torch.zeros(5, 1, 1)},
        {"net__head__bias": torch.zeros(0, 2**50)},
        {"net__head__bias": None},
        {"net__head__more": torch.zeros(1)},
        {"something": torch.zeros(1)},
        {"x_scaler__shift": torch.zeros(1, dtype=torch.float64)},
        {"x_scaler__scale": integers(6)},
        {"y_scaler__scale": torch.zeros(1, dtype=torch.float64)},
        {"y_scaler__shift": torch.tensor([float("nan")], dtype=torch.float64)},
        {"y_scaler__transform": torch.tensor(list(b"../x"))},
        {"y_scaler__transform": torch.tensor([1e9])},
        {"y_scaler__transform": torch.tensor([-1, 300])},
        {"limits": torch.zeros(3, dtype=torch.float64)},
        {"limits": torch.zeros(2)},
        {"limits": torch.tensor([float("nan"), 1.0], dtype=torch.float64)},
        {"limits": torch.tensor([1.0, 0.0], dtype=torch.float64)},
        {"limits": None},
        {"stretches": torch.zeros(0, 4, dtype=torch.float64)},
        {"stretches": torch.zeros(1, 2, dtype=torch.float64)},
        {"stretches": torch.zeros((), dtype=torch.float64)},
        {"lambda_width": torch.zeros(3, dtype=torch.float64)},
        {"history": torch.tensor(list(b"[" * 50_000), dtype=torch.uint8)},
        {"history": torch.tensor(list(b'{"loss": "x"}'), dtype=torch.uint8)},
        {"history": torch.zeros(3)},
        {"history": None},
    ],
    ids=" ".join,
)
def test_load_fit_tensors_of_wrong_type_or_shape_are_refused(
    model: Path, tensors: dict[str, Tensor | None]
) -> None:
    retype(model, **tensors)
    with within(), pytest.raises(ModelFileError):
        load_fit(model)


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ({"columns": 10**12}, {}),
        ({"columns": -1}, {}),
        ({}, {"hidden": 10**7}),
        ({}, {"hidden": 2**62}),
        ({}, {"layers": 10**9}),
        ({}, {"members": 5 * 10**8}),
        ({}, {"confidence_level": [i / 10**6 for i in range(1, 10**5)]}),
    ],
    ids=lambda values: str(values)[:40],
)
def test_load_fit_huge_settings_are_refused(
    model: Path, field: dict[str, Any], settings: dict[str, Any]
) -> None:
    stored = json.loads((model / "model.json").read_text())["settings"]
    describe(model, **field, settings={**stored, **settings})
    with within(), pytest.raises(ModelFileError):
        load_fit(model)


def test_load_method_huge_number_of_passes_is_refused(tmp_path: Path) -> None:
    made = make_method("mc_dropout", epochs=1).fit(load_dataset("basic", nodes=40))
    made.save(tmp_path)
    stored = json.loads((tmp_path / "model.json").read_text())["settings"]
    describe(tmp_path, settings={**stored, "passes": 10**9})
    with pytest.raises(ModelFileError, match="passes: expected at most"):
        load_method(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["../../x", "__class__", "os.system", "Conformal.__init__", "", 5, None, ["QpiGNN"], {"a": 1}],
    ids=repr,
)
def test_methods_are_looked_up_never_imported(model: Path, name: Any) -> None:
    describe(model, method=name)
    with pytest.raises(QpignnError, match="expected a saved model of a method of qpignn"):
        load_fit(model)


def test_prefit_net_named_by_a_file_is_refused(model: Path) -> None:
    named = (name.replace(".", "__") for name in load_file(model / "model.safetensors"))
    retype(model, **{**dict.fromkeys(named), "history": _history()})
    inner = {"model": "os.system", "confidence_level": 0.9}
    describe(model, method="Prefit", settings=inner)
    fit = load_fit(model)
    with pytest.raises(QpignnError, match="expected the net it was calibrated for"):
        fit.model.predict_interval(fit.data)


def _history() -> Tensor:
    history = {"loss": [], "coverage": [], "width": [], "held_out": {}, "best_epoch": -1}
    return torch.tensor(list(json.dumps({**history, "stopped": "x"}).encode()), dtype=torch.uint8)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 10**6,
        b'{"a":' * 10**5,
        b'{"method": NaN}',
        b'{"format": Infinity}',
        b'{"columns": ' + b"9" * 10_000 + b"}",
        b"\xff\xfe\x00",
        b'"just a word"',
        b"null",
        b"{}",
        b"<script>alert(1)</script>",
    ],
    ids=lambda content: repr(content[:12]),
)
@pytest.mark.parametrize("file", ["model.json", "fit.json"])
def test_load_fit_invalid_or_deep_json_is_refused(model: Path, file: str, content: bytes) -> None:
    (model / file).write_bytes(content)
    sign(model)
    with within(), pytest.raises(ModelFileError):
        load_fit(model)


@pytest.mark.parametrize("file", ["model.json", "fit.json"])
def test_json_larger_than_any_description(model: Path, file: str) -> None:
    with (model / file).open("r+b") as opened:
        opened.truncate(LARGEST_JSON * 1000)  # a file with a hole: no bytes on the disk
    with within(megabytes=3 * LARGEST_JSON // 2**20), pytest.raises(ModelFileError):
        load_fit(model)


@pytest.mark.parametrize(
    "setting",
    [
        {"activation": "__import__('os').system('touch pwned')"},
        {"device": "/etc/passwd"},
        {"device": {"__reduce__": ["os.system", "touch pwned"]}},
        {"dtype": "object"},
        {"scaling": "../../etc/passwd"},
        {"target_transform": "eval"},
        {"seed": "0; import os"},
        {"lambda_width": {"$ref": "file:///etc/passwd"}},
        {"__class__": "os.system"},
        {"__init__": "x"},
        {"verbose": "x"},
    ],
    ids=str,
)
def test_settings_are_values_never_code(
    model: Path, setting: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    stored = json.loads((model / "model.json").read_text())["settings"]
    describe(model, settings={**stored, **setting})
    with pytest.raises(ModelFileError):
        load_fit(model)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"names": [["x"], {}, 1, None, True, 2.5]},
        {"names": []},
        {"coding": {"missing": "error", "columns": "x"}},
        {"coding": {"missing": "eval", "columns": []}},
        {"calibrated_on": True},
    ],
    ids=str,
)
def test_load_fit_description_with_wrong_types_is_refused(
    model: Path, fields: dict[str, Any]
) -> None:
    describe(model, **fields)
    with pytest.raises(ModelFileError):
        load_fit(model)


@pytest.mark.parametrize(
    "place",
    ["../graph", "graph", "/tmp/../etc", "/etc", "/dev/zero", "a\0b", "", "~", 5, None, ["/etc"]],
    ids=repr,
)
def test_load_fit_graph_with_an_invalid_path_is_refused(model: Path, place: Any) -> None:
    describe(model, "fit.json", graph={"folder": place, "digest": "0" * 64})
    with within(), pytest.raises(ModelFileError):
        load_fit(model)


def test_load_fit_graph_with_another_digest_is_refused(model: Path, graph: Path) -> None:
    masks = {"test_mask": torch.zeros(40, dtype=torch.bool)}
    (model / "graph" / "masks.safetensors").write_bytes(save(masks))
    reference = {"folder": str(graph.resolve()), "digest": graph_digest(graph)}
    describe(model, "fit.json", graph=reference)
    assert load_fit(model).data.x.shape[0] == 40
    describe(model, "fit.json", graph={**reference, "digest": "0" * 64})
    with pytest.raises(ModelFileError, match="got another graph"):
        load_fit(model)


@pytest.mark.parametrize(
    "masks",
    [
        {"x": torch.zeros(40, 6)},
        {"edge_index": torch.full((2, 4), 10**12)},
        {"test_mask": torch.zeros(2**20, dtype=torch.bool)},
        {"test_mask": torch.zeros(40)},
        {"__class__": torch.zeros(40, dtype=torch.bool)},
    ],
    ids=" ".join,
)
def test_load_fit_invalid_masks_are_refused(
    model: Path, graph: Path, masks: dict[str, Tensor]
) -> None:
    (model / "graph" / "masks.safetensors").write_bytes(save(masks))
    reference = {"folder": str(graph.resolve()), "digest": graph_digest(graph)}
    describe(model, "fit.json", graph=reference)
    with pytest.raises(ModelFileError, match="the stored masks are damaged"):
        load_fit(model)


def test_digests_name_no_other_files(model: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    description = json.loads((model / "fit.json").read_text())
    description["digests"] |= {"../secret": sha256(tmp_path / "secret")}
    (model / "fit.json").write_text(json.dumps(description))
    with pytest.raises(ModelFileError, match="missing, damaged or mixed files"):
        load_fit(model)


@pytest.mark.parametrize(
    "roles",
    [
        {},
        [],
        "x",
        {"target": ["x"]},
        {**ROLES.to_dict(), "id": 5},
        {**ROLES.to_dict(), "encoding": None},
        {**ROLES.to_dict(), "edge_ends": "ab"},
        {**ROLES.to_dict(), "edge_ends": [1, {}]},
        {**ROLES.to_dict(), "directed": "yes"},
    ],
    ids=str,
)
def test_load_fit_roles_with_wrong_types_are_refused(model: Path, roles: Any) -> None:
    describe(model, "fit.json", roles=roles)
    with pytest.raises(ModelFileError, match="missing, damaged or mixed files"):
        load_fit(model)


@pytest.mark.parametrize(
    "tensors",
    [
        {"edge_index": torch.full((2, 4), 10**12)},
        {"edge_index": torch.full((2, 4), -1)},
        {"edge_index": torch.zeros(2, 4)},
        {"edge_index": torch.zeros(2, 0, 2**40, dtype=torch.int64)},
        {"edge_index": None},
        {"x": torch.full((40, 6), float("nan"))},
        {"x": torch.zeros(40, 6, dtype=torch.complex64)},
        {"x": torch.zeros(0, 2**40)},
        {"x": torch.zeros(40)},
        {"x": None},
        {"y": torch.zeros(39)},
        {"test_mask": integers(40)},
    ],
    ids=lambda tensors: str({k: v if v is None else v.dtype for k, v in tensors.items()}),
)
def test_load_fit_invalid_graph_is_refused(model: Path, tensors: dict[str, Tensor | None]) -> None:
    retype(model, "graph/graph.safetensors", **tensors)
    with within(), pytest.raises(ReadError, match="graph"):
        load_fit(model)


@pytest.mark.parametrize(
    "sparse",
    [
        {"columns": torch.tensor([0, 10**12])},
        {"columns": torch.tensor([0, -1])},
        {"columns": torch.tensor([0.5, 1.5])},
        {"starts": torch.tensor([0, 5, 1])},
        {"starts": torch.tensor([0, 2**62, 2])},
        {"values": torch.zeros(9)},
        {"shape": torch.tensor([2, -5])},
        {"shape": torch.tensor([2**40, 5])},
        {"shape": torch.tensor([2.5, 5])},
        {"shape": torch.tensor([])},
    ],
    ids=str,
)
def test_sparse_features_that_point_outside(tmp_path: Path, sparse: dict[str, Tensor]) -> None:
    parts = {
        "values": torch.ones(2),
        "columns": torch.tensor([0, 1]),
        "starts": torch.tensor([0, 1, 2]),
        "shape": torch.tensor([2, 5]),
    }
    numbers = {f"x.{name}": tensor for name, tensor in {**parts, **sparse}.items()}
    numbers["edge_index"] = torch.zeros(2, 0, dtype=torch.int64)
    (tmp_path / "graph.safetensors").write_bytes(save(numbers))
    pd.DataFrame({"id": [0, 1]}).to_parquet(tmp_path / "nodes.parquet")
    with within(), pytest.raises(ReadError, match="damaged"):
        load_graph(tmp_path)


# ---- links and other things that are no files


@pytest.mark.parametrize("file", ["model.json", "model.safetensors", "fit.json"])
@pytest.mark.parametrize("place", ["/dev/zero", "/dev/urandom", "/etc/passwd", "/proc/kcore"])
def test_load_fit_links_to_endless_files_are_refused(model: Path, file: str, place: str) -> None:
    if not Path(place).exists():
        pytest.skip(f"needs {place}")
    (model / file).unlink()
    (model / file).symlink_to(place)
    with within(), pytest.raises(ModelFileError) as caught:
        load_fit(model)
    assert "root:" not in str(caught.value)


def test_weights_larger_than_memory_are_not_read(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "free_memory", lambda: 100)
    with within(), pytest.raises(ModelFileError, match="fits into the free memory"):
        load_fit(model)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """What lies beside the given folder and must stay as it is."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert (folder / "mine.txt").read_text() == "mine"


def test_write_report_does_not_follow_a_link_at_its_path(
    model: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (model / "report.html").symlink_to(outside / "mine.txt")
    monkeypatch.setattr(secrets, "token_hex", lambda size: "guessed")
    (model / ".report.html.guessed").symlink_to(outside / "mine.txt")
    fit = load_fit(model)
    with pytest.raises(WriteError, match="File exists"):
        write_report(fit.model, fit.data, model / "report.html")
    monkeypatch.undo()
    write_report(fit.model, fit.data, model / "report.html")
    assert (model / "report.html").read_text().startswith("<!doctype html>")
    assert not (model / "report.html").is_symlink()


def test_links_in_a_folder_that_is_written_again_are_not_followed(
    model: Path, outside: Path
) -> None:
    fit = load_fit(model)
    for name in ("model.json", "model.safetensors", "fit.json", "graph/graph.safetensors"):
        (model / name).unlink()
        (model / name).symlink_to(outside / "mine.txt")
    save_fit(model, fit)
    assert load_fit(model).origin == fit.origin


def test_save_fit_linked_graph_folder_is_refused(model: Path, outside: Path) -> None:
    fit = load_fit(model)
    shutil.rmtree(model / "graph")
    (model / "graph").symlink_to(outside)
    with pytest.raises(SettingError, match="got a link to one"):
        save_fit(model, fit)


def test_checkpoints_linked_folder_is_refused(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "checkpoint").symlink_to(outside)
    data, method = load_dataset("basic", nodes=30), QpiGNN(epochs=1, hidden=2)
    with (
        pytest.raises(SettingError, match="got a link to one"),
        checkpoints(tmp_path / "checkpoint", fit_key(method, data)),
    ):
        method.fit(data)
    with pytest.raises(SettingError, match="got a link to one"):
        clear_checkpoints(tmp_path / "checkpoint")


def test_replacing_a_file_replaces_a_link(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "a").symlink_to(outside / "mine.txt")
    write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


# ---- checkpoints


@pytest.fixture
def unfinished(tmp_path: Path) -> tuple[Path, str, Any, Any]:
    """A fit, and the words that a checkpoint of it must say."""
    data, method = load_dataset("basic", nodes=30), QpiGNN(epochs=3, hidden=2, members=5)
    key = fit_key(method, data)
    with checkpoints(tmp_path / "c", key, every=0):
        method.fit(data)
    return tmp_path / "c", key, data, method


def test_checkpoints_valid_checkpoint_is_resumed(unfinished: Any) -> None:
    folder, key, data, method = unfinished
    messages: list[str] = []
    with checkpoints(folder, key, notify=messages.append):
        method.fit(data)
    assert messages == ["all training was done already"]


@pytest.mark.parametrize(
    "changes",
    [
        {"history": None},
        {"history": {"loss": ["x"]}},
        {"callbacks": "x"},
        {"callbacks": ["Other"]},
        {"callbacks.0.best_score": "x"},
        {"callbacks.0.best_score": [1]},
        {"finished": "yes"},
        {"finished": False},
        {"start": 5},
        {"choices": ["x"]},
        {"choices": {"batch size": -1}},
        {"choices": {"batch size": 0}},
        {"choices": {"batch size": "x"}},
        {"format": "x"},
        {"key": "x"},
    ],
    ids=str,
)
def test_checkpoints_invalid_description_is_refused(
    unfinished: Any, changes: dict[str, Any]
) -> None:
    folder, key, data, method = unfinished
    (path,) = folder.glob("training-*.safetensors")
    tensors = load_file(path)
    description = json.loads(bytes(tensors.pop("words").tolist()))
    tensors.pop("sha256")
    checkpoint(path, {**description, **changes}, **tensors)
    with pytest.raises(ModelFileError), checkpoints(folder, key):
        method.fit(data)


@pytest.mark.parametrize(
    "tensors",
    [
        {"vector": torch.zeros(3)},
        {"vector": torch.zeros(0, 2**50)},
        {"callbacks.0.best_weights": torch.zeros(1)},
        {"generators.0": torch.zeros(5, dtype=torch.uint8)},
        {"generators.0": torch.full((5056,), 255, dtype=torch.uint8)},
    ],
    ids=lambda tensors: str({name: tuple(t.shape) for name, t in tensors.items()}),
)
def test_checkpoints_invalid_tensors_are_refused(
    unfinished: Any, tensors: dict[str, Tensor]
) -> None:
    folder, key, data, method = unfinished
    (path,) = folder.glob("training-*.safetensors")
    stored = load_file(path)
    description = json.loads(bytes(stored.pop("words").tolist()))
    stored.pop("sha256")
    checkpoint(path, description, **{**stored, **tensors})
    with pytest.raises(ModelFileError), checkpoints(folder, key):
        method.fit(data)


def test_checkpoints_invalid_generator_state_is_refused(tmp_path: Path) -> None:
    data = load_dataset("basic", nodes=60)
    method = make_method("corrected", epochs=2, hidden=2, correction_epochs=2)
    key = fit_key(method, data)
    with checkpoints(tmp_path, key, every=0):
        method.fit(data)
    path = tmp_path / "training-2.safetensors"
    tensors = load_file(path)
    description = json.loads(bytes(tensors.pop("words").tolist()))
    (name,) = [name for name in description if name.startswith("generators.")]
    description[name] = {"bit_generator": "os.system"}
    tensors.pop("sha256")
    checkpoint(path, description, **tensors)
    with pytest.raises(ModelFileError, match="got a damaged one"), checkpoints(tmp_path, key):
        method.fit(data)


@pytest.mark.parametrize(
    "content", [safetensors({}, length=2**60), b"", safetensors({"a": ONE}, bytes(4))], ids=len
)
def test_checkpoints_invalid_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "training-1.safetensors").write_bytes(content)
    with within(), pytest.raises(ModelFileError, match="got a damaged one"):
        checkpoints(tmp_path, "key").__enter__()
    checkpoint(tmp_path / "training-1.safetensors", ["x"])
    with pytest.raises(ModelFileError, match="got a damaged one"):
        checkpoints(tmp_path, "key").__enter__()
