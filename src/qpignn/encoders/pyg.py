"""A ``torch.nn.Module`` of the user's own as an encoder: PyG layers, or anything else."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from qpignn.data.matrix import is_sparse
from qpignn.encoders.base import Encoder, named_tensors
from qpignn.encoders.inputs import EdgeInputs, GraphInputs, GraphTensors, edge_features
from qpignn.errors import GraphError, SettingError, brief

ModuleFactory = Callable[[int, int], nn.Module]
"""Called with the number of input features and ``hidden``."""


class PygEncoder(Encoder):
    """Runs ``module(x, edge_index, edge_weight=…, edge_attr=…)`` for every member.

    ``edge_weight`` and ``edge_attr`` are passed if the module's ``forward`` has arguments of these
    names. The module returns (nodes, hidden); dropout follows. Members are copies of the module
    whose weights are drawn anew, run one after the other; it works on whole graphs and dense
    features.

    Args:
        source: a module, whose submodules can reset their parameters, or a class or function that
            makes one when called with the number of input features and ``hidden``.
        inputs: number of input features.
        hidden: length of the hidden vectors.
        generator: draws initial weights and dropout's masks.
        dropout: share of the module's outputs that are zeroed while training.
        members: number of members.

    Raises:
        SettingError: the initial weights cannot be drawn, or ``source`` makes no module.
    """

    uses_edge_features = True

    def __init__(
        self,
        source: nn.Module | ModuleFactory,
        inputs: int,
        hidden: int,
        *,
        generator: torch.Generator,
        dropout: float = 0.0,
        members: int = 1,
    ) -> None:
        super().__init__(hidden, generator=generator, dropout=dropout, members=members)
        made = [self._made(source, inputs, hidden) for _ in range(members)]
        self.module = _stacked(made)
        arguments = inspect.signature(self.module.forward).parameters
        self._accepts = {name for name in ("edge_weight", "edge_attr") if name in arguments}

    def _made(self, source: nn.Module | ModuleFactory, inputs: int, hidden: int) -> nn.Module:
        """Return one member, with weights drawn from the encoder's generator."""
        with seeded(self.generator, torch.device("cpu")):
            if isinstance(source, nn.Module):
                module = copy.deepcopy(source)
                reset_parameters(module)
            else:
                module = source(inputs, hidden)
        if not isinstance(module, nn.Module):
            raise SettingError(
                f"encoder: expected a torch.nn.Module from {brief(source)}, called with the number "
                f"of input features and hidden, got {brief(module)}"
            )
        if not any(True for _ in module.parameters()):
            raise SettingError(f"encoder: expected a module with parameters, got {brief(module)}")
        return module

    @classmethod
    def prepare_tensors(cls, graph: GraphTensors) -> GraphInputs:
        """Return the constants of a graph; see :meth:`qpignn.encoders.base.Encoder.prepare`.

        Returns:
            The inputs of the encoder; nodes and edges keep their order.
        """
        x, ends, weight = graph.x, graph.edge_index, graph.edge_weight
        if is_sparse(x):
            x = x.to_dense() + (0 if graph.offset is None else graph.offset)
        weight = None if weight is None else weight.to(x.dtype)
        attr = edge_features(graph.edge_attr, ends.shape[1], x.dtype)
        parts = (x, x.shape[1], (), graph.rows)
        return EdgeInputs(
            *parts, edge_index=ends, edge_weight=weight, edge_attr=attr, wanted=graph.first
        )

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Return hidden vectors of the wanted nodes, (members, rows, hidden).

        Args:
            inputs: as :meth:`prepare` returned them.

        Raises:
            GraphError: edges have different weights and the module takes none.
            SettingError: the module fails, or returns another shape.
        """
        assert isinstance(inputs, EdgeInputs)
        weight = inputs.edge_weight
        if "edge_weight" not in self._accepts and weight is not None and bool(weight.diff().any()):
            raise GraphError(
                f"edge_weight: expected edges without weights, because forward of "
                f"{type(self.module).__name__} has no argument edge_weight, got different weights; "
                f"add the argument, or leave edge_weight out of the graph"
            )
        extra = {name: getattr(inputs, name) for name in self._accepts}
        state = named_tensors(self.module)
        members = len(next(iter(state.values())))
        seeds = seeded(self.generator, inputs.features.device) if self.training else nullcontext()
        with seeds:
            outputs = [self._run(state, member, inputs, extra) for member in range(members)]
        return self.dropped(inputs.select(torch.stack(outputs)))

    def _run(
        self,
        state: dict[str, Tensor],
        member: int,
        inputs: EdgeInputs,
        extra: dict[str, Tensor | None],
    ) -> Tensor:
        own = {name: tensor[member] for name, tensor in state.items()}
        name, arguments = type(self.module).__name__, (inputs.features, inputs.edge_index)
        try:
            hidden: Tensor = functional_call(self.module, own, arguments, extra, tie_weights=False)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise SettingError(
                f"encoder: expected {name} to run on x of shape {tuple(inputs.features.shape)} and "
                f"edge_index of shape {tuple(inputs.edge_index.shape)}, got "
                f"{type(error).__name__}: {error}; a module needs as many input features as the "
                f"graph has, or give its class or a function of (in_channels, hidden)"
            ) from error
        if not isinstance(hidden, Tensor) or hidden.shape != (inputs.nodes, self.hidden):
            shape = tuple(hidden.shape) if isinstance(hidden, Tensor) else brief(hidden)
            raise SettingError(
                f"encoder: expected {name} to return (nodes, hidden) = "
                f"{(inputs.nodes, self.hidden)}, got {shape}; set hidden to the length of its "
                f"output vectors"
            )
        return hidden


@contextmanager
def seeded(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators from another one within the block, and restore them after.

    Args:
        generator: draws the seed.
        device: a GPU whose generator is seeded too.

    Yields:
        None.
    """
    seed = int(torch.randint(2**62, (), generator=generator, device="cpu"))
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        if device.type == "cuda":
            torch.cuda.default_generators[device.index or 0].manual_seed(seed)
        torch.default_generator.manual_seed(seed)
        yield


def reset_parameters(module: nn.Module) -> None:
    """Draw the weights of a module anew, by ``reset_parameters`` of it or of its submodules.

    Args:
        module: changed in place.

    Raises:
        SettingError: a submodule has parameters and no ``reset_parameters``.
    """
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
        return
    if any(True for _ in module.parameters(recurse=False)):
        raise SettingError(
            f"encoder: expected every submodule with parameters to have reset_parameters(), which "
            f"draws them anew for every member, got {type(module).__name__} without it; add the "
            f"method, or give a class or function of (in_channels, hidden) in place of a module"
        )
    for child in module.children():
        reset_parameters(child)


def _stacked(modules: list[nn.Module]) -> nn.Module:
    """Return the first module with the parameters and buffers of all, stacked in a new axis."""
    template = modules[0]
    if any(is_lazy(parameter) for parameter in template.parameters()):
        raise SettingError(
            f"encoder: expected a module with initialised parameters, got lazy ones in "
            f"{type(template).__name__}; give numbers of channels, or a class or function of "
            f"(in_channels, hidden)"
        )
    stacked: dict[int, Tensor] = {}  # shared parameters stay shared
    tensors = [named_tensors(module) for module in modules]
    for name, tensor in tensors[0].items():
        if id(tensor) not in stacked:
            values = torch.stack([member[name].detach() for member in tensors])
            # a frozen parameter becomes a buffer: the optimiser moves all parameters
            stacked[id(tensor)] = nn.Parameter(values) if tensor.requires_grad else values
        _set(template, name, stacked[id(tensor)])
    return template


def _set(module: nn.Module, name: str, tensor: Tensor) -> None:
    path, _, leaf = name.rpartition(".")
    parent = module.get_submodule(path)
    delattr(parent, leaf)
    if isinstance(tensor, nn.Parameter):
        parent.register_parameter(leaf, tensor)
    else:
        parent.register_buffer(leaf, tensor)
