"""List identifiers and phrases that the style guide replaces by standard terms.

    python tools/check_wording.py [PATH ...]   # default: src, docs, examples and pages

Identifiers are checked in Python code (variables, arguments, functions, classes, attributes of
``self``), phrases in every line of text: code, docstrings, messages and documentation.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

DEFAULT = (
    *("src", "docs", "examples", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"),
    *("SECURITY.md", "CHANGELOG.md"),
)
SUFFIXES = (".py", ".md", ".js", ".ipynb")
IDENTIFIERS = {
    *("told", "said", "found", "known", "calm", "dear", "amiss", "strangers", "nobody", "everyone"),
    *("Reach", "Stretch", "Said", "Told", "Course", "Keeper", "Stepped", "Seen", "Picked"),
    *("doubts", "lonely", "telling", "room", "words", "heaps", "heap", "deal", "dealt", "judged"),
}
UNIT = (
    "node|unit|epoch|row|step|column|edge|graph|line|file|member|level|rank|group|cell|seed|point"
)
PHRASES = {
    r"\bamiss\b": "invalid",
    r"\bmanners\b": "conventions",
    r"\bstrangers?\b": "nodes not used for training, or: untrusted",
    r"\b(no|some|any)body\b": "name the reader, the caller or the process",
    r"\btold\b": "given, set, specified",
    rf"\b(one|a|an) (?!\w+ly )\w+ an? (?:{UNIT})\b": "one … per …",
    r"\bthe house\b": "the package",
    r"\bwhole miss\b": "spends all of α on that side",
    r"\bspoilt\b": "corrupted, overwritten",
    r"\bby hand\b": "manually, hand-written",
    r"\bdeaf to\b|\bblind to\b": "does not support",
    r"\bhave their say\b|\bthe word of\b": "outputs of",
}


def identifier_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of every identifier that Python source binds and the guide replaces.

    Args:
        source: the text of a module.
    """
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names = [node.id]
        elif isinstance(node, ast.arg):
            names = [node.arg]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names = [node.attr]
        for name in names:
            if name.strip("_") in IDENTIFIERS:
                yield node.lineno, name


def problems(path: Path) -> Iterator[str]:
    """Yield the problems of a file, one per line.

    Args:
        path: the file.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for line, name in identifier_lines(text):
            yield f"{path}:{line}: identifier {name!r}"
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, better in PHRASES.items():
            for match in re.finditer(pattern, line, flags=re.IGNORECASE):
                yield f"{path}:{number}: {match[0]!r}: write {better}"


def check(paths: list[Path]) -> list[str]:
    """Return the problems of all files below some paths.

    Args:
        paths: files or folders.
    """
    files = [
        file
        for path in paths
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if file.suffix in SUFFIXES
    ]
    return [problem for file in files for problem in problems(file)]


def main() -> None:
    """Print the problems; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[Path(name) for name in DEFAULT])
    found = check(parser.parse_args().paths)
    print("\n".join(found))
    print(f"{len(found)} problems")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
