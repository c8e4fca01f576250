"""Files of reports: `privatize` writes, `estimate` and `send` read them.

Lines are one JSON object per report, `{"collection": name, "fingerprint": hex, "report": base64}`,
and with times `"time"`. A table of Arrow has the columns `report`, in bytes, and with times `time`,
and the schema's metadata name the collection and the fingerprint.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from string import ascii_letters, digits
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ldpstream.agents.cli.terminal.columnar import (
    begins_table,
    import_arrow,
    numbers_of,
    read_batches,
)
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.value_options import NearNow
from ldpstream.agents.cli.terminal.values import BadLines, buffering, source_name
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.checks import without_repeats
from ldpstream.mechanisms.base.times import format_times, parse_time, parse_times
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.wire.spec import CollectionSpec

Texts: TypeAlias = NDArray[np.uint8]
"""Texts of equal length, one a row, as their characters."""

_TIME_HEAD: Final = b'","time":"'
_TAIL: Final = b'"}\n'
_BASE64: Final = np.isin(
    np.arange(256), np.frombuffer(f"{ascii_letters}{digits}+/".encode(), dtype=np.uint8)
)


@dataclass(frozen=True, eq=False)
class ReportLines:
    """A chunk of n reports, with times in epoch milliseconds if all lines have one."""

    reports: Reports
    times_ms: Integers | None


def write_reports(spec: CollectionSpec, reports: Reports, times_ms: Integers | None) -> bytes:
    """Return the lines of n reports; times are cut to the collection's precision here."""
    if not len(reports):
        return b""
    encoded = spec.mechanism.encode(reports)
    columns = [_texts(_head(spec)), _encode_rows(encoded)]
    if times_ms is not None:
        columns += [_texts(_TIME_HEAD), format_times(times_ms - times_ms % spec.precision_ms)]
    columns.append(_texts(_TAIL))
    rows = np.hstack(
        [np.broadcast_to(column, (len(encoded), column.shape[1])) for column in columns]
    )
    lines = rows.tobytes()
    return lines.replace(b"\0", b"") if b"\0" in lines else lines


def write_table(
    sink: BinaryIO, spec: CollectionSpec, chunks: Iterable[tuple[Reports, Integers | None]]
) -> None:
    """Write reports as an Arrow file; one that is not written to its end is refused when read."""
    arrow, ipc = import_arrow("pyarrow"), import_arrow("pyarrow.ipc")
    writer, of_report = None, arrow.binary(spec.mechanism.report_bytes)
    of_time = arrow.timestamp("ms", tz="UTC")
    for reports, times_ms in chunks:
        encoded: NDArray[Any] = spec.mechanism.encode(reports)
        columns = {"report": (of_report, encoded)}
        if times_ms is not None:
            columns["time"] = (of_time, times_ms - times_ms % spec.precision_ms)
        schema = arrow.schema(
            [(name, kind) for name, (kind, _) in columns.items()], metadata=_metadata(spec)
        )
        # From their buffers: pyarrow's conversions import pandas where it is installed.
        arrays = [
            arrow.Array.from_buffers(
                kind, len(cells), [None, arrow.py_buffer(np.ascontiguousarray(cells))]
            )
            for kind, cells in columns.values()
        ]
        if writer is None:
            writer = ipc.new_file(sink, schema)
        writer.write_batch(arrow.RecordBatch.from_arrays(arrays, schema=schema))
    if writer is not None:
        writer.close()


def _metadata(spec: CollectionSpec) -> dict[bytes, bytes]:
    name = spec.name.encode()
    return {b"collection": name, b"fingerprint": spec.fingerprint.hex().encode()}


def _head(spec: CollectionSpec) -> bytes:
    """Return what comes before a report in each line that `privatize` writes."""
    fingerprint = spec.fingerprint.hex()
    name = json.dumps(spec.name)
    return f'{{"collection":{name},"fingerprint":"{fingerprint}","report":"'.encode()


def _texts(text: bytes) -> Texts:
    return np.frombuffer(text, dtype=np.uint8)[np.newaxis]


def _encode_rows(encoded: NDArray[np.uint8]) -> Texts:
    """Return n rows of bytes, `(n, B)`, each in base64, as characters `(n, L)`.

    They are encoded as one text, with zeros in place of the padding of each.
    """
    n, size = encoded.shape
    padding = -size % 3
    padded = np.zeros((n, size + padding), dtype=np.uint8)
    padded[:, :size] = encoded
    texts = np.frombuffer(bytearray(b64encode(padded.tobytes())), dtype=np.uint8).reshape(n, -1)
    texts[:, texts.shape[1] - padding :] = ord("=")
    return texts


def _decode_rows(texts: Texts, size: int) -> NDArray[np.uint8] | None:
    """Return n texts in base64, as characters `(n, L)`, as rows of `size` bytes.

    None if one of them is not base64 of that length.
    """
    padding = -size % 3
    if texts.shape[1] != (size + padding) // 3 * 4:
        return None
    texts = texts.copy()
    if np.any(texts[:, texts.shape[1] - padding :] != ord("=")):
        return None
    texts[:, texts.shape[1] - padding :] = ord("A")
    if not _BASE64[texts].all():
        return None
    decoded = np.frombuffer(b64decode(texts.tobytes()), dtype=np.uint8)
    return decoded.reshape(len(texts), -1)[:, :size]


def read_reports(
    stream: BinaryIO, spec: CollectionSpec, *, chunk: int, near: NearNow | None = None
) -> Iterator[ReportLines]:
    """Read all reports, up to `chunk` at a time; their times must be within `near`.

    Rows of a table are lines, too.

    Raises:
        Refused: naming the line, for anything but a report of this spec, for an implausible time,
            and where only some lines have a time. Says how many lines are bad: in a file all of
            them, in a pipe those read so far. Also for an empty or unreadable input.
    """
    bad = BadLines(source_name(stream))
    with buffering(stream, bad.name) as buffered:
        if begins_table(buffered.peek(1)):
            yield from _read_table(buffered, spec, bad, chunk, near)
        else:
            yield from _read_lines(buffered, spec, bad, chunk, near)
    if bad.count:
        raise bad.refusal()
    if bad.read == 0:
        raise Refused(f"{bad.name}: expected at least one report line, got none")


def _read_lines(
    stream: BinaryIO, spec: CollectionSpec, bad: BadLines, chunk: int, near: NearNow | None
) -> Iterator[ReportLines]:
    timed: bool | None = None
    while lines := list(islice(stream, chunk)):
        line = bad.read + 1
        parsed = _parse(lines, spec, bad, near)
        if parsed is None:
            if bad.enough(last=len(lines) < chunk, whole=stream.seekable()):
                return
            continue
        if timed not in {None, parsed.times_ms is not None}:
            raise _mixed(bad.name, line)
        timed = parsed.times_ms is not None
        yield parsed


def _read_table(
    stream: BinaryIO, spec: CollectionSpec, bad: BadLines, chunk: int, near: NearNow | None
) -> Iterator[ReportLines]:
    def check(schema: Any) -> list[str]:
        metadata = schema.metadata or {}
        if not _metadata(spec).items() <= metadata.items():
            what = f"collection {spec.name} with fingerprint {spec.fingerprint.hex()}"
            raise Refused(f"{bad.name}: expected a table that privatize --to wrote for {what}")
        types = {field.name: str(field.type) for field in schema}
        size = spec.mechanism.report_bytes
        expected = {"report": f"fixed_size_binary[{size}]", "time": "timestamp[ms, tz=UTC]"}
        if "report" not in types or not types.items() <= expected.items():
            what = ", ".join(f"{name} ({kind})" for name, kind in expected.items())
            raise Refused(f"{bad.name}: expected the columns {what}, of which time may be missing")
        return list(types)

    for batch in read_batches(stream, bad.name, chunk, choose=check):
        if any(column.null_count for column in batch.columns):
            raise Refused(f"{bad.name}: expected no missing cells")
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        size, start = spec.mechanism.report_bytes, columns["report"].offset
        # Whoever wrote the table may have filled up the buffer.
        payload = np.frombuffer(columns["report"].buffers()[1], dtype=np.uint8)
        encoded = payload[start * size : (start + len(batch)) * size].reshape(-1, size)
        times_ms = numbers_of(columns["time"].view("int64")) if "time" in columns else None
        parsed = _decode(encoded, times_ms, spec, bad, near, {})
        if parsed is not None:
            yield parsed
        elif bad.enough(last=len(batch) < chunk, whole=True):
            return


def _parse(
    lines: Sequence[bytes], spec: CollectionSpec, bad: BadLines, near: NearNow | None
) -> ReportLines | None:
    """Return the reports of the next lines; None if a line so far is bad."""
    line = bad.read + 1
    uniform = _parse_uniform(lines, spec, near)
    if uniform is not None:
        bad.read += len(lines)
        return None if bad.count else uniform
    payload = bytearray()
    times_ms: list[int] = []
    wrong: dict[int, str] = {}
    for position, text in enumerate(lines):
        try:
            report, time_ms = _parse_line(text, spec)
        except ValueError as error:
            wrong[position] = str(error)
            report, time_ms = bytes(spec.mechanism.report_bytes), times_ms[-1] if times_ms else None
        payload += report
        if time_ms is not None:
            times_ms.append(time_ms)
        if not wrong and len(times_ms) not in {0, position + 1}:
            raise _mixed(bad.name, line + position)
    encoded = np.frombuffer(payload, dtype=np.uint8).reshape(len(lines), -1)
    times = np.array(times_ms, dtype=np.int64) if times_ms else None
    return _decode(encoded, times, spec, bad, near, wrong)


def _decode(
    encoded: NDArray[np.uint8],
    times_ms: Integers | None,
    spec: CollectionSpec,
    bad: BadLines,
    near: NearNow | None,
    wrong: dict[int, str],
) -> ReportLines | None:
    """Return the next reports; None if a line so far is bad, as those `wrong` by their places."""
    line = bad.read + 1
    bad.read += len(encoded)
    reports, valid = spec.mechanism.decode(encoded)
    for position in np.flatnonzero(~valid).tolist():
        wrong.setdefault(position, f"a report that {spec.name} can produce")
    if near is not None and times_ms is not None and len(times_ms) == len(encoded):
        for position, expected in near.far(times_ms).items():
            wrong.setdefault(position, expected)
    for position in sorted(wrong):
        bad.add(line + position, wrong[position])
    return None if bad.count else ReportLines(reports, times_ms)


def _parse_uniform(
    lines: Sequence[bytes], spec: CollectionSpec, near: NearNow | None
) -> ReportLines | None:
    """Return the reports of good lines as `privatize` writes them, all of one length.

    None for all others, which are read one by one.
    """
    text, length = b"".join(lines), len(lines[0])
    if set(map(len, lines)) != {length}:
        return None
    rows = np.frombuffer(text, dtype=np.uint8).reshape(len(lines), length)
    head, size = _head(spec), spec.mechanism.report_bytes
    start = len(head)
    end = start + (size + -size % 3) // 3 * 4
    encoded = _decode_rows(rows[:, start:end], size)
    if encoded is None or not _all_are(rows[:, :start], head):
        return None
    times_ms = None
    if not _all_are(rows[:, end:], _TAIL):
        times_ms = _read_times(rows[:, end:])
        if times_ms is None or (near is not None and near.far(times_ms)):
            return None
    reports, valid = spec.mechanism.decode(encoded)
    return ReportLines(reports, times_ms) if valid.all() else None


def _all_are(texts: Texts, text: bytes) -> bool:
    return texts.shape[1] == len(text) and bool((texts == _texts(text)).all())


def _read_times(texts: Texts) -> Integers | None:
    """Return the times that follow the reports of lines; None if any line goes on otherwise."""
    start, end = len(_TIME_HEAD), texts.shape[1] - len(_TAIL)
    if start >= end or not (
        _all_are(texts[:, :start], _TIME_HEAD) and _all_are(texts[:, end:], _TAIL)
    ):
        return None
    return parse_times(texts[:, start:end])


def _parse_line(text: bytes, spec: CollectionSpec) -> tuple[bytes, int | None]:
    """Return a line's payload and time; ValueError says what was expected."""
    try:
        fields = json.loads(text, object_pairs_hook=without_repeats)
    except (ValueError, RecursionError):
        raise ValueError("a JSON object as privatize writes it") from None
    needed = {"collection", "fingerprint", "report"}
    if not isinstance(fields, dict) or not needed <= fields.keys() <= needed | {"time"}:
        raise ValueError("a JSON object with collection, fingerprint, report and, optionally, time")
    if fields["collection"] != spec.name:
        raise ValueError(f"a report of collection {spec.name}, got one from another collection")
    if fields["fingerprint"] != spec.fingerprint.hex():
        raise ValueError(
            f"a report with fingerprint {spec.fingerprint.hex()}, got one from another spec: "
            "was the collection's mechanism, epsilon, domain or precision changed?"
        )
    size = spec.mechanism.report_bytes
    try:
        report = b64decode(fields["report"], validate=True)
    except (ValueError, TypeError):
        raise ValueError("a report in base64") from None
    if len(report) != size:
        raise ValueError(f"a report of {size} bytes, got {len(report)}")
    if "time" not in fields:
        return report, None
    return report, parse_time(str(fields["time"]))


def _mixed(name: str, line: int) -> Refused:
    return Refused(f"{name}: line {line}: expected times on all lines, or on none")
