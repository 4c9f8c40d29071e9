import pytest
import torch

from qpignn.nn.heads import POSITIVE, DualHead


@pytest.mark.parametrize("positive", POSITIVE)
def test_value_and_half_width_are_two_linear_maps(positive: str) -> None:
    head = DualHead(4, positive, torch.Generator().manual_seed(0))
    hidden = torch.randn(10, 4)
    value, half_width = head(hidden)
    raw = hidden @ head.weight.t() + head.bias.flatten()
    torch.testing.assert_close(value, raw[:, 0])
    wanted = {"softplus": torch.log1p(raw[:, 1].exp()), "sigmoid": 1 / (1 + (-raw[:, 1]).exp())}
    torch.testing.assert_close(half_width, wanted[positive])
    assert (half_width > 0).all()
