from __future__ import annotations

from qpignn import names
from qpignn.data.catalog import BENCHMARK, EXTRA
from qpignn.data.split import ORDERS
from qpignn.data.views import VIEWS
from qpignn.experiments.engines import ENGINES
from qpignn.methods import catalog


def test_names_are_those_of_the_catalogs() -> None:
    assert (*BENCHMARK, *EXTRA) == names.DATASETS
    assert names.METHODS == catalog.METHODS
    assert names.PREFIXES == (catalog.CONFORMAL, catalog.ENSEMBLE)
    assert (*VIEWS,) == names.VIEWS
    assert (*ORDERS,) == names.SPLITS
    assert (*ENGINES,) == names.ENGINES
