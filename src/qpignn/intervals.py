"""The result of every method: a prediction and a closed interval for each node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from qpignn.errors import ArrayError, SettingError, brief, check_choice, import_optional

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Side = Literal["both", "lower", "upper"]
SIDES: tuple[str, ...] = get_args(Side)
"""Which bounds a result has: an interval, or one bound only."""
FRAME_COLUMNS = (
    *("prediction", "lower", "upper", "epistemic", "aleatoric"),
    *("novelty", "known_neighbours"),
)
"""Columns of a table of intervals beside the ids."""
UNITLESS = FRAME_COLUMNS[5:]
"""Those of these columns that are not in the target's unit."""
OPTIONAL = ("epistemic", "novelty", "known_neighbours", "width_without")
"""Numbers per node that only some results have."""
DIGITS = 7  # significant digits of a typical width in a text file
FEWEST_DIGITS = 4  # significant digits of the smallest width
DECIMALS = 6  # decimals of columns that are not in the target's unit, in a text file


def check_level(value: Any, name: str = "confidence_level") -> float:
    """Return a level as a float.

    Args:
        value: a number strictly between 0 and 1.
        name: name of the setting, for the error message.

    Raises:
        SettingError: if it is no such number.
    """
    is_number = isinstance(value, Real)
    level = float(value) if is_number and abs(value) < 1e9 else float("nan")
    if not 0.0 < level < 1.0:
        percent = f"; for {level:g} % write {level / 100:g}" if 1 < level < 100 else ""
        raise SettingError(
            f"{name}: expected a number strictly between 0 and 1, such as 0.9, "
            f"got {brief(value)}{percent}"
        )
    return level


def check_levels(value: Any, name: str = "confidence_level") -> list[float]:
    """Return one level or several as an increasing list.

    Args:
        value: a number strictly between 0 and 1, or several of them.
        name: name of the setting, for the error message.

    Raises:
        SettingError: if a value is no such number, or if there is none.
    """
    if isinstance(value, Real | str) or value is None:
        return [check_level(value, name)]
    try:
        levels = sorted({check_level(level, name) for level in value})
    except TypeError:
        levels = []
    if not levels:
        raise SettingError(f"{name}: expected a number or a list of numbers, got {brief(value)}")
    return levels


def covers(y: Any, lower: Any, upper: Any) -> Any:
    """Return whether each target lies in its closed interval: lower ≤ y ≤ upper.

    Args:
        y: targets, an array or tensor.
        lower: lower bounds, of the same type and shape.
        upper: upper bounds, of the same type and shape.
    """
    return (lower <= y) & (y <= upper)


def as_values(name: str, values: Any) -> Floats:
    """Return values as a float64 vector of shape (nodes,).

    Args:
        name: what the values are, for the error message.
        values: an array, list, Series or tensor of numbers.

    Raises:
        ArrayError: if they are not numbers, or have more than one dimension.
    """
    if hasattr(values, "detach"):  # a torch tensor, without importing torch for it
        values = values.detach().cpu().numpy()
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:  # text, dates, rows of different lengths
        raise ArrayError(
            f"{name}: expected one number per node, got {brief(values)}; "
            f"give an array, a list, a Series or a tensor of numbers"
        ) from error
    if array.ndim != 1:
        raise ArrayError(
            f"{name}: expected one number per node (one dimension), got shape {array.shape}; "
            f"flatten it first"
        )
    return array


def as_ids(ids: Any) -> npt.NDArray[Any]:
    """Return ids as a vector of shape (nodes,); a tuple stays one id.

    Args:
        ids: values of any type, one per node.

    Raises:
        ArrayError: if they are not a sequence.
    """
    if hasattr(ids, "detach"):
        ids = ids.tolist()
    if isinstance(ids, np.ndarray) and ids.ndim == 1:
        return ids
    try:
        values = list(ids)
    except TypeError as error:
        raise ArrayError(f"node_id: expected one id per node, got {brief(ids)}") from error
    vector = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        vector[i] = value
    return vector


def _places(nodes: Any, length: int) -> npt.NDArray[Any]:
    """Return a boolean mask or positions that select from ``length`` nodes, or raise."""
    try:
        places = np.asarray(nodes)
    except (TypeError, ValueError):  # lists of different lengths
        places = np.empty(0, dtype=object)
    if places.shape == (0,) and places.dtype == np.float64:  # an empty list
        places = places.astype(np.int64)
    right = places.ndim == 1 and places.dtype.kind in "biu"
    if right and places.dtype == np.bool_:
        right = len(places) == length
    elif right and len(places):
        right = int(places.min()) >= -length and int(places.max()) < length
    if not right:
        raise ArrayError(
            f"nodes: expected {length} booleans, or positions from 0 to {length - 1}, "
            f"got {brief(nodes)}"
        )
    return places


def _side(lower: Floats, upper: Floats) -> str:
    """Return which bounds a result has: those that are finite on some node."""
    low, high = (bool(np.isfinite(bound).any()) for bound in (lower, upper))
    return "both" if low == high else "lower" if low else "upper"


@dataclass(frozen=True)
class Intervals:
    """Prediction intervals in the target's unit. All arrays have the shape (nodes,).

    Attributes:
        prediction: point predictions.
        lower: lower bounds; the intervals are closed.
        upper: upper bounds. Bounds are infinite where a method cannot give a finite one.
        confidence_level: the wanted coverage.
        node_id: the user's ids, in the same order; row numbers if there are none.
        id_name: the user's name for the ids: the first column of :meth:`to_frame`.
        epistemic: the part of each width that comes from the disagreement of the ensemble's
            members, which more labels would reduce; None for a method with a single member.
        side: ``both``, or ``lower`` or ``upper`` for a one-sided result. Its other bound is
            infinite, or the limit of the target (``y_min``, ``y_max``). By default a result is
            one-sided if one of its bounds is infinite on every node and the other is not.
        novelty: how far each node is from those that the method was fitted on: above 1, it lies
            beyond what was learnt. None for a method that does not say.
        novelty_reason: for nodes above 1 what puts them there, in words; empty for the others.
        known_neighbours: how many of each node's neighbours have targets that the method knows and
            uses (with weighted edges the sum of weights, over the mean weight). None for a method
            that uses none.
        width_without: width of each interval without the targets of neighbours; None likewise.

    Raises:
        ArrayError: if lengths differ, a value is NaN, or a lower bound is above its upper bound.
        SettingError: if the confidence level is not strictly between 0 and 1.
    """

    prediction: Floats
    lower: Floats
    upper: Floats
    confidence_level: float
    node_id: npt.NDArray[Any]
    epistemic: Floats | None = None
    side: str = "both"
    id_name: str = "id"
    novelty: Floats | None = None
    novelty_reason: npt.NDArray[Any] | None = None
    known_neighbours: Floats | None = None
    width_without: Floats | None = None

    def __init__(
        self,
        prediction: Any,
        lower: Any,
        upper: Any,
        confidence_level: float,
        node_id: Any = None,
        *,
        epistemic: Any = None,
        side: str | None = None,
        id_name: str = "id",
        novelty: Any = None,
        novelty_reason: Any = None,
        known_neighbours: Any = None,
        width_without: Any = None,
    ) -> None:
        columns = {"prediction": prediction, "lower": lower, "upper": upper}
        optional = (epistemic, novelty, known_neighbours, width_without)
        named = zip(OPTIONAL, optional, strict=True)
        columns |= {name: values for name, values in named if values is not None}
        arrays = {name: as_values(name, values) for name, values in columns.items()}
        lengths = {name: len(array) for name, array in arrays.items()}
        ids = np.arange(lengths["lower"]) if node_id is None else as_ids(node_id)
        lengths["node_id"] = len(ids)
        if novelty_reason is not None:
            object.__setattr__(self, "novelty_reason", as_ids(novelty_reason))
            lengths["novelty_reason"] = len(novelty_reason)
        if len(set(lengths.values())) > 1:
            raise ArrayError(f"expected columns of one length, got {lengths}")
        for name, array in arrays.items():
            if np.isnan(array).any():
                raise ArrayError(
                    f"{name}: expected a number for every node, got NaN for "
                    f"{int(np.isnan(array).sum())} of {len(array)}"
                )
            object.__setattr__(self, name, array)
        crossed = int((arrays["lower"] > arrays["upper"]).sum())
        if crossed:
            raise ArrayError(f"expected lower ≤ upper, got the reverse on {crossed} nodes")
        object.__setattr__(self, "confidence_level", check_level(confidence_level))
        object.__setattr__(self, "node_id", ids)
        side = _side(arrays["lower"], arrays["upper"]) if side is None else side
        object.__setattr__(self, "side", check_choice("side", side, SIDES))
        object.__setattr__(self, "id_name", "id" if id_name in FRAME_COLUMNS else id_name)

    def __len__(self) -> int:
        return len(self.lower)

    def __repr__(self) -> str:
        size = ""
        if len(self):
            name = "width" if self.bound is None else f"{self.side} bound"
            size = f", mean {name} {(self.width if self.bound is None else self.bound).mean():.4g}"
        return f"Intervals({len(self):,} nodes at {self.confidence_level:g}{size})"

    @property
    def width(self) -> Floats:
        """Upper minus lower, per node."""
        return self.upper - self.lower

    @property
    def bound(self) -> Floats | None:
        """The bound of a one-sided result, per node; None for intervals with two bounds."""
        return {"both": None, "lower": self.lower, "upper": self.upper}[self.side]

    @property
    def aleatoric(self) -> Floats | None:
        """The rest of each width: the noise that more labels would not reduce."""
        return None if self.epistemic is None else self.width - self.epistemic

    def covers(self, y: Any) -> npt.NDArray[np.bool_]:
        """Return whether each target lies in its closed interval, shape (nodes,).

        Args:
            y: targets, shape (nodes,).

        Raises:
            ArrayError: if there is not exactly one target per node.
        """
        targets = as_values("y", y)
        if len(targets) != len(self):
            raise ArrayError(f"y: expected {len(self)} targets, got {len(targets)}")
        if np.isnan(targets).any():
            raise ArrayError("y: expected a target for every node, got NaN; select labelled nodes")
        inside: npt.NDArray[np.bool_] = covers(targets, self.lower, self.upper)
        return inside

    def select(self, nodes: Any) -> Intervals:
        """Return the intervals of some nodes.

        Args:
            nodes: a boolean mask, positions or a slice.
        """
        chosen = nodes if isinstance(nodes, slice) else _places(nodes, len(self))
        columns = (self.prediction[chosen], self.lower[chosen], self.upper[chosen])
        optional = {name: getattr(self, name) for name in (*OPTIONAL, "novelty_reason")}
        return Intervals(
            *columns,
            self.confidence_level,
            self.node_id[chosen],
            side=self.side,
            id_name=self.id_name,
            **{name: None if one is None else one[chosen] for name, one in optional.items()},
        )

    def plot(self, y: Any = None, *, axes: Any = None, title: str = "") -> Any:
        """Draw the intervals, or the bounds of a one-sided result, in the order of predictions.

        Args:
            y: targets, shape (nodes,), if they are known: drawn as dots inside, crosses outside.
            axes: matplotlib axes to draw into; by default a new figure.
            title: title of the new figure; by default the level and, with targets, the coverage.

        Returns:
            The figure, which a notebook displays and ``savefig`` writes to a file; or ``axes``.
        """
        import_optional("matplotlib", "a picture")
        from qpignn.plotting import band_figure, draw_band

        targets = None if y is None else as_values("y", y)
        if targets is not None:
            self.covers(targets)  # raises unless there is a target for every node
        if axes is None:
            return band_figure(self, targets, title)
        draw_band(axes, self, targets)
        return axes

    def _repr_html_(self) -> str:
        """Show the first nodes as a table in a notebook."""
        rest = f"<p>and {len(self) - 10:,} more</p>" if len(self) > 10 else ""
        first = self.select(slice(10)).to_frame()
        if self.bound is not None:  # the other bound carries no information
            first = first.drop(columns="lower" if self.side == "upper" else "upper")
        table = first.to_html(index=False, float_format="{:.4g}".format)
        return f"<p>{escape(repr(self))}</p>{table}{rest}"

    def to_frame(
        self, *, parts: bool = False, novelty: bool = False, known_neighbours: bool = False
    ) -> pd.DataFrame:
        """Return a table with the columns ``id_name``, prediction, lower and upper.

        Args:
            parts: whether to add ``epistemic`` and ``aleatoric``, whose sum is the width.
            novelty: whether to add ``novelty``.
            known_neighbours: whether to add ``known_neighbours``.

        Raises:
            SettingError: if ``parts`` is set and the result has no epistemic part, or another
                column is wanted that it does not have.
        """
        import pandas as pd

        columns = {name: getattr(self, name) for name in ("prediction", "lower", "upper")}
        frame = pd.DataFrame({self.id_name: self.node_id, **columns})
        if novelty:
            if self.novelty is None:
                raise SettingError('novelty: expected a method with novelty="widen", got another')
            frame = frame.assign(novelty=self.novelty)
        if known_neighbours:
            if self.known_neighbours is None:
                raise SettingError(
                    "known_neighbours: expected intervals that use the known targets of "
                    'neighbours, got others; fit with neighbours="auto", which uses them only '
                    "where held-out intervals get better by them"
                )
            frame = frame.assign(known_neighbours=self.known_neighbours)
        if not parts:
            return frame
        if self.epistemic is None:
            raise SettingError(
                "parts: expected two-sided intervals of a method with several members, got others"
            )
        return frame.assign(epistemic=self.epistemic, aleatoric=self.aleatoric)


def rounded_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table of intervals rounded for text files.

    Numbers in the target's unit are rounded to the same number of decimals, which keeps seven
    significant digits of a typical width and four of the smallest. Rounding is monotone, so
    lower ≤ prediction ≤ upper still holds. ``novelty`` keeps six decimals, and numbers of
    neighbours become integers unless edges have weights.

    Args:
        frame: a table from :meth:`Intervals.to_frame`; it may have the bounds of several levels.
    """
    rounded = {name: frame[name].round(DECIMALS) for name in UNITLESS if name in frame}
    counts = rounded.get("known_neighbours")
    if counts is not None and (counts % 1 == 0).all():
        rounded["known_neighbours"] = counts.astype(np.int64)
    frame = frame.assign(**rounded)
    names = [name for name in frame.columns[1:] if name not in FRAME_COLUMNS[3:]]
    numbers = frame[names].to_numpy(dtype=np.float64)
    finite = np.where(np.isfinite(numbers), numbers, np.nan)  # predictions are always finite
    widths = np.nanmax(finite, axis=1) - np.nanmin(finite, axis=1)
    widths = widths[widths > 0]
    if not len(widths):
        return frame
    places = max(
        0,
        DIGITS - 1 - math.floor(math.log10(np.median(widths))),
        FEWEST_DIGITS - 1 - math.floor(math.log10(widths.min())),
    )
    if places > 15:  # as many as a float has
        return frame
    measured = [name for name in frame.columns[1:] if name not in UNITLESS]
    return frame.assign(**{name: frame[name].round(places) for name in measured})
