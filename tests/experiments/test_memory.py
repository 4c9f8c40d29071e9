import sys

import numpy as np
import pytest

from qpignn.experiments.memory import PeakMemory


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_peak_of_each_piece_of_work_by_itself() -> None:
    with PeakMemory() as large:
        np.ones(40_000_000)  # 320 MB, gone at once
    with PeakMemory() as small:
        np.ones(1000)
    assert large.megabytes == pytest.approx(40_000_000 * 8 / 2**20, abs=30)
    assert small.megabytes is not None
    assert small.megabytes < 30
