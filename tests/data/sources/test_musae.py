from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import load_dataset
from qpignn.data.sources import files, musae
from qpignn.errors import ReadError, UnknownNameError

pytestmark = pytest.mark.filterwarnings("ignore:.* is not the original file")

FEATURES = {"2": [4], "0": [1, 4, 1], "1": [0]}


def write(folder: Path, name: str, edges: str, target: str, features: object = FEATURES) -> None:
    folder.mkdir(parents=True)
    (folder / f"musae_{name}_edges.csv").write_text(edges)
    (folder / f"musae_{name}_target.csv").write_text(target)
    (folder / f"musae_{name}_features.json").write_text(json.dumps(features))


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QPIGNN_DATA_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["chameleon", "crocodile", "squirrel"])
def test_wikipedia_hand_computed(data_dir: Path, name: str) -> None:
    edges = "id1,id2\n2,0\n0,2\n1,1\n"
    write(data_dir / "wikipedia" / name, name, edges, "id,target\n1,20\n0,10\n2,30\n")
    data = load_dataset(name)
    assert data.x.layout == torch.sparse_csr
    assert data.x.to_dense().tolist() == [[0, 1, 0, 0, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert data.y.tolist() == [10.0, 20.0, 30.0]
    assert data.edge_index.tolist() == [[0, 2], [2, 0]]
    assert load_dataset(name, "published").edge_index.tolist() == [[2, 0, 1], [0, 2, 1]]


@pytest.mark.parametrize("country", ["PTBR", "DE"])
def test_twitch_hand_computed(data_dir: Path, country: str) -> None:
    target = "id,views,new_id\n900,0,1\n800,6,0\n700,6,2\n"  # views + 1 are 7, 1, 7
    write(data_dir / "twitch" / country, country, "from,to\n1,0\n2,1\n", target)
    data = load_dataset("twitch", country=country)
    logs = np.log([7.0, 1.0, 7.0])
    np.testing.assert_allclose(data.y, (logs - logs.mean()) / logs.std(), rtol=1e-6)
    assert data.x.shape == (3, 3169)
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    published = load_dataset("twitch", "published", country=country)
    assert published.edge_index.tolist() == [[0, 1], [1, 2]]


def test_twitch_unknown_country_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown country 'GB': did you mean ENGB"):
        load_dataset("twitch", country="GB")


@pytest.mark.parametrize(
    ("features", "message"),
    [({"0": [1], "2": [0]}, "expected nodes 0 to 1"), ({"0": [9999]}, "expected words 0 to 3168")],
)
def test_twitch_invalid_features_are_refused(
    data_dir: Path, features: object, message: str
) -> None:
    write(data_dir / "twitch" / "PTBR", "PTBR", "from,to\n", "new_id,views\n", features)
    with pytest.raises(ReadError, match=message):
        load_dataset("twitch")


def test_every_wikipedia_file_has_a_digest_and_a_pinned_address() -> None:
    for name in ("chameleon", "crocodile", "squirrel"):
        for file in musae.files_of("wikipedia", name).values():
            assert file.sha256 or file.git_blob
            assert all(
                "/5f901232957b6c9985d750aac48cda39a4b24285/input/" in url for url in file.urls
            )


def test_crocodile_features_have_a_git_blob_id() -> None:
    file = musae.files_of("wikipedia", "crocodile")["features.json"]
    assert file.git_blob == "0c68f0cfb24216ab860818c492c22d325a07194b"


@pytest.mark.parametrize("name", ["twitch", "chameleon", "squirrel"])
def test_real_files_match_their_digests(real: Callable[..., Data], name: str) -> None:
    real(name)
    listed = (
        musae.files_of("twitch", "PTBR") if name == "twitch" else musae.files_of("wikipedia", name)
    )
    for file in listed.values():
        path = files.find(file)
        assert path is not None
        assert file.problem(path) is None


def test_real_traffic_is_heavy_tailed(real: Callable[..., Data]) -> None:
    y = real("chameleon").y
    assert y.max() > 500_000
    assert y.median() < 10_000
