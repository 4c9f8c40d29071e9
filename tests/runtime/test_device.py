from __future__ import annotations

import pytest
import torch

from qpignn.errors import SettingError
from qpignn.runtime import device


def test_limit_threads_uses_one_thread_for_small_work_and_restores() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with device.limit_threads(device.WORTH_THREADS - 1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with device.limit_threads(device.WORTH_THREADS):
            assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError), device.limit_threads(1):
            raise ZeroDivisionError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_matmul_precision_is_restored() -> None:
    before = torch.get_float32_matmul_precision()
    with device.matmul_precision("medium"):
        assert torch.get_float32_matmul_precision() == "medium"
    assert torch.get_float32_matmul_precision() == before
    with pytest.raises(ZeroDivisionError), device.matmul_precision("medium"):
        raise ZeroDivisionError
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("name", ["gpu", "cpu0", "", "meta", "cuda:77"])
def test_find_device_missing_device_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match=r"device: expected"):
        device.find_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="is for machines without a GPU")
def test_without_a_gpu_nets_run_on_the_cpu() -> None:
    assert device.find_device("auto") == torch.device("cpu") == device.find_device("cpu")
