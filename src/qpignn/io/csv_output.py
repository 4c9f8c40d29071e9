r"""Tables as CSV text that every reader splits into the same cells.

Python's CSV writer leaves ``\r`` unquoted where lines end in ``\n``, but spreadsheets and pandas
end a row there. On request nothing in the text is a formula to a spreadsheet.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

FORMULA = re.compile(r"[\t\r\n]|[\s\0\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""How a cell begins that spreadsheets compute; the last four are the full-width forms of East Asia.
The report page's script (reports/assets/table.js) has the same rule."""


def is_formula(cell: Any) -> bool:
    """Return whether a spreadsheet would compute a cell: ``-5`` is a number, ``-5+2`` is not.

    Args:
        cell: of a table.
    """
    if not isinstance(cell, str) or not FORMULA.match(cell):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return cell[0] in "\t\r\n"


def to_csv(frame: pd.DataFrame, *, spreadsheet: bool = False) -> bytes:
    r"""Return a table as CSV in UTF-8, without its index.

    Args:
        frame: the table.
        spreadsheet: quote every text, so that no program splits it at other delimiters, and put an
            apostrophe before each text and column name that would be a formula.
    """
    from pandas.api.types import is_numeric_dtype

    texts = [i for i, kind in enumerate(frame.dtypes) if not is_numeric_dtype(kind)]
    if spreadsheet:
        frame = frame.copy()
        for i in texts:
            frame.isetitem(i, [_harmless(cell) for cell in frame.iloc[:, i]])
        frame.columns = [_harmless(name) for name in frame.columns]
    needed = spreadsheet or any("\r" in str(name) for name in frame.columns)
    needed = needed or any("\r" in str(cell) for i in texts for cell in frame.iloc[:, i])
    quoting: Any = csv.QUOTE_NONNUMERIC if needed else csv.QUOTE_MINIMAL
    return bytes(frame.to_csv(index=False, quoting=quoting).encode())


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if is_formula(cell) else cell
