"""Downloads are checked before they are used."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from qpignn.data.catalog import BENCHMARK, EXTRA
from qpignn.data.sources.files import SourceFile, fetch, find
from qpignn.data.sources.musae import COUNTRIES, files_of
from qpignn.errors import DataFileError

CONTENT = b"id,target\n0,1\n"
FILES = {file.path: file for entry in (BENCHMARK | EXTRA).values() for file in entry.files}


def test_catalog_has_more_than_20_files() -> None:
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES)
def test_every_file_of_the_catalog_has_a_digest_and_comes_encrypted(path: str) -> None:
    file = FILES[path]
    assert file.known_digest is not None
    assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
    assert file.git_blob is None or re.fullmatch("[0-9a-f]{40}", file.git_blob)
    assert all(url.startswith("https://") for url in file.urls)
    assert not Path(path).is_absolute()
    assert ".." not in Path(path).parts


class Handler(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "/tampered")
            self.end_headers()
            return
        body = CONTENT if self.path == "/good" else b"evil"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

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


@pytest.mark.parametrize("way", ["tampered", "elsewhere"])
def test_fetch_of_another_content_is_refused_and_leaves_no_file(
    server: str, tmp_path: Path, way: str
) -> None:
    digest = hashlib.sha256(CONTENT).hexdigest()
    with pytest.raises(DataFileError, match="not the original file"):
        fetch(SourceFile("a.csv", (f"{server}/{way}",), sha256=digest))
    assert everything_under(tmp_path) == []
    assert fetch(SourceFile("a.csv", (f"{server}/good",), sha256=digest)).read_bytes() == CONTENT


def test_fetch_file_without_a_digest_is_refused(server: str, tmp_path: Path) -> None:
    file = SourceFile("a.csv", (f"{server}/good",))
    with pytest.raises(DataFileError, match="no known digest to check a download against"):
        fetch(file)
    assert Handler.asked == []
    cached = tmp_path / "cache" / "a.csv"
    cached.parent.mkdir()
    cached.write_bytes(CONTENT)
    assert find(file) is None  # nor is a file that was put into the cache


def test_fetch_uses_files_of_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QPIGNN_DATA_DIR", str(tmp_path))
    (tmp_path / "a.csv").write_bytes(CONTENT)
    assert fetch(SourceFile("a.csv", ())) == tmp_path / "a.csv"


@pytest.mark.parametrize("country", COUNTRIES)
def test_fetch_twitch_of_other_countries_without_a_digest_is_refused(
    server: str, country: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QPIGNN_OFFLINE", "1" if country == "PTBR" else "0")
    for file in files_of("twitch", country).values():
        assert (file.known_digest is not None) is (country == "PTBR")
        if country != "PTBR":
            with pytest.raises(DataFileError, match=r"no known digest.*It is at https://"):
                fetch(file)
