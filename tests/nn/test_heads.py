import pytest
import torch

from qpignn.nn.heads import POSITIVE, BayesianHead, IntervalHead, LinearHead, QuantileHead


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


def test_members_are_independent() -> None:
    head = IntervalHead(4, "softplus", generator=torch.Generator().manual_seed(0), members=2)
    hidden = torch.randn(2, 10, 4)
    moved = hidden.clone()
    moved[1] += 1
    (value, below, _), (value2, below2, _) = head(hidden), head(moved)
    assert torch.equal(value[0], value2[0])
    assert torch.equal(below[:, 0], below2[:, 0])
    assert not torch.equal(value[1], value2[1])


HEADS = {
    "linear": lambda draw: LinearHead(4, 3, generator=draw, members=2),
    **{
        f"interval {positive} {sides}": lambda draw, positive=positive, sides=sides: IntervalHead(
            4, positive, generator=draw, levels=2, symmetric=sides == 1, members=2
        )
        for positive in POSITIVE
        for sides in (1, 2)
    },
    "quantile": lambda draw: QuantileHead(4, [0.1, 0.9], generator=draw, members=2),
    "bayesian": lambda draw: BayesianHead(4, generator=draw, members=2),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", HEADS)
def test_gradients_agree_with_differences(name: str, training: bool) -> None:
    head = HEADS[name](torch.Generator().manual_seed(0)).double().train(training)
    names, weights = zip(*head.named_parameters(), strict=True)
    hidden = torch.randn(2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def outputs(hidden: torch.Tensor, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if isinstance(head, QuantileHead):
            head.generator.manual_seed(2)  # the same τ for every difference
        result = torch.func.functional_call(head, dict(zip(names, values, strict=True)), hidden)
        several = result if isinstance(result, tuple) else (result,)
        return tuple(part for part in several if torch.is_tensor(part) and part.requires_grad)

    assert torch.autograd.gradcheck(outputs, (hidden.requires_grad_(), *weights))
