"""Stored rows of a page's studies, and the pictures drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from qpignn.paper.plan import Plan
from qpignn.paper.tables import frame_of
from qpignn.reports.tables import exploded_seeds
from studies import Comparison, PaperTable, Scale, Study

LARGEST = 150_000  # bytes of a picture
FORMS = ((110, 256), (110, 32), (90, 32), (75, 32), (60, 32))
"""Dots per inch and number of colours, tried until a picture is small enough."""
PICTURES = "figures"
"""Folder of pictures, beside the pages."""


class Measured:
    """Rows by the keys of their cells, and pictures by the names of their files.

    Attributes:
        scale: how much of every study was run.
        pictures: PNG files that blocks have drawn.
    """

    def __init__(self, rows: Mapping[str, dict[str, Any]], scale: Scale) -> None:
        self.scale = scale
        self.pictures: dict[str, bytes] = {}
        self._rows = rows
        self._noted: list[str] = []
        self._of_comparisons: dict[Comparison, list[dict[str, Any]]] = {}
        self._of_tables: dict[PaperTable, tuple[Plan, pd.DataFrame]] = {}

    def rows(self, study: Comparison) -> list[dict[str, Any]]:
        """Return the stored rows of a comparison."""
        if study not in self._of_comparisons:
            keys = [cell.key() for cell in study.cells(self.scale)]
            self._of_comparisons[study] = [self._rows[key] for key in keys if key in self._rows]
        return self._of_comparisons[study]

    def table(self, study: PaperTable) -> tuple[Plan, pd.DataFrame]:
        """Return a table's plan, and its rows with their positions in the table."""
        if study not in self._of_tables:
            plan = study.plan(self.scale)
            self._of_tables[study] = (plan, frame_of(plan, self._rows))
        return self._of_tables[study]

    def command(self, *studies: Study) -> str:
        """Return the commands of studies as a code block."""
        lines = "\n".join(study.command(self.scale) for study in studies)
        return f"```bash\n{lines}\n```"

    def picture(self, name: str, figure: Figure, about: str) -> str:
        """Store a picture and return the Markdown that shows it.

        Args:
            name: name of its file, without the suffix.
            figure: the picture.
            about: alternative text.
        """
        for dpi, colors in FORMS:
            content = _png(figure, dpi, colors)
            if len(content) < LARGEST:
                break
        self.pictures[f"{PICTURES}/{name}.png"] = content
        return f"![{about}]({PICTURES}/{name}.png)"

    def exploded(self, study: Study) -> str:
        """Return a note on seeds whose intervals are absurdly wide, unless the page has it.

        Returns:
            The empty string if there is nothing to say.
        """
        if isinstance(study, Comparison):
            frame, by = pd.DataFrame(self.rows(study)), ["dataset", "method"]
        else:
            frame, by = self.table(study)[1], ["dataset", "variant", "condition"]
        notes = []
        for line in exploded_seeds(frame, by).to_dict("records"):
            who = line.get("method") or line["variant"] or "QpiGNN"
            where = f"{line['dataset']}{', ' + line['condition'] if line.get('condition') else ''}"
            notes.append(
                f"{who} on {where}, seed {line['seed']}: mean width {line['mpiw']:.3g}, where the "
                f"median of the other seeds is {line['median']:.3g} (mean of all "
                f"{line['mean']:.3g}, without it {line['mean_without']:.3g})"
            )
        new = [note for note in notes if note not in self._noted]
        self._noted += new
        return f"**Seeds that exploded.** {'; '.join(new)}." if new else ""


def _png(figure: Figure, dpi: int, colors: int) -> bytes:
    """Return a figure as a PNG file with a palette, which is half as large as one without."""
    drawn, small = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    image = Image.open(drawn).convert("RGB").quantize(colors, dither=Image.Dither.NONE)
    image.save(small, format="png", optimize=True)
    return small.getvalue()
