"""Progress bars on stderr, in terminals, notebooks and log files."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ShowProgress = Callable[[int, str], None]
"""Called with the amount done so far and a short message."""
FORMAT = "{desc} {bar} {n_fmt}/{total_fmt} {remaining}{postfix}"
LOG_INTERVAL = 10.0  # seconds between two updates in a file


@contextmanager
def progress_bar(label: str, total: int, *, shown: bool = True) -> Iterator[ShowProgress]:
    """Show a progress bar while the block runs.

    Args:
        label: what is being done.
        total: the amount that is to be done.
        shown: False shows nothing.

    Yields:
        A function that updates the bar. It may be called often: the bar is redrawn at most ten
        times per second, or every ten seconds where stderr is a file.
    """
    if not shown:
        yield lambda done, message: None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a notebook without ipywidgets shows the bar as text
        from tqdm.auto import tqdm

    live = sys.stderr.isatty() or "ipykernel" in sys.modules
    interval = 0.1 if live else LOG_INTERVAL
    with tqdm(
        desc=label, total=total, file=sys.stderr, mininterval=interval, bar_format=FORMAT
    ) as bar:

        def show(done: int, message: str) -> None:
            bar.set_postfix_str(message, refresh=False)
            bar.update(done - bar.n)

        yield show
