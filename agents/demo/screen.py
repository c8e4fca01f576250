"""The demonstration's output: a terminal is redrawn, a file or pipe gets lines."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live

from ldpstream.agents.demo.view import (
    Comparison,
    Moment,
    leaders_line,
    live_view,
    progress_line,
)

LINES_EVERY: Final = 2


Screen = Callable[[Moment, Sequence[Comparison]], None]
"""A function that shows one moment; called once per second."""


@contextmanager
def open_screen(console: Console, seconds: float | None) -> Iterator[Screen]:
    """Return a screen for a demonstration of this many seconds; None: until interrupted."""
    # Not `is_terminal`, which FORCE_COLOR makes true for a pipe.
    if not console.file.isatty():
        yield _lines(console, seconds)
        return
    with Live(console=console, auto_refresh=False) as live:

        def redraw(moment: Moment, comparisons: Sequence[Comparison]) -> None:
            live.update(live_view(moment, comparisons, seconds), refresh=True)

        yield redraw


def _lines(console: Console, seconds: float | None) -> Screen:
    shown = 0

    def write(moment: Moment, comparisons: Sequence[Comparison]) -> None:
        nonlocal shown
        shown += 1
        if shown % LINES_EVERY == 0:
            parts = [progress_line(moment, seconds), leaders_line(comparisons)]
            console.print(" | ".join(filter(None, parts)), markup=False, soft_wrap=True)

    return write
