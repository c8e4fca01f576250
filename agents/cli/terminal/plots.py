"""Estimate documents in a terminal: as plots of shares with their bounds, or in any form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldpstream.agents.cli.terminal.common import print_data
from ldpstream.agents.cli.terminal.labels import ShownLabels
from ldpstream.agents.cli.terminal.options import Form
from ldpstream.agents.cli.terminal.tables import (
    FittingTable,
    Showing,
    describe,
    describe_bounds,
    describe_waiting,
    describe_withheld,
    percent,
    show_document,
    table_console,
)
from ldpstream.agents.document.entries import QuantileEstimate, RangeEstimate, ValueEstimate
from ldpstream.agents.document.flat import document_csv
from ldpstream.agents.document.model import EstimateDocument

FOLLOWED: Final = 5
"""Number of values drawn over time if a document has no ranges, quantiles or linear queries."""
_LEAST_COLUMNS: Final = 10
_MOST_NAME_COLUMNS: Final = 40
_UNICODE: Final = ("─", "●", "│", "▁▂▃▄▅▆▇█")
_ASCII: Final = ("-", "o", "|", ".:-=+*#@")


@dataclass(frozen=True)
class Point:
    """An estimate with its bounds on one axis; None is undefined. `text` is what is printed."""

    low: float | None
    value: float | None
    high: float | None
    text: str


@dataclass(frozen=True)
class Marks:
    """The characters that plots are made of."""

    bounds: str
    value: str
    zero: str
    steps: str


def marks_of(console: Console) -> Marks:
    """Return characters that the terminal's encoding has."""
    has_unicode = console.encoding.lower().startswith("utf")
    return Marks(*(_UNICODE if has_unicode else _ASCII))


def print_document(document: EstimateDocument, form: Form, showing: Showing) -> None:
    """Print one document in the form that was asked for."""
    if form == "json":
        print_data(document.to_json() + b"\n")
    elif form == "csv":
        print_data(document_csv(document))
    else:
        show = show_plot if form == "plot" else show_document
        show(document, table_console(), showing)


def show_plots(documents: Sequence[EstimateDocument], console: Console, showing: Showing) -> None:
    """Print one document's shares with their bounds, or several documents over time."""
    sections = [document.attributes for document in documents if document.attributes]
    names = [section.attribute for section in sections[-1]] if sections else []
    if names:
        for name in names:
            each = [document.about(name or "") for document in documents]
            show_plots(each, console, showing)
        return
    if len(documents) == 1:
        show_plot(documents[0], console, showing)
        return
    for document in (documents[0], documents[-1]):
        console.print(describe(document), markup=False)
    shown = [document for document in documents if not document.withheld]
    if shown:
        console.print(describe_bounds(shown[-1], together=showing.together), markup=False)
    if len(shown) < len(documents):
        several = f"{len(documents) - len(shown)} of {len(documents)} windows "
        newest = [document for document in documents if document.withheld][-1]
        console.print(several + describe_withheld(showing.minimum, newest), markup=False)
    windows = [_window_name(document) for document in documents]
    for heading, points in _courses(documents, showing.labels):
        console.print()
        title = f"{heading}  {sparkline([point.value for point in points], marks_of(console))}"
        console.print(_chart("window", list(zip(windows, points, strict=True)), console, title))


def show_plot(document: EstimateDocument, console: Console, showing: Showing) -> None:
    """Print one document's shares, quantiles and means with their bounds."""
    console.print(describe(document), markup=False)
    if document.withheld:
        console.print(describe_withheld(showing.minimum, document), markup=False)
        return
    if document.waiting is not None:
        console.print(describe_waiting(document.waiting, showing.minimum), markup=False)
    console.print(describe_bounds(document, together=showing.together), markup=False)
    of, labels = document.attribute, showing.labels
    values = [(labels.text(entry.value, of), _share(entry)) for entry in document.distribution]
    ranges = [(entry.name, _share(entry)) for entry in document.ranges]
    quantiles = [
        (percent(entry.p), _position(entry, labels.text(entry.value, of)))
        for entry in document.quantiles
    ]
    for heading, rows in (("value", values), ("range", ranges), ("share below", quantiles)):
        if rows:
            console.print(_chart(heading, rows, console))
    for entry in document.linear:
        # Each has units of its own.
        point = Point(entry.low, entry.mean, entry.high, _decimal(entry.mean))
        console.print(_chart("mean", [(entry.name, point)], console))


def whisker(point: Point, scale: tuple[float, float], columns: int, marks: Marks) -> str:
    """Draw bounds, zero and value on a scale of this many columns; the value is never hidden."""
    low, high = scale
    line = [" "] * columns

    def column(number: float) -> int:
        share = (number - low) / (high - low) if high > low else 0.5
        return round(min(max(share, 0.0), 1.0) * (columns - 1))

    if low <= 0.0 <= high:
        line[column(0.0)] = marks.zero
    if point.low is not None and point.high is not None:
        first, last = column(point.low), column(point.high)
        line[first : last + 1] = marks.bounds * (last + 1 - first)
    if point.value is not None:
        line[column(point.value)] = marks.value
    return "".join(line).rstrip()


def sparkline(values: Sequence[float | None], marks: Marks) -> str:
    """Draw values on one line, scaled from smallest to largest; a gap is a space."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return ""
    low, width = min(numbers), max(numbers) - min(numbers)
    last = len(marks.steps) - 1

    def step(value: float | None) -> str:
        if value is None:
            return " "
        return marks.steps[round((value - low) / width * last) if width > 0 else last // 2]

    return "".join(step(value) for value in values)


def _courses(
    documents: Sequence[EstimateDocument], labels: ShownLabels
) -> list[tuple[str, list[Point]]]:
    """Return what is drawn over time: every named query, or else the newest top values."""
    courses: dict[str, dict[int, Point]] = {}
    for position, document in enumerate(documents):
        for named in document.ranges:
            courses.setdefault(f"range {named.name}", {})[position] = _share(named)
        for quantile in document.quantiles:
            point = _position(quantile, labels.text(quantile.value, document.attribute))
            courses.setdefault(f"quantile {quantile.p:g}", {})[position] = point
        for mean in document.linear:
            point = Point(mean.low, mean.mean, mean.high, _decimal(mean.mean))
            courses.setdefault(f"mean {mean.name}", {})[position] = point
    if not courses:
        newest = next((d for d in reversed(documents) if d.distribution), None)
        for value in [] if newest is None else newest.distribution[:FOLLOWED]:
            courses[labels.text(value.value, documents[-1].attribute)] = {
                position: _share(entry)
                for position, document in enumerate(documents)
                for entry in document.distribution
                if entry.value == value.value
            }
    none = Point(None, None, None, "")
    count = range(len(documents))
    return [(name, [points.get(i, none) for i in count]) for name, points in courses.items()]


def _chart(
    heading: str, rows: Sequence[tuple[str, Point]], console: Console, title: str = ""
) -> Table:
    marks = marks_of(console)
    numbers = [
        number
        for _, point in rows
        for number in (point.low, point.value, point.high)
        if number is not None
    ]
    shares = all(point.text.endswith("%") or not point.text for _, point in rows)
    # The axis of shares includes zero; that of means and positions need not.
    ends = [*numbers, 0.0] if shares else numbers
    scale = (min(ends, default=0.0), max(ends, default=1.0))
    texts = max((len(point.text) for _, point in rows), default=0)
    least = max(_LEAST_COLUMNS, sum(map(len, _ends(scale, shares))) + 1)
    room = console.width - max(texts, 8) - 10
    longest = max((len(name) for name, _ in rows), default=0)
    names = max(len(heading), min(_MOST_NAME_COLUMNS, longest, room - least))
    columns = max(least, room - names)
    table = FittingTable(
        title=Text(title) if title else None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    table.add_column(heading, max_width=names)
    table.add_column("estimate", justify="right")
    low, high = _ends(scale, shares)
    table.add_column(Text(low + high.rjust(columns - len(low))), no_wrap=True)
    for name, point in rows:
        table.add_row(Text(name), Text(point.text), Text(whisker(point, scale, columns, marks)))
    return table


def _ends(scale: tuple[float, float], shares: bool) -> tuple[str, str]:
    low, high = (percent(end) if shares else _decimal(end) for end in scale)
    return low, high


def _window_name(document: EstimateDocument) -> str:
    start = "all reports" if document.window is None else document.window.start
    return start if document.final else f"{start} (open)"


def _share(entry: ValueEstimate | RangeEstimate) -> Point:
    return Point(entry.low, entry.share, entry.high, percent(entry.share))


def _position(quantile: QuantileEstimate, text: str) -> Point:
    return Point(_number(quantile.low), _number(quantile.value), _number(quantile.high), text)


def _number(label: JsonValue) -> float | None:
    """Return a label's position, for a bin its middle; None if it is not a number."""
    if isinstance(label, list):
        ends = [_number(end) for end in label]
        positions = [end for end in ends if end is not None]
        return (
            sum(positions) / len(positions) if positions and len(positions) == len(ends) else None
        )
    return float(label) if isinstance(label, int | float) else None


def _decimal(number: float | None) -> str:
    return "undefined" if number is None else f"{number:.6g}"
