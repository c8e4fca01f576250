"""What changed between two spans, as `ldpstream query --compare` prints it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from ldpstream.agents.cli.terminal.client import connect
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.labels import ShownLabels
from ldpstream.agents.cli.terminal.options import Form
from ldpstream.agents.cli.terminal.tables import FittingTable, percent, points, table_console
from ldpstream.agents.client import Client
from ldpstream.agents.document.answers import Collection
from ldpstream.agents.document.flat import Cell, change_csv, change_rows
from ldpstream.agents.document.model import ChangeDocument
from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.base.times import format_time, parse_duration, parse_time

_COLUMNS: Final = ("name", "before", "after", "change", "low", "high", "shown")


async def print_change(
    url: str,
    name: str,
    *,
    span: tuple[str, str] | None,
    compared: str,
    form: Form,
    options: Mapping[str, Sequence[str]],
) -> None:
    """Ask the worker at a URL what changed, and print it."""
    async with connect(url) as worker:
        parameters = [(word, text) for word, texts in options.items() for text in texts]
        parameters += await _spans(worker, name, span, compared)
        path = f"/api/collections/{quote(name, safe='')}/change"
        answer = await worker.get(path, parameters)
        collection = await worker.collection(name)
    if form == "json":
        sys.stdout.buffer.write(answer + b"\n")
        return
    document = ChangeDocument.model_validate_json(answer)
    if form == "csv":
        sys.stdout.buffer.write(change_csv(document))
        return
    _show(document, collection)


async def _spans(
    worker: Client, name: str, span: tuple[str, str] | None, compared: str
) -> list[tuple[str, str]]:
    """Return the parameters of both spans."""
    pairs = [] if span is None else [("start", span[0]), ("end", span[1])]
    if compared == "before":
        return pairs
    first, slash, last = compared.partition("/")
    try:
        if slash:
            return [*pairs, ("before_start", first), ("before_end", last)]
        earlier_ms = parse_duration(compared)
        if span is None:
            newest = (await worker.newest(name, 1))[0].window
            span = newest.start, newest.end
            pairs = [("start", span[0]), ("end", span[1])]
        moved = [format_time(parse_time(time) - earlier_ms) for time in span]
    except (ValueError, IndexError):
        what = "before, how much earlier (such as 1d), or START/END"
        raise Refused(f"--compare: expected {what}, got {compared[:40]!r}") from None
    return [*pairs, ("before_start", moved[0]), ("before_end", moved[1])]


def _show(document: ChangeDocument, collection: Collection) -> None:
    labels = ShownLabels.of_collection(collection)
    console, (before, after) = table_console(), (document.before, document.after)
    for title, span in (("before", before), ("after", after)):
        shown = span.span or span.window
        state = "final" if span.final else "open"
        text = f"{title}: {shown.start} to {shown.end}, {state}, {count(span.n, 'report')}"
        console.print(f"{document.collection}, {text}", markup=False)
    if document.withheld:
        console.print(f"withheld: {document.reason}", markup=False)
        return
    console.print(
        f"of the population; all {document.family:,} bounds hold at once with "
        f"{percent(document.confidence)} ({document.method})",
        markup=False,
    )
    console.print(_verdict(document))
    if not (before.final and after.final) and not document.method.startswith("anytime"):
        console.print(
            "a span is still open: its bounds hold for one look, those of --method anytime for many"
        )
    table = FittingTable()
    for header in _COLUMNS:
        table.add_column(header, justify="left" if header == "name" else "right")
    rows = change_rows(document, lambda label: labels.text(label, document.attribute))
    width, unit = _step(collection, document.attribute)
    for kind, name, p, *numbers, told, _ in rows:
        del numbers[3]  # the standard error, which the bounds tell
        if kind == "block" and isinstance(name, int):
            name = f"block {name}"
        # Shares in percent and their changes in points; means and quantiles in their own units.
        if kind == "linear":
            texts = [_text(entry, "{:.6g}".format) for entry in numbers]
        elif kind == "quantile":
            texts = [_text(entry, str) for entry in numbers[:2]]
            texts += [_text(entry, lambda n: f"{n * width:+.6g}{unit}") for entry in numbers[2:]]
        else:
            texts = [_text(entry, percent) for entry in numbers[:2]]
            texts += [_text(entry, points) for entry in numbers[2:]]
        table.add_row(str(name if p is None else p), *texts, str(told or ""))
    console.print(table)


def _step(collection: Collection, attribute: str | None) -> tuple[float, str]:
    """Return how far a value of an ordered domain is from the next, and the unit as text."""
    of_attribute = {one.name: one.domain for one in collection.attributes}
    shape = collection.domain if attribute is None else of_attribute.get(attribute)
    unit = collection.unit if attribute is None else None
    if shape is None or not shape.intervals:
        return 1.0, f" {unit or 'steps'}"
    (low, high), *_ = shape.intervals
    # Rounded numbers are edges, of which there is one more than bins.
    bins = shape.shape[0] - shape.rounded
    return (high - low) / bins, f" {unit}" if unit else ""


def _verdict(document: ChangeDocument) -> str:
    """Return how many changes are more than chance, in a sentence."""
    if not document.told:
        return f"none of {count(document.family, 'change')} is shown, which is no proof of none"
    return f"{document.told:,} of {count(document.family, 'change')} shown to be more than chance"


def _text(cell: Cell, text_of: Callable[[float], str]) -> str:
    return text_of(cell) if isinstance(cell, int | float) else str(cell or "")
