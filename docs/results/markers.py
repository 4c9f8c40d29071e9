"""Generated blocks inside hand-written pages.

A block stands between ``<!-- results: NAME -->`` and ``<!-- /results -->``, each alone on a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

BLOCK = re.compile(
    r"^<!-- results: (?P<name>[\w-]+) -->$(?P<content>.*?)^<!-- /results -->$",
    flags=re.DOTALL | re.MULTILINE,
)
MARKER = re.compile(r"<!-- /?results\b.*?-->")


def block_names(page: str) -> list[str]:
    """Return the names of a page's blocks, in order.

    Raises:
        ValueError: if a marker is misspelt or has no partner.
    """
    names = [str(block["name"]) for block in BLOCK.finditer(page)]
    markers = MARKER.findall(page)
    if len(markers) != 2 * len(names):
        raise ValueError(
            f"expected pairs of <!-- results: NAME --> and <!-- /results -->, each alone on a "
            f"line, got {markers}; correct the markers"
        )
    return names


def fill(page: str, blocks: Mapping[str, str]) -> str:
    """Return a page with the content of its blocks replaced.

    Args:
        page: Markdown with markers.
        blocks: the new content, by name; every block of the page must be there and no other.

    Raises:
        ValueError: if names on the page and in ``blocks`` differ.
    """
    names = block_names(page)
    if sorted(names) != sorted(blocks):
        raise ValueError(
            f"expected the blocks {sorted(blocks)}, each once, got {sorted(names)} on the page; "
            f"add or remove markers"
        )

    def filled(block: re.Match[str]) -> str:
        content = blocks[block["name"]].strip()
        return f"<!-- results: {block['name']} -->\n\n{content}\n\n<!-- /results -->"

    return BLOCK.sub(filled, page)


def hand_written(page: str) -> str:
    """Return what of a page is not generated."""
    return BLOCK.sub("", page)
