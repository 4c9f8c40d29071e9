"""Tables with many columns that are mostly zeros: sparse when read, and no other result."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from qpignn import QpiGNN, from_frames, join_frames, split_nodes, write_report
from qpignn.data.matrix import is_sparse
from qpignn.data.text_table import TextTable
from qpignn.methods.bundle import load_fit

NODES, WORDS = 60, 80
Tables = tuple[pd.DataFrame, pd.DataFrame]


@pytest.fixture
def tables() -> Tables:
    """Pages with a few of 80 words each, a kind and a size; the target counts two of the words."""
    rng = np.random.default_rng(0)
    word_counts = (rng.random((NODES, WORDS)) < 0.04).astype(int)
    pages = pd.DataFrame(word_counts, columns=[f"word_{i}" for i in range(WORDS)])
    pages.insert(0, "id", [f"p{i}" for i in range(NODES)])
    pages["kind"] = rng.choice(["news", "shop"], NODES)
    pages["size"] = rng.normal(size=NODES).round(3)
    pages["views"] = pages["word_0"] + pages["word_1"] + rng.normal(size=NODES).round(3)
    ends = [f"p{i}" for i in range(NODES)]
    return pages, pd.DataFrame({"from": ends, "to": [*ends[1:], ends[0]]})


def dense(data: Data) -> Data:
    return Data(**{**data.to_dict(), "x": data.x.to_dense()})


def fitted(data: Data) -> QpiGNN:
    return QpiGNN(epochs=5, hidden=4, members=5, seed=0).fit(data)


def test_from_frames_mostly_zeros_csr_equals_dense_result(tables: Tables) -> None:
    data = split_nodes(from_frames(*tables, target="views"))
    assert is_sparse(data.x)
    expected = tables[0].set_index("id")["word_7"].to_numpy()
    place = data.feature_names.index("word_7")
    assert data.x.to_dense()[:, place].tolist() == expected.tolist()
    sparse_output = fitted(data).predict_interval(data)
    dense_output = fitted(dense(data)).predict_interval(dense(data))
    assert np.array_equal(sparse_output.lower, dense_output.lower)
    assert np.array_equal(sparse_output.upper, dense_output.upper)


def test_from_frames_narrow_or_full_table_dense(tables: Tables) -> None:
    pages, links = tables
    few = pages[["id", "views", *(f"word_{i}" for i in range(40))]]
    assert not is_sparse(from_frames(few, links, target="views").x)
    full = pages.copy()
    word_columns = [name for name in full if name.startswith("word_")]
    full[word_columns] = np.random.default_rng(1).normal(size=(NODES, WORDS))
    assert not is_sparse(from_frames(full, links, target="views").x)


def test_join_frames_sparse_graph(tables: Tables) -> None:
    pages, links = tables
    old, new = pages.iloc[:50], pages.iloc[50:].drop(columns="views")
    inside = links["from"].isin(old["id"]) & links["to"].isin(old["id"])
    data = split_nodes(from_frames(old, links[inside], target="views"))
    joined = join_frames(data, new, links[~inside])
    whole = from_frames(pages, links, target="views")
    assert is_sparse(joined.x)
    assert torch.equal(joined.x.to_dense(), whole.x.to_dense())
    assert len(fitted(data).predict_interval(joined)) == NODES


def test_report_sparse_graph_has_table_columns(tables: Tables, tmp_path: Path) -> None:
    data = split_nodes(from_frames(*tables, target="views"))
    write_report(fitted(data), data, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    for name in ("kind", "size", "word_3"):
        assert re.search(rf'"name": ?"{name}"', page)


def test_cli_fit_reports_sparse_features(
    qpignn: Callable[..., Any], tables: Tables, tmp_path: Path
) -> None:
    for name, table in zip(("nodes", "edges"), tables, strict=True):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    files = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv")
    model = tmp_path / "model"
    done = qpignn("fit", *files, "--target", "views", "--epochs", 5, "--out", model)
    assert done.code == 0, done.err
    x = load_fit(model).data.x
    share = 100 * len(x.values()) / (NODES * x.shape[1])
    assert f"83 features (sparse: {share:.2g} % are not zero)" in done.err
    assert qpignn("evaluate", model).code == 0
    arguments = ("--only", "all", "--out", tmp_path / "i.csv")
    again = qpignn("predict", model, *files, *arguments)
    assert again.code == 0, again.err
    assert len(pd.read_csv(tmp_path / "i.csv")) == NODES


def wide(columns: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(columns)]
    frame = pd.DataFrame(rng.normal(size=(4, columns)).round(2), columns=names)
    frame.insert(0, "id", range(4))
    return frame


@pytest.mark.parametrize(
    "read",
    [
        lambda frame, file: TextTable.open(file),
        lambda frame, file: from_frames(
            frame, None, target="c0", features=[f"c{i}" for i in range(1, frame.shape[1] - 1)]
        ),
        lambda frame, file: from_frames(
            frame, None, target="c0", ignore=[f"c{i}" for i in range(2, frame.shape[1] - 1, 2)]
        ),
    ],
    ids=["header", "features", "ignore"],
)
def test_from_frames_time_linear_in_columns(
    tmp_path: Path, read: Callable[[pd.DataFrame, Path], object]
) -> None:
    """Four times as many columns: about 4 times the work, 16 times where pairs are looked at."""
    taken = []
    for columns in (10_000, 40_000):
        frame, file = wide(columns), tmp_path / f"{columns}.csv"
        frame.to_csv(file, index=False)
        start = time.process_time()
        read(frame, file)
        taken.append(time.process_time() - start)
    assert taken[1] < 8 * taken[0] + 0.2, taken
