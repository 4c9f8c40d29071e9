import torch
from torch import nn

from qpignn.training.weights import FlatWeights


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def test_the_same_steps_as_adam_on_separate_weights() -> None:
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


def test_the_best_weights_can_be_put_back() -> None:
    model = net()
    weights = FlatWeights(model.parameters(), lr=0.1, weight_decay=0.0)
    before = weights.copy()
    wanted = model(torch.ones(1, 3)).item()
    model(torch.ones(1, 3)).sum().backward()
    weights.step()
    assert model(torch.ones(1, 3)).item() != wanted
    weights.restore(before)
    assert model(torch.ones(1, 3)).item() == wanted
