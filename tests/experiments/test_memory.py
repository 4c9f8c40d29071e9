import sys

import numpy as np
import pytest

from qpignn.experiments.memory import PeakMemory


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_peak_memory_is_that_of_the_block() -> None:
    with PeakMemory() as large:
        np.ones(40_000_000)  # 320 MB, gone at once
    with PeakMemory() as small:
        np.ones(1000)
    assert large.megabytes == pytest.approx(40_000_000 * 8 / 2**20, abs=30)
    assert small.megabytes is not None
    assert small.megabytes < 30


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_peak_memory_of_repeated_work_is_equal() -> None:
    """Small blocks stay with the allocator when they are freed."""
    peaks = []
    for _ in range(3):
        with PeakMemory() as memory:
            blocks = [np.ones(2000) for _ in range(5000)]  # 80 MB
            del blocks
        peaks.append(memory.megabytes)
    assert peaks == pytest.approx([5000 * 2000 * 8 / 2**20] * 3, rel=0.25)
