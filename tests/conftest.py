"""Shared fixtures: one thread per test process, small graphs, the command line, data sets that may
be missing, and a real browser for the report page."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import settings
from torch_geometric.data import Data

from qpignn.cli import main
from qpignn.data.catalog import find_dataset, load_dataset

torch.set_num_threads(1)
settings.register_profile("laws", deadline=None)  # a property is true or not, however long it takes
settings.register_profile("fuzz", max_examples=4000, deadline=None)
settings.load_profile("laws")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(autouse=True)
def _own_records(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the records of checked graphs out of the user's cache."""
    records = tmp_path_factory.getbasetemp() / "records"
    monkeypatch.setattr("qpignn.data.mapped_digests.FOLDER", str(records))


@pytest.fixture
def path_graph() -> Data:
    """0 – 1 – 2 – 3, two features, the last node unlabelled."""
    return Data(
        x=torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]),
        edge_index=torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]),
        y=torch.tensor([1.0, 2.0, 4.0, float("nan")]),
    )


@pytest.fixture(scope="session")
def real() -> Callable[..., Data]:
    """Load a data set, or skip the test, saying which files are absent."""

    def load(name: str, protocol: str = "corrected", **options: object) -> Data:
        missing = find_dataset(name).missing()
        if missing:
            pytest.skip(f"needs {', '.join(missing)}: set QPIGNN_DATA_DIR")
        return load_dataset(name, protocol, **options)

    return load


@dataclass
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def qpignn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Run a command in this process, with the exit code a shell would see."""

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["qpignn", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        try:
            main()
            code = 0
        except SystemExit as exit:
            code = int(exit.code or 0)
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window: ``QPIGNN_CHROMIUM``, or the one on the path."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    executable = os.environ.get("QPIGNN_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if not executable:
        pytest.skip(f"needs a browser: set QPIGNN_CHROMIUM or install one of {', '.join(BROWSERS)}")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=list(BROWSER_OPTIONS))
        yield started
        started.close()
