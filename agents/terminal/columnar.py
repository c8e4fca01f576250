"""Parquet and Arrow tables as rows of texts, read in the same way as rows of CSV.

A file is recognised by its first bytes, whatever its name, so pipes work too.
"""

import io
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Final

from ldpstream.agents.terminal.errors import Failed, Refused
from ldpstream.mechanisms.base.lazy import imported

_PARQUET: Final = b"PAR1"
_ARROW_FILE: Final = b"ARROW1"
_ARROW_STREAM: Final = b"\xff\xff\xff\xff"
_EXTRA: Final = ("parquet", "a Parquet or Arrow table")


def begins_table(first: bytes) -> bool:
    """Return whether an input that begins with these bytes, at least 6, is a table."""
    return first.startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM))


class ColumnarRows(Iterator[list[str]]):
    """The rows of a table; `line_num` of them have been read, not counting column names.

    Whole numbers have no fraction, even in a column of floats. Times become RFC 3339, UTC where
    they have no zone, and missing cells become empty texts.
    """

    def __init__(self, stream: BinaryIO, columns: Sequence[str], *, name: str, chunk: int) -> None:
        """Open the table in an input, called `name` in messages.

        Reads `columns`, in this order; all if empty. A pipe is kept in memory.

        Raises:
            Refused: where a column is missing or occurs twice, or the table is incomplete.
            Failed: where pyarrow is not installed.
        """
        self.line_num = 0
        self._name = name
        try:
            self._arrow = imported("pyarrow", *_EXTRA)
            schema, self._batches = _opened(stream, columns, chunk)
        except ImportError as error:
            raise Failed(str(error)) from error
        except self._arrow.ArrowException as error:
            raise self._broken() from error
        for column in columns:
            if schema.names.count(column) != 1:
                raise Refused(f"{name}: expected a column {column!r}, once") from None
        self._columns = list(columns) or schema.names
        self._waiting: Iterator[list[str]] = iter(())

    def __next__(self) -> list[str]:
        """Return the next row.

        Raises:
            Refused: where the table is damaged, or a column's cells are lists, tables or bytes.
        """
        while (row := next(self._waiting, None)) is None:
            try:
                batch = next(self._batches)
            except (self._arrow.ArrowException, OSError) as error:
                raise self._broken() from error
            texts = [self._texts(batch.column(column), column) for column in self._columns]
            self._waiting = map(list, zip(*texts, strict=True))
        self.line_num += 1
        return row

    def _texts(self, cells: Any, column: str) -> list[str]:
        arrow = self._arrow
        compute = imported("pyarrow.compute", *_EXTRA)
        if arrow.types.is_timestamp(cells.type):
            utc = compute.floor_temporal(
                cells.cast(arrow.timestamp(cells.type.unit)), unit="millisecond"
            )
            ms = utc.cast(arrow.timestamp("ms"))
            cells = compute.strftime(ms, format="%Y-%m-%dT%H:%M:%SZ")
        try:
            texts: list[str] = compute.fill_null(cells.cast(arrow.string()), "").to_pylist()
        except arrow.ArrowException:
            # Arrow's own message may quote a cell.
            what = "expected texts, numbers or times"
            raise Refused(f"{self._name}: column {column!r}: {what}") from None
        return texts

    def _broken(self) -> Refused:
        return Refused(f"{self._name}: expected a complete Parquet or Arrow table")


def _opened(stream: BinaryIO, columns: Sequence[str], chunk: int) -> tuple[Any, Iterator[Any]]:
    """Return a table's schema, and its batches of rows."""
    source: Any = stream if stream.seekable() else io.BytesIO(stream.read())
    begin = source.tell()
    first = source.read(len(_ARROW_FILE))
    source.seek(begin)
    if first.startswith(_PARQUET):
        file = imported("pyarrow.parquet", *_EXTRA).ParquetFile(source)
        # Do not decode columns that nobody asked for.
        wanted = list(columns) or None
        return file.schema_arrow, file.iter_batches(batch_size=chunk, columns=wanted)
    ipc = imported("pyarrow.ipc", *_EXTRA)
    if first.startswith(_ARROW_FILE):
        reader = ipc.open_file(source)
        batches = map(reader.get_batch, range(reader.num_record_batches))
    else:
        reader = ipc.open_stream(source)
        batches = iter(reader)
    parts = (batch.slice(at, chunk) for batch in batches for at in range(0, len(batch), chunk))
    return reader.schema, parts
