"""Data sets by name: how to load each, which files it needs, and how large it is.

The counts are declared so that a listing costs nothing and a set that is not on this machine can
still be described; ``qpignn datasets --check`` loads every set that is here and holds them against
what it finds.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from qpignn.data.matrix import stored_values
from qpignn.data.sources import county, musae, synthetic, transport
from qpignn.data.sources.files import DATA_DIR, SourceFile, find, identity
from qpignn.errors import SettingError, check_choice
from qpignn.names import PROTOCOLS

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Size:
    """Counts of one form. ``edges`` counts undirected edges once and published ones as stored."""

    nodes: int
    edges: int
    self_loops: int
    features: int

    @classmethod
    def of(cls, data: Data, protocol: str) -> Size:
        """Count a loaded graph."""
        ends = data.edge_index
        stored, loops = ends.shape[1], int((ends[0] == ends[1]).sum())
        edges = stored if protocol == "published" else stored // 2
        return cls(data.x.shape[0], edges, loops, data.x.shape[1])


@dataclass(frozen=True)
class Dataset:
    """One entry of the catalog.

    Attributes:
        name: what ``load_dataset`` takes.
        origin: the family it comes from.
        about: one line on nodes, edges and target.
        loader: makes the graph; takes ``protocol`` and the set's own options.
        files: what it reads without options; none for drawn sets.
        files_with: returns what it reads with options, where they decide that.
        sizes: declared counts per protocol.
        ones_per_node: stored features a node, for sets with sparse 0/1 features.
    """

    name: str
    origin: str
    about: str
    loader: Callable[..., Data]
    files: tuple[SourceFile, ...] = ()
    sizes: dict[str, Size] | None = None
    ones_per_node: float | None = None
    files_with: Callable[..., tuple[SourceFile, ...]] | None = None

    def missing(self) -> list[str]:
        """Return the files that are neither in the data folder nor in the cache."""
        return [file.path for file in self.files if find(file) is None]

    def digest(self, options: Mapping[str, Any] | None = None) -> str:
        """Return a digest of the files read under the given options; empty if none are read.

        It is that of the published files unless the user's folder holds others.
        """
        files = self.files if self.files_with is None else self.files_with(**(options or {}))
        content = json.dumps([[file.path, identity(file)] for file in files])
        return hashlib.sha256(content.encode()).hexdigest() if files else ""

    def differences(self) -> list[str]:
        """Load every form and return where it differs from the declared counts."""
        found = []
        for protocol, declared in (self.sizes or {}).items():
            data = self.loader(protocol=protocol)
            counted = Size.of(data, protocol)
            if counted != declared:
                found.append(f"{self.name} {protocol}: declared {declared}, found {counted}")
            if self.ones_per_node is not None:
                ones = round(len(stored_values(data.x)) / counted.nodes, 1)
                if ones != self.ones_per_node:
                    found.append(f"{self.name}: declared {self.ones_per_node} ones, found {ones}")
        return found


def _sizes(nodes: int, edges: int, stored: int, loops: int, features: int) -> dict[str, Size]:
    return {
        "corrected": Size(nodes, edges, 0, features),
        "published": Size(nodes, stored, loops, features),
    }


def _county(name: str, about: str) -> Dataset:
    loader = partial(county.load_county, name)
    sizes = _sizes(3234, 9483, 12717, 3234, 6)
    return Dataset(name, "county", about, loader, tuple(county.FILES.values()), sizes)


def _basic(name: str, about: str, edges: int, loops: int) -> Dataset:
    loader = partial(synthetic.load_basic, name)
    return Dataset(name, "synthetic", about, loader, sizes=_sizes(1000, edges, 2000, loops, 5))


def _centrality(name: str, about: str, sizes: dict[str, Size]) -> Dataset:
    return Dataset(name, "synthetic", about, partial(synthetic.load_centrality, name), sizes=sizes)


def _wikipedia(name: str, sizes: dict[str, Size], ones: float | None) -> Dataset:
    loader = partial(musae.load_wikipedia, name)
    files = tuple(musae.files_of("wikipedia", name).values())
    return Dataset(
        name, "wikipedia", f"pages on {name}s; links; monthly traffic", loader, files, sizes, ones
    )


def _city(name: str, sizes: dict[str, Size]) -> Dataset:
    files = tuple(transport.CITIES[name].files.values())
    loader = partial(transport.load_transport, name)
    return Dataset(name, "transport", "road links; shared crossings; flow", loader, files, sizes)


_WAVE = "random pairs; sin of the first feature"
_DEGREE = "sin of the degree, centralities as features"
_TREE = {"corrected": Size(1000, 999, 0, 5), "published": Size(511, 1020, 0, 5)}

BENCHMARK = {
    entry.name: entry
    for entry in (
        _basic("basic", _WAVE, 1988, 3),
        _basic("gaussian", f"{_WAVE} + N(0, 0.3²)", 1988, 3),
        _basic("uniform", f"{_WAVE} + U(−0.3, 0.3)", 1988, 3),
        _basic("outlier", f"{_WAVE}; 5 % of nodes + N(3, 1)", 1988, 3),
        _basic("edge", f"{_WAVE}; 30 % of edges rewired", 1994, 1),
        _centrality("ba", f"Barabási–Albert; {_DEGREE}", _sizes(1000, 2991, 5982, 0, 5)),
        _centrality("er", f"Erdős–Rényi; {_DEGREE}", _sizes(1000, 4894, 9788, 0, 5)),
        _centrality("grid", f"30 × 30; {_DEGREE}", _sizes(900, 1740, 3480, 0, 5)),
        _centrality("tree", f"binary tree; {_DEGREE}", _TREE),
        _county("education", "US counties; borders; share with a bachelor's degree"),
        _county("election", "US counties; borders; vote margin"),
        _county("income", "US counties; borders; median income"),
        _county("unemployment", "US counties; borders; unemployment rate"),
        Dataset(
            "twitch",
            "twitch",
            "users; friendships; log views",
            musae.load_twitch,
            musae.twitch_files(),
            _sizes(1912, 31299, 31299, 0, 3169),
            19.9,
            musae.twitch_files,
        ),
        _wikipedia("chameleon", _sizes(2277, 31371, 36101, 50, 3132), 21.5),
        _wikipedia("crocodile", _sizes(11631, 170773, 180020, 145, 13183), None),
        _wikipedia("squirrel", _sizes(5201, 198353, 217073, 140, 3148), 26.5),
        _city("anaheim", _sizes(914, 3881, 3638, 0, 4)),
        _city("chicago", _sizes(2176, 15104, 14961, 0, 4)),
    )
}
"""The paper's 19 data sets, in its order."""

EXTRA = {
    entry.name: entry
    for entry in (
        _county("migration", "US counties; borders; net migration rate"),
        _county("birth", "US counties; borders; birth rate"),
        _county("death", "US counties; borders; death rate"),
    )
}
"""Further targets on the county graph."""


def find_dataset(name: str) -> Dataset:
    """Return the catalog's entry, or raise with the nearest names."""
    return (BENCHMARK | EXTRA)[check_choice("data set", name, [*BENCHMARK, *EXTRA])]


def load_dataset(name: str, protocol: str = "corrected", **options: Any) -> Data:
    """Load a data set by name.

    Args:
        name: see ``qpignn datasets``; also ``migration``, ``birth`` and ``death``.
        protocol: ``corrected`` (undirected, simple, line graphs right) or ``published`` (bit for
            bit what the authors' code used).
        **options: the set's own: ``year`` and ``fill_target`` (county), ``country`` (twitch),
            ``draw`` and ``nodes`` (synthetic).
    """
    entry = find_dataset(name)
    check_choice("protocol", protocol, PROTOCOLS)
    known = inspect.signature(entry.loader).parameters
    for option in options:
        if option not in known:
            raise SettingError(f"data set {name!r} has no option {option!r}; it has {list(known)}")
    data = entry.loader(protocol=protocol, **options)
    data.name, data.protocol = name, protocol
    return data


def missing_message(entry: Dataset) -> str | None:
    """Return in words why a data set cannot be loaded here without a download, or None."""
    missing = entry.missing()
    if not missing:
        return None
    return (
        f"not on this machine: {', '.join(missing)}; it is downloaded when first loaded, or set "
        f"{DATA_DIR} to a folder that holds it"
    )
