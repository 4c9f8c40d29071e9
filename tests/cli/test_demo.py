import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd


def test_demo_writes_intervals_and_a_picture(qpignn: Callable[..., Any], tmp_path: Path) -> None:
    done = qpignn("demo", "--out", tmp_path, "--json")
    assert done.code == 0
    figures = json.loads(done.out)
    assert figures["n_test"] == 200
    assert 0.8 < figures["picp"] <= 1
    frame = pd.read_csv(tmp_path / "intervals.csv")
    inside = (frame["lower"] <= frame["target"]) & (frame["target"] <= frame["upper"])
    assert inside.mean() == figures["picp"]
    assert (tmp_path / "intervals.png").stat().st_size > 10_000
