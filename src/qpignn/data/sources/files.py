"""Finding a data set's files: the user's folder, else the cache, else a checked download.

``QPIGNN_DATA_DIR`` names a folder whose files are used as they are. Otherwise files live in the
user's cache (``QPIGNN_CACHE_DIR`` moves it), where each was checked against its published digest
before it got its name; ``QPIGNN_OFFLINE=1`` forbids downloading.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pooch
import requests

from qpignn.errors import DataFileError

BLOCK = 1 << 20
DATA_DIR, CACHE_DIR, OFFLINE = "QPIGNN_DATA_DIR", "QPIGNN_CACHE_DIR", "QPIGNN_OFFLINE"


@dataclass(frozen=True)
class SourceFile:
    """One file of a data set.

    Attributes:
        path: where it lies under the data folder and the cache.
        urls: addresses that serve the same bytes, tried in order.
        sha256, git_blob: what its bytes must hash to; with neither it is not downloaded.
    """

    path: str
    urls: tuple[str, ...]
    sha256: str | None = None
    git_blob: str | None = None

    def problem(self, file: Path) -> str | None:
        """Return what is wrong with a file's bytes, or None."""
        size = file.stat().st_size
        wanted = {
            "SHA-256": (self.sha256, hashlib.sha256()),
            "git blob id": (self.git_blob, hashlib.sha1(b"blob %d\0" % size)),
        }
        with file.open("rb") as opened:
            while block := opened.read(BLOCK):
                for _, found in wanted.values():
                    found.update(block)
        for kind, (expected, found) in wanted.items():
            if expected is not None and expected != found.hexdigest():
                return f"expected {kind} {expected}, got {found.hexdigest()} ({size:,} bytes)"
        return None if self.checkable else "there is no published digest to check it against"

    @property
    def checkable(self) -> bool:
        """Whether it is known what its bytes must be."""
        return self.sha256 is not None or self.git_blob is not None


def cache_folder() -> Path:
    """Return the folder downloads are kept in."""
    return Path(os.environ.get(CACHE_DIR) or pooch.os_cache("qpignn"))


def find(file: SourceFile) -> Path | None:
    """Return where a file is on this machine, or None. Never downloads."""
    folder = os.environ.get(DATA_DIR)
    if folder and (given := Path(folder) / file.path).is_file():
        return given
    cached = cache_folder() / file.path
    return cached if cached.is_file() and file.problem(cached) is None else None


def fetch(file: SourceFile) -> Path:
    """Return a file's path, downloading it first if need be."""
    here = find(file)
    if here is not None:
        return here
    if os.environ.get(OFFLINE, "") not in ("", "0"):
        raise DataFileError(_message(file, [f"{OFFLINE} forbids downloading"]))
    if not file.checkable:
        raise DataFileError(
            _message(file, ["there is no published digest to check a download against"])
            + f" It is at {' or '.join(file.urls)}."
        )
    problems = []
    for url in file.urls:
        try:
            return _download(file, url)
        except (requests.RequestException, OSError, ValueError) as error:
            problems.append(f"{url}: {error}")
    raise DataFileError(_message(file, problems))


def _download(file: SourceFile, url: str) -> Path:
    """Fetch a file under a temporary name; it gets its own once its bytes are found to be right.

    What lies under that name is not deleted before: it may be what another process has just
    fetched, and is reading.
    """
    target = cache_folder() / file.path
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        temporary.unlink(missing_ok=True)
        pooch.HTTPDownloader(progressbar=True, timeout=30)(url, str(temporary), None)
        problem = file.problem(temporary)
        if problem is not None:
            raise ValueError(f"the download is damaged or not the published file: {problem}")
        os.replace(temporary, target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return target


def _message(file: SourceFile, problems: list[str]) -> str:
    folder = os.environ.get(DATA_DIR)
    looked = f"{DATA_DIR}={folder}" if folder else f"{DATA_DIR} (not set)"
    return (
        f"the data file {file.path!r} is not on this machine and could not be downloaded. "
        f"Looked in {looked} and in the cache {cache_folder()}. "
        f"Download: {'; '.join(problems)}. "
        f"Set {DATA_DIR} to a folder that holds {file.path!r}, or connect and try again."
    )
