from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn import load_dataset
from qpignn.errors import SettingError

pytestmark = pytest.mark.filterwarnings("ignore:.* is not the original file")


@pytest.fixture
def three_counties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A border chain 1001 – 1003 – 1005 with figures small enough to work out by hand."""
    folder = tmp_path / "county"
    folder.mkdir()
    adjacency = (
        '"Ána, AL"\t01001\t"Ána, AL"\t01001\n\t\t"Bo, AL"\t01003\n'
        '"Bo, AL"\t01003\t"Ána, AL"\t01001\n\t\t"Bo, AL"\t01003\n\t\t"Cy, AL"\t01005\n'
        '"Cy, AL"\t01005\t"Bo, AL"\t01003\n\t\t"Cy, AL"\t01005\n'
    )
    (folder / "adjacency.txt").write_text(adjacency, encoding="ISO-8859-1")
    tables = {
        "income": 'FIPS,MedianIncome2012\n0,"9"\n1001,"1,000"\n1003,"3,000"\n',  # 1005 is missing
        "population": "FIPS,R_NET_MIG_2012,R_birth_2012,R_death_2012\n"
        "1001,1,2,3\n1003,2,4,6\n1005,3,6,9\n",
        "education": "FIPS,BachelorRate2012\n1001,10\n1003,20\n1005,30\n",
        "unemployment": "FIPS,Unemployment_rate_2012\n1001,5\n1003,6\n1005,7\n",
        "election": "fips_code,dem_2012,gop_2012\n01005,1,3\n01001,3,1\n01003,2,2\n",
    }
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    monkeypatch.setenv("QPIGNN_DATA_DIR", str(tmp_path))


def test_county_targets_and_features_hand_computed(three_counties: None) -> None:
    data = load_dataset("election")
    assert data.y.tolist() == [-0.5, 0.0, 0.5]  # (gop − dem) / (gop + dem), rows joined by code
    assert data.feature_names == [
        "income", "migration", "birth", "death", "education", "unemployment",
    ]  # fmt: skip
    # income: mean 2000 fills the gap, so deviations are −1000, 1000, 0 over a deviation of 1000
    assert data.x[:, 0].tolist() == [-1.0, 1.0, 0.0]
    assert data.x[:, 4].tolist() == [-1.0, 0.0, 1.0]
    assert list(data.node_id) == ["01001", "01003", "01005"]


def test_county_edges_under_both_protocols(three_counties: None) -> None:
    assert load_dataset("income").edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    published = load_dataset("income", "published").edge_index
    assert published.tolist() == [[0, 0, 1, 1, 2], [0, 1, 1, 2, 2]]


def test_county_fill_target_false_leaves_missing_targets_unlabelled(three_counties: None) -> None:
    assert load_dataset("income").y.tolist() == [-1.0, 1.0, 0.0]
    assert load_dataset("income", fill_target=False).y.isnan().tolist() == [False, False, True]


@pytest.mark.parametrize("target", ["migration", "birth", "death"])
def test_county_other_targets(three_counties: None, target: str) -> None:
    data = load_dataset(target)
    assert target not in data.feature_names
    assert data.y.tolist() == [-1.0, 0.0, 1.0]


def test_county_year_without_every_table_is_refused() -> None:
    with pytest.raises(SettingError, match=r"year: expected one of \(2012, 2016\), got 2008"):
        load_dataset("income", year=2008)


def test_county_education_of_the_published_files(real: Callable[..., Data]) -> None:
    data = real("education")
    assert data.node_id[0] == "01001"
    assert data.y.mean().item() == pytest.approx(0, abs=1e-5)
    assert data.y.std().item() == pytest.approx(1, abs=1e-5)
    # Autauga's 21.9 % and Baldwin's 28.6 % stand in the file; standardising keeps their order
    by_code = dict(zip(data.node_id, data.y.tolist(), strict=True))
    assert by_code["01001"] < by_code["01003"]
    # Borders are mutual: every stored pair has its reverse
    assert torch.equal(torch.unique(data.edge_index.flip(0), dim=1), data.edge_index)
    assert not np.array_equal(real("education", year=2016).y, data.y)
