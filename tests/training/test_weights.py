import pytest
import torch
from torch import nn

from qpignn.training.weights import FUSED_ADAM, FlatWeights


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def test_flat_weights_step_equals_adam() -> None:
    ours, theirs = net(), net()
    weights = FlatWeights(ours.parameters(), lr=0.05, weight_decay=0.01)
    adam = torch.optim.Adam(theirs.parameters(), lr=0.05, weight_decay=0.01)
    x = torch.randn(10, 3, generator=torch.Generator().manual_seed(1))
    for _ in range(20):
        weights.clear_gradient()
        ours(x).square().mean().backward()
        weights.step()
        adam.zero_grad()
        theirs(x).square().mean().backward()
        adam.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


def test_flat_weights_restore_gives_back_the_copied_weights() -> None:
    model = net()
    weights = FlatWeights(model.parameters(), lr=0.1, weight_decay=0.0)
    before = weights.copy()
    wanted = model(torch.ones(1, 3)).item()
    model(torch.ones(1, 3)).sum().backward()
    weights.step()
    assert model(torch.ones(1, 3)).item() != wanted
    weights.restore(before)
    assert model(torch.ones(1, 3)).item() == wanted


def test_flat_weights_restored_state_continues_the_optimiser() -> None:
    x = torch.randn(10, 3, generator=torch.Generator().manual_seed(1))

    def moved(model: nn.Module, weights: FlatWeights, steps: int) -> FlatWeights:
        for _ in range(steps):
            weights.clear_gradient()
            model(x).square().mean().backward()
            weights.step()
        return weights

    one, other = net(), net()
    started = moved(one, FlatWeights(one.parameters(), lr=0.05, weight_decay=0.01), 5)
    taken = {name: tensor.clone() for name, tensor in started.state().items()}
    taken_up = FlatWeights(other.parameters(), lr=0.05, weight_decay=0.01)
    taken_up.restore_state(taken)
    moved(one, started, 5)
    moved(other, taken_up, 5)
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_weights_of_another_net_are_refused() -> None:
    weights = FlatWeights(net().parameters(), lr=0.1, weight_decay=0.0)
    for wrong in (torch.ones(1), weights.copy().double()):  # copy_ would take both
        with pytest.raises(ValueError, match=r"expected \(21,\) of torch.float32, got "):
            weights.restore(wrong)
        with pytest.raises(ValueError, match=r"expected \(21,\) of torch.float32, got "):
            weights.restore_state({**weights.state(), "vector": wrong})


def test_fused_adam_kernel_is_that_of_torch() -> None:
    """``torch._fused_adam_`` is private: a torch version without it takes the public function."""
    assert torch._fused_adam_ is FUSED_ADAM


def test_step_without_the_private_kernel_gives_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = []
    for kernel in (FUSED_ADAM, None):
        monkeypatch.setattr("qpignn.training.weights.FUSED_ADAM", kernel)
        model = net()
        weights = FlatWeights(model.parameters(), lr=0.05, weight_decay=0.01)
        for _ in range(20):
            weights.clear_gradient()
            model(torch.ones(1, 3)).square().sum().backward()
            weights.step()
        vectors.append(weights.copy())
    assert torch.equal(*vectors)
