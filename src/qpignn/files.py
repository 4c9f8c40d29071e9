"""Writing files whole (a reader sees the old file or the new one, never a part), and JSON."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any


def finite(value: Any) -> Any:
    """Return a document for JSON, which has no infinity and no NaN: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(inside) for key, inside in value.items()}
    return [finite(inside) for inside in value] if isinstance(value, list | tuple) else value


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` under a temporary name, then give it the real one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
