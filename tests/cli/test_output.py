from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from qpignn.cli.output import check_output, print_json, print_metrics, print_table
from qpignn.errors import SettingError
from qpignn.intervals import Intervals
from qpignn.metrics import summary


def test_names_stay_whole_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    row = ["unemployment", *["0.900 ± 0.001"] * 6]
    print_table("t", ["data set", *"abcdef"], [row])
    assert "unemployment" in capsys.readouterr().out


def printed(intervals: Intervals, capsys: pytest.CaptureFixture[str]) -> str:
    print_metrics("two nodes", summary(intervals, [1.0, 5.0], y_given=[0.0, 4.0]))
    return capsys.readouterr().out


def test_print_metrics_two_sided_prints_widths_and_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = printed(Intervals([1.0, 2.0], [0.0, 1.0], [2.0, 3.0], 0.9), capsys)
    assert re.search(r"mean width, in the target's unit +│ +2 ", out)
    assert re.search(r"\(MAE\), in the target's unit +│ +1.5 ", out)  # errors 0 and 3
    assert re.search(r"\(RMSE\), in the target's unit +│ +2.121 ", out)
    assert "bound" not in out


def test_print_metrics_one_sided_prints_its_own_rows_and_no_width(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = printed(Intervals([1.0, 2.0], [-np.inf] * 2, [2.0, 4.0], 0.9), capsys)
    assert re.search(r"mean bound, in the target's unit +│ +3 ", out)
    assert re.search(r"miss rate: targets beyond their bound +│ +0.5 ", out)
    # 0.1 per unit below the bound (1 unit), 0.9 per unit above it (1 unit)
    assert re.search(r"pinball loss of the bound, in the target's unit +│ +0.5 ", out)
    assert re.search(r"\(MAE\), in the target's unit +│ +1.5 ", out)
    assert not re.search("width|Winkler|inf|nan|None|–", out)


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
