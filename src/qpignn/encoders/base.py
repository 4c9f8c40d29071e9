"""The interface of encoders: a graph in, one hidden vector per node and member out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from qpignn.encoders.activations import ACTIVATIONS
from qpignn.encoders.fused import FusedLayers
from qpignn.encoders.inputs import GraphInputs, GraphTensors
from qpignn.encoders.sampling import Sampler

Aggregation = Literal["mean", "sum", "max"]
AGGREGATIONS: tuple[str, ...] = get_args(Aggregation)
Norm = Literal["none", "layer"]
NORMS: tuple[str, ...] = get_args(Norm)
MASK_OFFSETS = 2**18  # number of different dropout masks


class Encoder(nn.Module):
    """A graph in, one hidden vector per wanted node out; several members side by side.

    Members are encoders that share the graph and dropout's masks, but no weights. Every parameter
    and buffer has the members in its first axis.

    An encoder implements :meth:`prepare_tensors` and :meth:`forward`. All other methods are
    optional abilities: where one returns None, callers use the plain forward pass.

    Args:
        hidden: length of the hidden vectors.
        generator: draws initial weights and dropout's masks.
        dropout: share of hidden units that are zeroed while training.
        activation: a name in :data:`qpignn.encoders.activations.ACTIVATIONS`.
        members: number of members.
    """

    uses_edge_features: ClassVar[bool] = False
    """Whether ``edge_attr`` of a graph is used."""
    aggregations: ClassVar[tuple[str, ...]] = ("mean",)
    """Values of the setting ``aggregation`` that the encoder supports."""
    sampled_aggregations: ClassVar[tuple[str, ...]] = ()
    """Those of them for which minibatches can be drawn."""

    def __init__(
        self,
        hidden: int,
        *,
        generator: torch.Generator,
        dropout: float = 0.0,
        activation: str = "silu",
        members: int = 1,
    ) -> None:
        super().__init__()
        self.hidden, self.members = hidden, members
        self.activation_name = activation
        self.activation = ACTIVATIONS[activation].function
        self.dropout = dropout
        self.drop_whole_units = False  # a unit at all nodes at once, not at each independently
        self.generator = generator
        self._masks, self._masks_seed = torch.empty(0), -1

    @classmethod
    def prepare(
        cls,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        *,
        edge_attr: Tensor | None = None,
        first: Tensor | None = None,
        offset: Tensor | None = None,
        aggregation: str = "mean",
    ) -> GraphInputs:
        """Return the constants of a graph, once per fit or prediction.

        Args:
            x: (nodes, columns), dense or CSR, already scaled.
            edge_index: (2, edges), messages run from row 0 to row 1.
            edge_weight: (edges,), finite and from 0 up; default all equal.
            edge_attr: (edges, edge features).
            first: positions of the wanted nodes, in the wanted order; default all.
            offset: (columns,), added to every row of a CSR ``x`` (zeros included); default 0.
            aggregation: how neighbours are combined.

        Returns:
            The inputs of the encoder.

        Raises:
            GraphError: the encoder cannot use a part of the graph.
        """
        parts = (x, edge_index, edge_weight, edge_attr, first, offset, aggregation)
        return cls.prepare_tensors(GraphTensors(*parts))

    @classmethod
    @abstractmethod
    def prepare_tensors(cls, graph: GraphTensors) -> GraphInputs:
        """Return the constants of a graph; see :meth:`prepare`.

        Args:
            graph: the arguments of :meth:`prepare`.

        Raises:
            GraphError: the encoder cannot use a part of the graph.
        """

    @abstractmethod
    def forward(self, inputs: GraphInputs) -> Tensor:
        """Return hidden vectors of the wanted nodes, (members, rows, hidden).

        Args:
            inputs: as :meth:`prepare` returned them.
        """

    def fused(self, inputs: GraphInputs, part: slice) -> FusedLayers | None:
        """Return a forward and backward pass without autograd; None if there is none.

        Args:
            inputs: of the graph.
            part: which members.
        """
        return None

    def in_chunks(self, inputs: GraphInputs) -> Iterator[Tensor] | None:
        """Return an iterator over hidden vectors of some wanted nodes at a time, outside training.

        Args:
            inputs: of the graph, which may be larger than memory.

        Returns:
            (members, some rows, hidden) at a time; None if the encoder cannot.
        """
        return None

    def sampler(self, inputs: GraphInputs, fan_out: int) -> Sampler | None:
        """Return a sampler of minibatches; None for an encoder that runs on whole graphs only.

        Args:
            inputs: of the whole graph.
            fan_out: how many neighbours of a node are drawn, at most.
        """
        return None

    def member_inputs(self, inputs: GraphInputs, positions: Tensor) -> GraphInputs | None:
        """Return inputs for evaluation of which every member computes its own nodes; None if not.

        Args:
            inputs: of the graph.
            positions: (members, rows), each member's nodes by their positions in ``inputs``.
        """
        return None

    def dropout_passes(
        self, inputs: GraphInputs, count: int, generator: torch.Generator
    ) -> Iterator[Tensor]:
        """Yield hidden vectors of several passes, each with other units dropped at all nodes.

        Args:
            inputs: of the graph.
            count: number of passes.
            generator: draws the masks.
        """
        with self._dropping_units(generator), torch.no_grad():
            for _ in range(count):
                yield self(inputs)

    @contextmanager
    def _dropping_units(self, generator: torch.Generator) -> Iterator[None]:
        """Drop whole units, in training mode, with another generator."""
        before = self.generator, self.training
        self.generator, self.drop_whole_units = generator, True
        self.train()
        try:
            yield
        finally:
            (self.generator, training), self.drop_whole_units = before, False
            self.train(training)

    def dropped(self, hidden: Tensor) -> Tensor:
        """Return hidden vectors with some units dropped while training.

        Args:
            hidden: (…, nodes, units).
        """
        mask = self.dropout_mask(hidden)
        return hidden if mask is None else hidden * mask

    def dropout_mask(self, hidden: Tensor) -> Tensor | None:
        """Draw dropout's factors: 0, or 1/(1 − dropout); None if dropout is off.

        Args:
            hidden: (…, nodes, units), what they are for.

        Returns:
            (nodes, units), or (units,) where units are dropped at all nodes at once.
        """
        if not self.training or self.dropout == 0:
            return None
        shape = hidden.shape[-1 if self.drop_whole_units else -2 :]
        # a window of numbers drawn once, at a random offset: one draw per unit would take as long
        # as the arithmetic of a small net
        seed = self.generator.initial_seed()
        if self._masks_seed != seed or len(self._masks) < shape.numel() + MASK_OFFSETS:
            # the same for the same seed, whatever was drawn before
            draw, count = torch.Generator().manual_seed(seed), shape.numel() + MASK_OFFSETS
            dropped = torch.empty(count).uniform_(generator=draw) < self.dropout
            self._masks = dropped.logical_not_().to(torch.float32).div_(1 - self.dropout)
            self._masks_seed = seed
        start = int(torch.randint(MASK_OFFSETS, (), generator=self.generator))
        return self._masks[start : start + shape.numel()].view(shape).to(hidden)


class MemberNorm(nn.Module):
    """Layer normalisation of hidden vectors, with weights for every member.

    h' = (h − mean(h)) / √(var(h) + 1e-5) · weight + bias, mean and variance over the units of one
    node: the numbers of ``torch.nn.LayerNorm``.

    Args:
        members: number of members.
        hidden: length of the hidden vectors.
    """

    def __init__(self, members: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(members, 1, hidden))
        self.bias = nn.Parameter(torch.zeros(members, 1, hidden))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the normalised vectors.

        Args:
            hidden: (members, nodes, units).
        """
        normalised = nn.functional.layer_norm(hidden, hidden.shape[-1:])
        return torch.addcmul(self.bias, normalised, self.weight)


class LayeredEncoder(Encoder):
    """A stack of layers, each followed by an activation and dropout.

    Args:
        inputs: number of input features.
        hidden: length of the hidden vectors.
        layers: number of layers.
        generator: draws initial weights and dropout's masks.
        dropout: share of hidden units that are zeroed while training.
        activation: a name in :data:`qpignn.encoders.activations.ACTIVATIONS`.
        residual: whether every layer from the second on adds its inputs to its outputs.
        norm: ``none``, or ``layer`` for layer normalisation before the activation.
        members: number of members.
        edge_columns: number of edge features, a weight included, for encoders that use them.
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int,
        *,
        generator: torch.Generator,
        dropout: float = 0.0,
        activation: str = "silu",
        residual: bool = False,
        norm: str = "none",
        members: int = 1,
        edge_columns: int = 0,
    ) -> None:
        super().__init__(
            hidden, generator=generator, dropout=dropout, activation=activation, members=members
        )
        self.residual, self.edge_columns = residual, edge_columns
        self.layers = nn.ModuleList()
        for before, after in pairwise([inputs, *[hidden] * layers]):
            self._add_layer(before, after)
        self.norms = nn.ModuleList(
            MemberNorm(members, hidden) for _ in range(layers if norm == "layer" else 0)
        )

    @abstractmethod
    def _add_layer(self, inputs: int, outputs: int) -> None:
        """Draw the weights of one more layer."""

    def _outputs(self, z: Tensor, i: int, own: Any) -> Tensor:
        """Return the outputs of layer ``i`` from what comes before its activation."""
        if len(self.norms):
            z = self.norms[i](z)
        hidden = self.dropped(self.activation(z))
        return hidden + own if self.residual and i > 0 else hidden


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return all parameters and buffers by name, for ``functional_call`` without tied weights.

    Args:
        module: a submodule that occurs under several names is listed once, and a parameter that is
            shared by several submodules once for each.
    """
    return {
        f"{path}.{name}" if path else name: tensor
        for path, submodule in module.named_modules()
        for name, tensor in (
            *submodule.named_parameters(recurse=False, remove_duplicate=False),
            *submodule.named_buffers(recurse=False, remove_duplicate=False),
        )
    }


def uniform_parameter(
    shape: tuple[int, ...], fan_in: int, generator: torch.Generator
) -> nn.Parameter:
    """Draw a parameter from U(−1/√fan_in, 1/√fan_in), the default of torch's linear layers.

    Args:
        shape: of the parameter.
        fan_in: number of inputs of the layer.
        generator: draws the values.

    Returns:
        The parameter.
    """
    bound = 1 / fan_in**0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))
