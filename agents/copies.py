"""Copies of late and rejected messages, for the topics where operators look for them.

A copy says why and where from in its headers, and carries nothing of the original's key and
headers. What could be read is copied as frames of just the reports concerned; a message that could
not be read is cut at 64 KiB.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ldpstream.agents.batch import Int64s
from ldpstream.agents.context import Context
from ldpstream.agents.judge import LATE, REJECTED, Judgement
from ldpstream.agents.records import REASONS
from ldpstream.mechanisms.frame import encode_frame

COPY_BYTES: Final = 65_536
_HEAD_BYTES: Final = 12
_RUN_BYTES: Final = 12


@dataclass(frozen=True)
class Copy:
    """A copy of a late or rejected message, at most 64 KiB.

    Headers: `reason` ("late" or why it was rejected), `partition` and `offset` of the source, in
    decimal.
    """

    kind: Literal["late", "rejected"]
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


def make_copies(
    context: Context,
    partition: int,
    records: Sequence[tuple[int, bytes | None]],
    judgement: Judgement,
) -> Iterator[Copy]:
    """Yield the copies that a judged batch of `(offset, message)` calls for."""
    if context.copy_rejected:
        for place, reason in judgement.batch.refused:
            offset, value = records[place]
            yield _copy(reason, partition, offset, (value or b"")[:COPY_BYTES])
    for place, reason, rows in _concerned(judgement):
        if reason == "late" or context.copy_rejected:
            offset, value = records[place]
            for part in _frames(context, judgement, place, rows, value or b""):
                yield _copy(reason, partition, offset, part)


def _copy(reason: str, partition: int, offset: int, value: bytes) -> Copy:
    headers = (
        ("reason", reason.encode()),
        ("partition", str(partition).encode()),
        ("offset", str(offset).encode()),
    )
    return Copy("late" if reason == "late" else "rejected", value, headers)


def _concerned(judgement: Judgement) -> Iterator[tuple[int, str, Int64s]]:
    """Yield `(message, reason, rows of its reports)`, once for each message and reason."""
    batch, good_count = judgement.batch, judgement.good_count
    runs = np.flatnonzero((judgement.fate >= LATE) | (good_count < batch.count))
    start = np.cumsum(batch.count) - batch.count
    found: dict[tuple[int, str], list[Int64s]] = {}
    for run in runs.tolist():
        place, fate = int(batch.message[run]), int(judgement.fate[run])
        rows = np.arange(start[run], start[run] + batch.count[run])
        if fate > LATE:
            found.setdefault((place, REASONS[fate - REJECTED[REASONS[0]]]), []).append(rows)
            continue
        good = judgement.good[rows]
        if not good.all():
            found.setdefault((place, "range"), []).append(rows[~good])
        if fate == LATE and good.any():
            found.setdefault((place, "late"), []).append(rows[good])
    for (place, reason), parts in found.items():
        yield place, reason, np.concatenate(parts)


def _frames(
    context: Context, judgement: Judgement, place: int, rows: Int64s, value: bytes
) -> Iterator[bytes]:
    """Yield frames of these reports: the message itself where it is all of them and fits."""
    batch = judgement.batch
    width = batch.payload.shape[1]
    run = np.searchsorted(np.cumsum(batch.count), rows, side="right")
    first, last = np.searchsorted(batch.message, [place, place + 1])
    if len(value) <= COPY_BYTES and len(rows) == batch.count[first:last].sum():
        yield value
        return
    limit = (COPY_BYTES - _HEAD_BYTES) // (_RUN_BYTES + width)
    for at in range(0, len(rows), limit):
        part = slice(at, at + limit)
        times_ms = batch.time_ms[run[part]]
        yield encode_frame(context.spec.fingerprint, times_ms, batch.payload[rows[part]])
