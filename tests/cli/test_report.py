"""From files to a page: what ``report`` writes, and that it names what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from torch_geometric.data import Data

Run = Callable[..., Any]


def content_of(page: Path) -> dict[str, Any]:
    match = re.search(
        r'<script type="application/json" id="content">(.*?)</script>', page.read_text(), re.DOTALL
    )
    assert match is not None
    return dict(json.loads(match[1]))


@pytest.fixture
def districts(tmp_path: Path) -> tuple[str, ...]:
    """Four districts of densely joined stations; the noise of the first is four times that of
    the others, and nothing in the features says so."""
    rng = np.random.default_rng(3)
    size, names = 150, [f"d{i // 150}-{i % 150}" for i in range(600)]
    quiet = rng.normal(size=600)
    frame = pd.DataFrame({"id": names, "height": rng.uniform(size=600)})
    frame["load"] = 3 * frame["height"] + np.where(np.arange(600) < size, 4, 1) * quiet
    inside = rng.integers(0, size, (2, 2400)) + size * np.tile(np.arange(4), 600)
    across = rng.integers(0, 600, (2, 60))
    ends = np.concatenate([inside, across], axis=1)
    pairs = [(names[a], names[b]) for a, b in ends.T if a != b]
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    pd.DataFrame(pairs, columns=["from", "to"]).to_csv(tmp_path / "edges.csv", index=False)
    files = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv")
    return tuple(map(str, (*files, "--target", "load")))


def test_report_warns_of_a_district_with_four_times_the_noise(
    qpignn: Run, districts: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    options = ("--epochs", 60, "--test-fraction", 0.5, "--out", folder)
    assert qpignn("fit", *districts, *options).code == 0
    done = qpignn("report", folder)
    assert done.code == 0
    lines = done.out.splitlines()
    warned = [line for line in lines if line.startswith("warning: coverage for comm")]
    assert len(warned) == 1
    assert re.search(r"community \d \(around d0-\d+\) is \d+ % ± \d+ %.*nominal 90 %", warned[0])
    assert warned[0] in qpignn("evaluate", folder).out
    page = folder / "report.html"
    assert done.out.endswith(f"wrote {page}\n")
    sentence = warned[0].removeprefix("warning: ")
    content = content_of(page)
    assert sentence in [finding["text"] for finding in content["findings"]]
    (community,) = [one for one in content["groupings"] if one["name"] == "community"]
    (flagged,) = [group["label"] for group in community["groups"] if group["flagged"]]
    assert "around d0-" in flagged
    written = page.read_text().partition("<main")[2].partition("</main>")[0]
    assert "around d0-" in written  # without JavaScript too
    listed = json.loads(qpignn("report", folder, "--json").out)
    assert listed["file"] == str(page)
    assert sentence in [finding["text"] for finding in listed["findings"]]


@pytest.fixture
def counties(real: Callable[..., Data], tmp_path: Path) -> tuple[Path, Path]:
    """The county data as two tables: text ids with leading zeros, states by name, blanks."""
    data = real("unemployment")
    ids = [f"{int(name):05d}" for name in data.node_id]
    frame = pd.DataFrame(data.x.numpy(), columns=data.feature_names)
    frame.insert(0, "fips", ids)
    frame["state"] = [f"state {name[:2]}" for name in ids]
    frame["rate"] = data.y.numpy()
    frame.loc[np.random.default_rng(0).permutation(len(frame))[:600], "rate"] = np.nan
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    one_way = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    ends = [(ids[a], ids[b]) for a, b in one_way.T.tolist()]
    pd.DataFrame(ends, columns=["from", "to"]).to_csv(tmp_path / "edges.csv", index=False)
    return tmp_path / "nodes.csv", tmp_path / "edges.csv"


def test_fit_predict_and_report_on_county_tables(
    qpignn: Run, counties: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, out = tmp_path / "model", tmp_path / "intervals.csv"
    arguments = ("--id", "fips", "--target", "rate", "--epochs", 30, "--out", folder)
    done = qpignn("fit", "--nodes", counties[0], "--edges", counties[1], *arguments)
    assert done.code == 0, done.err
    assert re.search(r"state: \d\d categories, one column each", done.err)
    assert "isolated nodes" in done.err
    assert "connected components" in done.err
    assert "scaling standard" in done.err
    table = pd.read_csv(counties[0], dtype={"fips": str})
    assert qpignn("predict", folder, "--out", out).code == 0
    predictions = pd.read_csv(out, dtype={"fips": str})
    assert predictions["fips"].tolist() == table.loc[table["rate"].isna(), "fips"].tolist()
    assert np.isfinite(predictions[["prediction", "lower", "upper"]]).all(axis=None)
    assert qpignn("report", folder).code == 0
    figures = json.loads(qpignn("evaluate", folder, "--json").out)
    content = content_of(folder / "report.html")
    assert content["figures"] == figures
    nodes = pd.DataFrame({k: v for k, v in content["nodes"].items() if isinstance(v, list)})
    waiting = nodes[nodes["role"] == 2].reset_index(drop=True)
    assert waiting["id"].tolist() == predictions["fips"].tolist()
    np.testing.assert_allclose(waiting["upper"], predictions["upper"], rtol=1e-5, atol=1e-6)
    assert "state" in [one["name"] for one in content["groupings"]]


def test_report_options_for_output_level_and_columns(
    qpignn: Run, districts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, page = tmp_path / "model", tmp_path / "pages" / "page.html"
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    arguments = ("--epochs", 2, "--confidence", "0.5,0.8", "--out", folder)
    assert qpignn("fit", *districts, *arguments).code == 0
    options = ("--by", "height", "--confidence", 0.5, "--title", "Our load", "--out", page)
    assert qpignn("report", folder, *options, "--open").code == 0
    assert opened == [page.absolute().as_uri()]
    content = content_of(page)
    assert (content["title"], content["level"], content["target"]) == ("Our load", 0.5, "load")
    assert [one["level"] for one in content["calibration"]] == [0.5, 0.8]
    assert content["groupings"][-1]["name"] == "height"
    assert len(content["training"]["loss"]) == 2
    assert ["members", "None"] in content["settings"]
    done = qpignn("report", folder, "--by", "hight")
    assert (done.code, "it has 'id', 'height', 'load'" in done.err) == (2, True)
    done = qpignn("report", folder, "--out", "page.txt")
    assert (done.code, "ending in .html" in done.err) == (2, True)


def test_report_without_held_out_nodes_has_no_figures(qpignn: Run, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    arguments = ("--test-fraction", 0, "--epochs", 2, "--out", folder)
    assert qpignn("fit", "--dataset", "basic", *arguments).code == 0
    done = qpignn("report", folder)
    assert "the coverage on new nodes is unknown" in done.out
    content = content_of(folder / "report.html")
    assert content["figures"] is None
    assert content["band"] is None


def test_report_with_coordinates_has_a_map(qpignn: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(60), "lon": rng.uniform(5, 15, 60)})
    frame["lat"], frame["y"] = rng.uniform(47, 55, 60), rng.normal(size=60)
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    arguments = ("fit", "--nodes", tmp_path / "nodes.csv", "--target", "y", "--epochs", 2)
    assert qpignn(*arguments, "--out", tmp_path / "m").code == 0
    assert qpignn("report", tmp_path / "m").code == 0
    graph = content_of(tmp_path / "m" / "report.html")["graph"]
    assert graph["kind"] == "map"
    order = np.argsort(frame["lat"])[::-1]  # north is up: y runs downwards
    np.testing.assert_array_equal(np.argsort(graph["y"], kind="stable"), order)
    east, north = (np.ptp(frame[name]) for name in ("lon", "lat"))
    wanted = east * np.cos(np.radians(frame["lat"].mean())) / north
    assert graph["aspect"] == pytest.approx(wanted, rel=1e-4)
    assert graph["axes"]["names"] == ["lon", "lat"]  # remembered with the fit
    assert graph["axes"]["degrees"] is True
    assert graph["axes"]["x"] == pytest.approx([frame["lon"].min(), frame["lon"].max()])
    assert graph["axes"]["y"] == pytest.approx([frame["lat"].min(), frame["lat"].max()])


def test_report_shows_every_column_of_the_table_also_those_that_are_no_features(
    qpignn: Run, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"n{i}" for i in range(60)], "height": rng.uniform(size=60)})
    frame["kind"], frame["remark"] = ["a", "b", "c"] * 20, [f"remark {i}" for i in range(60)]
    frame["y"] = rng.normal(size=60)
    frame.loc[:5, ["remark", "y"]] = None
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    arguments = ("fit", "--nodes", tmp_path / "nodes.csv", "--target", "y", "--ignore", "remark")
    assert qpignn(*arguments, "--epochs", 2, "--out", tmp_path / "m").code == 0
    assert qpignn("report", tmp_path / "m").code == 0
    columns = content_of(tmp_path / "m" / "report.html")["columns"]
    height, kind, remark = columns["list"]  # id and target are there anyway
    assert [one["name"] for one in columns["list"]] == ["height", "kind", "remark"]
    assert height["values"] == pytest.approx(frame["height"].tolist(), rel=1e-8)
    assert [kind["categories"][code] for code in kind["codes"]] == frame["kind"].tolist()
    assert remark["codes"][:7] == [-1] * 6 + [0]
    assert remark["categories"][0] == "remark 6"
    assert columns["left_out"] == []


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_evaluate_and_report_one_sided_use_terms_for_bounds(
    qpignn: Run, tmp_path: Path, side: str
) -> None:
    arguments = ("--set", f"side={side}", "--epochs", 2, "--out", tmp_path / "m")
    assert qpignn("fit", "--dataset", "basic", *arguments).code == 0
    figures = json.loads(qpignn("evaluate", tmp_path / "m", "--json").out)
    assert figures["miss_rate"] == pytest.approx(1 - figures["picp"])
    assert figures["mpiw"] is figures["winkler"] is None
    assert {"mean_bound", "pinball", "mae", "rmse"} <= {k for k, v in figures.items() if v}
    output = qpignn("evaluate", tmp_path / "m").out
    assert "mean bound, in the target's unit" in output
    assert not re.search("inf|width|interval", output)
    assert qpignn("report", tmp_path / "m").code == 0
    assert content_of(tmp_path / "m" / "report.html")["side"] == side
