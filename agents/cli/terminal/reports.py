"""Report lines: one JSON object per report; `privatize` writes, `estimate` and `send` read them.

`{"collection": name, "fingerprint": hex, "report": base64}`, and with times `"time"`.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

import numpy as np

from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.value_options import NearNow
from ldpstream.agents.cli.terminal.values import BadLines, source_name, unreadable
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.times import format_time, parse_time
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.wire.spec import CollectionSpec


@dataclass(frozen=True, eq=False)
class ReportLines:
    """A chunk of n reports, with times in epoch milliseconds if all lines have one."""

    reports: Reports
    times_ms: Integers | None


def write_reports(spec: CollectionSpec, reports: Reports, times_ms: Integers | None) -> bytes:
    """Return the lines of n reports; times are cut to the collection's precision here."""
    payload = spec.mechanism.encode(reports).tobytes()
    size = spec.mechanism.report_bytes
    texts = [b64encode(payload[i : i + size]).decode() for i in range(0, len(payload), size)]
    name = json.dumps(spec.name)
    head = f'{{"collection":{name},"fingerprint":"{spec.fingerprint.hex()}","report":"'
    if times_ms is None:
        return "".join(f'{head}{text}"}}\n' for text in texts).encode()
    cut, which = np.unique(times_ms - times_ms % spec.precision_ms, return_inverse=True)
    times = [format_time(time_ms) for time_ms in cut.tolist()]
    rows = zip(texts, which.tolist(), strict=True)
    return "".join(f'{head}{text}","time":"{times[t]}"}}\n' for text, t in rows).encode()


def read_reports(
    stream: BinaryIO, spec: CollectionSpec, *, chunk: int, near: NearNow | None = None
) -> Iterator[ReportLines]:
    """Read all report lines, up to `chunk` at a time; their times must be within `near`.

    Raises:
        Refused: naming the line, for anything but a report of this spec, for an implausible time,
            and where only some lines have a time. Says how many lines are bad: in a file all of
            them, in a pipe those read so far. Also for an empty or unreadable input.
    """
    name = source_name(stream)
    bad = BadLines(name)
    timed: bool | None = None
    while lines := _take(stream, chunk, name):
        line = bad.read + 1
        parsed = _parse(lines, spec, bad, near)
        if parsed is None:
            if bad.enough(len(lines), chunk, whole=stream.seekable()):
                break
            continue
        if timed not in {None, parsed.times_ms is not None}:
            raise _mixed(name, line)
        timed = parsed.times_ms is not None
        yield parsed
    if bad.count:
        raise bad.refusal()
    if bad.read == 0:
        raise Refused(f"{name}: expected at least one report line, got none")


def _take(stream: BinaryIO, chunk: int, name: str) -> list[bytes]:
    try:
        return list(islice(stream, chunk))
    except OSError as error:
        raise unreadable(name, error) from error


def _parse(
    lines: Sequence[bytes], spec: CollectionSpec, bad: BadLines, near: NearNow | None
) -> ReportLines | None:
    """Return the reports of the next lines; None if a line so far is bad."""
    line = bad.read + 1
    bad.read += len(lines)
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
    reports, valid = spec.mechanism.decode(encoded)
    for position in np.flatnonzero(~valid).tolist():
        wrong.setdefault(position, f"a report that {spec.name} can produce")
    times = np.array(times_ms, dtype=np.int64) if times_ms else None
    if near is not None and times is not None and len(times) == len(lines):
        for position, expected in near.far(times).items():
            wrong.setdefault(position, expected)
    for position in sorted(wrong):
        bad.add(line + position, wrong[position])
    return None if bad.count else ReportLines(reports, times)


def _parse_line(text: bytes, spec: CollectionSpec) -> tuple[bytes, int | None]:
    """Return a line's payload and time; ValueError says what was expected."""
    try:
        fields = json.loads(text, object_pairs_hook=_without_repeats)
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


def _without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return an object's fields; ValueError where a key is repeated: JSON would take the last."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a repeated key")
    return fields


def _mixed(name: str, line: int) -> Refused:
    return Refused(f"{name}: line {line}: expected times on all lines, or on none")
