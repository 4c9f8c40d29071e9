from __future__ import annotations

import io
import sys

import pytest

from qpignn.runtime.progress import progress_bar

MESSAGE = "loss 12345.6789  coverage 0.984  width 4.110"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_progress_bar_in_80_columns_shows_the_whole_message(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "80")
    with progress_bar("training", 500) as show:
        show(500, MESSAGE)
    last = stream.getvalue().rstrip().split("\r")[-1]
    assert last.startswith("training ")
    assert "500/500" in last
    assert last.endswith(MESSAGE)
    assert len(last) <= 80


def test_progress_bar_in_a_file_is_not_redrawn_at_every_update(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("training", 500) as show:
        for done in range(1, 501):
            show(done, MESSAGE)
    assert stream.getvalue().count("\r") <= 3
    assert "500/500" in stream.getvalue()


def test_progress_bar_ends_its_line_when_the_block_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)

    def interrupted() -> None:
        with progress_bar("training", 5) as show:
            show(3, MESSAGE)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "3/5" in stream.getvalue()
    assert stream.getvalue().endswith("\n")


def test_progress_bar_that_is_not_shown_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("training", 5, shown=False) as show:
        show(5, MESSAGE)
    assert capsys.readouterr() == ("", "")
