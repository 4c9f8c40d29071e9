"""Digests that decide whether a stored row is still valid: of the code, plug-ins and data files.

The code digest is taken of the syntax trees of the source files, without positions, comments and
docstrings, so that rewording or reformatting does not invalidate rows and any other change does.
Versions of Python and of the libraries are recorded with each row but are not part of its key.
"""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

from qpignn.data.catalog import BENCHMARK, EXTRA, find_dataset, is_dataset
from qpignn.data.sources.files import file_digests
from qpignn.names import DATASET_GROUP, METHOD_GROUP, METHODS, without_prefixes
from qpignn.runtime.entry_points import installed
from qpignn.runtime.plugins import is_object_path, source_of

COMPUTING = (
    *("calibration", "data", "encoders", "methods", "nn", "objectives", "tasks", "training"),
    *("io", "runtime", "errors.py", "intervals.py", "metrics.py", "paper/published"),
    *("experiments/cell.py", "experiments/corrected.py", "experiments/memory.py"),
)
"""Packages and files whose code decides the numbers of a row."""
NOT_COMPUTING = (
    *("cli", "diagnostics", "reports", "plotting.py", "names.py", "protocols.py", "deprecated.py"),
    *("__init__.py", "__main__.py", "experiments/__init__.py", "experiments/digest.py"),
    *("experiments/engines.py", "experiments/run.py", "experiments/store.py"),
    *("paper/__init__.py", "paper/entries", "paper/loss_curve.py", "paper/pictures.py"),
    *("paper/plan.py", "paper/reference_figures.py", "paper/spec.py", "paper/table_pictures.py"),
    *("paper/tables.py", "paper/variants.py"),
)
"""Packages and files whose code only names, plans, stores, examines or shows results."""
LIBRARIES = ("torch", "torch_geometric", "numpy", "scipy", "scikit-learn", "networkx", "optuna")
"""Libraries that compute: another version may change a figure."""
SHORT = 12
"""Characters of a digest that are shown."""


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return the digest of this package's code that computes rows."""
    return package_digest(Path(str(files("qpignn"))))


def package_digest(package: Path) -> str:
    """Return the digest of the code of a package that decides numbers.

    Args:
        package: folder of the package.

    Returns:
        The digest of all modules but those of :data:`NOT_COMPUTING`, so that a module that is in
        neither list counts.
    """
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if not is_listed(inside, NOT_COMPUTING):
            code = source_digest(path.read_bytes())
            digest.update(f"{inside.as_posix()}\0{code}\n".encode())
    return digest.hexdigest()


def is_listed(module: PurePath, places: Iterable[str]) -> bool:
    """Return whether a module is one of some files, or inside one of some packages.

    Args:
        module: path of the module's file in the package.
        places: paths of files and packages.
    """
    parents = {path.as_posix() for path in (module, *module.parents)}
    return not parents.isdisjoint(places)


def source_digest(source: bytes) -> str:
    """Return the digest of what Python source code does: of its syntax tree.

    Comments, docstrings, other strings that stand alone as a statement, layout and the choice of
    quotes do not count. The digest does not depend on the version of Python.

    Args:
        source: the source code.
    """
    return hashlib.sha256(repr(_tree(ast.parse(source))).encode()).hexdigest()


def _tree(node: Any) -> Any:
    """Return a syntax tree as nested tuples, without positions, empty fields and bare constants.

    ``ast.dump`` would differ between versions of Python, which add fields to nodes.
    """
    if isinstance(node, ast.AST):
        names = sorted({*node._fields} - {"kind"})  # whether a string has the prefix u
        fields = ((name, getattr(node, name, None)) for name in names)
        kept = ((name, value) for name, value in fields if value is not None and value != [])
        return (type(node).__name__, *((name, _tree(value)) for name, value in kept))
    if isinstance(node, list):
        return [_tree(item) for item in node if not _without_effect(item)]
    return (type(node).__name__, repr(node))


def _without_effect(node: Any) -> bool:
    """Whether a node is a constant that stands alone as a statement, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def data_digest(dataset: str, options: Mapping[str, Any] | None = None) -> str:
    """Return a digest of the bytes that a data set is read from.

    Args:
        dataset: a name of the catalog, or the path of a file or folder.
        options: of the data set, where they decide which files are read.

    Returns:
        The empty string for a data set that the code of this package draws: the code digest covers
        it. The digest of a data set of an installed package also covers the source of the module
        that its entry point names, not what that module imports.

    Raises:
        UnknownNameError: if it is neither a name of the catalog nor an existing path.
        SettingError: if the source of an installed package's module cannot be read.
    """
    path = Path(dataset)
    if is_dataset(dataset) or not path.exists():
        read = find_dataset(dataset).digest(options)
        source = installed_digest(DATASET_GROUP, dataset, {*BENCHMARK, *EXTRA})
        return hashlib.sha256(f"{source}\n{read}".encode()).hexdigest() if source else read
    inside = [path]
    if path.is_dir():  # locks and files that are being written have names that begin with a dot
        paths = path.rglob("*")
        inside = sorted(file for file in paths if file.is_file() and file.name[0] != ".")
    lines = (f"{file.relative_to(path)}\0{file_digests(file).sha256}\n" for file in inside)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def plugin_digest(method: str, settings: Mapping[str, Any] | None = None) -> str:
    """Return a digest of the source of the plug-ins that a method and its settings name.

    Args:
        method: name or object path of the method, as :func:`qpignn.make_method` takes it.
        settings: settings of the method; object paths among the values are plug-ins.

    Returns:
        The empty string where there is no plug-in. The digest covers the file of each plug-in, not
        what the file imports.

    Raises:
        SettingError: if the source of a plug-in cannot be read.
    """
    plain = without_prefixes(method)
    sources = [installed_digest(METHOD_GROUP, plain, METHODS)]
    named = (path for path in (plain, *(settings or {}).values()) if is_object_path(path))
    sources = [*filter(None, sources), *(source_digest(source_of(path)) for path in named)]
    return hashlib.sha256("\n".join(sources).encode()).hexdigest() if sources else ""


def installed_digest(group: str, name: str, built_in: Collection[str]) -> str:
    """Return the digest of the source of the module that an installed package declares for a name.

    Args:
        group: group of the entry points.
        name: any name.
        built_in: names of this package. They come first, as where objects are looked up by name.

    Returns:
        The digest, or the empty string for a built-in name and one that no package declares.

    Raises:
        SettingError: if the source cannot be read.
    """
    path = None if name in built_in else installed(group).get(name)
    return "" if path is None else source_digest(source_of(path))


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that compute, by name."""
    numbers = {"python": platform.python_version()}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):  # an optional extra
            numbers[name] = version(name)
    return numbers
