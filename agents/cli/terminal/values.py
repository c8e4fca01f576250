"""Value lines: CSV, one value per line, with or without a header, its time first where asked for.

Each row of a Parquet or Arrow table is a line, too.

All bad lines are counted, and the first are named. Errors name a line and what was expected there,
never its text: values are private.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Final

import click
import numpy as np

from ldpstream.agents.cli.terminal.columnar import NO_TIME, begins_table, read_table
from ldpstream.agents.cli.terminal.common import count
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.value_options import Reading
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.texts import canonical_text
from ldpstream.mechanisms.base.times import parse_time, parse_times
from ldpstream.mechanisms.domains.fitting import fit, has_ends, nearest
from ldpstream.mechanisms.domains.parse import Domain
from ldpstream.mechanisms.domains.rows import Row
from ldpstream.mechanisms.exact.entropy import SystemEntropy

_NONE: Final[Mapping[int, str]] = {}
_NAMED_LINES: Final = 3
_ENOUGH_LINES: Final = 10_000
"""After this many bad lines the rest of a file is not read: each costs some 30 us."""


@dataclass(frozen=True, eq=False)
class Values:
    """A chunk of n value lines: value indices, and epoch milliseconds where lines have times.

    `lines` are their line numbers in the input, from 1 on.
    """

    indices: Integers
    times_ms: Integers | None
    lines: Integers


@dataclass
class BadLines:
    """The bad lines among the `read` lines of the input `name`; their text is never kept."""

    name: str
    read: int = 0
    count: int = 0
    ended: bool = True
    """Whether the input was read to its end."""
    first: list[tuple[int, str]] = field(default_factory=list)
    """The number of each of the first bad lines, and what was expected there."""

    def add(self, line: int, expected: str) -> None:
        """Count a bad line; lines come in order, from 1 on."""
        self.count += 1
        if len(self.first) < _NAMED_LINES:
            self.first.append((line, expected))

    def enough(self, *, last: bool, whole: bool) -> bool:
        """Return whether to stop after a chunk with bad lines, perhaps the last one.

        Only a `whole` input is read on, to count its bad lines: a pipe may never end. A file that
        is bad throughout is not worth reading.
        """
        if whole and self.count < _ENOUGH_LINES:
            return False
        self.ended = last
        return True

    @property
    def said(self) -> str:
        """Say what was expected at the first one."""
        line, expected = self.first[0]
        return f"line {line}: expected {expected}"

    def refusal(self, way_out: str = "") -> Refused:
        """Return the refusal of an input with bad lines; `way_out` says what to do."""
        if self.count == 1:
            return Refused(f"{self.name}: {self.said}{way_out}")
        further = ", ".join(f"{line:,}" for line, _ in self.first[1:])
        more = ", ..." if self.count > len(self.first) else ""
        of = "of" if self.ended else "of the first"
        bad = f"{self.count:,} {of} {self.read:,} lines are bad, also {further}{more}"
        return Refused(f"{self.name}: {self.said}; {bad}{way_out}")


@dataclass
class _Input:
    """An input, and what was found up to a line.

    `whole`: it can be read to its end to count bad lines; a pipe may never end.
    """

    domain: Domain
    reading: Reading
    whole: bool
    bad: BadLines
    line: int = 0
    clamped: int = 0
    beyond: bool = False
    """Whether `--clamp` would accept one of the bad lines."""
    timed: bool = False
    """Whether one of the bad lines begins with a time, for which `--times` is needed."""

    def conclude(self) -> None:
        """Say how many lines were left out, and how many values were moved."""
        bad = self.bad
        if bad.read == 0:
            raise Refused(f"{bad.name}: expected at least one value line, got none")
        if bad.count and (not self.reading.skip_bad or bad.count == bad.read):
            ways = ["--skip-bad leaves them out"] if bad.count > 1 else []
            if self.beyond:
                ways.append("--clamp moves numbers to the nearest end of the domain")
            if self.timed:
                ways.append("--times reads a time first in each line")
            elif bad.first[0][0] == 1 < bad.read and not self.reading.columns:
                ways.append("if line 1 names columns, --columns says which hold the value")
            raise bad.refusal(": " * bool(ways) + ", ".join(ways))
        if bad.count:
            lines = f"{bad.count:,} of {bad.read:,} lines"
            click.echo(f"{bad.name}: left out {lines} as bad: {bad.said}", err=True)
        if self.clamped:
            values = f"{self.clamped:,} of {bad.read:,} values"
            click.echo(f"{bad.name}: moved {values} to the nearest end of the domain", err=True)


@dataclass(frozen=True)
class _Header:
    """The places of the columns to read, among all `width` columns that the first line names."""

    places: Sequence[int]
    width: int

    def pick(self, rows: Sequence[Row]) -> tuple[list[Row], dict[int, str]]:
        """Return these columns of the rows, and which rows are no rows of this table.

        Cells of a row that is too long or too short may stand under other columns' names.
        """
        expected = f"{count(self.width, 'cell')}, one for each column that the first line names"
        ragged = {place: expected for place, row in enumerate(rows) if len(row) != self.width}
        picked: list[Row] = [
            [] if place in ragged else [row[column] for column in self.places]
            for place, row in enumerate(rows)
        ]
        return picked, ragged


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Rows of values, with their times if lines have any, perhaps not read yet.

    `ragged` are rows that are known to be bad, by their places; `last`: no rows follow.
    """

    rows: Sequence[Row]
    times: Integers | Sequence[str] | None
    ragged: Mapping[int, str]
    last: bool


def read_values(
    stream: BinaryIO, domain: Domain, reading: Reading, *, chunk: int
) -> Iterator[Values]:
    """Read all value lines, up to `chunk` at a time; say how many were left out or moved.

    Raises:
        Refused: naming the line, for a value outside the domain, an impossible or implausible
            time, or text that is not CSV in UTF-8. Says how many lines are bad: in a file all of
            them, in a pipe those read so far. Also for an empty or unreadable input.
        Failed: for a Parquet or Arrow table, where pyarrow is not installed.
    """
    name = source_name(stream)
    source = _Input(domain, reading, whole=stream.seekable(), bad=BadLines(name))
    with buffering(stream, name) as buffered:
        if begins_table(buffered.peek(1)):
            yield from _read(_table_chunks(buffered, source, chunk=chunk), source)
        else:
            yield from _read_csv(buffered, source, chunk=chunk)
    source.conclude()


def _read_csv(stream: io.BufferedReader, source: _Input, *, chunk: int) -> Iterator[Values]:
    name, columns = source.bad.name, source.reading.columns
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    lines = csv.reader(text, strict=True)
    try:
        header = None
        if columns:
            header = _find_columns(next(lines, []), columns, name)
            source.line = lines.line_num
        chunks = _csv_chunks(lines, source, lambda: lines.line_num, chunk=chunk, header=header)
        yield from _read(chunks, source)
    except csv.Error as error:
        raise Refused(f"{name}: line {lines.line_num}: expected CSV: {error}") from None
    except UnicodeDecodeError:
        raise Refused(f"{name}: line {source.line + 1} or later: expected UTF-8") from None
    finally:
        text.detach()


def _csv_chunks(
    lines: Iterator[Row],
    source: _Input,
    line: Callable[[], int],
    *,
    chunk: int,
    header: _Header | None,
) -> Iterator[_Chunk]:
    """Yield the remaining rows; a `header` says which columns to read, if not all.

    `line` returns how many lines of text were read.
    """
    while rows := list(islice(lines, chunk)):
        if line() != source.line + len(rows):
            what = "expected one value per line, without line breaks inside"
            raise Refused(f"{source.bad.name}: {what}")
        last = len(rows) < chunk
        picked, ragged = (rows, _NONE) if header is None else header.pick(rows)
        if source.reading.times:
            times, cells = _split_times(picked)
            yield _Chunk(cells, times, ragged, last)
        else:
            yield _Chunk(picked, None, ragged, last)


def _table_chunks(stream: BinaryIO, source: _Input, *, chunk: int) -> Iterator[_Chunk]:
    name, reading = source.bad.name, source.reading
    for some in read_table(stream, reading.columns, name=name, chunk=chunk, times=reading.times):
        yield _Chunk(some.rows, some.times, _NONE, some.last)


def _read(chunks: Iterator[_Chunk], source: _Input) -> Iterator[Values]:
    for chunk in chunks:
        parsed = _parse(chunk, source)
        source.line += len(chunk.rows)
        if source.bad.count == 0 or source.reading.skip_bad:
            yield parsed
        elif source.bad.enough(last=chunk.last, whole=source.whole):
            return


def source_name(stream: BinaryIO) -> str:
    """Return what to call an input in messages."""
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) and name not in {"-", "<stdin>"} else "stdin"


@contextmanager
def buffering(stream: BinaryIO, name: str) -> Iterator[io.BufferedReader]:
    """Return an input whose first bytes can be looked at; refuse one that cannot be read."""
    # Any: click passes a BufferedReader, or a stream that behaves like a raw one.
    raw: Any = stream
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)
    try:
        yield buffered
    except OSError as error:
        raise Refused(f"{name}: cannot read it: {error.strerror or error}") from error
    finally:
        if buffered is not raw:
            # Closing it would close the stream.
            buffered.detach()


def _find_columns(header: Row, columns: Sequence[str], name: str) -> _Header:
    """Return the columns' places. The first line may be a value, so the refusal never quotes it."""
    cells = [canonical_text(cell.strip()) for cell in header]
    for column in columns:
        if cells.count(canonical_text(column)) != 1:
            what = f"column names with {column!r} once among them (`head -1 FILE` shows them)"
            raise Refused(f"{name}: line 1: expected {what}")
    return _Header([cells.index(canonical_text(column)) for column in columns], len(cells))


def _parse(chunk: _Chunk, source: _Input) -> Values:
    """Return the values of the good rows after the last line, and note the bad ones."""
    rows = chunk.rows
    source.bad.read += len(rows)
    bad = dict(chunk.ragged)
    after, times_ms = "", None
    if chunk.times is not None:
        after = " after the time"
        times_ms = _parse_times(chunk.times, source.reading, bad)
    domain, entropy = source.domain, SystemEntropy()
    good = np.delete(np.arange(len(rows)), list(bad)) if bad else np.arange(len(rows))
    fitted = fit(
        [rows[place] for place in good.tolist()] if bad else rows,
        place=lambda some: domain.place_columns(some, entropy=entropy),
        check=domain.parse_columns,
        move=partial(_move, domain) if source.reading.clamp else None,
    )
    source.clamped += fitted.moved
    if not source.beyond and has_ends(domain):
        source.beyond = any(_move(domain, rows[good[place]]) for place in fitted.bad)
    if chunk.times is None and not source.timed:
        source.timed = any(_begins_with_time(rows[good[place]]) for place in fitted.bad)
    bad |= {int(good[place]): f"{expected}{after}" for place, expected in fitted.bad.items()}
    good = good[fitted.good]
    for place in sorted(bad):
        source.bad.add(source.line + 1 + place, bad[place])
    return Values(
        fitted.indices, None if times_ms is None else times_ms[good], good + source.line + 1
    )


def _begins_with_time(row: Row) -> bool:
    # Whole numbers, which are times too, may be coordinates.
    if len(row) < 2 or ":" not in row[0]:
        return False
    with suppress(ValueError):
        parse_time(row[0])
        return True
    return False


def _move(domain: Domain, row: Row) -> Row | None:
    point = nearest(domain, row)
    return None if point is None else [repr(number) for number in point]


def _split_times(rows: Sequence[Row]) -> tuple[Sequence[str], Sequence[Row]]:
    """Return the first cell of each row, and the others."""
    if len(set(map(len, rows))) == 1 and len(rows[0]) > 1:
        # By columns, which takes a third of the time.
        times, *columns = zip(*rows, strict=True)
        return times, list(zip(*columns, strict=True))
    return [row[0] if row else "" for row in rows], [row[1:] for row in rows]


def _parse_times(
    times: Integers | Sequence[str], reading: Reading, bad: dict[int, str]
) -> Integers:
    """Return epoch milliseconds; what is not a time, or implausible, goes to `bad`."""
    if isinstance(times, np.ndarray):
        missing = times == NO_TIME
        times_ms, unread = (
            np.where(missing, 0, times),
            dict.fromkeys(np.flatnonzero(missing).tolist(), ""),
        )
    elif (alike := _parse_alike(times)) is not None:
        times_ms, unread = alike, {}
    else:
        times_ms, unread = np.zeros(len(times), dtype=np.int64), dict(enumerate(times))
    for position, text in unread.items():
        try:
            times_ms[position] = parse_time(text)
        except ValueError as error:
            bad.setdefault(position, f"{error} in the first column")
    if reading.near is not None:
        for position, expected in reading.near.far(times_ms).items():
            bad.setdefault(position, expected)
    return times_ms


def _parse_alike(texts: Sequence[str]) -> Integers | None:
    """Return the times of texts of one length; None if they have to be read one by one."""
    if len(set(map(len, texts))) != 1 or not (joined := "".join(texts)).isascii():
        return None
    return parse_times(np.frombuffer(joined.encode(), dtype=np.uint8).reshape(len(texts), -1))
