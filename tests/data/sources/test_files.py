"""Finding and fetching, against a real HTTP server on this machine."""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from qpignn.data.sources.files import SourceFile, fetch, find, identity
from qpignn.errors import DataFileError, QpignnWarning

CONTENT = b"id,target\n" + b"0,1\n" * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        if self.path == "/absent":
            self.send_error(404)
            return
        body = CONTENT.replace(b"0,1", b"0,2") if self.path == "/tampered" else CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path == "/truncated" else body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("QPIGNN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("QPIGNN_DATA_DIR", raising=False)
    monkeypatch.delenv("QPIGNN_OFFLINE", raising=False)
    Handler.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{service.server_port}"
        service.shutdown()


def everything_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_fetch_downloads_a_file_once(server: str, tmp_path: Path) -> None:
    file = SourceFile("a/b.csv", (f"{server}/good",), sha256=SHA256)
    assert find(file) is None
    path = fetch(file)
    assert path == tmp_path / "cache" / "a" / "b.csv"
    assert path.read_bytes() == CONTENT
    assert fetch(file) == find(file) == path
    assert Handler.asked == ["/good"]


@pytest.mark.parametrize("damage", ["truncated", "tampered", "absent"])
def test_fetch_damaged_download_writes_no_file(server: str, tmp_path: Path, damage: str) -> None:
    file = SourceFile("a/b.csv", (f"{server}/{damage}",), sha256=SHA256)
    with pytest.raises(DataFileError, match=rf"'a/b.csv' is not on this machine.*/{damage}"):
        fetch(file)
    assert everything_under(tmp_path) == []


def test_fetch_tries_the_next_address(server: str) -> None:
    file = SourceFile("b.csv", (f"{server}/absent", f"{server}/good"), sha256=SHA256)
    assert fetch(file).read_bytes() == CONTENT


def test_git_blob_ids(server: str) -> None:
    # what `git hash-object` prints for the bytes "hello\n"
    hello = SourceFile("x", (), git_blob="ce013625030ba8dba906f756967f9e9ca394464a")
    blob = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
    fetched = fetch(SourceFile("b.csv", (f"{server}/good",), git_blob=blob))
    assert fetched.read_bytes() == CONTENT
    fetched.write_bytes(b"hello\n")
    assert hello.problem(fetched) is None
    with pytest.raises(DataFileError, match="expected git blob id"):
        fetch(SourceFile("c.csv", (f"{server}/tampered",), git_blob=blob))


def test_fetch_replaces_a_damaged_cached_file(server: str, tmp_path: Path) -> None:
    file = SourceFile("b.csv", (f"{server}/good",), sha256=SHA256)
    damaged = tmp_path / "cache" / "b.csv"
    damaged.parent.mkdir()
    damaged.write_text("half")
    assert find(file) is None
    assert fetch(file).read_bytes() == CONTENT


def test_fetch_prefers_the_data_folder_and_warns_of_other_bytes(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b.csv").write_text("mine")
    monkeypatch.setenv("QPIGNN_DATA_DIR", str(tmp_path))
    file = SourceFile("b.csv", (f"{server}/good",), sha256=SHA256)
    with pytest.warns(QpignnWarning, match=r"b\.csv is not the original file: expected SHA-256"):
        assert fetch(file).read_text() == "mine"
    assert Handler.asked == []


def test_fetch_of_the_published_file_in_the_users_folder_does_not_warn(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QPIGNN_DATA_DIR", str(tmp_path))
    (tmp_path / "b.csv").write_bytes(CONTENT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fetch(SourceFile("b.csv", (), sha256=SHA256)) == tmp_path / "b.csv"
        assert fetch(SourceFile("b.csv", ())) == tmp_path / "b.csv"  # nothing to compare with


def test_identity_is_the_published_digest_unless_other_bytes_are_used(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QPIGNN_DATA_DIR", str(tmp_path))
    file, unknown = SourceFile("b.csv", (), sha256=SHA256), SourceFile("b.csv", ())
    assert (identity(file), identity(unknown)) == (f"sha256:{SHA256}", "absent")
    (tmp_path / "b.csv").write_bytes(CONTENT)
    assert identity(file) == identity(unknown) == f"sha256:{SHA256}"
    blob = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
    assert identity(SourceFile("b.csv", (), git_blob=blob)) == f"git:{blob}"
    (tmp_path / "b.csv").write_bytes(b"other")
    with pytest.warns(QpignnWarning, match="is not the original file"):
        assert identity(file) == f"sha256:{hashlib.sha256(b'other').hexdigest()}"


def test_fetch_missing_file_offline_names_all_places(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QPIGNN_OFFLINE", "1")
    monkeypatch.setenv("QPIGNN_DATA_DIR", str(tmp_path / "mine"))
    with pytest.raises(DataFileError) as caught:
        fetch(SourceFile("a/b.csv", (f"{server}/good",), sha256=SHA256))
    message = str(caught.value)
    for part in (
        "'a/b.csv'",
        str(tmp_path / "mine"),
        str(tmp_path / "cache"),
        "Set QPIGNN_DATA_DIR",
    ):
        assert part in message
    assert Handler.asked == []


def test_fetch_without_a_server_raises(server: str) -> None:
    closed = SourceFile("b.csv", ("http://127.0.0.1:9/b.csv",), sha256=SHA256)
    with pytest.raises(DataFileError, match="could not be downloaded"):
        fetch(closed)
