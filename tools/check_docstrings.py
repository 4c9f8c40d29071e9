"""List public definitions whose docstring lacks a section that applies.

    python tools/check_docstrings.py [PATH ...]   # default src

The rules (Google style):

* Every module, class, function and method without a leading underscore has a docstring that begins
  with a one-line summary.
* ``Args:`` names every parameter. A method that overrides one of the same name need not repeat it.
  Options of commands whose type has a help text (``options.Json``) need no description.
* A dataclass or named tuple describes its fields under ``Args:`` or ``Attributes:``.
* ``Returns:`` or ``Yields:`` where something is returned, unless the summary begins with "Return"
  or "Yield", or the method overrides one of the same name. Properties are exempt.
* ``Raises:`` names every exception that the body raises itself.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Shapes|Example|Examples|Note):\s*$")
NOTHING = {"None", "NoReturn", "Never"}


def sections(docstring: str) -> dict[str, str]:
    """Return the text of every section of a docstring, by the section's name."""
    texts: dict[str, list[str]] = {"": []}
    current = ""
    for line in docstring.splitlines():
        match = SECTION.match(line)
        if match:
            current = match[1]
            texts[current] = []
        else:
            texts[current].append(line)
    return {name: "\n".join(lines) for name, lines in texts.items()}


def parameters(function: Function) -> list[str]:
    """Return the names of a function's parameters, except ``self``, ``cls`` and shared options."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    named += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
    names = [argument.arg for argument in named if ": options." not in ast.unparse(argument)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def raised(function: Function) -> set[str]:
    """Return the names of the exceptions that a function's own body raises."""
    names, waiting = set(), list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(error, ast.Name) and error.id[:1].isupper():
                names.add(error.id)
        waiting += ast.iter_child_nodes(node)
    return names


def decorators(node: Function | ast.ClassDef) -> set[str]:
    """Return the last names of a definition's decorators."""
    names = set()
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        names.add(target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", ""))
    return names


def mentions(text: str, name: str) -> bool:
    """Return whether a section names something as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def function_problems(function: Function, *, overrides: bool) -> Iterator[str]:
    """Yield what is missing in a function's docstring.

    Args:
        function: the definition.
        overrides: whether a base class has a method of the same name.
    """
    docstring = ast.get_docstring(function)
    if docstring is None:
        yield "no docstring"
        return
    present, marks = sections(docstring), decorators(function)
    if not (overrides or "overload" in marks):
        missing = [
            name for name in parameters(function) if not mentions(present.get("Args", ""), name)
        ]
        if missing:
            yield f"Args: lacks {', '.join(missing)}"
    returns = "" if function.returns is None else ast.unparse(function.returns)
    exempt = marks & {"property", "cached_property", "setter", "overload"} or overrides
    described = {"Returns", "Yields"} & present.keys() or re.match(r"(Return|Yield)s?\b", docstring)
    if returns not in NOTHING and not exempt and not described:
        yield "no Returns: or Yields:"
    missing_errors = {
        name for name in raised(function) if not mentions(present.get("Raises", ""), name)
    }
    missing_errors -= {"NotImplementedError", "AssertionError", "SystemExit", "StopIteration"}
    if missing_errors and not overrides:
        yield f"Raises: lacks {', '.join(sorted(missing_errors))}"


def class_problems(node: ast.ClassDef) -> Iterator[str]:
    """Yield what is missing in the docstring of a class itself.

    Args:
        node: the definition.
    """
    docstring = ast.get_docstring(node)
    if docstring is None:
        yield "no docstring"
        return
    present = sections(docstring)
    described = present.get("Args", "") + present.get("Attributes", "") + present.get("Shapes", "")
    bases = {ast.unparse(base) for base in node.bases}
    if "dataclass" in decorators(node) or "NamedTuple" in bases:
        fields = [
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign)
            and isinstance(item.target, ast.Name)
            and not item.target.id.startswith("_")
            and "ClassVar" not in ast.unparse(item.annotation)
        ]
        missing = [name for name in fields if not mentions(described, name)]
        if missing:
            yield f"Args: or Attributes: lacks {', '.join(missing)}"
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            missing = [name for name in parameters(item) if not mentions(described, name)]
            if missing:
                yield f"Args: lacks {', '.join(missing)}"


def problems(tree: ast.Module, inherited: dict[str, set[str]]) -> Iterator[str]:
    """Yield the problems of a module, each with its line and the name of the definition.

    Args:
        tree: the module.
        inherited: for every class of the package, the methods of its bases.
    """
    if ast.get_docstring(tree) is None:
        yield "1: module: no docstring"
    for node in tree.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            for problem in function_problems(node, overrides=False):
                yield f"{node.lineno}: {node.name}: {problem}"
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for problem in class_problems(node):
                yield f"{node.lineno}: {node.name}: {problem}"
            for item in node.body:
                if isinstance(item, Function) and not item.name.startswith("_"):
                    overrides = item.name in inherited.get(node.name, set())
                    for problem in function_problems(item, overrides=overrides):
                        yield f"{item.lineno}: {node.name}.{item.name}: {problem}"


def inherited_methods(trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    """Return for every class the names of the methods that its bases define.

    Args:
        trees: all modules. Bases from outside, such as ``nn.Module``, count as having ``forward``.
    """
    classes = {
        node.name: node
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    own = {
        name: {item.name for item in node.body if isinstance(item, Function)}
        for name, node in classes.items()
    }

    def above(name: str, seen: frozenset[str]) -> set[str]:
        names: set[str] = set()
        for base in classes[name].bases:
            parent = ast.unparse(base).split("[")[0].split(".")[-1]
            if parent in classes and parent not in seen:
                names |= own[parent] | above(parent, seen | {parent})
            elif parent == "Module":
                names.add("forward")
        return names

    return {name: above(name, frozenset({name})) for name in classes}


def check(paths: list[Path], everything: Path) -> list[str]:
    """Return the problems of all modules below some paths, one per line.

    Args:
        paths: files or folders to check.
        everything: folder of the whole package, in which base classes are looked up.
    """
    trees = {path: ast.parse(path.read_text()) for path in sorted(everything.rglob("*.py"))}
    inherited = inherited_methods(trees)
    listed = []
    for path, tree in trees.items():
        if any(path.is_relative_to(chosen) for chosen in paths):
            listed += [f"{path}:{line}" for line in problems(tree, inherited)]
    return listed


def main() -> None:
    """Print the problems; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("src")])
    asked = parser.parse_args()
    listed = check(asked.paths, Path("src"))
    print("\n".join(listed))
    print(f"{len(listed)} problems")
    raise SystemExit(bool(listed))


if __name__ == "__main__":
    main()
