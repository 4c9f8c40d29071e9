"""Docstrings, wording and the size of files and classes: the checks of ``tools`` on all files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import check_docstrings
import check_wording
from code_lines import code_lines

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "qpignn"
MODULES = [path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py"))]
LINES, METHODS = 300, 20
LONG_FILES: dict[str, str] = {}
"""Files with more code lines than LINES, each with the reason."""
LARGE_CLASSES: dict[str, str] = {}
"""Classes with more methods than METHODS, as ``file:Class``, each with the reason."""


def methods(tree: ast.Module) -> dict[str, int]:
    """Return the number of methods of every class; overload stubs do not count."""
    return {
        node.name: sum(
            isinstance(item, check_docstrings.Function)
            and "overload" not in check_docstrings.decorators(item)
            for item in node.body
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def test_public_definitions_have_complete_docstrings() -> None:
    problems = check_docstrings.check([SOURCE], ROOT / "src")
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("name", check_wording.DEFAULT)
def test_names_and_text_use_standard_terms(name: str) -> None:
    problems = check_wording.check([ROOT / name])
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize("name", MODULES)
def test_file_has_at_most_300_lines_of_code(name: str) -> None:
    count = code_lines((SOURCE / name).read_text(encoding="utf-8"))
    assert (count > LINES) == (name in LONG_FILES), f"{count} lines of code"


@pytest.mark.parametrize("name", MODULES)
def test_classes_have_at_most_20_methods(name: str) -> None:
    counts = methods(ast.parse((SOURCE / name).read_text(encoding="utf-8")))
    large = {f"{name}:{of}" for of, count in counts.items() if count > METHODS}
    assert large == {one for one in LARGE_CLASSES if one.startswith(f"{name}:")}, counts


def test_methods_counts_properties_and_no_overloads() -> None:
    code = """
class Example:
    size = 3
    @property
    def one(self): ...
    @overload
    def two(self, x: int): ...
    @typing.overload
    def two(self, x: str): ...
    def two(self, x): ...
    async def three(self): ...
"""
    assert methods(ast.parse(code)) == {"Example": 3}


def test_code_lines_ignores_blanks_comments_and_docstrings() -> None:
    code = """
# a comment
x = (
    1
)

def f():
    'A docstring.'
    return x
"""
    assert code_lines(code) == 5


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ("def f(x: int) -> None:\n    '''Do it.'''", "f: Args: lacks x"),
        ("def f() -> int:\n    '''Do it.'''", "f: no Returns: or Yields:"),
        ("def f() -> None:\n    '''Do it.'''\n    raise ValueError", "f: Raises: lacks ValueError"),
        ("def f() -> None: ...", "f: no docstring"),
        ("@dataclass\nclass A:\n    '''It.'''\n    x: int", "A: Args: or Attributes: lacks x"),
        ("class A:\n    '''It.'''\n    def __init__(self, y):\n        pass", "A: Args: lacks y"),
    ],
)
def test_check_docstrings_incomplete_definition_is_listed(
    definition: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "module.py").write_text(f"'''A module.'''\n{definition}\n")
    (line,) = check_docstrings.check([tmp_path], tmp_path)
    assert line.endswith(problem)


@pytest.mark.parametrize(
    "definition",
    [
        "def f(x: int) -> int:\n    '''Return it.\n\n    Args:\n        x: a number.\n    '''",
        "class A(nn.Module):\n    '''It.'''\n    def forward(self, x):\n        '''Compute.'''",
        "def _f(x: int) -> int: ...",
    ],
)
def test_check_docstrings_complete_definition_is_not_listed(
    definition: str, tmp_path: Path
) -> None:
    (tmp_path / "module.py").write_text(f"'''A module.'''\n{definition}\n")
    assert check_docstrings.check([tmp_path], tmp_path) == []


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("told = 1", "identifier 'told'"),
        ("class Keeper: ...", "identifier 'Keeper'"),
        ("def f(words): ...", "identifier 'words'"),
        ("self._found = 1", "identifier '_found'"),
        ("# nobody reads it", "'nobody'"),
        ("'''One number\n    a node.'''", "'One number a node'"),
        ("error = f'{name}: what ' f'came was {value}'", "'what came'"),
    ],
)
def test_check_wording_dialect_is_listed(code: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"{code}\n")
    (line,) = check_wording.check([path])
    assert re.search(re.escape(problem), line)


def test_check_wording_module_name_is_listed(tmp_path: Path) -> None:
    (tmp_path / "byhand.py").write_text("x = 1\n")
    assert check_wording.check([tmp_path]) == [f"{tmp_path / 'byhand.py'}: module 'byhand'"]


@pytest.mark.parametrize(
    "text",
    [
        "Give a method a graph.",
        "values worked out by hand",
        "Each node has one target.",
        "a random number per node",
        "no room for more rows",
    ],
)
def test_check_wording_ordinary_english_is_not_listed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(text)
    assert check_wording.check([path]) == []
