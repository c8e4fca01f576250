"""Copy late and rejected messages to the topics where operators look for them.

A copy's headers say why it was made and where the message came from; the original's key and headers
are not copied. A readable message is copied as frames of only the reports concerned, an unreadable
one is cut at 64 KiB.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from ldpstream.agents.partition.batch import Int64s
from ldpstream.agents.partition.classify import FATES, LATE, Classified
from ldpstream.agents.state.context import Context
from ldpstream.mechanisms.wire.frame import encode_frame

COPY_BYTES: Final = 65_536
COPIES_LIMIT: Final = 4_096
COPIES_BYTES: Final = 4 << 20
_HEAD_BYTES: Final = 12
_RUN_BYTES: Final = 12


@dataclass(frozen=True)
class Copy:
    """A copy of a late or rejected message, at most 64 KiB.

    Headers: `reason` ("late", or the reason for rejection), `partition` and `offset` of the source,
    in decimal.
    """

    kind: Literal["late", "rejected"]
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


@dataclass
class WaitingCopies:
    """The copies that go out with the next flush, in order, and the size of all."""

    queued: list[Copy] = field(default_factory=list)
    size_bytes: int = 0

    @property
    def full(self) -> bool:
        """Whether no more copies should be added before the next flush."""
        return len(self.queued) >= COPIES_LIMIT or self.size_bytes >= COPIES_BYTES

    def add(self, copies: Iterable[Copy]) -> None:
        """Queue copies."""
        for copy in copies:
            self.queued.append(copy)
            self.size_bytes += len(copy.value)


def make_copies(
    context: Context,
    partition: int,
    records: Sequence[tuple[int, bytes | None]],
    classified: Classified,
) -> Iterator[Copy]:
    """Yield the copies needed for a classified batch of `(offset, message)`."""
    if context.copy_rejected:
        for place, reason in classified.batch.refused:
            offset, value = records[place]
            yield _copy(reason, partition, offset, (value or b"")[:COPY_BYTES])
    total = np.bincount(classified.batch.message, classified.batch.count, len(records)).astype(int)
    for (place, reason), parts in _concerned(classified).items():
        if reason != "late" and not context.copy_rejected:
            continue
        offset, value = records[place]
        if value is not None and len(value) <= COPY_BYTES and sum(map(len, parts)) == total[place]:
            yield _copy(reason, partition, offset, value)
            continue
        for frame in _frames(context, classified, np.concatenate(parts)):
            yield _copy(reason, partition, offset, frame)


def _copy(reason: str, partition: int, offset: int, value: bytes) -> Copy:
    headers = (
        ("reason", reason.encode()),
        ("partition", str(partition).encode()),
        ("offset", str(offset).encode()),
    )
    return Copy("late" if reason == "late" else "rejected", value, headers)


def _concerned(classified: Classified) -> dict[tuple[int, str], list[range | Int64s]]:
    """Return the rows of the reports to copy, in parts, by message and reason."""
    batch, good_count = classified.batch, classified.good_count
    runs = np.flatnonzero((classified.fate >= LATE) | (good_count < batch.count))
    ends = np.cumsum(batch.count)[runs]
    found: dict[tuple[int, str], list[range | Int64s]] = {}
    for place, fate, good, count, end in zip(
        batch.message[runs].tolist(),
        classified.fate[runs].tolist(),
        good_count[runs].tolist(),
        batch.count[runs].tolist(),
        ends.tolist(),
        strict=True,
    ):
        rows = range(end - count, end)
        if fate > LATE:
            found.setdefault((place, FATES[fate]), []).append(rows)
        elif good == count:
            found.setdefault((place, "late"), []).append(rows)
        else:
            taken = classified.good[rows.start : end]
            for reason, bad in classified.reasons(rows.start + np.flatnonzero(~taken)):
                found.setdefault((place, reason), []).append(bad)
            if fate == LATE and good:
                found.setdefault((place, "late"), []).append(rows.start + np.flatnonzero(taken))
    return found


def _frames(context: Context, classified: Classified, rows: Int64s) -> Iterator[bytes]:
    """Yield frames of these reports, each at most 64 KiB."""
    batch = classified.batch
    run = np.searchsorted(np.cumsum(batch.count), rows, side="right")
    limit = (COPY_BYTES - _HEAD_BYTES) // (_RUN_BYTES + batch.payload.shape[1])
    for at in range(0, len(rows), limit):
        part = slice(at, at + limit)
        times_ms = batch.time_ms[run[part]]
        yield encode_frame(context.spec.fingerprint, times_ms, batch.payload[rows[part]])
