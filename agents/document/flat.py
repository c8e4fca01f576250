"""Documents as a table with one row per entry, and as CSV (RFC 4180).

Spreadsheets take a cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return for a
formula. Whoever opens a table need not have written its labels, so such a text gets an apostrophe
in front, in CSV only. Numbers are written as in JSON.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from ldpstream.agents.document.entries import Shares
from ldpstream.agents.document.model import ChangeDocument, EstimateDocument, MergedBlocks, Moved

HEADER: Final = (
    *("collection", "start", "end", "n", "final", "withheld", "late", "rejected"),
    *("estimand", "confidence", "method", "simultaneous", "projection"),
    *("kind", "name", "p", "value", "count", "se", "low", "high", "influence", "forged"),
    *("weight_total", "weight_se", "weight_low", "weight_high"),
    *("span_start", "span_end"),
    *("bound", "attribute", "size"),
)
"""`kind` is `value`, `range`, `area`, `linear` or `quantile`, `merged` for blocks published only
together (its name is their runs), or `none` in a document without entries.

The span is empty if it equals the window. `name` is the value's label or the query's name, `p` the
quantile's share. `value`, `low` and `high` are shares, means of linear queries, or labels of
quantiles.
"""

CHANGE_HEADER: Final = (
    *("collection", "attribute", "before_start", "before_end", "before_n", "before_final"),
    *("start", "end", "n", "final", "withheld", "estimand", "confidence", "method", "devices"),
    *("kind", "name", "p", "before", "after", "change", "se", "low", "high", "told", "unit"),
)
"""`kind` is `value`, `block`, `range`, `linear`, `quantile`, or `none` without entries; `name` is
the value's label, or that of a block or query; `unit` is that of the change and its bounds."""

_UNITS: Final = {
    **dict.fromkeys(("value", "block", "range"), "share"),
    "linear": "weights",
    "quantile": "steps",
}

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

Cell = str | int | float | bool | None


def to_csv(rows: Iterable[Sequence[Cell]], header: Sequence[str] | None) -> bytes:
    """Return CSV in UTF-8, with lines ended by CR LF; an undefined number is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    if header is not None:
        writer.writerow(header)
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return out.getvalue().encode()


def document_csv(document: EstimateDocument) -> bytes:
    """Return a document in CSV, with a header."""
    return to_csv(document_rows(document), HEADER)


def change_csv(document: ChangeDocument) -> bytes:
    """Return a change document in CSV, with a header and a row for each entry."""
    before, after = document.before, document.after
    head: list[Cell] = [
        *(document.collection, document.attribute),
        *(before.window.start, before.window.end, before.n, before.final),
        *(after.window.start, after.window.end, after.n, after.final, document.withheld),
    ]
    head += (
        [None] * 4
        if document.withheld
        else [document.estimand, document.confidence, document.method, document.devices]
    )
    rows = [[*head, *row] for row in change_rows(document)]
    return to_csv(rows or [[*head, "none", *[None] * 10]], CHANGE_HEADER)


def change_rows(
    document: ChangeDocument, text: Callable[[JsonValue], Cell] | None = None
) -> Iterator[list[Cell]]:
    """Yield each entry as in `CHANGE_HEADER` from `kind` on; `text` writes labels for people."""
    text = text or _text
    entries: list[tuple[str, Cell, Moved]] = [
        *(("value", text(entry.value), entry) for entry in document.values),
        *(("block", entry.name or entry.block, entry) for entry in document.blocks),
        *(("range", entry.name, entry) for entry in document.ranges),
        *(("linear", entry.name, entry) for entry in document.linear),
    ]
    for kind, name, entry in entries:
        numbers = (getattr(entry, column) for column in CHANGE_HEADER[-8:-1])
        yield [kind, name, None, *numbers, _UNITS[kind]]
    for moved in document.quantiles:
        ends = text(moved.before), text(moved.after)
        steps = moved.steps, None, moved.low, moved.high, moved.told
        yield ["quantile", None, moved.p, *ends, *steps, _UNITS["quantile"]]


def document_rows(document: EstimateDocument) -> Iterator[list[Cell]]:
    """Yield a row for each entry, as in `HEADER`; without entries, one row of kind `none`."""
    if document.attributes:
        for attribute in document.attributes:
            yield from document_rows(attribute)
        return
    span = document.span
    ends: list[Cell] = [None, None] if span is None else [span.start, span.end]
    for row, bound in _rows(document):
        yield [*row, *ends, bound, document.attribute, document.size]


def _rows(document: EstimateDocument) -> Iterator[tuple[list[Cell], Cell]]:
    """Yield each row without span, bound, attribute and size, and the bound."""
    window = document.window
    head: list[Cell] = [
        document.collection,
        None if window is None else window.start,
        None if window is None else window.end,
        document.n,
        document.final,
        document.withheld,
    ]
    if document.withheld:
        yield [*head, *[None] * 7, "none", *[None] * (len(HEADER) - 19)], None
        return
    head += [
        document.late,
        document.rejected,
        document.estimand,
        document.confidence,
        document.method,
        document.simultaneous,
    ]
    nothing: list[Cell] = ["none", *[None] * (len(HEADER) - 19)]
    for entry, bound in list(_entries(document)) or [(nothing, None)]:
        # Areas are made of unprojected shares, whatever is done to those of values.
        projection = "none" if entry[0] == "area" else document.projection
        yield [*head, projection, *entry], bound


def _entries(document: EstimateDocument) -> Iterator[tuple[list[Cell], Cell]]:
    for value in document.distribution:
        yield ["value", _text(value.value), None, *_share(value)], value.bound
    for query in document.ranges:
        yield ["range", query.name, None, *_share(query)], query.bound
    for area in document.areas.entries if document.areas is not None else ():
        yield ["area", area.name, None, *_share(area)], area.bound
    for one in document.linear:
        numbers = (one.mean, one.total, one.se, one.low, one.high, one.influence, one.forged)
        yield ["linear", one.name, None, *numbers, *[None] * 4], one.bound
    for quantile in document.quantiles:
        low, high = _text(quantile.low), _text(quantile.high)
        row: list[Cell] = ["quantile", None, quantile.p, _text(quantile.value), None, None]
        yield [*row, low, high, *[None] * 6], None
    for along in document.axis_quantiles:
        low, high = _text(along.low), _text(along.high)
        cells: list[Cell] = ["quantile", f"axis {along.axis}", along.p, _text(along.value)]
        yield [*cells, None, None, low, high, *[None] * 6], None
    if document.merged is not None:
        merged = document.merged
        yield ["merged", runs_text(merged), None, None, merged.count, *[None] * 9], None


def runs_text(merged: MergedBlocks) -> str:
    """Return the merged blocks as text: by their names, else as runs such as `0 to 3, 7`."""
    if merged.names is not None:
        return ", ".join(merged.names)
    runs = [str(first) if first == last else f"{first} to {last}" for first, last in merged.runs]
    return ", ".join(runs)


def _share(entry: Shares) -> list[Cell]:
    weight = entry.weight
    return [
        *(entry.share, entry.count, entry.se, entry.low, entry.high),
        *(entry.influence, entry.forged),
        *((None,) * 4 if weight is None else (weight.total, weight.se, weight.low, weight.high)),
    ]


def _text(label: JsonValue) -> Cell:
    """Return a label as a cell: coordinates and bins as JSON."""
    if isinstance(label, list | dict):
        return json.dumps(label, ensure_ascii=False)
    return label


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return f"'{cell}" if cell.startswith(_FORMULA) else cell
    # As `json.dumps` writes it, which takes several times as long for the many numbers of a list.
    return str(cell).lower() if isinstance(cell, bool) else repr(cell)
