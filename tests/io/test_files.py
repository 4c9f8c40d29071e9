import os
import threading
from pathlib import Path

import pytest

from hostile import NOT_FILES, in_time, not_a_file
from qpignn.errors import WriteError
from qpignn.io.files import atomic_files, open_regular, remove_file, write_atomically
from qpignn.io.locks import LOCK_NAME


def test_write_atomically_failing_keeps_the_old_file_and_leaves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, b"old")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOCK_NAME}


def exchange(folder: Path) -> None:
    with atomic_files() as files:
        remove_file(folder / "gone")
        write_atomically(folder / "a", b"new")
        write_atomically(folder / "b", b"new")
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

    def refused(*paths: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == last:
            raise OSError(13, "Permission denied")
        plain(*paths)

    with monkeypatch.context() as during:
        during.setattr(os, "replace", refused)
        with pytest.raises(WriteError, match="expected a place to write to, got Permission denied"):
            exchange(tmp_path)
    assert contents(tmp_path) == {"gone": b"old", "a": b"old"}
    exchange(tmp_path)
    assert contents(tmp_path) == {"a": b"new", "b": b"new"}


def test_atomic_files_with_an_error_in_the_block_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def write() -> None:
        with atomic_files():
            write_atomically(tmp_path / "a", b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert contents(tmp_path) == {"a": b"old"}


def test_replace_file_with_a_name_taken_meanwhile_leaves_the_other_writers_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails must not delete what another process has put there in the meantime."""
    path = tmp_path / "a"

    def another_is_first(waiting: Path, to: Path) -> None:
        to.write_bytes(b"of another process")
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", another_is_first)
    with pytest.raises(WriteError):
        write_atomically(path, b"ours")
    assert contents(tmp_path) == {"a": b"of another process"}


def test_together_in_two_threads_ends_with_the_files_of_one(tmp_path: Path) -> None:
    names = [f"{i}" for i in range(20)]

    def write(content: bytes) -> None:
        with atomic_files() as files:
            for name in names:
                files.write(tmp_path / name, content)

    for turn in range(20):
        threads = [
            threading.Thread(target=write, args=(b"%d" % i,)) for i in (2 * turn, 2 * turn + 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        result = contents(tmp_path)
        assert sorted(result) == sorted(names)
        assert set(result.values()) in ({b"%d" % (2 * turn)}, {b"%d" % (2 * turn + 1)})


@pytest.mark.parametrize("kind", NOT_FILES)
def test_open_regular_of_anything_else_raises_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    not_a_file(path, kind)
    with in_time(), pytest.raises(ValueError, match="a regular file, got a"):
        open_regular(path)


def test_open_regular_of_a_link_to_a_file_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with open_regular(tmp_path / "b") as file:
        assert file.read() == b"content"
