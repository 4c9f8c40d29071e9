"""Reading of untrusted safetensors files: names, shapes and types are checked.

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

    Args:
        path: the file.

    Returns:
        The tensors by name.

    Raises:
        ValueError: if the file is damaged, or larger than the free memory.
        OSError: if it cannot be read.
    """
    return parse_tensors(read_file_bytes(path))


def read_file_bytes(path: Path) -> bytes:
    """Read a file's bytes, unless they would not fit into the free memory.

    Args:
        path: the file.

    Returns:
        The bytes.

    Raises:
        ValueError, OSError: as :func:`read_tensors`.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > free_memory():
            raise ValueError(f"expected a file that fits into the free memory, got {size:,} bytes")
        return file.read(size)  # not more than was checked


def parse_tensors(content: bytes) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name.

    Args:
        content: the bytes of the file.

    Raises:
        ValueError: if they are damaged.
    """
    try:
        return load(content)
    except (SafetensorError, KeyError, TypeError, RuntimeError) as error:  # KeyError: a new type
        raise ValueError(f"expected tensors, got {error}") from error


def check_tensors(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Check the names, shapes and types of tensors.

    Args:
        tensors: as read from a file.
        expected: tensors with the right names, shapes and types; their values are not used.

    Raises:
        ValueError: if they differ.
    """
    if tensors.keys() != expected.keys():
        missing, unknown = sorted(expected.keys() - tensors), sorted(tensors.keys() - expected)
        raise ValueError(
            f"expected other tensors: missing {quoted(missing) or 'none'}, "
            f"unknown {quoted(unknown) or 'none'}"
        )
    for name, tensor in expected.items():
        got = tensors[name]
        if (got.shape, got.dtype) != (tensor.shape, tensor.dtype):
            raise ValueError(
                f"{name}: expected {tuple(tensor.shape)} of {tensor.dtype}, "
                f"got {tuple(got.shape)} of {got.dtype}"
            )


def check_scalar(tensor: Tensor) -> Tensor:
    """Return a tensor that must hold one floating-point number.

    Args:
        tensor: as read from a file.

    Raises:
        ValueError: if it does not.
    """
    if tensor.dim() or not tensor.is_floating_point():
        raise ValueError(f"expected one number, got {tuple(tensor.shape)} of {tensor.dtype}")
    return tensor


def pack_json(document: Any) -> Tensor:
    """Return a JSON document as a tensor, so that one digest covers it and the weights.

    Args:
        document: what JSON can represent.
    """
    return bytes_to_tensor(json.dumps(document).encode())


def unpack_json(tensor: Tensor) -> Any:
    """Return the document of :func:`pack_json`.

    Args:
        tensor: as read from a file.

    Raises:
        ValueError: if the tensor does not hold one.
    """
    try:
        return json.loads(tensor_to_bytes(tensor))
    except RecursionError as error:
        raise ValueError("expected JSON, got brackets nested too deeply") from error


def bytes_to_tensor(content: bytes) -> Tensor:
    """Return bytes as a tensor of ``uint8``.

    Args:
        content: the bytes.
    """
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def tensor_to_bytes(tensor: Tensor) -> bytes:
    """Return the bytes of :func:`bytes_to_tensor`.

    Args:
        tensor: as read from a file.

    Raises:
        ValueError: if it has another type or shape.
    """
    if tensor.dtype != torch.uint8 or tensor.dim() != 1:
        raise ValueError(f"expected bytes, got {tuple(tensor.shape)} of {tensor.dtype}")
    return tensor.numpy().tobytes()
