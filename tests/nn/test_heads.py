import pytest
import torch

from qpignn.nn.heads import POSITIVE, IntervalHead


@pytest.mark.parametrize("positive", POSITIVE)
def test_value_and_half_width_are_two_linear_maps(positive: str) -> None:
    head = IntervalHead(4, positive, generator=torch.Generator().manual_seed(0))
    hidden = torch.randn(1, 10, 4)
    value, below, above = head(hidden)
    raw = (hidden[0] @ head.weight[0].t() + head.bias[0].flatten()).unsqueeze(0)
    torch.testing.assert_close(value, raw[..., 0])
    wanted = {"softplus": torch.log1p(raw[..., 1].exp()), "sigmoid": 1 / (1 + (-raw[..., 1]).exp())}
    torch.testing.assert_close(below, wanted[positive].unsqueeze(0))
    assert torch.equal(below, above)  # one half-width for both sides
    assert (below > 0).all()


def test_levels_are_nested_and_sides_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    head = IntervalHead(4, "softplus", generator=generator, levels=3, symmetric=False, members=2)
    value, below, above = head(torch.randn(2, 10, 4))
    assert value.shape == (2, 10)
    assert below.shape == above.shape == (3, 2, 10)
    for side in (below, above):
        assert (side[0] > 0).all()
        assert (side.diff(dim=0) > 0).all()
    assert not torch.equal(below, above)


def test_members_share_nothing() -> None:
    head = IntervalHead(4, "softplus", generator=torch.Generator().manual_seed(0), members=2)
    hidden = torch.randn(2, 10, 4)
    moved = hidden.clone()
    moved[1] += 1
    (value, below, _), (value2, below2, _) = head(hidden), head(moved)
    assert torch.equal(value[0], value2[0])
    assert torch.equal(below[:, 0], below2[:, 0])
    assert not torch.equal(value[1], value2[1])
