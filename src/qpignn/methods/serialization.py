"""A saved model is a folder of two files: ``model.safetensors`` and ``model.json``. No pickle.

The description is written last and carries the weights' digest, so a folder that was only half
written, cut short or mixed from two models is refused, not read.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as save_tensors
from torch import Tensor

from qpignn import __version__
from qpignn.errors import ModelFileError
from qpignn.io.files import LARGEST_JSON, atomic_files, read_json
from qpignn.io.locks import read_consistent
from qpignn.io.tensors import parse_tensors, read_file_bytes

FORMAT = 2
WEIGHTS, DESCRIPTION = "model.safetensors", "model.json"
MODEL_FILES = (WEIGHTS, DESCRIPTION)


def write_folder(folder: Path, description: dict[str, Any], state: dict[str, Tensor]) -> None:
    """Write a model: both files completely, or neither; an earlier model stays until then.

    Args:
        folder: where to.
        description: fields of ``model.json``.
        state: tensors by name.

    Raises:
        ModelFileError: if the description is too long to be read again.
    """
    content = save_tensors({name: tensor.contiguous() for name, tensor in state.items()})
    described = {
        "format": FORMAT,
        **description,
        "weights_sha256": hashlib.sha256(content).hexdigest(),
        "versions": {"qpignn": __version__, "torch": torch.__version__},
    }
    text = json.dumps(described, indent=2, default=_plain).encode()  # before overwriting anything
    if len(text) > LARGEST_JSON:
        raise ModelFileError(
            f"{folder / DESCRIPTION}: expected a description of at most {LARGEST_JSON:,} bytes, "
            f"got {len(text):,}; give the columns shorter names"
        )
    with atomic_files() as files:
        files.write(folder / WEIGHTS, content)
        files.write(folder / DESCRIPTION, text)


def _plain(value: Any) -> Any:
    """Return numbers of NumPy as those of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a setting of type {type(value).__name__} cannot be saved: {value!r}")


def read_folder(
    folder: Path, method: str | None = None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a model's description and tensors.

    Args:
        folder: where the model is.
        method: the name of the class it must be of.

    Returns:
        The description and the tensors.

    Raises:
        ModelFileError: if there is no such model, or a damaged one.
    """
    return read_consistent(folder, MODEL_FILES, lambda: _read_folder(folder, method))


def _read_folder(folder: Path, method: str | None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    description = describe_model(folder)
    if method is not None and description["method"] != method:
        raise ModelFileError(
            f"{folder}: expected a saved {method}, got a {description['method']}; load it with "
            f"{description['method']}.load or load_method"
        )
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise ModelFileError(
            f"{folder}: expected the file {WEIGHTS}, got none; save the model again"
        )
    try:
        content = read_file_bytes(weights)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{weights}: {error}") from error
    if hashlib.sha256(content).hexdigest() != description["weights_sha256"]:
        raise ModelFileError(
            f"{weights}: expected the bytes that {DESCRIPTION} describes, got others "
            f"({len(content):,} bytes): the file is cut short, damaged or from another model; "
            f"save the model again"
        )
    try:
        return description, parse_tensors(content)
    except ValueError as error:
        raise ModelFileError(f"{weights}: {error}; save the model again") from error


def describe_model(folder: Path) -> dict[str, Any]:
    """Return the checked contents of ``model.json``.

    Args:
        folder: where the model is.

    Raises:
        ModelFileError: if there is no such file, or a damaged one.
    """
    path = folder / DESCRIPTION
    if not path.is_file():
        got = "a folder without it" if folder.is_dir() else "no such folder"
        raise ModelFileError(
            f"{folder}: expected a saved model with {DESCRIPTION}, got {got}; make one with "
            f"'qpignn fit' or save()"
        )
    try:
        description = read_json(path)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path}: expected JSON, got something else: {error}") from error
    wanted = {"method", "settings", "columns", "names", "coding", "calibrated_on"}
    wanted |= {"weights_sha256"}
    if not isinstance(description, dict) or not wanted <= description.keys():
        raise ModelFileError(f"{path}: expected the fields {sorted(wanted)}, got others")
    if description.get("format") != FORMAT:
        raise ModelFileError(
            f"{path}: expected format {FORMAT}, got {description.get('format')!r}; "
            f"this is qpignn {__version__}"
        )
    return description
