"""A server of one file that is slow, in a process of its own."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from qpignn.data.sources.files import DATA_DIR, OFFLINE, SourceFile
from qpignn.io.files import CACHE_DIR

CONTENT = b"".join(b"%d,%d\n" % (i, i * i) for i in range(12_000))
BLOCKS = 20
SLOWNESS = 0.01  # seconds before each block


class Served:
    """Where the file is to be had; set by :func:`serving`."""

    url = ""

    @classmethod
    def file(cls) -> SourceFile:
        """Return the file as data sets name theirs."""
        return SourceFile("a.csv", (cls.url,), sha256=hashlib.sha256(CONTENT).hexdigest())


class Slow(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        size = -(-len(CONTENT) // BLOCKS)
        try:
            for start in range(0, len(CONTENT), size):
                time.sleep(SLOWNESS)
                self.wfile.write(CONTENT[start : start + size])
        except OSError:
            pass  # who asked was killed

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(cache: Path) -> Iterator[None]:
    """Serve the file on this machine, and let downloads go to a cache of their own."""
    service = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    service.timeout, parent = 1, os.getpid()
    pid = os.fork()
    if not pid:
        while os.getppid() == parent:  # it does not outlive who asks
            service.handle_request()
        os._exit(0)
    Served.url = f"http://127.0.0.1:{service.server_port}/a.csv"
    service.server_close()
    os.environ[CACHE_DIR] = str(cache)
    for name in (DATA_DIR, OFFLINE):
        os.environ.pop(name, None)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
