"""Tensors in a safetensors file, which may come from anybody: as it says they are, or refused.

A safetensors file is a header in JSON and numbers; there is nothing in it to execute.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from qpignn.errors import quoted
from qpignn.io.files import open_regular
from qpignn.runtime.memory import free_memory


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file.

    Raises:
        ValueError: where the file is damaged, or larger than the free memory.
        OSError: where it cannot be read.
    """
    return parse_tensors(read_file_bytes(path))


def read_file_bytes(path: Path) -> bytes:
    """Read a file's bytes, unless they would not fit into the free memory.

    Raises:
        ValueError, OSError: as :func:`read_tensors`.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > free_memory():
            raise ValueError(f"expected a file that fits into the free memory, got {size:,} bytes")
        return file.read(size)  # not more than was looked at


def parse_tensors(content: bytes) -> dict[str, Tensor]:
    """Return the tensors of a file's bytes.

    Raises:
        ValueError: where they are damaged.
    """
    try:
        return load(content)
    except (SafetensorError, KeyError, TypeError, RuntimeError) as error:  # KeyError: a new type
        raise ValueError(f"expected tensors, got {error}") from error


def check_tensors(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless tensors have the names, shapes and types they must have."""
    if found.keys() != wanted.keys():
        lacking, strange = sorted(wanted.keys() - found), sorted(found.keys() - wanted)
        raise ValueError(
            f"expected other tensors: missing {quoted(lacking) or 'none'}, "
            f"unknown {quoted(strange) or 'none'}"
        )
    for name, tensor in wanted.items():
        got = found[name]
        if (got.shape, got.dtype) != (tensor.shape, tensor.dtype):
            raise ValueError(
                f"{name}: expected {tuple(tensor.shape)} of {tensor.dtype}, "
                f"got {tuple(got.shape)} of {got.dtype}"
            )


def check_scalar(tensor: Tensor) -> Tensor:
    """Return a tensor that must hold one number, or raise ValueError."""
    if tensor.dim() or not tensor.is_floating_point():
        raise ValueError(f"expected one number, got {tuple(tensor.shape)} of {tensor.dtype}")
    return tensor


def pack_json(words: Any) -> Tensor:
    """Return a JSON document as a tensor, so that it stands among the weights under one digest."""
    return bytes_to_tensor(json.dumps(words).encode())


def unpack_json(tensor: Tensor) -> Any:
    """Return the document of :func:`pack_json`.

    Raises:
        ValueError: where the tensor does not hold one.
    """
    try:
        return json.loads(tensor_to_bytes(tensor))
    except RecursionError as error:
        raise ValueError("expected JSON, got brackets nested too deeply") from error


def bytes_to_tensor(content: bytes) -> Tensor:
    """Return bytes as a tensor."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def tensor_to_bytes(tensor: Tensor) -> bytes:
    """Return the bytes of :func:`bytes_to_tensor`.

    Raises:
        ValueError: where the tensor is of something else.
    """
    if tensor.dtype != torch.uint8 or tensor.dim() != 1:
        raise ValueError(f"expected bytes, got {tuple(tensor.shape)} of {tensor.dtype}")
    return tensor.numpy().tobytes()
