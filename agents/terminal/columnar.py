"""Tables of Parquet and Arrow as rows of texts, which are read as those of CSV are.

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
_EXTRA: Final = ("parquet", "a table of Parquet or Arrow")


def begins_table(first: bytes) -> bool:
    """Return whether an input that begins with these bytes, 6 or more, is a table."""
    return first.startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM))


class ColumnarRows(Iterator[list[str]]):
    """The rows of a table, `line_num` of which have been read: the names of its columns are none.

    Whole numbers, even where a column holds them as floats, are written without a fraction. Times
    are written as RFC 3339, those without a zone as UTC, and a missing cell as an empty text.
    """

    def __init__(self, stream: BinaryIO, columns: Sequence[str], *, name: str, chunk: int) -> None:
        """Open the table of an input, which `name` is called in messages.

        `columns` are read, in their order; all of them if empty. A pipe is kept in memory.

        Raises:
            Refused: where a column is not there once, or the input is no whole table.
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
            # Its own text may repeat a cell.
            what = "expected texts, numbers or times"
            raise Refused(f"{self._name}: column {column!r}: {what}") from None
        return texts

    def _broken(self) -> Refused:
        return Refused(f"{self._name}: expected a whole table of Parquet or Arrow")


def _opened(stream: BinaryIO, columns: Sequence[str], chunk: int) -> tuple[Any, Iterator[Any]]:
    """Return a table's schema, and its batches of rows."""
    source: Any = stream if stream.seekable() else io.BytesIO(stream.read())
    begin = source.tell()
    first = source.read(len(_ARROW_FILE))
    source.seek(begin)
    if first.startswith(_PARQUET):
        file = imported("pyarrow.parquet", *_EXTRA).ParquetFile(source)
        # Columns that nobody asks for are not decoded.
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
