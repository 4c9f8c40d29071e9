"""Writing of figures to files."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from qpignn.io.files import write_atomically


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file of the kind its name says.

    Args:
        figure: the figure.
        path: the file; its ending decides the format.
    """
    content = BytesIO()
    figure.savefig(content, format=path.suffix.lower().removeprefix("."), dpi=150)
    write_atomically(path, content.getvalue())
