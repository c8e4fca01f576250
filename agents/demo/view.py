"""What the demonstration shows while it runs: estimates with bounds, next to the truth.

A terminal is redrawn, a file or pipe gets lines.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ldpstream.agents.demo.devices import SentReports
from ldpstream.agents.document import EstimateDocument, ValueEstimate
from ldpstream.agents.document.answers import CollectionStatus
from ldpstream.agents.terminal.labels import label_text
from ldpstream.agents.terminal.tables import percent
from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.base.times import parse_time

_SCALE_COLUMNS: Final = 17
_LEADERS: Final = 3
_LINES_EVERY: Final = 2  # moments


@dataclass(frozen=True)
class Comparison:
    """One listed value: its estimate, and its true share so far, None if unknown."""

    entry: ValueEstimate
    truth: float | None

    @property
    def name(self) -> str:
        """The value's label as text."""
        return label_text(self.entry.value)

    @property
    def inside(self) -> bool | None:
        """Whether the truth is inside the bounds; None if any of them is unknown."""
        low, high = self.entry.low, self.entry.high
        if self.truth is None or low is None or high is None:
            return None
        return low <= self.truth <= high


@dataclass(frozen=True)
class Moment:
    """The state of worker and devices at one moment."""

    url: str
    elapsed_seconds: float
    hour: float
    status: CollectionStatus
    sent: int
    document: EstimateDocument | None


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
        if shown % _LINES_EVERY == 0:
            parts = [_progress_line(moment, seconds), _leaders_line(comparisons)]
            console.print(" | ".join(filter(None, parts)), markup=False, soft_wrap=True)

    return write


def live_view(
    moment: Moment, comparisons: Sequence[Comparison], seconds: float | None
) -> RenderableType:
    """Return all that a terminal shows."""
    lines: list[RenderableType] = []
    document = moment.document
    if document is not None and document.window is not None:
        state = "final" if document.final else "open"
        reports = count(document.n, "report")
        caption = f"{document.window.start} to {document.window.end} ({state}), {reports}"
        lines.append(comparison_table(comparisons, caption))
    lines.append(Text(_progress_line(moment, seconds)))
    lines.append(Text(f"live page: {moment.url}   end: Ctrl-C", style="bold"))
    return Group(*lines)


def _progress_line(moment: Moment, seconds: float | None) -> str:
    """Return the progress of the demonstration on one line."""
    until = f"{moment.elapsed_seconds:.0f} s"
    if seconds is not None:
        until += f" of {seconds:g} s"
    hour, minute = divmod(int(moment.hour * 60), 60)
    status = moment.status
    return (
        f"{until} | {hour:02d}:{minute:02d} in the city | sent {moment.sent:,} | "
        f"counted {status.counted:,} | late {status.late:,} | rejected {status.rejected:,}"
    )


def _leaders_line(comparisons: Sequence[Comparison]) -> str:
    """Return the first values next to the truth, on one line."""
    parts = [
        f"{one.name} {percent(one.entry.share)} [{percent(one.entry.low)}, "
        f"{percent(one.entry.high)}] (true {percent(one.truth)})"
        for one in comparisons[:_LEADERS]
    ]
    return " | ".join(parts)


def compare(
    document: EstimateDocument | None, sent: SentReports, places: Sequence[str]
) -> list[Comparison]:
    """Return the document's values, each with its true share in the same window."""
    if document is None or document.window is None:
        return []
    shares = sent.shares(parse_time(document.window.start))
    index = {place: i for i, place in enumerate(places)}
    return [
        Comparison(entry, None if shares is None else float(shares[index[label_text(entry.value)]]))
        for entry in document.distribution
    ]


def comparison_table(comparisons: Sequence[Comparison], caption: str) -> Table:
    """Return a table of estimates with bounds, next to the truth."""
    table = Table(title=Text(caption), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("place", no_wrap=True)
    for column in ("true", "estimate", "low", "high"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("o estimate x truth", no_wrap=True)
    high = max((one.entry.high or 0.0 for one in comparisons), default=0.0)
    for one in comparisons:
        table.add_row(
            Text(one.name),
            percent(one.truth),
            percent(one.entry.share),
            percent(one.entry.low),
            percent(one.entry.high),
            Text(_picture(one, high), style="" if one.inside is not False else "red"),
        )
    return table


def _picture(one: Comparison, high: float) -> str:
    """Draw bounds, estimate and truth on a scale from 0 to `high`."""
    entry = one.entry
    if entry.share is None or entry.low is None or entry.high is None or high <= 0:
        return ""
    at = [_column(share, high) for share in (entry.low, entry.high, entry.share)]
    line = [" "] * _SCALE_COLUMNS
    line[at[0] : at[1] + 1] = "-" * (at[1] + 1 - at[0])
    line[at[2]] = "o"
    if one.truth is not None:
        line[_column(one.truth, high)] = "x"
    return "".join(line)


def _column(share: float, high: float) -> int:
    return round(min(max(share / high, 0.0), 1.0) * (_SCALE_COLUMNS - 1))
