"""Parquet and Arrow tables as rows of texts, read in the same way as rows of CSV.

A file is recognised by its first bytes, whatever its name, so pipes work too.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.mechanisms.base.lazy import imported
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.base.times import EARLIEST_MS, LATEST_MS

_PARQUET: Final = b"PAR1"
_ARROW_FILE: Final = b"ARROW1"
_ARROW_STREAM: Final = b"\xff\xff\xff\xff"
_EXTRA: Final = ("parquet", "a Parquet or Arrow table")
_WHOLE_BELOW: Final = {"float": 2.0**24, "double": 2.0**53}
"""From here on Arrow's floats stand for several integers each."""
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def begins_table(first: bytes) -> bool:
    """Return whether an input that begins with these bytes, at least 6, is a table."""
    return first.startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM))


def table_rows(
    stream: BinaryIO, columns: Sequence[str], *, name: str, chunk: int
) -> Iterator[tuple[str, ...]]:
    """Return the rows of a table in an input, called `name` in messages.

    They have `columns`, in this order, all if empty. Whole numbers have no fraction, even in a
    column of floats. Times become RFC 3339 in UTC. Missing cells become empty texts, and so do
    times outside the years 1 to 9999. A pipe is kept in memory.

    Raises:
        Refused: where the table is damaged or incomplete, a column is missing or occurs twice, its
            cells are lists, tables or bytes, or its times have no zone.
    """
    spelled = [canonical_text(column) for column in columns]

    def choose(schema: Any) -> list[str]:
        names: list[str] = []
        for column, text in zip(columns, spelled, strict=True):
            same = [each for each in schema.names if canonical_text(each) == text]
            if len(same) != 1:
                raise Refused(f"{name}: expected a column {column!r}, once")
            names += same
        return names

    def rows(batch: Any) -> Iterator[tuple[str, ...]]:
        names = [canonical_text(each) for each in batch.schema.names]
        # By their places: without `columns` names need not be unique.
        places = [names.index(text) for text in spelled] or range(len(names))
        texts = [
            _texts(batch.column(place), f"{name}: column {names[place]!r}") for place in places
        ]
        return zip(*texts, strict=True)

    batches = read_batches(stream, name, chunk, choose=choose)
    return chain.from_iterable(map(rows, batches))


def import_arrow(module: str) -> Any:
    """Return a module of pyarrow."""
    try:
        return imported(module, *_EXTRA)
    except ImportError as error:
        raise Failed(str(error)) from error


def read_batches(
    stream: BinaryIO, name: str, chunk: int, *, choose: Callable[[Any], list[str]]
) -> Iterator[Any]:
    """Yield the record batches of a table, up to `chunk` rows each.

    `choose` returns the columns to read of a schema, or none for all, and refuses unsuitable ones.
    """
    arrow = import_arrow("pyarrow")
    try:
        yield from _open(stream, chunk, choose)
    except (arrow.ArrowException, OSError) as error:
        raise Refused(f"{name}: expected a complete Parquet or Arrow table") from error


def _open(stream: BinaryIO, chunk: int, choose: Callable[[Any], list[str]]) -> Iterator[Any]:
    source: Any = stream if stream.seekable() else io.BytesIO(stream.read())
    begin = source.tell()
    first = source.read(len(_ARROW_FILE))
    source.seek(begin)
    if first.startswith(_PARQUET):
        parquet = import_arrow("pyarrow.parquet")
        file = parquet.ParquetFile(source)
        names = choose(file.schema_arrow)
        # Do not decode columns that nobody asked for.
        batches: Iterator[Any] = file.iter_batches(batch_size=chunk, columns=names or None)
        return batches
    ipc = import_arrow("pyarrow.ipc")
    if first.startswith(_ARROW_FILE):
        reader = ipc.open_file(source)
        whole = map(reader.get_batch, range(reader.num_record_batches))
    else:
        reader = ipc.open_stream(source)
        whole = iter(reader)
    choose(reader.schema)
    return (batch.slice(at, chunk) for batch in whole for at in range(0, len(batch), chunk))


def _texts(cells: Any, column: str) -> list[str]:
    """Return the cells of a column, called `column` in messages, as texts."""
    arrow, compute = import_arrow("pyarrow"), import_arrow("pyarrow.compute")
    if arrow.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if arrow.types.is_timestamp(cells.type):
        if cells.type.tz is None:
            # Parquet's old INT96, too, whose times after 2262 pyarrow would let overflow.
            what = "expected times with a zone, such as UTC, got times without one"
            raise Refused(f"{column}: {what}")
        numbers = compute.fill_null(cells.cast(arrow.int64()), 0).to_numpy(zero_copy_only=False)
        times = time_texts(numbers, cells.type.unit)
        valid = cells.is_valid().to_pylist()
        return [text if is_valid else "" for text, is_valid in zip(times, valid, strict=True)]
    try:
        if arrow.types.is_duration(cells.type):
            # Their unit is not among the digits of their texts.
            raise arrow.ArrowTypeError
        texts: list[str] = compute.fill_null(_as_texts(cells), "").to_pylist()
    except (arrow.ArrowException, UnicodeDecodeError):
        # Their own messages may quote a cell.
        raise Refused(f"{column}: expected texts, numbers or times") from None
    return texts


def _as_texts(cells: Any) -> Any:
    """Return cells as texts: whole numbers as integers, unless a float is one of several."""
    arrow, compute = import_arrow("pyarrow"), import_arrow("pyarrow.compute")
    if arrow.types.is_decimal(cells.type):
        digits = [None if cell is None else format(cell, "f") for cell in cells.to_pylist()]
        return compute.replace_substring_regex(arrow.array(digits, arrow.string()), r"\.0*$", "")
    texts, limit = cells.cast(arrow.string()), _WHOLE_BELOW.get(str(cells.type))
    if limit is None:
        return texts
    near = compute.less(compute.abs(cells), limit)
    whole = compute.and_(near, compute.equal(cells, compute.floor(cells)))
    integers = compute.if_else(whole, cells, None).cast(arrow.int64()).cast(arrow.string())
    return compute.coalesce(
        integers, compute.replace_substring_regex(texts, "^(-?[0-9]+)$", r"\1.0")
    )


def time_texts(numbers: NDArray[np.int64], unit: str) -> list[str]:
    """Return times since the epoch, in `s`, `ms`, `us` or `ns`, as RFC 3339 in UTC.

    Those outside the years 1 to 9999 become empty texts. Fractions of a millisecond are cut off
    toward the past.

    >>> time_texts(np.array([0, 253_402_300_800]), "s")
    ['1970-01-01T00:00:00.000Z', '']
    """
    per_second = _PER_SECOND[unit]
    seconds = numbers // per_second
    inside = (seconds >= EARLIEST_MS // 1000) & (seconds <= LATEST_MS // 1000)
    rest = np.where(inside, numbers - seconds * per_second, 0) * 1000 // per_second
    times = (np.where(inside, seconds, 0) * 1000 + rest).astype("datetime64[ms]")
    texts: list[str] = np.where(inside, np.datetime_as_string(times, timezone="UTC"), "").tolist()
    return texts
