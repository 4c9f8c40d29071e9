"""Data sets by name.

Every module of :mod:`qpignn.data.sources` that has a tuple ``DATASETS`` adds its data sets;
installed packages add theirs by entry points of the group ``qpignn.datasets``. The counts are
declared so that a listing needs no loading and a data set that is not on this machine can still be
described; ``qpignn datasets --check`` compares them with the loaded graphs.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from qpignn.data import sources
from qpignn.data.graph import simple_edges
from qpignn.data.sources.dataset import Dataset, Size
from qpignn.data.sources.files import DATA_DIR
from qpignn.errors import check_choice
from qpignn.names import DATASET_GROUP, DATASETS
from qpignn.protocols import GENERAL, find_protocol
from qpignn.runtime.entry_points import installed, load_installed

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["BENCHMARK", "EXTRA", "Dataset", "Size", "find_dataset", "load_dataset"]


_MODULES = [import_module(f"{sources.__name__}.{m.name}") for m in iter_modules(sources.__path__)]
_ENTRIES: dict[str, Dataset] = {
    entry.name: entry for module in _MODULES for entry in getattr(module, "DATASETS", ())
}
_ORDER = dict.fromkeys([*(name for name in DATASETS if name in _ENTRIES), *_ENTRIES])
BENCHMARK = {name: _ENTRIES[name] for name in _ORDER if _ENTRIES[name].benchmark}
"""The data sets that ``all`` means: the paper's 19, in its order."""
EXTRA = {name: _ENTRIES[name] for name in _ORDER if not _ENTRIES[name].benchmark}
"""Further data sets."""


def is_dataset(name: str) -> bool:
    """Return whether a name is one of the catalog's, installed packages included.

    Args:
        name: any string.
    """
    return name in BENCHMARK or name in EXTRA or name in installed(DATASET_GROUP)


def find_dataset(name: str) -> Dataset:
    """Return the catalog's entry of a data set.

    Args:
        name: its name.

    Returns:
        The entry.

    Raises:
        UnknownNameError: if there is none; the message names similar ones.
    """
    built_in = BENCHMARK | EXTRA
    check_choice("data set", name, [*built_in, *installed(DATASET_GROUP)])
    return built_in[name] if name in built_in else load_installed(DATASET_GROUP, name, Dataset)


def load_dataset(name: str, protocol: str | None = None, **options: Any) -> Data:
    """Load a data set by name.

    Args:
        name: see ``qpignn datasets``; also ``migration``, ``birth`` and ``death``.
        protocol: an experiment protocol whose form of the data set is wanted
            (:mod:`qpignn.protocols`); by default undirected edges without self-loops and repeats.
        **options: the data set's own: ``year`` and ``fill_target`` (county), ``country`` (twitch),
            ``draw`` and ``nodes`` (synthetic).

    Returns:
        The graph, with its ``name``.

    Raises:
        UnknownNameError: for an unknown data set or protocol.
        SettingError: for an option the data set does not have.
        DataFileError: if a file is missing and cannot be downloaded.
    """
    if protocol is not None:
        return find_protocol(protocol).load_dataset(name, **options)
    entry = find_dataset(name)
    entry.check_options(options)
    data = entry.loader(**options)
    data.edge_index, _ = simple_edges(data.edge_index, data.x.shape[0])
    data.name, data.protocol = name, GENERAL
    return data


def missing_message(entry: Dataset) -> str | None:
    """Return why a data set cannot be loaded here without a download, or None.

    Args:
        entry: the data set's entry.
    """
    missing = entry.missing()
    if not missing:
        return None
    return (
        f"not on this machine: {', '.join(missing)}; it is downloaded when first loaded, or set "
        f"{DATA_DIR} to a folder that holds it"
    )
