import os
from pathlib import Path

import pytest

from qpignn.errors import WriteError
from qpignn.files import held, remove_file, replace_file, together


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    replace_file(path, b"old")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def exchange(folder: Path) -> None:
    with together() as files:
        remove_file(folder / "gone")
        replace_file(folder / "a", b"new")
        replace_file(folder / "b", b"new")
        assert files.where(folder / "gone") is None
        assert files.where(folder / "c") == folder / "c"
        waiting = files.where(folder / "a")
        assert waiting is not None
        assert waiting.read_bytes() == b"new"
        assert (folder / "a").read_bytes() == b"old"


@pytest.mark.parametrize("last", [1, 2])
def test_files_that_belong_together_change_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    for name in ("gone", "a"):
        (tmp_path / name).write_bytes(b"old")
    plain, calls = os.replace, 0

    def refused(*words: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == last:
            raise OSError(13, "Permission denied")
        plain(*words)

    with monkeypatch.context() as during:
        during.setattr(os, "replace", refused)
        with pytest.raises(WriteError, match="expected a place to write to, got Permission denied"):
            exchange(tmp_path)
    assert contents(tmp_path) == {"gone": b"old", "a": b"old"}
    exchange(tmp_path)
    assert contents(tmp_path) == {"a": b"new", "b": b"new"}


def test_an_error_within_the_block_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def write() -> None:
        with together():
            replace_file(tmp_path / "a", b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert contents(tmp_path) == {"a": b"old"}


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with held(tmp_path) as ours:
        assert ours
        with held(tmp_path, wait=False) as too:
            assert not too
    with held(tmp_path, wait=False) as ours:
        assert ours
