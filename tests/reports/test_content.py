"""Content of the page for a fitted model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, root_mean_squared_error
from torch_geometric.data import Data

from qpignn import Conformal, QpiGNN, example_tables, from_frames, make_method, split_nodes
from qpignn.intervals import Intervals
from qpignn.metrics import summary
from qpignn.reports.content import page_content, write_report
from qpignn.reports.results import examine
from qpignn.reports.rows import TABLE_NODES

Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def stations() -> Data:
    tables = example_tables(300)
    return split_nodes(from_frames(*tables, target="pollution"), seed=0)


@pytest.fixture(scope="module")
def content(stations: Data) -> dict[str, Any]:
    model = QpiGNN([0.5, 0.8, 0.9], epochs=40).fit(stations)
    return page_content(examine(model, stations), model, target="pollution")


def intervals_of(content: dict[str, Any]) -> Intervals:
    nodes = content["nodes"]
    columns = (nodes[name] for name in ("prediction", "lower", "upper"))
    return Intervals(*columns, content["level"], nodes["id"])


def test_page_content_figures_are_those_of_the_listed_nodes(
    stations: Data, content: dict[str, Any]
) -> None:
    roles = np.array(content["nodes"]["role"])
    y = np.array(content["nodes"]["target"], dtype=float)
    held_out = intervals_of(content).select(roles == 1)
    wanted = summary(held_out, y[roles == 1], y_given=y[roles == 0])
    for name, value in wanted.items():
        same = None if value is None else pytest.approx(value, rel=1e-4)
        assert content["figures"][name] == same, name
    assert content["figures"]["n_test"] == (roles == 1).sum() == int(stations.test_mask.sum())
    missed = content["misses"]["below"] + content["misses"]["above"]
    assert missed == (~held_out.covers(y[roles == 1])).sum()
    assert content["summary"][-1].startswith("75 nodes without a known value")


def test_page_content_band_is_ordered_by_prediction(content: dict[str, Any]) -> None:
    band, nodes = content["band"], content["nodes"]
    assert band["prediction"] == sorted(band["prediction"])
    assert band["target"] != sorted(band["target"])
    assert [nodes["target"][row] for row in band["node"]] == band["target"]
    assert [nodes["upper"][row] for row in band["node"]] == band["upper"]
    assert (band["shown"], band["of"]) == (45, 45)


def test_page_content_groups_add_up_to_all_held_out_nodes(content: dict[str, Any]) -> None:
    assert {"degree", "prediction", "width", "kind"} <= {
        one["name"] for one in content["groupings"]
    }
    for grouping in content["groupings"]:
        groups = grouping["groups"]
        assert sum(group["nodes"] for group in groups) == 45
        covered = sum(group["nodes"] * group["coverage"] for group in groups)
        assert covered / 45 == pytest.approx(content["figures"]["picp"])


def test_page_shows_groups_by_known_neighbours_and_how_much_narrower_intervals_are(
    visit: Visit,
) -> None:
    nodes, rng = torch.arange(400), np.random.default_rng(0)
    ends = torch.cat([torch.stack([nodes, (nodes + step) % 400]) for step in (1, 2)], dim=1)
    x = rng.normal(size=400)
    error = np.convolve(rng.normal(size=410), np.ones(11), mode="valid")  # alike along the ring
    data = Data(
        x=torch.from_numpy(x[:, None]).float(),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        y=torch.from_numpy(x + error),
    )
    data = split_nodes(data, seed=0)
    model = QpiGNN(epochs=30).fit(data)
    content = page_content(examine(model, data), model, target="y")
    (grouping,) = [one for one in content["groupings"] if one["name"] == "known neighbours"]
    given = data.train_mask.numpy()
    near = (np.flatnonzero(data.test_mask)[:, None] + np.array([-2, -1, 1, 2])) % 400
    counts = given[near].sum(axis=1)
    labels = {0: "0", 1: "1", 2: "2", 3: "3 to 4", 4: "3 to 4"}
    shown = {group["label"]: group["nodes"] for group in grouping["groups"]}
    assert shown == dict(Counter(labels[count] for count in counts))
    (finding,) = [one for one in content["findings"] if one["kind"] == "neighbours"]
    intervals = model.predict_interval(data, data.test_mask)
    assert finding["severity"] == "note"
    assert f"mean width {intervals.width[intervals.novelty <= 1].mean():.4g} " in finding["text"]
    page = visit(content)
    assert finding["text"][1:] in page.inner_text("#findings").replace("\u00a0", " ")
    page.select_option("#grouping", label="known neighbours")
    assert "Number of neighbours whose targets are known" in page.inner_text("#groups")


def test_page_content_drawn_nodes_are_listed(stations: Data, content: dict[str, Any]) -> None:
    graph = content["graph"]
    assert graph["kind"] == "map"
    assert sorted(graph["node"]) == list(range(300))
    drawn = {tuple(sorted(pair)) for pair in np.reshape(graph["edges"], (-1, 2)).tolist()}
    rows = {tuple(sorted(graph["node"][i] for i in pair)) for pair in drawn}
    joined = {tuple(sorted(pair)) for pair in stations.edge_index.T.tolist()}
    assert rows == joined
    assert 0 <= min(graph["x"]) <= max(graph["x"]) <= 1


def test_page_in_browser_shows_a_selected_node(content: dict[str, Any], visit: Visit) -> None:
    page = visit(content)
    page.fill("#search", "S0042")
    page.wait_for_function("() => document.querySelectorAll('#rows tr').length === 1")
    page.locator("#rows tr").first.click()
    shown = page.inner_text("#panel")
    row = content["nodes"]["id"].index("S0042")
    assert "S0042" in shown
    assert f"{content['nodes']['prediction'][row]:.2f}" in shown


@pytest.mark.parametrize("name", ["mc_dropout", "conformal:sqr", "cfgnn", "qpignn_single"])
def test_write_report_any_method_writes_a_page(name: str, stations: Data, tmp_path: Path) -> None:
    model = make_method(name, epochs=3).fit(stations)
    diagnosis = write_report(model, stations, tmp_path / "page.html")
    assert diagnosis.coverage is not None
    assert len(diagnosis.levels) == len(model.curve_levels_)


def one_sided(stations: Data, side: str, **settings: Any) -> tuple[QpiGNN, dict[str, Any]]:
    model = QpiGNN([0.8, 0.9], side=side, epochs=3, **settings).fit(stations)
    return model, page_content(examine(model, stations), model, target="pollution")


@pytest.mark.parametrize("settings", [{}, {"y_min": 0.0, "y_max": 99.0}], ids=["free", "limits"])
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_page_one_sided_mentions_bounds_and_shows_no_infinity(
    side: str, settings: dict[str, float], stations: Data, visit: Visit
) -> None:
    _, content = one_sided(stations, side, **settings)
    page = visit(content)
    page.locator("#rows tr").first.click()
    for details in page.locator("summary").all():
        details.click()
    text = page.inner_text("body")
    assert not re.search(r"∞|\binf\b|\bnan\b", text)
    assert f"{side.capitalize()} bounds and true values" in text
    report, training = text.split("\nTraining\n")[-2:]  # training is two-sided
    assert not re.search("interval|width", report)
    assert "two-sided 80 % interval, one end of which is the bound" in training
    other = {"upper": "lower", "lower": "upper"}[side]
    heads = page.locator("#head th").all_inner_texts()
    assert f"{side} bound" in heads
    assert not {other, "width", "lower", "upper"} & set(heads)
    assert set(content["nodes"][other]) == {None}
    assert (content["misses"], content["errors"]) == (None, [])
    assert "width" not in [one["name"] for one in content["groupings"]]
    assert "Mean bound" in page.locator("#groups thead").first.inner_text()


def test_key_numbers_one_sided_are_those_of_the_bounds(stations: Data) -> None:
    model, content = one_sided(stations, "upper")
    test = stations.test_mask
    bound, y = model.predict_interval(stations, test).upper, stations.y[test].numpy()
    tiles = {tile["label"]: tile for tile in content["key_numbers"]}
    assert list(tiles)[:4] == ["Miss rate", "Mean upper bound", "Pinball loss", "Mean error"]
    assert tiles["Miss rate"]["value"] == f"{100 * (y > bound).mean():.1f} %"
    assert "nominal 10 %" in tiles["Miss rate"]["note"]
    assert tiles["Mean upper bound"]["value"] == f"{bound.mean():.4g}"
    loss = mean_pinball_loss(y, bound, alpha=0.9)
    assert float(tiles["Pinball loss"]["value"]) == pytest.approx(loss, rel=1e-3)
    for group in content["groupings"][0]["groups"]:
        assert bound.min() <= group["size"] <= bound.max()


def test_page_content_one_sided_training_aims_at_the_two_sided_level(stations: Data) -> None:
    _, content = one_sided(stations, "upper")
    assert content["training"]["level"] == pytest.approx(0.8)  # the ends of which miss 10 % each


def test_key_numbers_mean_error_is_mae_with_rmse(stations: Data, content: dict[str, Any]) -> None:
    roles = np.array(content["nodes"]["role"])
    y, prediction = (
        np.array(content["nodes"][name], dtype=float)[roles == 1]
        for name in ("target", "prediction")
    )
    (tile,) = [tile for tile in content["key_numbers"] if tile["label"] == "Mean error"]
    assert tile["value"] == f"{mean_absolute_error(y, prediction):.4g}"
    assert f"RMSE {root_mean_squared_error(y, prediction):.4g}" in tile["note"]


def test_page_content_training_level_is_the_highest_fitted(stations: Data) -> None:
    model = QpiGNN([0.5, 0.9], epochs=2).fit(stations)
    content = page_content(examine(model, stations, confidence_level=0.5), model, target="y")
    assert (content["level"], content["training"]["level"]) == (0.5, 0.9)


def test_write_report_a_hundred_thousand_nodes_samples_the_graph(tmp_path: Path) -> None:
    nodes = TABLE_NODES + 5
    rng = np.random.default_rng(0)
    ends = torch.from_numpy(rng.integers(0, nodes, (2, 3 * nodes)))
    data = Data(
        x=torch.from_numpy(rng.normal(size=(nodes, 2))).float(),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        y=torch.from_numpy(rng.normal(size=nodes)),
    )
    data.y[: nodes // 2] = torch.nan
    data = split_nodes(data)
    model = Conformal.prefit(lambda x, edges: x[:, 0], data, data.train_mask)
    path = tmp_path / "page.html"
    write_report(model, data, path)
    assert path.stat().st_size < 15e6
    text = path.read_text()
    assert f"{TABLE_NODES:,} of {nodes:,} nodes are listed" in text
    assert f"Drawn: 4,000 of {nodes:,} nodes" in text


def test_page_content_large_targets_keep_their_digits(stations: Data) -> None:
    far = Data(**stations.to_dict())
    far.y = stations.y + 1.7e9
    model = QpiGNN(epochs=5).fit(far)
    content = page_content(examine(model, far), model, target="when")
    intervals = model.predict_interval(far)
    np.testing.assert_allclose(intervals_of(content).width, intervals.width, rtol=1e-3)
    hits = np.array(content["nodes"]["inside"])[stations.test_mask.numpy()] == 1
    assert hits.mean() == content["figures"]["picp"]
    assert content["band"]["inside"].count(True) == hits.sum()


def test_page_content_labelled_nodes_outside_masks_are_unused(stations: Data) -> None:
    some = Data(**stations.to_dict())
    some.train_mask = stations.train_mask & (torch.arange(300) % 2 == 0)
    model = QpiGNN(epochs=2).fit(some)
    roles = np.array(page_content(examine(model, some), model, target="y")["nodes"]["role"])
    assert (roles == 0).sum() == int(some.train_mask.sum())
    assert (roles == 3).sum() == int((stations.train_mask & ~some.train_mask).sum()) > 0


def test_page_content_column_named_like_a_grouping_stays_a_column(stations: Data) -> None:
    model = QpiGNN(epochs=2).fit(stations)
    results = examine(model, stations, by={"distance": ["near", "far"] * 150})
    (own,) = [
        one
        for one in page_content(results, model, target="y")["groupings"]
        if one["title"] == "column distance"
    ]
    assert own["about"] == "A column of the node table."
