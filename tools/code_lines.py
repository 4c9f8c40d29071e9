"""Count lines of code: without blank lines, comments and docstrings.

    python tools/code_lines.py [PATH ...]           # total, default src
    python tools/code_lines.py --files [PATH ...]   # and every file, longest first

Stubs (``.pyi``) count as well. A line counts if a token of code begins or continues on it. Strings
that stand alone as a statement (docstrings, and those below attributes) do not count. Code is
formatted by ruff, so that a count cannot be lowered by longer lines.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from pathlib import Path

IGNORED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Return the number of lines of code in Python source.

    Args:
        source: the text of a module.

    Returns:
        The number of lines that hold code.
    """
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        stands_alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if stands_alone and isinstance(node.value.value, str):
            documentation |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in IGNORED:
            lines |= {*range(token.start[0], token.end[0] + 1)}
    return len(lines - documentation)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("src")])
    parser.add_argument("--files", action="store_true", help="list every file, longest first")
    asked = parser.parse_args()
    files = [
        file
        for path in asked.paths
        for file in (path.rglob("*.py*") if path.is_dir() else [path])
        if file.suffix in (".py", ".pyi")
    ]
    counts = {file: code_lines(file.read_text()) for file in files}
    if asked.files:
        for file, count in sorted(counts.items(), key=lambda item: -item[1]):
            print(f"{count:6} {file}")
    print(f"{sum(counts.values()):6} lines of code in {len(counts)} files")


if __name__ == "__main__":
    main()
