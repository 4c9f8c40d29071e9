"""Finding a data set's files: the user's folder, else the cache, else a checked download.

``QPIGNN_DATA_DIR`` names a folder whose files are used as they are, with a warning where one
differs from the original file. Otherwise files live in the user's cache (``QPIGNN_CACHE_DIR``
moves it), where each was checked against its known digest before it got its name;
``QPIGNN_OFFLINE=1`` forbids downloading.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import requests

from qpignn.errors import DataFileError, QpignnWarning, import_optional
from qpignn.io.files import cache_folder, temporary_name

BLOCK = 1 << 20
NOT_ORIGINAL = "is not the original file"
DATA_DIR, OFFLINE = "QPIGNN_DATA_DIR", "QPIGNN_OFFLINE"


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
        """Return what is wrong with a file's bytes, or None.

        Args:
            file: where the bytes are.
        """
        digests = file_digests(file)
        for kind, expected, got in (
            ("SHA-256", self.sha256, digests.sha256),
            ("git blob id", self.git_blob, digests.git_blob),
        ):
            if expected is not None and expected != got:
                return f"expected {kind} {expected}, got {got} ({digests.size:,} bytes)"
        return None if self.known_digest else "there is no known digest to check it against"

    @property
    def known_digest(self) -> str | None:
        """The digest its bytes must have, with its kind; None where none is known."""
        if self.sha256 is not None:
            return f"sha256:{self.sha256}"
        return None if self.git_blob is None else f"git:{self.git_blob}"


@dataclass(frozen=True)
class Digests:
    """Digests of one file's bytes: SHA-256, the id git gives them, and their number.

    Attributes:
        sha256: SHA-256 in hexadecimal digits.
        git_blob: id of the git blob.
        size: number of bytes.
    """

    sha256: str
    git_blob: str
    size: int


def read_digests(file: Path) -> Digests:
    """Read a file and return the digests of its bytes.

    Args:
        file: path of the file.

    Returns:
        Its digests.
    """
    size = file.stat().st_size
    sha256, git_blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size)
    with file.open("rb") as opened:
        while block := opened.read(BLOCK):
            sha256.update(block)
            git_blob.update(block)
    return Digests(sha256.hexdigest(), git_blob.hexdigest(), size)


def file_digests(file: Path) -> Digests:
    """Return the digests of a file, read once per process while size and time stay the same.

    Args:
        file: path of the file.
    """
    status = file.stat()
    return _known_digests(file.absolute(), status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4096)
def _known_digests(file: Path, inode: int, size: int, modified: int) -> Digests:
    return read_digests(file)


def identity(file: SourceFile) -> str:
    """Return a digest of the bytes that would be read for a file. Never downloads.

    It is the known digest where the file has those bytes or is not on this machine (it would
    be downloaded and checked), and the digest of the bytes found where they are others.

    Args:
        file: the file.
    """
    here = find(file)
    if here is None:
        return file.known_digest or "absent"
    if file.known_digest and file.problem(here) is None:
        return file.known_digest
    warn_altered(file, here)
    return f"sha256:{file_digests(here).sha256}"


def warn_altered(file: SourceFile, here: Path) -> None:
    """Warn, once per process, if a file of the user's folder is not the original one.

    Args:
        file: the file as it should be.
        here: path of the user's file.
    """
    problem = file.problem(here) if file.known_digest else None
    if problem is not None:
        _warn_once(f"{here} {NOT_ORIGINAL}: {problem}")


@lru_cache(maxsize=1024)
def _warn_once(what: str) -> None:
    warnings.warn(
        f"{what}. It is used as it is, and its results are kept apart from those of the original "
        f"data; to use the original file, delete this one or unset {DATA_DIR}.",
        QpignnWarning,
        stacklevel=3,
    )


def find(file: SourceFile) -> Path | None:
    """Return where a file is on this machine, or None. Never downloads.

    Args:
        file: the file.
    """
    folder = os.environ.get(DATA_DIR)
    if folder and (given := Path(folder) / file.path).is_file():
        return given
    cached = cache_folder() / file.path
    return cached if cached.is_file() and file.problem(cached) is None else None


def fetch(file: SourceFile) -> Path:
    """Return a file's path, downloading it first if need be.

    Args:
        file: the file.

    Raises:
        DataFileError: if it is not on this machine and cannot be downloaded.
    """
    here = find(file)
    if here is not None:
        warn_altered(file, here)
        return here
    problems = []
    if os.environ.get(OFFLINE, "") not in ("", "0"):
        problems.append(f"{OFFLINE} forbids downloading")
    elif not file.known_digest:
        place = f"It is at {' or '.join(file.urls)}"
        problems.append(f"there is no known digest to check a download against. {place}")
    else:
        for url in file.urls:
            try:
                return _download(file, url)
            except (requests.RequestException, OSError, ValueError) as error:
                problems.append(f"{url}: {error}")
    folder = os.environ.get(DATA_DIR)
    looked = f"{DATA_DIR}={folder}" if folder else f"{DATA_DIR} (not set)"
    raise DataFileError(
        f"the data file {file.path!r} is not on this machine and could not be downloaded. "
        f"Looked in {looked} and in the cache {cache_folder()}. "
        f"Download: {'; '.join(problems)}. "
        f"Set {DATA_DIR} to a folder that holds {file.path!r}, or connect and try again."
    )


def _download(file: SourceFile, url: str) -> Path:
    """Fetch a file under a temporary name; it gets its own once its bytes are found to be right.

    What lies under that name is not deleted before: it may be what another process has just
    fetched, and is reading.
    """
    target = cache_folder() / file.path
    temporary = temporary_name(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        pooch = import_optional("pooch", "a download")
        pooch.HTTPDownloader(progressbar=True, timeout=30)(url, str(temporary), None)
        if (problem := file.problem(temporary)) is not None:
            raise ValueError(f"the download is damaged or not the original file: {problem}")
        os.replace(temporary, target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return target
