"""MUSAE: Twitch users and Wikipedia pages, with a wide 0/1 vocabulary kept sparse."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from qpignn.data.matrix import from_scipy
from qpignn.data.sources.dataset import Dataset, Size
from qpignn.data.sources.files import SourceFile, fetch
from qpignn.errors import ReadError, check_choice

BASE = (
    "https://raw.githubusercontent.com/benedekrozemberczki/MUSAE/"
    "5f901232957b6c9985d750aac48cda39a4b24285/input/"
)
SHA256 = {
    "PTBR_edges.csv": "b72d93a3c8a82883771a2f3822fce229885fa0d40367fb105c0535fb36c773b9",
    "PTBR_features.json": "12ba6c60ce009b1bec8fd5ad110539775d14a2b96011df19ba9f72ad1393a406",
    "PTBR_target.csv": "ecba7d1287e72ae7c3f42c922be475283288c0c67346245c72109690460444bd",
    "chameleon_edges.csv": "b90d671846530ea7c0f6f6d0e3be98eb512ecd8e9741811940fe4029d991b266",
    "chameleon_features.json": "a958c2158cb81bb05cc01f5605ffb3449a7b20b389c8f1e94a0da61dbed6bdbe",
    "chameleon_target.csv": "5816b4731cbd156738095550d1f6e37caf6f4dabe1d660c035156408ae6bae43",
    "crocodile_edges.csv": "92f4fe840f5ef79f85364e3678bbc909d0c151e0ff8d8328854b602d998f2d22",
    "crocodile_target.csv": "f83d79b3c6979639475d90fb5e2c969d2c21b64b068abc19e57f93c8fedfef1d",
    "squirrel_edges.csv": "574b9d083635377c368e9431a29121773500f57edb8b4602f69544e6b5fe0da8",
    "squirrel_features.json": "34512ff7981f36811d830d6bf5c7116a671f40e3210f26a276d9792001acffc0",
    "squirrel_target.csv": "0933f58cf0469eda904e27442eabeda04f0f27e8e1863b76dad144d4404fdd3f",
}
CROCODILE_FEATURES = "0c68f0cfb24216ab860818c492c22d325a07194b"  # git blob id
COUNTRIES = ["DE", "ENGB", "ES", "FR", "PTBR", "RU"]
TWITCH_VOCABULARY = 3169  # shared by all countries


def files_of(folder: str, name: str) -> dict[str, SourceFile]:
    """Return the edges, features and target file of one MUSAE graph.

    Args:
        folder: folder of the family under the data folder.
        name: name of the graph.
    """
    remote = {
        "edges.csv": (f"edges/{name}_edges.csv",),
        "features.json": (f"features/{name}.json", f"features/{name}_features.json"),
        "target.csv": (f"target/{name}_target.csv",),
    }
    return {
        end: SourceFile(
            f"{folder}/{name}/musae_{name}_{end}",
            tuple(BASE + path for path in paths),
            sha256=SHA256.get(f"{name}_{end}"),
            git_blob=CROCODILE_FEATURES if f"{name}_{end}" == "crocodile_features.json" else None,
        )
        for end, paths in remote.items()
    }


def twitch_files(country: str = "PTBR") -> tuple[SourceFile, ...]:
    """Return the files of one country's Twitch graph.

    Args:
        country: one of :data:`COUNTRIES`.
    """
    return tuple(files_of("twitch", check_choice("country", country, COUNTRIES)).values())


def load_twitch(*, country: str = "PTBR") -> Data:
    """Load the Twitch users of one country; target log(views + 1), standardised.

    Args:
        country: one of :data:`COUNTRIES`.

    Returns:
        The graph, with its edges as in the file.

    Raises:
        UnknownNameError: for another country.
    """
    files = files_of("twitch", check_choice("country", country, COUNTRIES))
    data = _load(files, ["new_id", "views"], ["from", "to"], TWITCH_VOCABULARY)
    views = np.log(data.y.numpy() + 1.0)
    data.y = torch.from_numpy((views - views.mean()) / views.std()).float()
    return data


def load_wikipedia(name: str) -> Data:
    """Load Wikipedia pages on one topic; target is mean monthly traffic, raw and heavy-tailed.

    Args:
        name: the topic.

    Returns:
        The graph, with its edges as in the file.
    """
    data = _load(files_of("wikipedia", name), ["id", "target"], ["id1", "id2"])
    data.y = data.y.float()
    return data


def _load(
    files: dict[str, SourceFile], target: list[str], ends: list[str], columns: int | None = None
) -> Data:
    """Return a graph with float64 targets, given its columns of ids and targets, and of ends."""
    x = _vocabulary(fetch(files["features.json"]), columns)
    targets = pd.read_csv(fetch(files["target.csv"]), usecols=target).set_index(target[0])
    y = targets[target[1]].reindex(range(x.shape[0])).to_numpy(dtype=np.float64)
    edges = pd.read_csv(fetch(files["edges.csv"]), usecols=ends)[ends].to_numpy().T.copy()
    return Data(x=x, y=torch.from_numpy(y), edge_index=torch.from_numpy(edges))


def _vocabulary(path: Path, columns: int | None = None) -> Tensor:
    """Return {"node": [word, …]} as a sparse 0/1 matrix; a word listed twice counts once."""
    vocabulary: dict[str, list[int]] = json.loads(path.read_text())
    nodes = len(vocabulary)
    if sorted(map(int, vocabulary)) != list(range(nodes)):
        raise ReadError(f"{path}: expected nodes 0 to {nodes - 1}, each once, got others")
    rows = [np.unique(np.asarray(vocabulary[str(node)], dtype=np.int64)) for node in range(nodes)]
    indices = np.concatenate(rows)
    width = int(indices.max()) + 1 if columns is None else columns
    if int(indices.max()) >= width:
        raise ReadError(f"{path}: expected words 0 to {width - 1}, got {int(indices.max())}")
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    ones = np.ones(len(indices), dtype=np.float32)
    return from_scipy(sp.csr_matrix((ones, indices, indptr), shape=(nodes, width)))


WIKIPEDIA: dict[str, tuple[Size, float | None]] = {
    "chameleon": (Size(2277, 31371, 0, 3132), 21.5),
    "crocodile": (Size(11631, 170773, 0, 13183), None),
    "squirrel": (Size(5201, 198353, 0, 3148), 26.5),
}
DATASETS = (
    Dataset(
        *("twitch", "twitch", "users; friendships; log views", load_twitch, twitch_files()),
        *(Size(1912, 31299, 0, 3169), 19.9, twitch_files),
    ),
    *(
        Dataset(
            *(name, "wikipedia", f"pages on {name}s; links; monthly traffic"),
            *(partial(load_wikipedia, name), tuple(files_of("wikipedia", name).values())),
            *(size, ones),
        )
        for name, (size, ones) in WIKIPEDIA.items()
    ),
)
