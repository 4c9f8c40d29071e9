from __future__ import annotations

from qpignn import names
from qpignn.data.catalog import BENCHMARK, EXTRA
from qpignn.data.settings import VIEWS
from qpignn.data.split import SPLIT_ORDERS
from qpignn.experiments.engines import ENGINES
from qpignn.methods import catalog


def test_names_are_those_of_the_catalogs() -> None:
    assert (*BENCHMARK, *EXTRA) == names.DATASETS
    assert names.METHODS == catalog.METHODS
    assert names.PREFIXES == (catalog.CONFORMAL, catalog.ENSEMBLE, catalog.NEIGHBOURS)
    assert (*VIEWS,) == names.VIEWS
    assert (*SPLIT_ORDERS,) == names.SPLITS
    assert (*ENGINES,) == names.ENGINES
