from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from qpignn.diagnostics.two_sample import FEWEST, Shift, compare_rows
from qpignn.errors import ArrayError


def rows(count: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, columns))


def names(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]


def test_compare_rows_names_the_one_column_among_many_that_moved() -> None:
    reference, compared = rows(200, 400, 1), rows(200, 400, 2)
    compared[:, 137] += 1.0
    shift = compare_rows(reference, compared, names(400), np.random.default_rng(0))
    assert shift is not None
    assert shift.notable
    assert [name for name, _ in shift.columns] == ["c137"]
    # two normal distributions one deviation apart are 2·Φ(½) − 1 = 0.38 apart
    assert shift.columns[0][1] == pytest.approx(0.38, abs=0.12)
    assert (shift.reference, shift.compared) == (200, 200)


def test_compare_rows_sparse_tables_give_what_dense_ones_give() -> None:
    dense = [(rows(150, 20, seed) > 0.5).astype(float) for seed in (1, 2)]
    dense[1][:, 4] = 0.0
    shifts = [
        compare_rows(*tables, names(20), np.random.default_rng(0))
        for tables in (dense, [sp.csr_matrix(table) for table in dense])
    ]
    assert shifts[0] is not None
    assert shifts[1] is not None
    assert shifts[0].columns[0][0] == shifts[1].columns[0][0] == "c4"
    assert shifts[0].p_value == shifts[1].p_value


def test_compare_rows_changed_correlation_is_detected_in_the_pair() -> None:
    reference, compared = rows(300, 4, 1), rows(300, 4, 2)
    compared[:, 3] = 0.6 * compared[:, 1] + 0.8 * compared[:, 3]  # of variance 1, as before
    shift = compare_rows(reference, compared, names(4), np.random.default_rng(0), paired=4)
    assert shift is not None
    assert shift.notable
    assert [name for name, _ in shift.columns] == ["c1 × c3"]


def test_compare_rows_small_but_significant_difference_is_not_notable() -> None:
    reference, compared = rows(4000, 1, 1), rows(4000, 1, 2) + 0.15
    shift = compare_rows(reference, compared, ["a"], np.random.default_rng(0))
    assert shift is not None
    assert shift.significant
    assert not shift.notable
    assert 0.04 < shift.distance < 0.1


def test_compare_rows_too_few_rows_are_not_compared() -> None:
    rng = np.random.default_rng(0)
    assert compare_rows(rows(FEWEST - 1, 2), rows(50, 2), names(2), rng) is None
    assert compare_rows(rows(50, 2), rows(FEWEST, 2), names(2), rng) is not None


def test_compare_rows_other_columns_are_refused() -> None:
    with pytest.raises(ArrayError, match="got 2 and 3 columns and 2 names"):
        compare_rows(rows(50, 2), rows(50, 3), names(2), np.random.default_rng(0))


def test_shift_distance_is_the_larger_of_classifier_and_columns() -> None:
    assert Shift(9, 9, 0.7, 0.1, 0.5, []).distance == pytest.approx(0.4)
    assert Shift(9, 9, 0.5, 0.1, 0.5, [("a", 0.3), ("b", 0.1)]).distance == 0.3
    assert Shift(9, 9, 0.4, 0.1, 0.5, []).distance == 0


def test_shift_old_name_of_notable_warns_and_has_its_value() -> None:
    shift = Shift(9, 9, 0.7, 0.1, 0.001, [])
    with pytest.warns(DeprecationWarning, match="found is deprecated, use notable"):
        assert shift.found is shift.notable  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'Shift' object has no attribute 'lost'"):
        shift.lost  # type: ignore[attr-defined]  # noqa: B018
