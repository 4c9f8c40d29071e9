"""US counties: neighbours share a border; one of seven figures is the target, six the features.

Sources: election returns (2008, 2012, 2016) and the USDA's county tables for income, population,
education and unemployment, as collected with the adjacency file by gnn-residual-correlation.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch_geometric.data import Data

from qpignn.data.sources.dataset import Dataset, Size
from qpignn.data.sources.files import SourceFile, fetch
from qpignn.errors import SettingError, check_choice

BASE = (
    "https://raw.githubusercontent.com/000Justin000/gnn-residual-correlation/"
    "03608b39b0da2c64293ba685213585de4ff8291f/datasets/election/"
)
SHA256 = {
    "adjacency.txt": "b6df774db9ad5b94c47036379e207dd4622e46ef22c01ca2b7603453a4901014",
    "education.csv": "3255ea5a4736c1a6f7dfa9e9aa39bb560ca533e3646a17222c04e71075f6f48a",
    "election.csv": "247888dab80432e03f6d42a8c0458356ad4115c03e3c84171cc9726395d85684",
    "income.csv": "99d4c883e58b21a0cfcb03832796be6755962faab9b901b487e02df31a0f0e89",
    "population.csv": "c1e1154e90db331c88b57943c7fed9ffab634791db85e4aceb517bffd6a5f1f9",
    "unemployment.csv": "28150633ee40f8c16b15d85da7ff567a49de7e56a2b31258c04d7a857ee6f38b",
}
FILES = {
    name: SourceFile(f"county/{name}", (BASE + name,), sha256) for name, sha256 in SHA256.items()
}
TARGETS = ["income", "migration", "birth", "death", "education", "unemployment", "election"]
YEARS = (2012, 2016)  # those for which every table has a column


def load_county(target: str, *, year: int = 2012, fill_target: bool = True) -> Data:
    """Load the county graph with one of ``TARGETS`` to predict.

    Args:
        target: the figure to predict; the other six are the features.
        year: 2012 or 2016.
        fill_target: a county whose figure is missing gets the mean of the others; ``False``
            leaves it unlabelled.

    Returns:
        The graph, with its edges as in the adjacency file, self-loops included.

    Raises:
        SettingError: for another year.
        UnknownNameError: for another target.
    """
    check_choice("county target", target, TARGETS)
    if year not in YEARS:
        raise SettingError(f"year: expected one of {YEARS}, got {year!r}")
    # ISO-8859-1, tab-separated; a county's own two columns are blank on its continuation rows
    table = pd.read_csv(
        fetch(FILES["adjacency.txt"]), sep="\t", header=None, dtype=str, encoding="ISO-8859-1"
    )
    ends = np.stack([table[1].ffill(), table[3]]).astype(np.int64)
    fips = np.unique(ends)
    figures, missing = _figures(fips, year)
    column = TARGETS.index(target)
    y = torch.from_numpy(figures[:, column])
    if not fill_target:
        y = y.masked_fill(torch.from_numpy(missing[:, column]), float("nan"))
    return Data(
        x=torch.from_numpy(np.delete(figures, column, axis=1)),
        y=y,
        edge_index=torch.from_numpy(np.searchsorted(fips, ends)),
        node_id=np.array([f"{code:05d}" for code in fips], dtype=object),
        feature_names=[name for name in TARGETS if name != target],
    )


def _figures(
    fips: npt.NDArray[np.int64], year: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return (counties, 7) figures in the order of ``TARGETS``, and where they were missing."""
    wanted = {
        "income": ("income.csv", "FIPS", f"MedianIncome{year}"),
        "migration": ("population.csv", "FIPS", f"R_NET_MIG_{year}"),
        "birth": ("population.csv", "FIPS", f"R_birth_{year}"),
        "death": ("population.csv", "FIPS", f"R_death_{year}"),
        "education": ("education.csv", "FIPS", f"BachelorRate{year}"),
        "unemployment": ("unemployment.csv", "FIPS", f"Unemployment_rate_{year}"),
        "dem": ("election.csv", "fips_code", f"dem_{year}"),
        "gop": ("election.csv", "fips_code", f"gop_{year}"),
    }
    raw = pd.DataFrame({name: _column(*where, fips) for name, where in wanted.items()})
    missing = raw.isna()
    missing["election"] = missing["dem"] | missing["gop"]
    filled = raw.fillna(raw.mean())
    figures = (filled - raw.mean()) / filled.std()
    figures["election"] = (filled["gop"] - filled["dem"]) / (filled["gop"] + filled["dem"])
    return np.ascontiguousarray(figures[TARGETS], dtype=np.float32), missing[TARGETS].to_numpy()


def _column(file: str, key: str, column: str, fips: npt.NDArray[np.int64]) -> pd.Series[Any]:
    table = pd.read_csv(fetch(FILES[file]), usecols=[key, column], dtype={column: str})
    numbers = pd.to_numeric(table[column].str.replace(",", ""), errors="coerce")
    return pd.Series(numbers.to_numpy(), index=table[key]).reindex(fips)


ABOUT = {
    "education": "share with a bachelor's degree",
    "election": "vote margin",
    "income": "median income",
    "unemployment": "unemployment rate",
    "migration": "net migration rate",
    "birth": "birth rate",
    "death": "death rate",
}
EXTRA = ("migration", "birth", "death")
DATASETS = tuple(
    Dataset(
        *(name, "county", f"US counties; borders; {about}", partial(load_county, name)),
        *(tuple(FILES.values()), Size(3234, 9483, 0, 6)),
        benchmark=name not in EXTRA,
    )
    for name, about in ABOUT.items()
)
