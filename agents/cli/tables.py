"""Estimate documents as tables in a terminal."""

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldpstream.agents.document import Calibration, EstimateDocument, RangeEstimate, ValueEstimate

_FILE_WIDTH: Final = 160


def table_console() -> Console:
    """Return a console for tables: as wide as the terminal, and wide enough in files and pipes."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_FILE_WIDTH)


def show_document(document: EstimateDocument, console: Console) -> None:
    """Print a document: what it is about, its values, ranges and quantiles."""
    console.print(describe(document), markup=False)
    if document.withheld:
        console.print("withheld: too few reports", markup=False)
        return
    level = f"{100 * document.confidence:g}% bounds"
    kind = "simultaneous" if document.simultaneous else "pointwise"
    console.print(f"{level}: {document.method}, {kind}, {document.estimand}", markup=False)
    if document.distribution:
        rows = [(label_text(one.value), one) for one in document.distribution]
        console.print(_shares("value", rows))
    if document.mmse is not None:
        one = document.mmse
        console.print(
            f"with the priors, {label_text(one.value)}: {percent(one.share)}, "
            f"credible {percent(one.low)} to {percent(one.high)}",
            markup=False,
        )
    if document.calibration is not None:
        console.print(_verdict(document.calibration), markup=False)
    if document.ranges:
        console.print(_shares("range", [(one.name, one) for one in document.ranges]))
    if document.quantiles:
        console.print(_quantiles(document))


def _verdict(test: Calibration) -> str:
    said = "a prior is wrong, " if test.wrong else "reports agree with the priors, "
    flagged = f"{test.flagged:,} of {test.levels:,} levels flagged"
    return f"calibration: {said}p = {test.p_value:.3g}, {flagged}"


def describe(document: EstimateDocument) -> str:
    """Return on one line which window of which collection this is, and how many reports it has."""
    window = document.window
    parts = [
        document.collection,
        "all reports" if window is None else f"{window.start} to {window.end}",
        "final" if document.final else "open",
        f"{document.n:,} reports",
    ]
    if not document.withheld:
        parts += [f"{document.late:,} late", f"{document.rejected:,} rejected so far"]
    return ", ".join(parts)


def label_text(label: JsonValue) -> str:
    """Return a label as text: coordinates and bins as JSON writes them."""
    if label is None:
        return "undefined"
    if isinstance(label, list):
        return f"[{', '.join(label_text(part) for part in label)}]"
    return str(label)


def percent(share: float | None) -> str:
    """Return a share in percent."""
    return "undefined" if share is None else f"{100 * share:.2f}%"


def _shares(heading: str, rows: Sequence[tuple[str, ValueEstimate | RangeEstimate]]) -> Table:
    table = Table()
    table.add_column(heading)
    for column in ("share", "low", "high", "count"):
        table.add_column(column, justify="right")
    for name, one in rows:
        count = "undefined" if one.count is None else f"{one.count:,.0f}"
        cells = (percent(one.share), percent(one.low), percent(one.high), count)
        table.add_row(Text(name), *cells)
    return table


def _quantiles(document: EstimateDocument) -> Table:
    table = Table()
    for column in ("share below", "value", "low", "high"):
        table.add_column(column, justify="right")
    for one in document.quantiles:
        labels = (one.value, one.low, one.high)
        table.add_row(percent(one.p), *(Text(label_text(label)) for label in labels))
    return table
