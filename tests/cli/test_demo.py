import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd


def test_demo_writes_tables_intervals_metrics_and_report(
    qpignn: Callable[..., Any], tmp_path: Path
) -> None:
    done = qpignn("demo", "--out", tmp_path, "--json")
    assert done.code == 0
    figures = json.loads(done.out)
    assert figures["n_test"] == 120
    assert 0.8 < figures["picp"] <= 1
    stations = pd.read_csv(tmp_path / "nodes.csv")
    frame = pd.read_csv(tmp_path / "intervals.csv")
    cells = (tmp_path / "intervals.csv").read_text().splitlines()[1].split(",")[1:]
    assert max(len(cell) for cell in cells) < 12  # no noise digits
    assert frame["id"].tolist() == stations.loc[stations["pollution"].isna(), "id"].tolist()
    assert (frame["lower"] < frame["upper"]).all()
    assert set(pd.read_csv(tmp_path / "edges.csv")["from"]) <= set(stations["id"])
    assert (tmp_path / "intervals.png").stat().st_size > 10_000
    assert figures["report"] == str(tmp_path / "report.html")
    assert "Demo: pollution" in (tmp_path / "report.html").read_text()


def test_demo_prints_the_path_of_the_report_last(
    qpignn: Callable[..., Any], tmp_path: Path
) -> None:
    done = qpignn("demo", "--out", tmp_path)
    assert done.out.splitlines()[-1] == f"open the report: {tmp_path / 'report.html'}"
    assert "coverage (PICP)" in done.out
