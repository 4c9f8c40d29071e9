"""Bytes as a row of choices, so that a fuzzer that changes bytes changes decisions."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *("", "x", "../../x", "/etc/passwd", "__class__", "</script>", "a\0b", "\ud800", "9" * 30),
    *([], [1], ["x"], [[]], {}, {"x": 1}, [None] * 50),
)
TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL", "F4", "C64", "X")


class Choices:
    """Reads decisions from bytes; where these end, the first choice is taken."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        chosen = self.data[self.at] if self.at < len(self.data) else 0
        self.at += 1
        return chosen

    def below(self, count: int) -> int:
        """A number from 0 to before ``count``."""
        value = self.byte()
        for _ in range((max(count - 1, 0)).bit_length() // 8):
            value = value * 256 + self.byte()
        return value % count if count else 0

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def some(self, most: int) -> bytes:
        """Bytes as they are, up to so many."""
        count = self.below(most + 1)
        chosen = self.data[self.at : self.at + count]
        self.at += count
        return chosen

    @property
    def left(self) -> bool:
        return self.at < len(self.data)


def corrupt_bytes(content: bytes, choices: Choices) -> bytes:
    """Overwrite, insert, cut out, cut off, or repeat something."""
    at = choices.below(len(content) + 1)
    kind = choices.below(6)
    if kind == 0:
        new = choices.some(16)
        return content[:at] + new + content[at + len(new) :]
    if kind == 1:
        return content[:at] + choices.some(64) + content[at:]
    if kind == 2:
        return content[:at] + content[at + choices.below(256) :]
    if kind == 3:
        return content[:at]
    if kind == 4:
        return content[:at] + content[at : at + 64] * choices.below(20) + content[at:]
    number = struct.pack(choices.pick(("<B", "<H", "<I", "<Q")), 0)
    edge = choices.pick((b"\xff", b"\x00", b"\x80", b"\x7f"))
    return content[:at] + edge * len(number) + content[at + len(number) :]


def corrupt_json(document: Any, choices: Choices) -> Any:
    """Walk to some place of a document and put something else there."""
    if not isinstance(document, dict | list) or not document or choices.below(5) == 0:
        return copy.deepcopy(choices.pick(VALUES))
    keys: Sequence[Any] = list(document) if isinstance(document, dict) else range(len(document))
    key = choices.pick(keys)
    changed = dict(document) if isinstance(document, dict) else list(document)
    what = choices.below(8)
    if what == 0:
        del changed[key]
    elif what == 1 and isinstance(changed, dict):
        changed[choices.pick(("x", "../x", "__class__", "method", ""))] = document[key]
    elif what == 2:
        changed[key] = document[choices.pick(keys)]
    else:
        changed[key] = corrupt_json(document[key], choices)
    return changed


def corrupt_json_file(content: bytes, choices: Choices) -> bytes:
    """Change a document's meaning, now and then its text."""
    if choices.below(4) == 0:
        return corrupt_bytes(content, choices)
    try:
        return json.dumps(corrupt_json(json.loads(content), choices)).encode()
    except (ValueError, RecursionError):
        return corrupt_bytes(content, choices)


def corrupt_tensors(content: bytes, choices: Choices) -> bytes:
    """Change what a safetensors file's header says, or its numbers."""
    if choices.below(3) == 0 or len(content) < 8:
        return corrupt_bytes(content, choices)
    size = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + size])
        name = choices.pick(sorted(header))
        entry = header[name]
        what = choices.below(5)
        if what == 0:
            entry["dtype"] = choices.pick(TYPES)
        elif what == 1:
            entry["shape"] = [choices.pick((0, 1, 2, 2**40, 2**63, *entry["shape"]))]
        elif what == 2:
            header[choices.pick(sorted(header))] = entry
        elif what == 3:
            del header[name]
        else:
            header = corrupt_json(header, choices)
        text = json.dumps(header).encode()
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError, IndexError):
        return corrupt_bytes(content, choices)
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def corrupt_file(name: str, content: bytes, choices: Choices) -> bytes:
    """Change a file in the way that reaches deepest into its reader."""
    if name.endswith(".json"):
        return corrupt_json_file(content, choices)
    if name.endswith(".safetensors"):
        return corrupt_tensors(content, choices)
    return corrupt_bytes(content, choices)
