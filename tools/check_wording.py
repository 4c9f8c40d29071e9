"""List identifiers and phrases that the style guide replaces by standard terms.

    python tools/check_wording.py [PATH ...]   # default: code, tests, docs and pages

Identifiers are checked in Python code (variables, arguments, functions, classes, attributes) and in
the names of modules. Phrases are checked in comments and in strings as a whole, so that docstrings,
help texts and messages are checked across line breaks, and in every line of other text files.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

DEFAULT = (
    *("src", "tests", "tools", "benchmarks", "docs", "examples"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
)
LISTING = ("check_wording.py", "test_style.py")
"""Files that contain the words because they list or test them."""
SUFFIXES = (".py", ".pyi", ".md", ".js", ".html", ".ipynb")
IDENTIFIERS = {
    *("told", "said", "found", "known", "calm", "dear", "amiss", "strangers", "nobody", "everyone"),
    *("Reach", "Stretch", "Said", "Told", "Course", "Keeper", "Stepped", "Seen", "Picked"),
    *("doubts", "lonely", "telling", "room", "words", "heaps", "heap", "deal", "deals", "dealt"),
    *("judged", "turns", "ByHand", "by_hand", "speaks", "whom", "stranger", "manners"),
}
MODULES = {
    *("byhand", "coding", "doubts", "ending", "fits", "folder", "growth", "order"),
    *("picked", "ranks", "roles", "room", "seen", "selfcalibrating", "sums", "values", "views"),
}
UNIT = (
    "node|unit|epoch|row|step|column|edge|graph|line|file|member|level|rank|group|cell|seed|point|"
    "process|station|road|link|data set"
)
AMOUNT = (
    "number|value|draw|entry|label|line|row|vector|word|mark|panel|point|second|byte|target|"
    "prediction|interval|weight|gradient|count"
)
PHRASES = {
    r"\bamiss\b": "invalid",
    r"\bmanners\b": "conventions",
    r"\bstrangers?\b": "nodes not used for training, or: untrusted",
    r"\b(?:no|some|any)body\b": "name the reader, the caller or the process",
    r"\btold\b": "given, set, specified",
    rf"\b(?:one \w+|an? (?:{AMOUNT})|(?:bytes|ms|ns|seconds)) an? (?:{UNIT})\b": "one … per …",
    r"\bthe house\b|\brooms\b": "the package, modules",
    r"\bwhole miss\b|\bshares? of the miss\b": "all of α, or: how α is divided",
    r"\bspoilt\b": "corrupted, overwritten",
    r"\bmended\b": "fixed",
    r"\bdealt\b|\bdeals of\b": "divided at random",
    r"\bdeaf to\b|\bblind to\b": "does not support",
    r"\bhave their say\b|\bthe word of\b": "outputs of",
    r"\bnets? says?\b": "predicts",
    r"\bhears? from\b": "receives messages from",
    r"\b(?:an )?errors? of ours\b": "a QpignnError",
    r"\bwhat came\b": "what was found",
    r"\bfor ever\b": "forever",
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


def text_of(node: ast.AST) -> str | None:
    """Return the text of a string or f-string, or None for other nodes.

    Args:
        node: a node of a syntax tree. The values inside an f-string become ``{}``.
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in node.values)
    return None


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string and of every comment of Python source.

    Args:
        source: the text of a module.
    """
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) for part in getattr(node, "values", ())}
    for node in ast.walk(tree):
        text = None if id(node) in inside else text_of(node)
        if text is not None:
            yield node.lineno, " ".join(text.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def problems(path: Path) -> Iterator[str]:
    """Yield the problems of a file, one per line.

    Args:
        path: the file.
    """
    source = path.read_text(encoding="utf-8")
    texts = [*enumerate(source.splitlines(), 1)]
    if path.suffix in (".py", ".pyi"):
        texts = [*python_texts(source)]
        if path.stem in MODULES:
            yield f"{path}: module {path.stem!r}"
        for line, name in identifier_lines(source):
            yield f"{path}:{line}: identifier {name!r}"
    for number, text in texts:
        for pattern, better in PHRASES.items():
            for match in re.finditer(pattern, text, flags=re.IGNORECASE):
                yield f"{path}:{number}: {match[0]!r}: write {better}"


def check(paths: list[Path]) -> list[str]:
    """Return the problems of all files below some paths, apart from :data:`LISTING`.

    Args:
        paths: files or folders.
    """
    files = [
        file
        for path in paths
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if file.suffix in SUFFIXES and file.name not in LISTING
    ]
    return [problem for file in files for problem in problems(file)]


def main() -> None:
    """Print the problems; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[Path(name) for name in DEFAULT])
    listed = check(parser.parse_args().paths)
    print("\n".join(listed))
    print(f"{len(listed)} problems")
    raise SystemExit(bool(listed))


if __name__ == "__main__":
    main()
