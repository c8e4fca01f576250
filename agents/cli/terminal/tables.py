"""Estimate documents as tables in a terminal, which never cut a number."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from ldpstream.agents.cli.terminal.common import print_data
from ldpstream.agents.cli.terminal.labels import PLAIN, ShownLabels, label_text
from ldpstream.agents.cli.terminal.options import Form
from ldpstream.agents.document.entries import (
    Areas,
    Calibration,
    KnownPriorEstimates,
    MmseEstimate,
    RangeEstimate,
    ValueEstimate,
)
from ldpstream.agents.document.flat import document_csv, runs_text
from ldpstream.agents.document.model import (
    EstimateDocument,
    LostMessages,
    MergedBlocks,
    WaitingReports,
)
from ldpstream.mechanisms.base.texts import count

if TYPE_CHECKING:
    from ldpstream.agents.document.answers import CollectionStatus

_FILE_WIDTH: Final = 160
_FILE_LINES: Final = 50
_NAME_COLUMNS: Final = 12
"""Names are folded, and get at least this many columns of the terminal."""
_BORDER: Final = 3
"""A column's line, and a space on each side."""


class FittingTable(Table):
    """A rich table whose left-justified columns are names, which may fold.

    All other columns are numbers. Where these do not fit into the terminal, each row is printed as
    a sentence instead: `bus: share 63.60%, low 50.90%`.
    """

    def add_column(self, header: Any = "", *more: Any, **options: Any) -> None:
        """Add a column, with rich's own options."""
        names = options.get("justify", "left") == "left" and not options.get("no_wrap")
        options.setdefault("overflow", "fold")
        super().add_column(header, *more, **{**options, "no_wrap": not names})

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = 1
        for column in self.columns:
            width = max(cell_len(_plain(cell)) for cell in (column.header, *column.cells))
            needed += _BORDER + (width if column.no_wrap else min(width, _NAME_COLUMNS))
        if needed <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        if self.title:
            yield Text(_plain(self.title))
        yield from self._sentences()

    def _sentences(self) -> Iterator[Text]:
        headings = [_plain(column.header) for column in self.columns]
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            name, *texts = map(_plain, cells)
            pairs = zip(headings[1:], texts, strict=True)
            sentences = (f"{heading} {text}" for heading, text in pairs if text)
            yield Text(f"{headings[0]} {name}: {', '.join(sentences)}", overflow="fold")


@dataclass(frozen=True, kw_only=True)
class Showing:
    """What is needed to show documents, beyond what is in them.

    `minimum` is the collection's: documents with fewer reports are withheld. `together` says
    whether simultaneous bounds were asked for.
    """

    minimum: int
    together: bool
    labels: ShownLabels = PLAIN


def table_console() -> Console:
    """Return a console for tables: as wide as the terminal; 160 columns in files and pipes.

    FORCE_COLOR colours the output of a pipe, but does not make it as narrow as a terminal.
    """
    if sys.stdout.isatty():
        return Console(highlight=False)
    # If TERM is dumb, rich accepts the width only together with a height.
    return Console(highlight=False, width=_FILE_WIDTH, height=_FILE_LINES)


def print_document(document: EstimateDocument, form: Form, showing: Showing) -> None:
    """Print one document in the form that was asked for."""
    if form == "json":
        print_data(document.to_json() + b"\n")
    elif form == "csv":
        print_data(document_csv(document))
    else:
        show_document(document, table_console(), showing)


def show_document(document: EstimateDocument, console: Console, showing: Showing) -> None:
    """Print a document: a heading, its values, ranges and quantiles."""
    console.print(describe(document), markup=False)
    _show_what_is_missing(document, console, showing)
    if document.withheld:
        console.print(describe_withheld(showing.minimum, document), markup=False)
        return
    if document.attributes:
        for section in document.attributes:
            show_document(section, console, showing)
        return
    console.print(describe_bounds(document, together=showing.together), markup=False)
    if document.merged is not None:
        console.print(describe_merged(document.merged), markup=False)
    labels = showing.labels
    if document.distribution:
        rows = [
            (labels.text(entry.value, document.attribute), entry) for entry in document.distribution
        ]
        console.print(_shares("value", rows))
        if noise := describe_noise(document):
            console.print(noise)
    for line in _about_priors(document, labels):
        console.print(line, markup=False)
    _show_queries(document, console, labels)
    if document.forged is not None:
        console.print(
            "forged: this many forged reports could move the number beyond its nearer bound"
        )


def _about_priors(document: EstimateDocument, labels: ShownLabels) -> Iterator[str]:
    if document.mmse is not None:
        yield _with_priors(document.mmse)
    if document.known_prior is not None:
        yield _with_known_prior(document.known_prior, labels)
    if document.calibration is not None:
        yield _verdict(document.calibration)


def _with_priors(estimate: MmseEstimate) -> str:
    text = (
        f"{percent(estimate.share)}, credible {percent(estimate.low)} to {percent(estimate.high)}"
    )
    if estimate.withheld is not None:
        text = f"withheld: {estimate.withheld}"
    return f"with the priors, {label_text(estimate.value)}: {text}"


def _with_known_prior(known: KnownPriorEstimates, labels: ShownLabels) -> str:
    """Return the posterior means with their deviations, or why there are none."""
    if known.wrong:
        return f"with the prior: withheld: the reports contradict it (p = {known.p_value:.2g})"
    shares = [(labels.text(value.name), value) for value in known.values]
    shares += [(label_text(query.name), query) for query in known.ranges]
    texts = [f"{name} {percent(share.mean)} +- {percent(share.sd)}" for name, share in shares]
    for query in known.linear:
        numbers = ("undefined" if n is None else f"{n:.4g}" for n in (query.mean, query.sd))
        texts.append(f"{label_text(query.name)} {' +- '.join(numbers)}")
    return f"with the prior (p = {known.p_value:.2g}): {'; '.join(texts)}"


def _show_queries(document: EstimateDocument, console: Console, labels: ShownLabels) -> None:
    if document.ranges:
        console.print(_shares("range", [(entry.name, entry) for entry in document.ranges]))
    if document.areas is not None:
        _show_areas(document.areas, console)
    if document.quantiles or document.axis_quantiles:
        console.print(_quantiles(document, labels))
    if document.linear:
        console.print(_linear(document))


def _verdict(test: Calibration) -> str:
    verdict = f"priors are {test.suspicion}, " if test.wrong else "reports agree with the priors, "
    flagged = f"{test.flagged:,} of {test.levels:,} levels flagged"
    return f"calibration: {verdict}p = {test.p_value:.3g}, {flagged}"


def describe(document: EstimateDocument) -> str:
    """Return one line with a document's collection, window and number of reports."""
    name = document.collection
    texts = [
        name if document.title is None else f"{document.title} ({name})",
        document.window_text,
        "final" if document.final else "open",
        count(document.n, "report"),
    ]
    if document.attribute is not None:
        texts[0] += f", {document.attribute}"
        texts[-1] += f" of {document.of or 0:,}"
    if document.span is not None:
        texts.insert(2, f"applies to {document.span.start} to {document.span.end}")
    if not document.withheld:
        texts += [f"{document.late:,} late", f"{document.rejected:,} rejected so far"]
    return ", ".join(texts)


def describe_withheld(minimum: int, document: EstimateDocument) -> str:
    """Return one line that says why a document is withheld."""
    if document.waiting is not None:
        return f"withheld: {describe_waiting(document.waiting, minimum)}"
    if document.n < minimum:
        return f"withheld: fewer than minimum = {minimum:,} reports"
    return f"withheld: parts of at least minimum = {minimum:,} reports have expired"


def describe_waiting(waiting: WaitingReports, minimum: int) -> str:
    """Return one line that says how many reports are not shown yet, and what they wait for."""
    text = "1 report waits" if waiting.reports == 1 else f"{waiting.reports:,} reports wait"
    if waiting.until == "closing":
        return f"{text} until the window closes, because of {waiting.because}"
    if not waiting.more:
        return f"{text} to be grouped by the worker of partition 0, which takes a moment"
    more = f"{waiting.more:,} more"
    if waiting.until == "later":
        return f"{text} for {more} in later windows, which have to close (minimum = {minimum:,})"
    return f"{text} for {more}, or until the window closes with minimum = {minimum:,} or more"


def _show_what_is_missing(document: EstimateDocument, console: Console, showing: Showing) -> None:
    if document.waiting is not None and not document.withheld:
        console.print(describe_waiting(document.waiting, showing.minimum), markup=False)
    if document.lost is not None:
        console.print(describe_missing(document.lost), markup=False)
    if document.partial:
        console.print("partial: workers with different windows count some of the reports")


def describe_missing(missing: LostMessages) -> str:
    """Return one line that says how much of a document's span was deleted by retention."""
    partitions = ", ".join(map(str, missing.partitions))
    of = "partition" if len(missing.partitions) == 1 else "partitions"
    return (
        f"incomplete: up to {count(missing.offsets, 'message')} of {of} {partitions} deleted "
        "before they were read"
    )


def describe_merged(merged: MergedBlocks) -> str:
    """Return one line that names the blocks published only together."""
    reports, unnamed = count(merged.count, "report"), "blocks " if merged.names is None else ""
    return (
        f"merged by minimum_block: {unnamed}{runs_text(merged)}, together {reports}; "
        "estimates about a part of them are undefined"
    )


def describe_bounds(document: EstimateDocument, *, together: bool) -> str:
    """Return one line that names a document's bounds.

    The bounds of a post-selected list of values are always simultaneous; those of named queries
    only where that was asked for, `together`.
    """
    level = f"{100 * document.confidence:g}% bounds"
    kind = "simultaneous" if document.simultaneous else "pointwise"
    text = f"{level}: {document.method}, {kind}, {document.estimand}"
    named = {
        "ranges": document.ranges,
        "quantiles": document.quantiles,
        "linear queries": document.linear,
    }
    pointwise = [name for name, entries in named.items() if entries]
    if document.simultaneous and not together and pointwise:
        text += f"; {', '.join(pointwise)} pointwise"
    if document.projection != "none":
        text += f"; shares projected ({document.projection}), bounds not: slightly biased"
        if document.outside:
            text += f", {count(document.outside, 'share')} outside of bounds"
    return text


def reasons_text(answer: "CollectionStatus") -> str:
    """Return the number of rejected messages by reason, over all partitions; empty if none."""
    sums: dict[str, int] = {}
    for partition in answer.partitions:
        for reason, number in partition.rejected.items():
            sums[reason] = sums.get(reason, 0) + number
    return ", ".join(f"{reason} {number:,}" for reason, number in sorted(sums.items()))


def percent(share: float | None) -> str:
    """Return a share in percent, or `undefined`."""
    return "undefined" if share is None else f"{100 * share:.2f}%"


def points(change: float | None) -> str:
    """Return a change of a share in percentage points, or `undefined`.

    "-2%" would also be read as 2% less than before.
    """
    return "undefined" if change is None else f"{100 * change:+.2f} pt"


def describe_noise(document: EstimateDocument) -> str | None:
    """Return how many listed values may be nobody's, or None if none: their shares are noise."""
    lows = [entry.low for entry in document.distribution if entry.low is not None]
    zeros = sum(low <= 0.0 for low in lows)
    if zeros == 0:
        return None
    return f"low is 0 for {zeros:,} of {len(lows):,} values: nothing shows that anybody has them"


def _shares(heading: str, rows: Sequence[tuple[str, ValueEstimate | RangeEstimate]]) -> Table:
    table = FittingTable()
    table.add_column(heading)
    for column in ("share", "low", "high", "count", "forged"):
        table.add_column(column, justify="right")
    for name, entry in rows:
        count = "undefined" if entry.count is None else f"{entry.count:,.0f}"
        forged = "" if entry.forged is None else f"{entry.forged:,}"
        cells = (percent(entry.share), percent(entry.low), percent(entry.high), count, forged)
        table.add_row(Text(name), *cells)
    return table


def _show_areas(areas: Areas, console: Console) -> None:
    """Print each area below the one that contains it, and what it does not cover as `the rest`."""
    number = f"{len(areas.entries):,} of {areas.family:,} areas"
    console.print(f"{number} shown, bounds simultaneous over all: {areas.rule}", markup=False)
    of, depths = areas.entries, [0] * len(areas.entries)
    table = FittingTable()
    table.add_column("area")
    for column in ("values", "share", "low", "high", "forged"):
        table.add_column(column, justify="right")
    for place, area in enumerate(of):
        if area.inside is not None:
            depths[place] = depths[area.inside] + 1
        indent = "  " * depths[place]
        ends = (percent(area.share), percent(area.low), percent(area.high))
        forged = "" if area.forged is None else f"{area.forged:,}"
        table.add_row(Text(f"{indent}{area.name}"), f"{area.values:,}", *ends, forged)
        rest = area.rest
        if rest is not None and rest.values:
            ends = (percent(rest.share), percent(rest.low), percent(rest.high))
            table.add_row(Text(f"{indent}  the rest"), f"{rest.values:,}", *ends, "")
    console.print(table)


def _quantiles(document: EstimateDocument, labels: ShownLabels) -> Table:
    table = FittingTable()
    for column in ("share below", "value", "low", "high"):
        table.add_column(column, justify="right")
    for quantile in document.quantiles:
        bounds = (quantile.value, quantile.low, quantile.high)
        texts = (labels.text(label, document.attribute) for label in bounds)
        table.add_row(percent(quantile.p), *map(Text, texts))
    for one in document.axis_quantiles:
        texts = (label_text(label) for label in (one.value, one.low, one.high))
        table.add_row(f"axis {one.axis}, {percent(one.p)}", *map(Text, texts))
    return table


def _linear(document: EstimateDocument) -> Table:
    table = FittingTable()
    table.add_column("mean of")
    for column in ("mean", "low", "high", "total", "forged"):
        table.add_column(column, justify="right")
    for mean in document.linear:
        numbers = (mean.mean, mean.low, mean.high, mean.total)
        cells = ["undefined" if number is None else f"{number:.6g}" for number in numbers]
        table.add_row(Text(mean.name), *cells, "" if mean.forged is None else f"{mean.forged:,}")
    return table


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
