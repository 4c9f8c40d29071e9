"""The same method without edges, to see what the graph adds."""

from typing import TYPE_CHECKING

from sklearn.base import clone

from qpignn.errors import SettingError
from qpignn.methods.base import IntervalMethod

if TYPE_CHECKING:
    from torch_geometric.data import Data

NO_GRAPH = "mlp"  # the encoder that uses no edges


def fit_without_graph(model: IntervalMethod, data: "Data") -> IntervalMethod:
    """Fit a copy of a method with an encoder that uses no edges.

    Args:
        model: a method on nets, or one around such a method.
        data: the graph of its fit; the given units are those of the graph's masks.

    Returns:
        The fitted copy; all other settings are those of ``model``.

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
    plain: IntervalMethod = clone(model).set_params(**{names[0]: NO_GRAPH})
    return plain.fit(data)
