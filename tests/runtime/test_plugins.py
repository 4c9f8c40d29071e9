"""Objects named by a string: files and modules, and what is wrong with other strings."""

from __future__ import annotations

from pathlib import Path

import pytest

from qpignn.errors import SettingError
from qpignn.runtime.plugins import is_object_path, load_object, source_of


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Mine:\n    number: int = 3\n"
    )
    return path


def test_load_object_file_gives_its_class(plugin: Path) -> None:
    assert load_object(f"{plugin}:Mine")().number == 3


def test_load_object_same_content_gives_the_same_class(plugin: Path) -> None:
    assert load_object(f"{plugin}:Mine") is load_object(f"{plugin}:Mine")


def test_load_object_changed_content_gives_the_new_class(plugin: Path) -> None:
    before = load_object(f"{plugin}:Mine")
    plugin.write_text("class Mine:\n    number = 4\n")
    after = load_object(f"{plugin}:Mine")
    assert (before().number, after().number) == (3, 4)


def test_load_object_relative_path_starts_at_the_working_directory(
    plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plugin.parent)
    assert load_object("mine.py:Mine")().number == 3


def test_load_object_module_gives_its_object() -> None:
    assert load_object("pathlib:Path") is Path


@pytest.mark.parametrize("spec", ["mine.py", "Mine", "a b:c", "mine.py:not a name", ":x", 3, None])
def test_load_object_other_form_is_refused(spec: object) -> None:
    assert not is_object_path(spec)
    with pytest.raises(SettingError, match="expected an object path"):
        load_object(spec)  # type: ignore[arg-type]


def test_load_object_missing_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"absent\.py: expected a Python file"):
        load_object(f"{tmp_path / 'absent.py'}:Mine")


def test_load_object_missing_module_names_it() -> None:
    with pytest.raises(SettingError, match="ModuleNotFoundError"):
        load_object("no_such_package.module:Mine")


def test_load_object_failing_file_raises_and_can_be_corrected(plugin: Path) -> None:
    text = plugin.read_text()
    plugin.write_text("raise ValueError('wrong here')\n")
    with pytest.raises(SettingError, match="ValueError: wrong here"):
        load_object(f"{plugin}:Mine")
    plugin.write_text(text)
    assert load_object(f"{plugin}:Mine")().number == 3


def test_load_object_missing_name_suggests_a_similar_one(plugin: Path) -> None:
    with pytest.raises(SettingError, match="did you mean Mine"):
        load_object(f"{plugin}:Mien")


def test_source_of_file_and_module_are_their_source(plugin: Path) -> None:
    assert source_of(f"{plugin}:Mine") == plugin.read_bytes()
    assert b"class SettingError" in source_of("qpignn.errors:SettingError")


@pytest.mark.parametrize(
    "spec", ["no_such_package.module:Mine", "no_such_package:Mine", "sys:path"]
)
def test_source_of_module_without_source_is_refused(spec: str) -> None:
    with pytest.raises(SettingError, match="expected a module"):
        source_of(spec)
