"""Protocols are found by name, and only hand-over places outside paper/ name the published one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import qpignn
from qpignn.errors import SettingError, UnknownNameError
from qpignn.experiments.cell import Cell, grid
from qpignn.experiments.corrected import Corrected
from qpignn.names import PROTOCOLS
from qpignn.protocols import GENERAL, ExperimentProtocol, find_protocol, protocol_names
from qpignn.runtime import entry_points

SOURCE = Path(qpignn.__file__).parent
HAND_OVER = {
    "names.py",  # where the protocol is found
    "experiments/digest.py",  # its code counts in the keys of rows
    "methods/qpignn.py",  # QpiGNN.published of 0.1, deprecated
}


def test_published_outside_paper_is_named_in_listed_modules_only() -> None:
    modules = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")}
    naming = {
        module.as_posix()
        for module in modules
        if module.parts[0] != "paper"
        and re.search("published", (SOURCE / module).read_text(encoding="utf-8"), re.IGNORECASE)
    }
    assert naming == HAND_OVER


def test_protocol_name_outside_paper_is_compared_with_nothing() -> None:
    branching = re.compile(r"""protocol\w*\s*(==|!=|\bin\b|\bnot in\b)\s*["'(\[]""")
    paths = [
        str(path)
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "paper"
        and branching.search(path.read_text(encoding="utf-8"))
    ]
    assert paths == []


@pytest.mark.parametrize("name", PROTOCOLS)
def test_find_protocol_gives_the_protocol_of_that_name(name: str) -> None:
    protocol = find_protocol(name)
    assert isinstance(protocol, ExperimentProtocol)
    assert protocol.name == name
    assert find_protocol(name) is protocol


def test_find_protocol_unknown_name_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown protocol 'correct': did you mean corr"):
        find_protocol("correct")


class Tiny(Corrected):
    name = "tiny"
    views = ("inductive",)

    def load_dataset(self, name: str, **options: Any) -> Any:
        return super().load_dataset(name, **{"nodes": 30, **options})


TINY = Tiny()


def test_protocol_of_an_installed_package_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    sys.modules["tiny_protocol"] = sys.modules[__name__]
    monkeypatch.setattr("qpignn.protocols.installed", lambda group: {"tiny": "tiny_protocol:TINY"})
    monkeypatch.setattr(entry_points, "installed", lambda group: {"tiny": "tiny_protocol:TINY"})
    assert protocol_names()[-1] == "tiny"
    (cell,) = grid(["basic"], ["sqr"], 1, protocol="tiny", settings={"epochs": 2})
    assert cell.view == "inductive"
    assert cell.run()["protocol"] == "tiny"
    assert len(qpignn.load_dataset("basic", "tiny").y) == 30


def test_cell_protocol_is_the_general_one_by_default() -> None:
    assert Cell("basic", "sqr", 0).protocol == GENERAL == "corrected"


def test_qpignn_published_is_deprecated_and_hands_over() -> None:
    with pytest.warns(DeprecationWarning, match=r'use make_method\("qpignn", "published"\)'):
        old = qpignn.QpiGNN.published(0.2, epochs=7)
    new = qpignn.make_method("qpignn", "published", lambda_width=0.2, epochs=7)
    assert old.get_params() == new.get_params()
    assert old.get_params()["scaling"] == "range"


def test_saved_graph_under_a_protocol_for_the_catalog_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="expected corrected for a graph of your own"):
        grid([str(tmp_path)], ["sqr"], 1, protocol="published")
