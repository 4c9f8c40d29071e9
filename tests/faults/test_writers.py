"""A short part of the measurement of ``make faults`` with two writers to one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.writers import SAVERS, try_savers


@pytest.mark.parametrize("name", SAVERS)
def test_save_fit_by_two_writers_with_equal_pids_leaves_one_whole_fit(
    name: str, tmp_path: Path
) -> None:
    """Without locks and with names made of process ids, 9 of 10 of these rounds fail."""
    tally = try_savers(name, tmp_path, seed=0, times=15)
    assert tally.broken == []
    assert tally.outcomes["both saved, one whole"] == 15
    assert tally.readings["read refused"] == 0
