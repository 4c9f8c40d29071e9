from . import metrics as metrics
from .data.append import join_frames as join_frames
from .data.catalog import load_dataset as load_dataset
from .data.convert import convert_graph as convert_graph
from .data.example import example_tables as example_tables
from .data.frames import from_frames as from_frames
from .data.frames import from_networkx as from_networkx
from .data.graph import check_graph as check_graph
from .data.mapped import open_graph as open_graph
from .data.readers import read_graph as read_graph
from .data.reorder import reorder_nodes as reorder_nodes
from .data.settings import make_view as make_view
from .data.split import split_nodes as split_nodes
from .data.storage import load_graph as load_graph
from .data.storage import save_graph as save_graph
from .diagnostics.diagnosis import diagnose as diagnose
from .errors import QpignnError as QpignnError
from .intervals import Intervals as Intervals
from .methods.catalog import load_method as load_method
from .methods.catalog import make_method as make_method
from .methods.conformal import Conformal as Conformal
from .methods.qpignn import QpiGNN as QpiGNN
from .reports.content import write_report as write_report
from .training.checkpoint import checkpoints as checkpoints
from .training.checkpoint import fit_key as fit_key

__version__: str
__all__: list[str]
