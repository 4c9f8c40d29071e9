"""Maps of graphs with coordinates: positions of the nodes and axis labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data

from qpignn.data.frames import COORDINATES
from qpignn.intervals import Floats

SMALLEST_COSINE = 0.01  # lower limit, so that maps near a pole have a width


@dataclass(frozen=True)
class Map:
    """Positions of the nodes on a map.

    Degrees are drawn in the equirectangular projection whose standard parallel is the nodes' mean
    latitude φ: x = longitude · cos φ, y = latitude. Lengths are exact along meridians and along
    the parallel at φ.

    Attributes:
        places: (nodes, 2), positions, with the same unit of length on both axes.
        names: names of the two coordinates.
        degrees: whether they are longitude and latitude.
        stretch: length of one unit of the first coordinate in units of the second.
        latitude: φ; None if the coordinates are not degrees.
    """

    places: Floats
    names: tuple[str, str]
    degrees: bool
    stretch: float
    latitude: float | None

    def axes(self, corner: Floats, width: float, height: float) -> dict[str, Any]:
        """Return the data for axis labels and the scale bar.

        Args:
            corner: lower left corner of the drawn area, in the unit of ``places``.
            width, height: size of the drawn area, in the same unit.
        """
        left, bottom = float(corner[0]), float(corner[1])
        return {
            "names": list(self.names),
            "degrees": self.degrees,
            "latitude": self.latitude,
            "x": [left / self.stretch, (left + width) / self.stretch],
            "y": [bottom, bottom + height],
        }


def map_of(data: Data) -> Map | None:
    """Return the map of a graph with two finite coordinates (``pos``) per node, else None.

    Coordinates named lon and lat (or lng, longitude and latitude; ``pos_names``) are degrees if
    their values are in range; all others are lengths.

    Args:
        data: the graph.
    """
    stored = data.get("pos")
    if stored is None or tuple(stored.shape) != (data.x.shape[0], 2):
        return None
    pos: Floats = stored.double().numpy()
    if not np.isfinite(pos).all():
        return None
    stored = data.get("pos_names")
    given = [str(name) for name in stored] if isinstance(stored, list | tuple) else []
    names = (given[0], given[1]) if len(given) == 2 else ("x", "y")
    low, high = pos.min(axis=0), pos.max(axis=0)
    in_range = low[0] >= -360 and high[0] <= 360 and low[1] >= -90 and high[1] <= 90
    if (names[0].lower(), names[1].lower()) not in COORDINATES or not in_range:
        return Map(pos, names, degrees=False, stretch=1.0, latitude=None)
    latitude = float(pos[:, 1].mean())
    stretch = max(float(np.cos(np.radians(latitude))), SMALLEST_COSINE)
    places = np.column_stack([_unwrapped(pos[:, 0]) * stretch, pos[:, 1]])
    return Map(places, names, degrees=True, stretch=stretch, latitude=latitude)


def _unwrapped(longitude: Floats) -> Floats:
    """Return longitudes cut at the widest gap, for maps across the 180° meridian."""
    around = np.sort(np.mod(longitude, 360))
    gaps = np.diff(around, append=around[0] + 360)
    start = around[(int(np.argmax(gaps)) + 1) % len(around)]
    cut: Floats = np.mod(longitude - start, 360) + start
    return cut if np.ptp(cut) < np.ptp(longitude) - 1e-9 else longitude
