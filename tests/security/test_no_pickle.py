"""Nothing in the library unpickles, evaluates or starts a shell; the few exceptions are named."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hostile import Bomb, sign
from qpignn import load_method
from qpignn.errors import ModelFileError

SOURCE = Path(__file__).parents[2] / "src" / "qpignn"

FORBIDDEN_MODULES = (
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"),
    *("yaml", "subprocess", "pty", "code", "codeop", "imp"),
    *("xml.sax", "xml.dom", "lxml", "xmlrpc"),
)
FORBIDDEN_CALLS = (
    *("eval", "exec", "compile", "__import__"),
    *("torch.load", "torch.jit.load", "torch.hub.load", "torch.package"),
    *("np.load", "numpy.load", "np.genfromtxt"),
    *("pd.read_pickle", "pd.read_hdf", "pd.eval", "pd.read_html", "pd.read_xml"),
    *("os.system", "os.popen", "os.execv", "os.execvp", "os.spawnv", "os.startfile"),
    *("tempfile.mktemp", "shutil.unpack_archive"),
)
FORBIDDEN_METHODS = ("extractall", "load_module")
"""Of archives and of import machinery, whatever the object is called."""
WATCHED = {
    "import_module": {
        *("paper/__init__.py", "errors.py", "data/catalog.py"),  # names in our code
        "deprecated.py",  # names in our code
        "runtime/plugins.py",  # a module that the user names
    },
    "exec_module": {"runtime/plugins.py"},  # a Python file that the user names
    "run_path": {"paper/__init__.py"},  # a Python file that the user names to be run
    "ElementTree": set(),
    "expat": {"data/readers.py"},
    "read_graphml": {"data/readers.py"},
    "memmap": {"runtime/memory.py"},  # a file of our own that has no name
    "fromfile": set(),
    ".query": {"data/example.py", "reports/layout.py"},  # of trees; that of pandas evaluates
    "ctypes": {"experiments/memory.py"},
    "read_parquet": {
        "data/parquet_table.py",
        "data/storage.py",
        "data/mapped.py",
    },
}
"""What is allowed in these files only."""


def problems(text: str, name: str = "x.py") -> list[str]:
    """Return what a module does that it must not."""
    results = []
    for node in ast.walk(ast.parse(text)):
        line = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or "", *(f"{node.module}.{a.name}" for a in node.names)]
        else:
            modules = []
        for module in modules:
            if any(module == bad or module.startswith(f"{bad}.") for bad in FORBIDDEN_MODULES):
                results.append(f"{line} imports {module}")
        if isinstance(node, ast.Call) and ast.unparse(node) != "exec('')":  # nothing, executed
            called = ast.unparse(node.func)
            if called in FORBIDDEN_CALLS or called.rpartition(".")[2] in FORBIDDEN_METHODS:
                results.append(f"{line} calls {called}")
            for word in node.keywords:
                if word.arg in ("shell", "allow_pickle") and not _is_false(word.value):
                    results.append(f"{line} calls {called} with {word.arg}")
        if isinstance(node, ast.Attribute | ast.Name):
            word = f".{node.attr}" if isinstance(node, ast.Attribute) else node.id
            allowed = WATCHED.get(word, WATCHED.get(word.removeprefix("."), {name}))
            if name not in allowed:
                results.append(f"{line} uses {word}")
    return results


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def test_library_contains_no_unsafe_call() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 100
    calls = [
        problem
        for file in files
        for problem in problems(file.read_text(), file.relative_to(SOURCE).as_posix())
    ]
    assert calls == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import xml.dom.minidom",
        "from xml import sax",
        "import torch; torch.load('x')",
        "import torch; torch.load('x', weights_only=True)",
        "import numpy as np; np.load('x')",
        "import pandas as pd; pd.read_pickle('x')",
        "frame.query('x')",
        "eval('1')",
        "exec('1')",
        "__import__('os')",
        "import os; os.system('x')",
        "import subprocess",
        "run('x', shell=True)",
        "read(allow_pickle=True)",
        "import yaml",
        "archive.extractall()",
        "ElementTree.fromstring(x)",
        "import networkx as nx; nx.read_graphml(x)",
        "runpy.run_path(x)",
        "import importlib; importlib.import_module(x)",
    ],
)
def test_problems_lists_every_unsafe_call(text: str) -> None:
    assert problems(text)


def test_declarations_are_refused_before_xml_is_read() -> None:
    tree = ast.parse((SOURCE / "data" / "readers.py").read_text())
    readers = {"read_graphml", "_check_declared"}
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        named = {call: ast.unparse(call.func).rpartition(".")[2] for call in calls}
        reading = [call for call, name in named.items() if name in readers]
        if not reading or function.name == "_check_declared":  # it is called behind the check
            continue
        guards = [call for call, name in named.items() if name == "_declared_nodes"]
        assert guards, function.name
        assert all(guards[0].lineno < call.lineno for call in reading), function.name


WATCHING = """
import pickle, sys
from pathlib import Path
import qpignn, qpignn.data.mapped, qpignn.methods.bundle, qpignn.reports.content
from torch_geometric.data import Data
from qpignn.training.checkpoint import checkpoints, fit_key

folder = Path(sys.argv[1])
found = []
sys.addaudithook(lambda event, args: found.append(args) if event == "pickle.find_class" else None)
fit = qpignn.methods.bundle.load_fit(folder / "model")
fit.model.predict_interval(fit.data)
fit.model.diagnose(fit.data)
qpignn.methods.bundle.save_fit(folder / "again", fit)
qpignn.data.mapped.open_graph(folder / "graph")
fit.table.to_csv(folder / "nodes.csv", index=False)
fit.table.to_parquet(folder / "nodes.parquet")
for name in ("nodes.csv", "nodes.parquet"):
    qpignn.read_graph(folder / name, None, target="pollution")
model = qpignn.QpiGNN(epochs=2, hidden=4, members=5)
with checkpoints(folder / "c", fit_key(model, fit.data), every=0):
    model.fit(fit.data)
with checkpoints(folder / "c", fit_key(model, fit.data)):
    model.fit(fit.data)
assert found == [], found
pickle.loads(pickle.dumps(folder))
assert found, "the hook sees nothing"
"""


def test_reading_files_unpickles_nothing(honest: Path, tmp_path: Path) -> None:
    for name in ("model", "graph"):
        (tmp_path / name).symlink_to(honest / name)
    done = subprocess.run(
        [sys.executable, "-c", WATCHING, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_weights_in_a_pickle_are_refused(model: Path, tmp_path: Path) -> None:
    torch.save({"x": Bomb(tmp_path / "trace")}, tmp_path / "bomb.pt")
    (model / "model.safetensors").write_bytes((tmp_path / "bomb.pt").read_bytes())
    sign(model)
    with pytest.raises(ModelFileError):
        load_method(model)
    assert not (tmp_path / "trace").exists()
    torch.load(tmp_path / "bomb.pt", weights_only=False)
    assert (tmp_path / "trace").exists()  # the bomb is a real one
