"""The catalog: names, modules, object paths, and which settings fit which encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

from qpignn.encoders.catalog import (
    ENCODERS,
    build_encoder,
    check_encoder,
    encoder_class,
    encoder_description,
    encoder_of_file,
)
from qpignn.encoders.pyg import PygEncoder
from qpignn.errors import ModelFileError, SettingError, UnknownNameError


def build(encoder: Any, **settings: Any) -> Any:
    return build_encoder(encoder, 5, 8, 2, generator=torch.Generator().manual_seed(0), **settings)


@pytest.mark.parametrize("name", ENCODERS)
def test_named_encoder_has_its_class_and_all_members_in_every_weight(name: str) -> None:
    encoder = build(name, members=3, norm="layer", residual=True)
    assert type(encoder) is ENCODERS[name]
    assert all(len(weight) == 3 for weight in encoder.parameters())


def test_object_path_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("from torch_geometric.nn import GCNConv as Mine\n")
    encoder = build(f"{path}:Mine")
    assert isinstance(encoder.module, GCNConv)
    assert encoder_class(f"{path}:Mine") is PygEncoder


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": 3}, "encoder: expected one of sage, gcn"),
        ({"encoder": "gcn", "aggregation": "max"}, "aggregation: expected mean with encoder 'gcn'"),
        ({"encoder": GCNConv, "residual": True}, "put them into torch_geometric"),
        ({"encoder": GCNConv(5, 8), "norm": "layer"}, "residual and norm: expected False"),
        ({"encoder": "gat", "batch_size": 64}, "batch_size: expected None with encoder 'gat'"),
        ({"encoder": "sage", "aggregation": "max", "batch_size": 64}, "whole graphs only"),
        ({"encoder": "sage", "residual": "yes"}, "residual: expected true or false"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        check_encoder(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder": "sagee"},
        {"encoder": "sage", "aggregation": "median"},
        {"encoder": "sage", "norm": "batch"},
    ],
    ids=str,
)
def test_unknown_names_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UnknownNameError, match="known are"):
        check_encoder(**settings)


def test_model_file_holds_a_name_only() -> None:
    assert encoder_description("gcn") == "gcn"
    assert encoder_description(GCNConv(5, 8)).endswith(":GCNConv")
    assert encoder_description(nn.Linear) == "torch.nn.modules.linear:Linear"


def test_code_is_never_loaded_because_a_file_names_it() -> None:
    for stored in ("os:system", "mine.py:Mine", "unknown", 3):
        with pytest.raises(ModelFileError, match=r"load\(folder, encoder=\.\.\.\)"):
            encoder_of_file(stored, None, "folder")
    assert encoder_of_file("mine.py:Mine", GCNConv, "folder") is GCNConv
    assert encoder_of_file("gcn", None, "folder") == "gcn"
    with pytest.raises(ModelFileError, match="leave encoder out"):
        encoder_of_file("gcn", GCNConv, "folder")
