"""Parquet and Arrow tables as rows of texts, each different one read as a row of CSV is.

A file is recognised by its first bytes, whatever its name, so pipes work too.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.cli.terminal.errors import Failed, Refused
from ldpstream.mechanisms.base.arrays import Bools, Integers
from ldpstream.mechanisms.base.lazy import imported
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.base.times import EARLIEST_MS, LATEST_MS
from ldpstream.mechanisms.domains.rows import CodedRows

_PARQUET: Final = b"PAR1"
_ARROW_FILE: Final = b"ARROW1"
_ARROW_STREAM: Final = b"\xff\xff\xff\xff"
_EXTRA: Final = ("parquet", "a Parquet or Arrow table")
_WHOLE_BELOW: Final = {"float": 2.0**24, "double": 2.0**53}
"""From here on Arrow's floats stand for several integers each."""
_FEW_NUMBERS: Final = 1 << 16
_LARGEST: Final = np.iinfo(np.int64).max
NO_TIME: Final = np.iinfo(np.int64).min
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def begins_table(first: bytes) -> bool:
    """Return whether an input that begins with these bytes, at least 6, is a table."""
    return first.startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM))


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Some rows of a table, their times in a column of its own.

    `times` are epoch milliseconds, with `NO_TIME` for what is none, or texts where the column has
    no timestamps; None where no times are read. `last`: no rows follow.
    """

    rows: CodedRows
    times: Integers | list[str] | None
    last: bool


def read_table(
    stream: BinaryIO, columns: Sequence[str], *, name: str, chunk: int, times: bool
) -> Iterator[TableChunk]:
    """Yield the rows of a table in an input, called `name` in messages, up to `chunk` at a time.

    They have `columns`, in this order, all if empty; with `times` the first holds times. Whole
    numbers have no fraction, even in a column of floats. Times are RFC 3339 in UTC where they are
    texts. Missing cells become empty texts, and so do times outside the years 1 to 9999. A pipe is
    kept in memory.

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

    def read(batch: Any, *, last: bool) -> TableChunk:
        names = [canonical_text(each) for each in batch.schema.names]
        # By their places: without `columns` names need not be unique.
        places = [names.index(text) for text in spelled] or list(range(len(names)))
        cells = [(batch.column(place), f"{name}: column {names[place]!r}") for place in places]
        timed = _times(*cells.pop(0)) if times and cells else None
        return TableChunk(_coded_rows(cells, len(batch)), timed, last)

    # A table from a pipe is in memory already: looking ahead waits for nobody.
    batches = read_batches(stream, name, chunk, choose=choose)
    batch = next(batches, None)
    while batch is not None:
        following = next(batches, None)
        yield read(batch, last=following is None)
        batch = following


def _coded_rows(cells: Sequence[tuple[Any, str]], size: int) -> CodedRows:
    """Return rows by the different ones among them; cells come with their column's name."""
    codes, distinct = np.zeros(size, dtype=np.int64), [tuple[str, ...]()]
    for column, named in cells:
        texts, places = _coded(_plain(column), named)
        if len(distinct) == 1:
            codes, distinct = places.astype(np.int64), [(*distinct[0], text) for text in texts]
            continue
        # Codes of pairs stay below the square of a chunk's rows, however many columns there are.
        pairs, codes = np.unique(codes * len(texts) + places, return_inverse=True)
        rows, cell_numbers = np.divmod(pairs, len(texts))
        distinct = [
            (*distinct[row], texts[number])
            for row, number in zip(rows.tolist(), cell_numbers.tolist(), strict=True)
        ]
    return CodedRows(distinct, codes)


def _coded(cells: Any, column: str) -> tuple[list[str], Integers]:
    """Return the different cells of a column as texts, and which of them each cell is."""
    arrow = import_arrow("pyarrow")
    if arrow.types.is_integer(cells.type) and len(cells) > cells.null_count == 0:
        numbers = numbers_of(cells)
        least, most = int(numbers.min()), int(numbers.max())
        if most - least < _FEW_NUMBERS and most <= _LARGEST:
            # Without pyarrow.compute, whose import takes a twentieth of a command on a million.
            places = numbers.astype(np.int64) - least
            used = np.flatnonzero(np.bincount(places))
            order = np.zeros(most - least + 1, dtype=np.int64)
            order[used] = np.arange(used.size)
            return list(map(str, (used + least).tolist())), order.take(places)
    compute = import_arrow("pyarrow.compute")
    try:
        coded = compute.dictionary_encode(cells, null_encoding="encode")
    except arrow.ArrowException:
        raise _unsuitable(column) from None
    return _texts(coded.dictionary, column), numbers_of(coded.indices)


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


def numbers_of(cells: Any) -> NDArray[Any]:
    """Return integers as an array, with any number where one is missing.

    Not by `to_numpy` or `fill_null`, which import pandas where it is installed: a fifth of a
    command on a million rows.
    """
    if cells.null_count:
        buffers = [None, cells.buffers()[1]]
        of = import_arrow("pyarrow").Array
        cells = of.from_buffers(cells.type, len(cells), buffers, offset=cells.offset)
    return np.from_dlpack(cells)


def _plain(cells: Any) -> Any:
    """Return the cells of a column that may be coded."""
    coded = import_arrow("pyarrow").types.is_dictionary(cells.type)
    return cells.dictionary_decode() if coded else cells


def _unsuitable(column: str) -> Refused:
    return Refused(f"{column}: expected texts, numbers or times")


def _times(cells: Any, column: str) -> Integers | list[str]:
    """Return the cells of a column, called `column` in messages, as times or texts."""
    cells = _plain(cells)
    if not import_arrow("pyarrow").types.is_timestamp(cells.type):
        return _texts(cells, column)
    numbers, valid = _timestamps(cells, column)
    times_ms, inside = _whole_ms(numbers, cells.type.unit)
    return np.where(valid & inside, times_ms, NO_TIME)


def _timestamps(cells: Any, column: str) -> tuple[Integers, Bools]:
    """Return the numbers of timestamps, and which of them are not missing."""
    if cells.type.tz is None:
        # Parquet's old INT96, too, whose times after 2262 pyarrow would let overflow.
        what = "expected times with a zone, such as UTC, got times without one"
        raise Refused(f"{column}: {what}")
    arrow = import_arrow("pyarrow")
    numbers = numbers_of(cells.view(arrow.int64()))
    if not cells.null_count:
        return numbers, np.ones(len(cells), dtype=np.bool_)
    return numbers, numbers_of(cells.is_valid().cast(arrow.uint8())).astype(np.bool_)


def _texts(cells: Any, column: str) -> list[str]:
    """Return the cells of a column, called `column` in messages, as texts."""
    arrow = import_arrow("pyarrow")
    if arrow.types.is_timestamp(cells.type):
        numbers, valid = _timestamps(cells, column)
        times = time_texts(numbers, cells.type.unit)
        return [text if there else "" for text, there in zip(times, valid.tolist(), strict=True)]
    try:
        if arrow.types.is_duration(cells.type):
            # Their unit is not among the digits of their texts.
            raise arrow.ArrowTypeError
        return [text or "" for text in _as_texts(cells).to_pylist()]
    except (arrow.ArrowException, UnicodeDecodeError):
        # Their own messages may quote a cell.
        raise _unsuitable(column) from None


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


def time_texts(numbers: Integers, unit: str) -> list[str]:
    """Return times since the epoch, in `s`, `ms`, `us` or `ns`, as RFC 3339 in UTC.

    Those outside the years 1 to 9999 become empty texts. Fractions of a millisecond are cut off
    toward the past.

    >>> time_texts(np.array([0, 253_402_300_800]), "s")
    ['1970-01-01T00:00:00.000Z', '']
    """
    times_ms, inside = _whole_ms(numbers, unit)
    times = times_ms.astype("datetime64[ms]")
    texts: list[str] = np.where(inside, np.datetime_as_string(times, timezone="UTC"), "").tolist()
    return texts


def _whole_ms(numbers: Integers, unit: str) -> tuple[Integers, Bools]:
    """Return times since the epoch in whole milliseconds, and which are within years 1 to 9999.

    Others become 0.
    """
    per_second = _PER_SECOND[unit]
    seconds = numbers // per_second
    inside = (seconds >= EARLIEST_MS // 1000) & (seconds <= LATEST_MS // 1000)
    rest = np.where(inside, numbers - seconds * per_second, 0) * 1000 // per_second
    return np.where(inside, seconds, 0) * 1000 + rest, inside
