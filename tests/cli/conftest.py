"""Commands run in this process, with exit codes as a shell would see them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from qpignn.cli import main


@dataclass
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def qpignn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    def run(*words: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["qpignn", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "200")
        try:
            main()
            code = 0
        except SystemExit as exit:
            code = int(exit.code or 0)
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run
