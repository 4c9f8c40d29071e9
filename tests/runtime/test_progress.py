from __future__ import annotations

import io
import sys

import pytest

from qpignn.runtime.progress import progress_bar

WORDS = "loss 12345.6789  coverage 0.984  width 4.110"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("screen", [True, False])
def test_progress_shows_all_words_in_80_columns(
    screen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Screen() if screen else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("training", 500) as show:
        show(500, WORDS)
    assert WORDS in stream.getvalue()


def test_progress_is_silent_where_it_is_not_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("training", 5, shown=False) as show:
        show(5, WORDS)
    assert capsys.readouterr() == ("", "")
