"""The same method without edges, to see what the graph adds."""

from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from qpignn.errors import SettingError
from qpignn.methods.base import IntervalMethod

if TYPE_CHECKING:
    from torch_geometric.data import Data

NO_GRAPH = "mlp"  # the encoder that uses no edges
USES_EDGES = ("novelty", "neighbours")  # settings that make any encoder's intervals use them


def fit_without_graph(model: IntervalMethod, data: "Data") -> IntervalMethod:
    """Fit a copy of a method with an encoder that uses no edges.

    Args:
        model: a method on nets, or one around such a method.
        data: the graph of its fit; the given units are those of the graph's masks.

    Returns:
        The fitted copy; all other settings are those of ``model``, but ``novelty`` and
        ``neighbours``, which are off because they use edges.

    Raises:
        SettingError: if the method has no encoder, or already uses no edges.
    """
    settings = model.get_params()
    names = [name for name in ("encoder", "method__encoder") if name in settings]
    if not names:
        raise SettingError(
            f"expected a method with an encoder to fit without the graph, got "
            f"{type(model).__name__}"
        )
    if settings[names[0]] == NO_GRAPH:
        raise SettingError(
            f"expected a model that uses edges to compare with, got one with encoder {NO_GRAPH!r}"
        )
    changes: dict[str, Any] = {names[0]: NO_GRAPH}
    for name, value in settings.items():
        if name.rpartition("__")[2] in USES_EDGES and value is not None:
            changes[name] = "off"
    plain: IntervalMethod = clone(model).set_params(**changes)
    return plain.fit(data)
