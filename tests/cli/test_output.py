from __future__ import annotations

import json
from pathlib import Path

import pytest

from qpignn.cli.output import check_output, in_words, print_json, print_metrics, print_table
from qpignn.errors import SettingError


def test_names_stay_whole_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    row = ["unemployment", *["0.900 ± 0.001"] * 6]
    print_table("t", ["data set", *"abcdef"], [row])
    assert "unemployment" in capsys.readouterr().out


def test_figures_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert in_words(None) == "–"
    names = ("picp", "mpiw", "mpiw_raw", "nmpiw", "mpe", "sharpness", "winkler", "cwc")
    print_metrics("one node", {**dict.fromkeys(names, 0.5), "nmpiw": None})
    assert "–" in capsys.readouterr().out


def test_json_has_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"a": float("inf"), "b": float("nan"), "c": 1.5}])
    assert json.loads(capsys.readouterr().out) == [{"a": None, "b": None, "c": 1.5}]


def test_outputs_are_checked_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_output(tmp_path / "new" / "folder", folder=True)
    assert not (tmp_path / "new").exists()  # looking makes nothing
    with pytest.raises(SettingError, match="expected a folder, got the other"):
        check_output(tmp_path / "file", folder=True)
    with pytest.raises(SettingError, match="expected a file, got the other"):
        check_output(tmp_path, folder=False)
    with pytest.raises(SettingError, match="cannot be written"):
        check_output(tmp_path / "file" / "x.csv", folder=False)
