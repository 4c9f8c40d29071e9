"""qpignn: calibrated prediction intervals for graphs.

The public names are imported when first used, so that ``import qpignn`` and the command line's
``--help`` do not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from qpignn import metrics
    from qpignn.data.append import join_frames
    from qpignn.data.catalog import load_dataset
    from qpignn.data.convert import convert_graph
    from qpignn.data.example import example_tables
    from qpignn.data.frames import from_frames, from_networkx
    from qpignn.data.graph import check_graph
    from qpignn.data.mapped import open_graph
    from qpignn.data.readers import read_graph
    from qpignn.data.reorder import reorder_nodes
    from qpignn.data.settings import make_view
    from qpignn.data.split import split_nodes
    from qpignn.data.storage import load_graph, save_graph
    from qpignn.diagnostics.diagnosis import diagnose
    from qpignn.errors import QpignnError
    from qpignn.intervals import Intervals
    from qpignn.methods.catalog import load_method, make_method
    from qpignn.methods.conformal import Conformal
    from qpignn.methods.qpignn import QpiGNN
    from qpignn.reports.content import write_report
    from qpignn.training.checkpoint import checkpoints, fit_key

__all__ = [
    "Conformal",
    "Intervals",
    "QpiGNN",
    "QpignnError",
    "check_graph",
    "checkpoints",
    "convert_graph",
    "diagnose",
    "example_tables",
    "fit_key",
    "from_frames",
    "from_networkx",
    "join_frames",
    "load_dataset",
    "load_graph",
    "load_method",
    "make_method",
    "make_view",
    "metrics",
    "open_graph",
    "read_graph",
    "reorder_nodes",
    "save_graph",
    "split_nodes",
    "write_report",
]

_HOMES = {
    "Conformal": "qpignn.methods.conformal",
    "Intervals": "qpignn.intervals",
    "QpignnError": "qpignn.errors",
    "check_graph": "qpignn.data.graph",
    "checkpoints": "qpignn.training.checkpoint",
    "convert_graph": "qpignn.data.convert",
    "fit_key": "qpignn.training.checkpoint",
    "open_graph": "qpignn.data.mapped",
    "reorder_nodes": "qpignn.data.reorder",
    "example_tables": "qpignn.data.example",
    "diagnose": "qpignn.diagnostics.diagnosis",
    "from_frames": "qpignn.data.frames",
    "from_networkx": "qpignn.data.frames",
    "join_frames": "qpignn.data.append",
    "load_dataset": "qpignn.data.catalog",
    "load_graph": "qpignn.data.storage",
    "save_graph": "qpignn.data.storage",
    "load_method": "qpignn.methods.catalog",
    "make_method": "qpignn.methods.catalog",
    "QpiGNN": "qpignn.methods.qpignn",
    "make_view": "qpignn.data.settings",
    "read_graph": "qpignn.data.readers",
    "split_nodes": "qpignn.data.split",
    "write_report": "qpignn.reports.content",
}


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("qpignn.metrics")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'qpignn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
