import random

import numpy as np
import pytest
import torch

from qpignn.errors import SettingError
from qpignn.runtime.randomness import LegacyStreams, numpy_rng, torch_rng


def test_same_seed_and_purpose_repeat() -> None:
    assert numpy_rng(3, "split").random(4).tolist() == numpy_rng(3, "split").random(4).tolist()
    a, b = (torch.rand(4, generator=torch_rng(3, "weights")) for _ in range(2))
    assert torch.equal(a, b)


@pytest.mark.parametrize("other", [(4, "split"), (3, "noise")])
def test_another_seed_or_purpose_is_another_stream(other: tuple[int, str]) -> None:
    assert numpy_rng(3, "split").random() != numpy_rng(*other).random()
    assert torch_rng(3, "split").initial_seed() != torch_rng(*other).initial_seed()


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, None])
def test_numpy_rng_invalid_seed_raises(seed: object) -> None:
    with pytest.raises(SettingError, match="seed: expected a whole number"):
        numpy_rng(seed, "x")  # type: ignore[arg-type]


def test_legacy_streams_equal_the_seeded_global_generators() -> None:
    before = (random.getstate(), np.random.get_state(), torch.get_rng_state())  # noqa: NPY002
    try:
        random.seed(1127)
        np.random.seed(1127)  # noqa: NPY002
        torch.manual_seed(1127)
        wanted = (random.random(), np.random.rand(3).tolist(), torch.randn(3).tolist())  # noqa: NPY002
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        torch.set_rng_state(before[2])
    streams = LegacyStreams(1127)
    got = (
        streams.python.random(),
        streams.numpy.rand(3).tolist(),
        torch.randn(3, generator=streams.torch).tolist(),
    )
    assert got == wanted


def test_drawing_does_not_change_the_global_generators() -> None:
    state = torch.get_rng_state()
    torch.rand(3, generator=torch_rng(0, "x"))
    torch.rand(3, generator=LegacyStreams(0).torch)
    assert torch.equal(state, torch.get_rng_state())
