"""Store documents as rows of a Parquet file, idempotently.

A row is one entry, with the columns of CSV and four more. Stored rows of a window are replaced by
new ones, so storing again leaves identical rows; other windows stay as they are.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from ldpstream.agents.document.flat import HEADER, document_rows
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.mechanisms.base.files import check_replaceable, replaced_file
from ldpstream.mechanisms.base.lazy import imported

_WINDOW: Final = ("collection", "fingerprint", "size", "start", "end")
_LABELS: Final = ("value_label", "low_label", "high_label")
_KEY: Final = (*_WINDOW, "entry")
COLUMNS: Final = (*_KEY, *(name for name in HEADER if name not in _KEY), *_LABELS)
"""The columns of a row. `entry` numbers the rows of a document from 0.

`_LABELS` are for quantiles, whose `value`, `low` and `high` are numbers only if their labels are.
Times are texts, RFC 3339 in UTC or with a window's time zone.
"""
_TYPES: Final = {
    **dict.fromkeys(("entry", "n", "late", "rejected", "forged"), "int64"),
    **dict.fromkeys(("final", "withheld", "simultaneous"), "bool"),
    **dict.fromkeys(("p", "value", "count", "se", "low", "high"), "float64"),
    **dict.fromkeys(
        ("confidence", "influence", "weight_total", "weight_se", "weight_low", "weight_high"),
        "float64",
    ),
}
"""The Arrow types of columns that are not text."""

Row = dict[str, Any]


def store_documents(documents: Iterable[EstimateDocument], to: str) -> None:
    """Store documents in a file, `NAME.parquet`.

    Of several documents of a window the last one is stored. The file is replaced as a whole, so
    only one process may write it at a time.

    Raises:
        ImportError: naming what to install, where pyarrow is missing.
        ValueError: for a file of another name, or with something else.
        OSError: where the file cannot be written.
    """
    check_target(to)
    newest = {_window(document): document for document in documents}
    _write(to, [row for _, document in sorted(newest.items()) for row in _rows(document)])


def check_target(to: str) -> None:
    """Check the file that `store_documents` is to write, before there is any document.

    Raises:
        ValueError: unless it is a Parquet file, or can become one.
        ImportError: naming what to install, where pyarrow is missing.
    """
    if "://" in to or not to.endswith(".parquet"):
        raise ValueError(f"expected a file NAME.parquet, which databases load, got {to}")
    check_replaceable(to)
    imported("pyarrow", "parquet", "a Parquet file")


def _window(document: EstimateDocument) -> tuple[str, ...]:
    window = document.window
    ends = ("", "") if window is None else (window.start, window.end)
    return (document.collection, document.fingerprint, document.size or "", *ends)


def _rows(document: EstimateDocument) -> Iterable[Row]:
    for entry, cells in enumerate(document_rows(document)):
        row = dict.fromkeys(COLUMNS) | dict(zip(HEADER, cells, strict=True))
        row |= dict(zip(_KEY, (*_window(document), entry), strict=True))
        if row["name"] is not None:
            row["name"] = str(row["name"])
        if row["kind"] == "quantile":
            for label in _LABELS:
                name = label.removesuffix("_label")
                of = row[name]
                row[label] = None if of is None else str(of)
                row[name] = float(of) if isinstance(of, int | float) else None
        yield row


def _write(to: str, rows: Sequence[Row]) -> None:
    pa = imported("pyarrow", "parquet", "a Parquet file")
    parquet = imported("pyarrow.parquet", "parquet", "a Parquet file")
    types = {name: _TYPES.get(name, "string") for name in COLUMNS}
    schema = pa.schema([(name, pa.type_for_alias(of)) for name, of in types.items()])
    old_rows: list[Row] = []
    if Path(to).exists():
        try:
            stored = parquet.read_table(to)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{to}: expected a Parquet file") from error
        if not stored.schema.equals(schema):
            raise ValueError(f"{to}: expected the columns of finals: choose another file")
        old_rows = stored.to_pylist()
    new = {tuple(row[name] for name in _WINDOW) for row in rows}
    old_rows = [row for row in old_rows if tuple(row[name] for name in _WINDOW) not in new]
    ordered = sorted([*old_rows, *rows], key=lambda row: tuple(row[name] for name in _KEY))
    with replaced_file(to) as file:
        parquet.write_table(pa.Table.from_pylist(ordered, schema), file)
