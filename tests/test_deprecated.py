from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import qpignn
from qpignn import deprecated


def look_up(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


@pytest.mark.parametrize("old", deprecated.RENAMED)
def test_old_name_gives_the_new_object_and_warns(old: str) -> None:
    new = deprecated.RENAMED[old]
    with pytest.warns(DeprecationWarning, match=f"^{old} is deprecated .* use {new}$"):
        actual = look_up(old)
    assert actual is look_up(new)


def test_old_name_of_the_package_itself_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(deprecated.RENAMED, "qpignn.Net", "qpignn.methods.qpignn.QpiGNN")
    with pytest.warns(DeprecationWarning, match=r"use qpignn\.methods\.qpignn\.QpiGNN"):
        assert qpignn.Net is qpignn.QpiGNN
    assert "Net" not in dir(qpignn)


def test_old_module_without_the_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'qpignn\.data\.coding' has no attribute 'Nothing'"):
        look_up("qpignn.data.coding.Nothing")


def test_unknown_module_raises_as_usual() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"qpignn\.data\.nothing"):
        import_module("qpignn.data.nothing")


def test_warning_names_the_line_that_uses_the_old_name() -> None:
    code = "\nfrom qpignn.data.growth import join_frames\n"
    done = subprocess.run(
        [sys.executable, "-W", "default::DeprecationWarning:__main__", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "<string>:2: DeprecationWarning: qpignn.data.growth.join_frames" in done.stderr


@pytest.mark.parametrize("name", sorted({old.rpartition(".")[0] for old in deprecated.RENAMED}))
def test_old_modules_do_not_exist_as_files(name: str) -> None:
    assert getattr(import_module(name), "__file__", None) is None
